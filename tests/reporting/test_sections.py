"""Sections: the numbers and words of a report, before there is any HTML."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from whosthere.auditing.follow_up import MeanOverTargets
from whosthere.auditing.policy import Policy
from whosthere.data.floor import LEAST_PEOPLE
from whosthere.data.regions import Regions
from whosthere.game.leaks import table_of_regions
from whosthere.game.plan import TargetChoice
from whosthere.inference.finding import Finding
from whosthere.inference.vocabulary import METRICS
from whosthere.reporting.charts.risk import OUTCOMES, DotChart, TradeOff
from whosthere.reporting.sections.about import about_section, command_of, glossary_of, subject_of
from whosthere.reporting.sections.comparison import (
    comparison_json,
    comparison_page,
    difference,
    distinct_names,
)
from whosthere.reporting.sections.overview import advice, overview
from whosthere.reporting.sections.parts import Lookup
from whosthere.reporting.sections.people import target_numbers, where_section, who_section
from whosthere.reporting.sections.sure import sure_section
from whosthere.reporting.words import number, shortened, texts, with_interval, words_of

SETTINGS = ("raw, m=100", "suppress(k=1), m=100", "laplace(eps=0.1, unit=event), m=100")


def decided(audit, *decisions):
    verdicts = tuple(
        replace(verdict, decision=decision)
        for verdict, decision in zip(audit.verdicts, decisions, strict=True)
    )
    return replace(audit, verdicts=verdicts)


def advised(audit):
    return " ".join(advice(audit))


class TestNumbers:
    def test_short_texts_stay(self):
        assert shortened("suppress(k=1), m=100") == "suppress(k=1), m=100"

    @pytest.mark.parametrize("longest", [3, 10, 57, 120])
    def test_long_texts_lose_their_middle(self, longest):
        text = "a" * 5000 + "z" * 5000
        short = shortened(text, longest)
        assert len(short) == longest
        assert short.startswith("a")
        assert "\N{HORIZONTAL ELLIPSIS}" in short

    def test_lines_become_one(self):
        assert shortened("a\n b\t c") == "a b c"

    def test_numbers(self):
        assert number(None) == "not known"
        assert number(0.12345) == "0.123"
        assert number(12345.6) == "12,346"
        assert number(float("inf")) == number(1e60) == "more than a million"
        assert number(float("-inf")) == number(-5e6) == "less than minus a million"
        assert number(float("nan")) == "not known"
        assert number(-12345.6) == "-12,346"

    def test_no_number_is_too_large_for_its_sentence(self):
        huge = Finding("raw, m=5", "likelihood-ratio", "auc", -5e6, -6e6, 7e6, 1, 1, 1)
        low, high = "less than minus a million", "more than a million"
        assert with_interval(huge) == f"{low} ({low} to {high})"


class TestOverview:
    def test_verdicts_by_one_attack_are_pointed_out(self, audit):
        assert not [said for said in overview(audit).warnings if "alone" in said]
        first, *others = audit.verdicts
        alone = replace(audit, verdicts=(replace(first, alone="knock-knock"), *others))
        assert "Some verdicts rest on one attack alone: knock-knock." in overview(alone).warnings

    def test_a_card_for_every_verdict_with_its_own_words(self, audit):
        cards = overview(audit).cards
        assert [card.verdict for card in cards] == list(audit.verdicts)
        assert [card.number for card in cards] == [1, 2, 3]

    def test_people_found_are_the_largest_tpr_of_the_group(self, audit):
        found = Lookup(audit.findings)
        for card in overview(audit).cards:
            best = max(
                found.find(card.verdict.setting, attack, "tpr_at_fpr_1pct").estimate
                for attack in found.attacks
            )
            assert f"about {best * 100:,.0f} (" in card.headline
            assert ") of 100 people" in card.headline

    def test_cards_say_what_is_left_and_what_is_useless(self, audit):
        first, *others = audit.verdicts
        left = {"pattern_correlation": 0.16, "relative_error": 3.6}
        useless = replace(first, decision="accept", useless=True, left=left, knows="their homes")
        screen = overview(replace(audit, verdicts=(useless, *others)))
        assert [card.shown_as for card in screen.cards] == ["useless", "reject", "cannot tell"]
        assert "pattern correlation 0.16, relative error 3.60" in screen.cards[0].headline
        assert "who knows their homes" in screen.cards[0].headline
        assert screen.cards[1].done == "Counts of 1 are published as 0."

    def test_headlines_say_what_is_guaranteed(self, audit):
        said = [card.headline for card in overview(audit).cards]
        assert said[0].endswith("Nothing is guaranteed.")
        assert said[2].endswith("the odds that a person is in rise at most 1.5-fold.")

    def test_a_picture_for_each_limit_with_intervals_and_lines(self, audit):
        screen = overview(audit)
        assert list(screen.pictures) == [limit.metric for limit in audit.policy.limits]
        chart = screen.pictures["auc"]
        assert isinstance(chart, DotChart)
        assert chart.limit == 0.6
        assert [row.bounds.get("guarantee") for row in chart.rows] == [
            None,
            None,
            pytest.approx(0.6),
        ]
        for row in chart.rows:
            assert row.dots[0].low <= row.dots[0].estimate <= row.dots[0].high
            assert "ceiling" in row.bounds

    def test_risk_is_drawn_against_utility_where_it_was_measured(self, full_audit):
        chart = overview(full_audit).pictures["auc"]
        assert isinstance(chart, TradeOff)
        assert [point.kept for point in chart.rows] == pytest.approx([0.9, 0.8, 0.7])
        assert [point.number for point in chart.rows] == [1, 2, 3]
        assert "correlation" in chart.kept

    def test_the_table_has_the_worst_of_all_attacks(self, audit):
        table = overview(audit).table
        heads = [head.words for head in table.heads]
        found = Lookup(audit.findings)
        for row, setting in zip(table.rows, SETTINGS, strict=True):
            auc = row[heads.index("mean AUC")]
            assert auc.sort == max(
                found.find(setting, attack, "auc").estimate for attack in found.attacks
            )
            assert len(row) == len(heads)

    def test_what_bounds_attacks_has_a_table_of_its_own(self, audit):
        table = overview(audit).bounds
        odds = [head.words for head in table.heads].index("odds factor")
        assert [row[odds].text for row in table.rows][:2] == ["no guarantee"] * 2
        assert table.rows[2][odds].text.endswith("1.5")

    def test_the_table_says_what_is_done_and_what_is_left_before_the_risk(self, full_audit):
        table = overview(full_audit).table
        terms = [head.term for head in table.heads]
        assert terms[2:6] == [
            *("tpr_at_fpr_1pct", "pattern_correlation", "relative_error", "cells_kept")
        ]
        assert [head.asked for head in table.heads][2:4] == ["\u2264 0.1 of them", "\u2265 0.5"]
        assert table.rows[0][0].detail == "The true counts are published unchanged."

    def test_what_leaves_nothing_is_no_accept_anywhere(self, full_audit):
        accepted = replace(full_audit.verdicts[0], decision="accept")
        for useless, shown in ((True, "useless"), (False, "accept")):
            one = replace(accepted, useless=useless, alone="likelihood-ratio")
            screen = overview(replace(full_audit, verdicts=(one, *full_audit.verdicts[1:])))
            cell = screen.table.rows[0][1]
            assert (cell.decision, cell.text) == (shown, shown.upper())
            assert screen.cards[0].shown_as == shown
            for chart in screen.pictures.values():
                assert chart.rows[0].dots[0].key == OUTCOMES[shown]
        assert "not shown to be safe" in screen.table.rows[2][1].detail
        for said in ("useless", "cannot tell"):
            assert texts()["decisions"][said]["meaning"].startswith("This is not a yes.")
            assert texts()["decisions"][said]["class"] != "accept"

    def test_the_table_has_every_limited_metric(self, made_audit):
        own = Policy("strict", {"pooled_auc": 0.6, "auc_p90": 0.7})
        for one in (made_audit(), made_audit(policy=own, targets=6)):
            terms = [head.term for head in overview(one).table.heads]
            assert {limit.metric for limit in one.policy.limits} <= set(terms)

    def test_decisions_in_the_table_are_qualified(self, audit):
        one = replace(audit.verdicts[0], useless=True, alone="likelihood-ratio")
        changed = replace(audit, verdicts=(one, *audit.verdicts[1:]))
        detail = overview(changed).table.rows[0][1].detail
        assert detail == "(useless) (by likelihood-ratio alone)"

    def test_warnings(self, audit):
        assert overview(audit).warnings == ()
        assert "no control" in overview(replace(audit, trusted=None)).warnings[0]
        assert "control failed" in overview(replace(audit, trusted=False)).warnings[0]
        failed = overview(replace(audit, failed_tasks=3)).warnings
        assert failed == ("3 of 120 tasks failed; all numbers rest on the others.",)

    def test_what_is_known_of_a_target_makes_no_other_tasks(self, audit):
        [first, *_] = audit.manifest["settings"]
        manifest = audit.manifest | {"settings": [first, first | {"knowledge": "share(0.5)"}]}
        failed = overview(replace(audit, manifest=manifest, failed_tasks=3)).warnings
        assert failed[0].startswith("3 of 40 tasks failed")

    def test_cautions_of_the_plan_are_warnings(self, audit):
        cautious = replace(audit, manifest=audit.manifest | {"cautions": ["Groups share people."]})
        assert overview(cautious).warnings == ("Groups share people.",)

    def test_nothing_measured(self, audit):
        nothing = replace(
            audit,
            findings=(),
            verdicts=(),
            scores=pl.DataFrame(),
            targets=pl.DataFrame(),
        )
        screen = overview(nothing)
        assert not screen.cards
        assert not screen.pictures
        assert who_section(nothing) is None
        assert sure_section(nothing).curves == ()


class TestAdvice:
    def test_two_sentences_in_every_case(self):
        for case, sentences in texts()["advice"].items():
            assert len(sentences) == 2, case

    def test_follows_from_the_verdicts(self, audit):
        reject, unsure, accept = "reject", "cannot tell", "accept"
        assert "whosthere recommend" in advised(decided(audit, reject, reject, reject))
        assert "more targets" in advised(decided(audit, reject, unsure, reject))
        one = advised(decided(audit, reject, unsure, accept))
        assert SETTINGS[2] in one
        assert SETTINGS[0] not in one
        several = advised(decided(audit, accept, reject, accept))
        assert SETTINGS[0] in several
        assert SETTINGS[2] in several

    def test_names_the_most_useful_where_utility_is_known(self, full_audit):
        said = advised(decided(full_audit, "reject", "accept", "accept"))
        assert f"{SETTINGS[1]} keeps most" in said

    def test_no_trust_no_publication(self, audit):
        good = decided(audit, "accept", "accept", "accept")
        assert "controls failed" in advised(replace(good, trusted=False))
        assert "without a control" in advised(replace(good, trusted=None))

    def test_safe_but_useless_is_no_success(self, full_audit):
        def emptied(audit, *which):
            verdicts = [
                replace(verdict, useless=i in which) for i, verdict in enumerate(audit.verdicts)
            ]
            return replace(audit, verdicts=tuple(verdicts))

        one = decided(full_audit, "reject", "reject", "accept")
        assert "safe, but useless" in advised(emptied(one, 2))
        assert "safe, but useless" not in advised(emptied(one, 0, 1))
        two = decided(full_audit, "reject", "accept", "accept")
        assert "safe, but useless" in advised(emptied(two, 1, 2))
        # The one that keeps most keeps too little, so the other one is named.
        assert f"publish with {SETTINGS[2]}" in advised(emptied(two, 1))

    def test_says_what_is_left(self, full_audit):
        one = decided(full_audit, "reject", "reject", "accept")
        kept = replace(one.verdicts[2], left={"pattern_correlation": 0.84, "relative_error": 0.45})
        one = replace(one, verdicts=(*one.verdicts[:2], kept))
        assert "pattern correlation 0.84, relative error 0.45" in advised(one)


@pytest.fixture(scope="module")
def by_hand(made_audit):
    return made_audit(choice=TargetChoice(by_hand=True))


@pytest.fixture(scope="module")
def frequent(made_audit):
    return made_audit(choice=TargetChoice(min_visits=20, eligible=113, people=2000))


class TestChoiceOfTargets:
    """Reports say whom the numbers are about."""

    def test_people_named_by_hand(self, by_hand):
        assert "accept" not in {verdict.decision for verdict in by_hand.verdicts}
        said = advised(by_hand)
        assert "You can publish" not in said
        assert "named by hand" in said
        screen = overview(by_hand)
        assert any("named by hand" in warning for warning in screen.warnings)
        assert all("named by hand" in card.headline for card in screen.cards)
        method = " ".join(about_section(by_hand).method)
        assert "at random" not in method
        assert "named the targets by hand" in method
        command = command_of(by_hand)
        assert "--user ..." in command
        assert "--targets" not in command
        assert "--user" in about_section(by_hand).left_out

    def test_people_with_many_visits(self, frequent):
        good = decided(frequent, "reject", "reject", "accept")
        assert "as far as people with 20 or more visits are concerned" in advised(good)
        screen = overview(frequent)
        assert any("(113 of 2,000)" in warning for warning in screen.warnings)
        for card, row in zip(screen.cards, screen.table.rows, strict=True):
            assert "of the people with 20 or more visits who are in a release" in card.headline
            assert "of the people with 20 or more visits" in row[2].text
        assert "from the people with 20 or more visits" in " ".join(about_section(frequent).method)
        assert "--targets 40 \\\n    --min-visits 20" in command_of(frequent)
        facts = about_section(frequent).facts
        assert "20 or more visits" in facts["how targets were chosen"]

    def test_everybody(self, audit):
        about = about_section(audit)
        assert "draws targets at random from your data." in " ".join(about.method)
        assert about.left_out == ""
        assert "--min-visits" not in about.command

    def test_nobody_knows(self, audit):
        unknown = replace(audit, manifest=audit.manifest | {"targets_chosen": None})
        about = about_section(unknown)
        assert "at random" not in " ".join(about.method)
        assert "--min-visits" in about.left_out

    def test_audits_of_other_people_are_compared_with_a_warning(self, audit, frequent):
        page = comparison_page([audit, frequent])
        assert any("different people" in warning for warning in page.warnings)
        (row,) = [row for row in page.plans.rows if row[0].text == "how targets were chosen"]
        assert row[1].text == "drawn at random"
        assert "20 or more visits" in row[2].text
        assert comparison_page([audit, audit]).warnings == ()


class TestPeople:
    def test_a_panel_for_each_attack_and_setting(self, audit):
        section = who_section(audit)
        assert len(section.panels) == 6
        panel = section.panels[0]
        aucs = audit.targets.filter(
            (pl.col("setting") == SETTINGS[0]) & (pl.col("attack") == "knock-knock")
        )["auc"]
        assert sorted(panel.figures["spread"].values) == pytest.approx(sorted(aucs))
        assert len(panel.figures["visits"].points) == 40
        assert section.releases == 20

    def test_targets_are_numbered_anew(self, audit):
        numbers = target_numbers(audit)
        assert sorted(numbers.values()) == list(range(1, 41))
        by_row = [numbers[row] for row in sorted(numbers)]
        assert by_row != sorted(by_row)
        assert target_numbers(audit) == numbers

    def test_no_row_of_the_traces_is_told(self, audit):
        rows = set(map(str, audit.targets["target"].unique().to_list()))
        said = [
            point[2]
            for panel in who_section(audit).panels
            for point in (*panel.figures["visits"].points, *panel.figures["uniqueness"].points)
        ]
        assert said
        assert not [text for text in said for row in rows if row in text]


class TestPlaces:
    def test_not_measured(self, audit):
        assert where_section(audit) is None

    def test_small_groups_are_hidden_whatever_the_file_says(self, full_audit):
        panel = where_section(full_audit).panels[0]
        few = full_audit.leaks.filter(
            (pl.col("setting") == SETTINGS[0])
            & (pl.col("axis") == "region")
            & (pl.col("targets") < LEAST_PEOPLE)
        )["index"].to_list()
        assert few
        for i, place in enumerate(panel.figures["map"].places):
            assert (place.shade == "none") == (i in few)
            assert ("not shown" in place.title) == (i in few)
        shown = {row[0].text for row in panel.table.rows}
        assert shown.isdisjoint(f"r{i}" for i in few)
        hidden = [said for level, said in panel.figures["week"].hours if level == "none"]
        assert len(hidden) == len(range(168)) * 5 // 12
        assert all("not shown" in said for said in hidden)

    def test_amounts_are_from_people_and_their_number_is_said(self, full_audit):
        counted = replace(full_audit, manifest=full_audit.manifest | {"people_looked_at": 400})
        section = where_section(counted)
        panel = section.panels[0]
        titles = [place.title for place in panel.figures["map"].places]
        assert any(title.endswith(" people or more") for title in titles)
        assert not any("target" in title for title in titles)
        assert panel.table.heads[-1].words == "people (at least)"
        assert section.people == 400

    def test_the_leakiest_place_is_darkest_and_first(self, full_audit):
        panel = where_section(full_audit).panels[0]
        assert panel.figures["map"].places[8].shade == "q4"
        assert panel.table.rows[0][0].text == "r8"

    def test_regions_without_positions_have_no_map(self, full_audit):
        nowhere = full_audit.regions.with_columns(lon=pl.lit(None, pl.Float64))
        panel = where_section(replace(full_audit, regions=nowhere)).panels[0]
        assert "map" not in panel.figures
        assert panel.table is not None

    def test_outlines_are_on_the_map_and_may_take_only_so_much_room(self, full_audit):
        """The regions of an audit have their outlines, of which a page shows only so many."""
        squares = Regions(
            list(full_audit.regions["id"]), full_audit.regions["lon"], full_audit.regions["lat"],
            [[[-0.05, -0.05, 0.05, -0.05, 0.05, 0.05, -0.05, 0.05]]],
        )  # fmt: skip
        regions = table_of_regions(squares)
        places = where_section(replace(full_audit, regions=regions)).panels[0].figures["map"].places
        assert [list(map(list, place.outline)) for place in places] == [
            [list(ring) for ring in squares.outline(row)] for row in range(len(squares))
        ]
        many = regions.with_columns(outline=pl.lit([[0.0] * 100_000]))
        assert len(where_section(replace(full_audit, regions=many)).panels) == 1

    def test_hours_that_no_target_touched(self, full_audit):
        few = full_audit.leaks.filter((pl.col("axis") == "region") | (pl.col("index") < 24))
        week = where_section(replace(full_audit, leaks=few)).panels[0].figures["week"]
        assert len(week.hours) == 168
        assert all(level == "none" for level, _ in week.hours[24:])

    def test_what_if(self, full_audit):
        table = where_section(full_audit).what_if
        row = [cell.text for cell in table.rows[0]]
        assert row[3:] == ["0.900", "0.700", "0.920", "0.840"]
        [change] = full_audit.what_if
        unknown = replace(change, after=MeanOverTargets(None, None, None), utility_after={})
        [row] = where_section(replace(full_audit, what_if=(unknown,))).what_if.rows
        assert row[4].text == row[6].text == "\N{EN DASH}"


class TestCertainty:
    def test_curves_of_every_attack_and_the_ceiling(self, audit):
        section = sure_section(audit)
        assert len(section.curves) == 3
        names = [curve.key.words for curve in section.curves[0].figures["linear"].curves]
        assert names == ["knock-knock", "likelihood-ratio", "ceiling"]
        assert section.curves[2].figures["linear"].guaranteed == pytest.approx(0.015)
        assert section.curves[0].figures["linear"].guaranteed is None
        assert section.curves[0].figures["logarithmic"].smallest == pytest.approx(0.01)

    def test_the_table_has_sample_sizes_and_lines_last(self, audit):
        table = sure_section(audit).attacks
        attacks = [row[1].text for row in table.rows]
        assert attacks[:3] == ["knock-knock", "likelihood-ratio", "ceiling"]
        assert attacks[-1] == "guarantee"
        assert [cell.text for cell in table.rows[0][-3:]] == ["40", "400", "400"]

    def test_controls(self, audit):
        table = sure_section(audit).controls
        assert {row[-1].text for row in table.rows} == {"yes"}
        broken = tuple(
            replace(one, low=0.6) if one.metric == "control_auc" else one for one in audit.findings
        )
        bad = sure_section(replace(audit, findings=broken)).controls
        assert [row[-1].text for row in bad.rows].count("NO") == 1
        none = tuple(one for one in audit.findings if one.holds is None)
        assert sure_section(replace(audit, findings=none)).controls is None

    def test_marginals(self, full_audit):
        estimated = sure_section(full_audit).estimated
        assert len(estimated) == 3
        assert [len(chart.points) for chart in estimated[0].figures.values()] == [9, 168]


class TestAbout:
    def test_what_is_signed_for(self, audit):
        said = subject_of(audit.manifest, audit.policy)
        assert said["Data"] == (
            "2,000 people, 9,000 visits, 9 regions, 2026-03-02 to 2026-03-08 (Europe/Rome) "
            "in 168 epochs of 1h"
        )
        assert said["Traces"] == f"SHA-256 {'ab' * 32}"
        assert (said["Audited"], said["By"]) == ("2026-01-01 00:00 UTC", "whosthere 0.1.0")
        assert said["Policy"].startswith("whosthere default: mean AUC at most 0.6; ")
        # Folders of former audits say less.
        assert subject_of({}, audit.policy).keys() == {"By", "Policy"}

    def test_every_measure_is_explained(self, audit):
        assert {one.metric for one in audit.findings} <= glossary_of(audit.findings).keys()

    def test_heads_of_all_tables_are_explained(self, full_audit):
        known = glossary_of(full_audit.findings)
        certain = sure_section(full_audit)
        tables = (
            overview(full_audit).table,
            who_section(full_audit).table,
            certain.attacks,
            certain.controls,
        )
        for table in tables:
            for head in table.heads:
                is_ours = head.term in METRICS or head.term in texts()["glossary"]
                assert head.term is None or not is_ours or head.term in known

    def test_facts_do_not_say_who_the_targets_are(self, audit):
        facts = about_section(audit).facts
        assert facts["targets"] == "40"
        rows = audit.plan["targets"]
        assert not [row for row in rows for text in facts.values() if str(row) in text]

    def test_the_command_has_everything(self, audit):
        command = command_of(audit)
        for part in ("'suppress(k=1)'", "--group-size 100", "--targets 40", "--seed 5"):
            assert part in command
        assert "\\\n" in command

    def test_the_command_has_what_is_not_usual(self, made_audit):
        names = ("raw, m=9", "raw, m=9, knows regions(top=2)")
        one = made_audit(settings=names, strengths=(1.0, 1.0), targets=5)
        plan = one.plan | {"past_releases": 40, "first_epoch": 24}
        later = replace(one, manifest=one.manifest | {"plan": plan})
        about = about_section(later)
        for part in (
            "--knowledge all",
            "'regions(top=2)'",
            "--past-releases 40",
            "--test-from ...",
        ):
            assert part in about.command
        assert "--test-from" in about.left_out
        assert "--past-releases" not in command_of(one)
        assert about.command.count("--mechanism") == 1

    def test_the_command_quotes_what_it_must(self, made_audit):
        evil = made_audit(settings=("raw; rm -rf ~, m=9",), strengths=(1.0,), targets=5)
        assert "--mechanism 'raw; rm -rf ~'" in command_of(evil)


class TestComparison:
    def test_settings_are_matched_by_name(self, audit, made_audit):
        other = made_audit(
            settings=("raw, m=100", "suppress(k=9), m=100"), strengths=(0.0, 0.0), name="later"
        )
        page = comparison_page([audit, other])
        assert page.names == ("run", "later")
        assert [row[0].text for row in page.verdicts.rows][-1].endswith("suppress(k=9), m=100")
        assert [cell.text for cell in page.verdicts.rows[0][1:]] == ["REJECT", "CANNOT TELL"]
        assert page.verdicts.rows[1][2].text == "not measured"
        auc = page.measures[0]
        assert auc.table.rows[0][-1].text == "lower"
        assert auc.table.rows[1][-1].text == "not comparable"
        assert len(auc.chart.rows[0].dots) == 2
        assert len(auc.chart.rows[1].dots) == 1

    def test_other_group_sizes_are_matched(self, made_audit):
        small, large = (
            made_audit(
                settings=(f"raw, m={m}", f"raw, m={m}, knows share(0.5)"),
                strengths=(strength, 0.0),
                name=str(m),
                targets=12,
            )
            for m, strength in ((20, 4.0), (40, 0.0))
        )
        page = comparison_page([small, large])
        rows = [row[0].text for row in page.verdicts.rows]
        assert rows == ["1  raw, m=20 / m=40", "2  raw, m=20 / m=40, knows share(0.5)"]
        assert "not measured" not in {cell.text for row in page.verdicts.rows for cell in row}
        assert page.measures[0].table.rows[0][-1].text == "lower"
        assert any("group sizes" in warning for warning in page.warnings)
        change = comparison_json([small, large])["changes"][0]
        assert change["settings"] == ["raw, m=20", "raw, m=40"]
        assert change["against_first"] == ["lower"]

    def test_several_group_sizes_are_matched_by_full_names(self, made_audit):
        both = made_audit(settings=("raw, m=20", "raw, m=40"), strengths=(4.0, 0.0), targets=6)
        one = made_audit(settings=("raw, m=40",), strengths=(0.0,), targets=6)
        rows = comparison_page([both, one]).verdicts.rows
        assert [row[0].text for row in rows] == ["1  raw, m=20", "2  raw, m=40"]
        assert rows[0][2].text == "not measured"

    def test_an_audit_in_which_every_task_failed(self, audit):
        failed = replace(audit, findings=(), verdicts=())
        page = comparison_page([audit, failed])
        assert {row[2].text for row in page.verdicts.rows} == {"not measured"}
        assert {row[-1].text for row in page.measures[0].table.rows} == {"not comparable"}

    def test_an_audit_does_not_differ_from_itself(self, audit):
        page = comparison_page([audit, audit])
        assert page.warnings == ()
        assert page.names == ("1: run", "2: run")
        for measure in page.measures:
            assert {row[-1].text for row in measure.table.rows} == {"cannot tell"}

    def test_what_must_not_be_overlooked(self, audit):
        other = replace(
            audit,
            manifest={**audit.manifest, "traces": "cd"},
            policy=Policy("strict", {"auc": 0.51}),
            trusted=False,
        )
        said = " ".join(comparison_page([audit, other]).warnings)
        assert "control failed" in said
        assert "different policies" in said
        assert "different data" in said

    def test_every_limited_metric_of_some_policy(self, audit, made_audit):
        own = Policy("strict", {"auc_p90": 0.7, "empirical_eps": 3})
        limits = (*audit.policy.limits, *own.limits)
        page = comparison_page([audit, made_audit(policy=own, targets=6)])
        assert {limit.metric for limit in limits} <= {one.metric for one in page.measures}
        compared = comparison_json([audit, audit])["changes"]
        assert "pooled_auc" in {change["metric"] for change in compared}

    def test_decisions_are_qualified(self, audit):
        one = replace(audit.verdicts[0], useless=True, alone="likelihood-ratio")
        changed = replace(audit, verdicts=(one, *audit.verdicts[1:]))
        cell = comparison_page([audit, changed]).verdicts.rows[0][2]
        assert cell.detail == "(useless) (by likelihood-ratio alone)"

    def test_names_are_distinct(self, audit):
        names = distinct_names([audit, audit, replace(audit, folder=Path("x" * 200))])
        assert len(set(names)) == 3
        assert max(map(len, names)) <= 43

    def test_differences(self, audit):
        one = audit.findings[0]
        low, high = replace(one, low=0.1, high=0.2), replace(one, low=0.3, high=0.4)
        assert difference(low, high) == "higher"
        assert difference(high, low) == "lower"
        assert difference(low, replace(low, low=0.2)) == "cannot tell"
        assert difference(low, replace(low, high=None)) == "cannot tell"
        assert difference(low, None) == "not comparable"
        assert difference(low, replace(low, estimate=None)) == "not comparable"


def test_unknown_measures_still_have_words():
    assert words_of("some_new_metric") == "some new metric"
    assert words_of("auc") == METRICS["auc"].words
