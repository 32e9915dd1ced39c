"""The search: it finds what trying everything would find, with far fewer trials."""

import json
import math
import re
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import polars as pl
import pytest

from whosthere.auditing.manifest import only_one
from whosthere.auditing.options import AuditOptions, merged
from whosthere.auditing.policy import Policy
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.store import RunFolder
from whosthere.auditing.work import LocalProcesses, Outcome, ThisProcess, Workers
from whosthere.data.cities import simulate
from whosthere.data.traces import Traces
from whosthere.errors import FileError, InputError, SpecError
from whosthere.inference.looks import ERROR
from whosthere.inference.scores import SCHEMA
from whosthere.inference.vocabulary import CEILING, CONTROL, NOT_ATTACKS
from whosthere.privacy.mechanism import Family, Mechanism
from whosthere.privacy.publish import publish
from whosthere.privacy.utility import utility
from whosthere.search.coarsening import coarsenings
from whosthere.search.recommendation import SEARCHER as SEARCHING_ATTACK
from whosthere.search.recommendation import undominated
from whosthere.search.search import DEFAULT_FAMILIES, InterruptedSearch, prepare_search
from whosthere.search.tester import MOST_CONFIRMATIONS, TrialFailedError

SUPPRESS, LAPLACE, ROUND = "suppress(k=?)", "laplace(eps=?, unit=event)", "round(to=?)"
# With four targets who are all found as by a coin, the interval that decides ends at 0.88 for one
# family, and at 0.904 for three.
FLOORS = {"pattern_correlation": 0.1, "cells_kept": 0.01}
POLICY = Policy("only accuracy", {"accuracy": 0.92}, keep=FLOORS)
SEARCHER = str(SEARCHING_ATTACK)
CHOSEN = {"group_size": 8, "attacks": SEARCHER, "targets": 4, "releases": 4}
OPTIONS = AuditOptions.of(**CHOSEN)


@pytest.fixture(scope="module", autouse=True)
def searcher_releases(full):
    """Let the searcher score 6 releases instead of 60: more than the other attacks all the same."""
    with pytest.MonkeyPatch.context() as patch:
        if not full:
            patch.setattr("whosthere.search.tester._LEAST_RELEASES_TO_SEARCH", 6)
        yield 60 if full else 6


def specs(template):
    return [str(member.mechanism) for member in Family(template).members()]


@cache
def left(mechanism):
    """Return what a mechanism leaves of the counts of some people."""
    people = simulate("milan-like", seed=1, users=400, days=1, regions=9).traces()
    made = publish(people, mechanism=mechanism, group_size=100, seed=0)
    kept = utility(made.release.counts, made.truth)
    return {
        "cells_kept": kept.cells_kept,
        "pattern_correlation": kept.pattern_correlation or 0.0,
    }


class Pretender(Workers):
    """Knows which mechanisms each attack breaks, and makes up scores accordingly.

    Parameters
    ----------
    breaks
        Tells by attack and mechanism whether the attack finds everybody, or nobody.
    breaks_later
        The same on fresh releases; as before where it is not given.
    """

    def __init__(self, breaks, breaks_later=None):
        self.breaks = self.now = breaks
        self.breaks_later = breaks_later or breaks
        self.closed = False

    def do(self, job, tasks):
        self.now = self.breaks if job.plan.seed == OPTIONS.seed else self.breaks_later
        for task in tasks:
            rows = [
                self._row(task, contest, release, control)
                for contest in job.plan.contests_under(task.scheme)
                for control in (False, True)
                for release in range(
                    job.plan.control_releases if control else job.plan.releases_by(contest.attack)
                )
            ]
            # The ceiling is never wrong, and comes with what is left to publish.
            rows += [
                row
                | {
                    "attack": CEILING,
                    "score": row["label"] - 0.5,
                    **left(task.scheme.mechanisms[0]),
                }
                for row in rows
                if row["attack"] == SEARCHER and not row["control"]
            ]
            yield Outcome(task, pl.DataFrame(rows, schema=SCHEMA))

    def _row(self, task, contest, release, control):
        label, attack = control or release % 2 == 0, str(contest.attack)
        is_attack = attack != CEILING
        found = is_attack and self.now(attack, task.scheme.how) and label and not control
        return {
            "setting": str(contest.setting),
            "attack": attack,
            "target": task.number,
            "release": release,
            "label": label,
            "score": 1.0 if found else -1.0,
            "threshold": 0.0,
            "seconds": 0.0,
            "visits": 3,
            "uniqueness": 0.5,
            "calibrated": None,
            "control": control,
        }

    def close(self):
        self.closed = True


@cache
def left_to_publish(traces, scheme):
    """What a protection really leaves, of one group for all targets."""
    made = publish(
        Traces.load(traces), mechanism=scheme.mechanisms[0], group_size=scheme.group_size, seed=1
    )
    found = utility(made.release.counts, made.truth)
    return {
        "visits_kept": found.visits_kept,
        "cells_kept": found.cells_kept,
        "relative_error": found.mean_relative_error,
        "pattern_correlation": found.pattern_correlation or 0.0,
    }


@pytest.fixture
def file(traces, tmp_path):
    path = tmp_path / "traces.parquet"
    traces.save(path)
    return path


class Seen(NamedTuple):
    number: int
    most: int
    trial: str
    done: int
    total: int


def watching(seen):
    """Return who keeps in mind how far a search has come."""

    def move(what, done, total):
        number, most, trial = re.fullmatch(r"trial (\d+) of at most (\d+): (.*)", what).groups()
        seen.append(Seen(int(number), int(most), trial, done, total))

    return move


@pytest.fixture
def search(file):
    """Search with made-up scores; return what was found, and the trials."""

    def run(
        breaks, families=(SUPPRESS,), attacks=SEARCHER, *, check_all=False, later=None, coarsen=()
    ):
        seen = []
        options = AuditOptions.of(**CHOSEN | {"attacks": attacks})
        prepared = prepare_search(
            file, options, families=families, check_all=check_all, coarsen=coarsen
        )
        found = prepared.run(
            policy=POLICY, workers=Pretender(breaks, later), on_progress=watching(seen)
        )
        return found, list(dict.fromkeys(one.trial for one in seen))

    return run


FRESH = " on fresh releases"


def searches(trials):
    """Return what was tried with the searcher alone."""
    return [one.removesuffix(f" with {SEARCHER}") for one in trials if one.endswith(SEARCHER)]


def checks(trials):
    return [
        one.removesuffix(" with knock-knock") for one in trials if one.endswith("with knock-knock")
    ]


def confirmations(trials):
    return [one.split(" with ")[0] for one in trials if one.endswith(FRESH)]


class TestFamily:
    @pytest.mark.parametrize(
        ("template", "weakest_to_strongest"),
        [
            (SUPPRESS, lambda mechanism: mechanism.steps[0].k),
            (ROUND, lambda mechanism: mechanism.steps[0].to),
            (LAPLACE, lambda mechanism: -mechanism.steps[0].eps),
            ("raw | gaussian(eps = ?)", lambda mechanism: -mechanism.steps[0].eps),
            (
                "laplace(eps=?, unit=user-day, max_visits=10) | suppress(k=1)",
                lambda mechanism: -mechanism.steps[0].eps,
            ),
            ("laplace(eps=1) | suppress(k=?)", lambda mechanism: mechanism.steps[1].k),
        ],
    )
    def test_ladders_go_from_weak_to_strong(self, template, weakest_to_strongest):
        strengths = [weakest_to_strongest(one.mechanism) for one in Family(template).members()]
        assert len(strengths) >= 5
        assert strengths == sorted(set(strengths))

    def test_choices_name_their_mechanisms(self):
        for template in DEFAULT_FAMILIES:
            family = Family(template)
            for choice, mechanism in family.members():
                name, value = choice.split("=")
                assert name == family.parameter
                assert mechanism == Mechanism.parse(template.replace("?", value))

    def test_numbers_are_short(self):
        """Products such as 3 * 0.1 must not show up as 0.30000000000000004."""
        for template in DEFAULT_FAMILIES:
            assert all(len(choice) <= len("eps=0.015") for choice, _ in Family(template).members())

    @pytest.mark.parametrize(
        "template",
        [
            "",
            "?",
            "raw",
            "suppress(k=1)",
            "suppress(k)",
            "suppress(?=1)",
            "suppress(k=?1)",
            "suppress(k=??)",
            "suppress(k=?) | round(to=?)",
            "gaussian(eps=1, delta=?)",
            "laplace(eps=1, unit=user, max_visits=?)",
            "laplace(eps=1, unit=?)",
        ],
    )
    def test_refusals_show_an_example(self, template):
        with pytest.raises(SpecError) as error:
            Family(template)
        if "family" in error.value.problem:
            assert repr(template) in str(error.value)
            assert "laplace(eps=?, unit=event)" in str(error.value)

    @pytest.mark.parametrize("template", ["supress(k=?)", "suppress(eps=?)", "laplace(eps=?, u=1)"])
    def test_mechanisms_that_are_none(self, template):
        with pytest.raises(SpecError, match=r"Did you mean|Known"):
            Family(template)


class TestBisection:
    @pytest.mark.parametrize("template", [SUPPRESS, ROUND, LAPLACE])
    def test_finds_what_trying_all_would_find(self, search, template, full):
        members = specs(template)
        most = math.ceil(math.log2(len(members) + 1))
        # From "all pass" to "none passes".
        for n_broken in range(0, len(members) + 1, 1 if full else len(members) // 3):
            broken = set(members[:n_broken])
            found, trials = search(lambda _, spec, broken=broken: spec in broken, (template,))
            assert [one.mechanism for one in found.best] == members[n_broken : n_broken + 1]
            assert len(searches(trials)) <= most
            assert confirmations(trials) == [one.mechanism for one in found.best if not one.useless]
            for one in found.candidates:
                assert one.passes == (one.mechanism not in broken)
            places = [members.index(one.mechanism) for one in found.candidates]
            assert places == sorted(set(places))

    def test_nothing_passes(self, search):
        found, _ = search(lambda *_: True, (SUPPRESS, LAPLACE))
        assert found.best == ()
        assert found.recommended is None
        assert found.to_json()["recommended"] is None
        assert {one.family for one in found.candidates} == {SUPPRESS, LAPLACE}


class TestCoarsening:
    COARSEN = ("epochs=4h,1d", "regions=2")

    def test_every_combination_is_really_tried(self, search):
        """A coarser table can be riskier, so that none says anything about another."""
        found, trials = search(lambda *_: True, (ROUND,), coarsen=self.COARSEN)
        each = dict.fromkeys(one.coarsening.words for one in found.candidates)
        assert list(each) == [
            *("", "regions=2", "epochs=4h", "epochs=4h, regions=2"),
            *("epochs=1d", "epochs=1d, regions=2"),
        ]
        strongest = specs(ROUND)[-1]
        for words in each:
            name = ", ".join(filter(None, (strongest, words)))
            assert name in searches(trials)

    def test_what_passes_over_other_cells_alone_is_found(self, search):
        def breaks(_, how):
            return "4 merged regions" not in how or "4 epochs" in how

        found, trials = search(breaks, (ROUND,), coarsen=self.COARSEN)
        chosen = found.recommended
        assert chosen.coarsening.words == "regions=2"
        assert chosen.name == f"{chosen.mechanism}, regions=2"
        assert confirmations(trials)[-1] == chosen.name
        assert found.to_json()["coarsened"] == "regions=2"
        assert repr(found).startswith(f"<Recommendation: {chosen.name}, of")

    def test_the_traces_to_publish_are_at_hand(self, search, traces):
        found, _ = search(lambda _, how: "merged" not in how, (ROUND,), coarsen=["regions=2"])
        assert len(found.recommended.coarsening.layout(traces).regions) == 4

    def test_confirmations_do_not_grow_with_the_combinations(self, search):
        """They share the error: with more of them, nothing could be accepted any more."""
        later = search(
            lambda *_: False, (ROUND,), later=lambda *_: True, coarsen=("epochs=2h,3h,4h,6h",)
        )
        assert len(confirmations(later[1])) == MOST_CONFIRMATIONS
        assert later[0].recommended is None

    def test_larger_groups(self, file):
        options = AuditOptions.of(**CHOSEN)
        terms = prepare_search(file, options, coarsen=("group_size=12",)).terms
        [as_asked, larger] = (terms.plan("raw", one) for one in terms.coarsenings)
        assert [one.group_size for one in (*as_asked.schemes, *larger.schemes)] == [8, 12]
        assert as_asked.targets == larger.targets

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ("epochs", "does not say what may be larger"),
            ("cells=2", "Write it like epochs=4h,1d"),
            ("epochs=", "Write it like"),
            ("epochs=90min", "multiple of 1h, longer than that and 3d at most"),
            ("epochs=1h", "cannot become epochs of 1h"),
            ("epochs=1w", "cannot become"),
            ("epochs=often", "not a length of time"),
            ("regions=1", "from 2 to 7"),
            ("regions=8", "from 2 to 7"),
            ("regions=2,", "neither a whole number nor a file"),
            ("regions=-2", "neither a whole number nor a file"),
            ("group_size=8", "not larger than 8"),
            ("group_size=4000", "too large"),
        ],
    )
    def test_refusals(self, file, wrong, message):
        with pytest.raises(InputError, match=message):
            prepare_search(file, OPTIONS, families=(ROUND,), coarsen=(wrong,))

    def test_two_ways_to_write_the_same_are_tried_once(self, traces):
        made = coarsenings(["epochs=4h,240min", "epochs = 4h"], traces, 8)
        assert [one.words for one in made] == ["", "epochs=4h"]


class TestFront:
    def test_has_what_no_other_point_beats(self):
        points = [
            (0.9, 0.9),
            (0.6, 0.5),
            (0.6, 0.4),
            (0.7, 0.5),
            (0.5, 0.1),
            (0.6, 0.5),
            (0.95, 0.8),
        ]
        front = undominated(points)
        assert front == [4, 1, 0]
        for i, (risk, kept) in enumerate(points):
            beaten = any(r <= risk and k >= kept and (r, k) != (risk, kept) for r, k in points)
            assert (i in front) == (not beaten and points.index((risk, kept)) == i)

    def test_of_a_search_only_what_was_tried(self, search):
        found, _ = search(lambda *_: False, (SUPPRESS, ROUND))
        assert set(found.front) <= set(found.candidates)
        assert [one["mechanism"] for one in found.to_json()["front"]] == [
            one.mechanism for one in found.front
        ]


class TestLastCheck:
    BOTH = (SEARCHER, "knock-knock")

    @pytest.mark.parametrize(
        "first_stands", [2, 3, *(pytest.param(n, marks=pytest.mark.full) for n in (5, 12))]
    )
    def test_moves_on_to_the_next_stronger(self, search, first_stands):
        """The searcher breaks the first two, another attack some more."""
        members = specs(LAPLACE)
        broken = {SEARCHER: members[:2], "knock-knock": members[:first_stands]}
        found, trials = search(
            lambda attack, spec: spec in broken[attack], (LAPLACE,), attacks=self.BOTH
        )
        assert [one.mechanism for one in found.best] == [members[first_stands]]
        checked = checks(trials)
        assert checked == members[2 : first_stands + 1]
        by_spec = {one.mechanism: one for one in found.candidates}
        for spec in checked:
            assert by_spec[spec].checked
            assert by_spec[spec].passes == (spec == members[first_stands])

    def test_fails_everywhere(self, search):
        found, _ = search(lambda attack, _: attack == "knock-knock", (LAPLACE,), self.BOTH)
        # What is useless is not worth a check.
        assert all(one.useless and not one.checked for one in found.best)
        assert found.recommended is None

    def test_a_hole_in_the_ladder_is_never_recommended(self, search):
        """Beyond what the bisection saw, the searcher is asked again."""
        members = specs(SUPPRESS)
        broken = {SEARCHER: [*members[:3], members[4]], "knock-knock": members[:4]}
        found, _ = search(lambda attack, spec: spec in broken[attack], attacks=self.BOTH)
        assert [one.mechanism for one in found.best] == [members[5]]

    def test_the_verdict_is_about_all_attacks(self, search):
        found, _ = search(lambda *_: False, attacks=self.BOTH)
        (best,) = found.best
        attacks = {one.attack for one in best.findings}
        assert {SEARCHER, "knock-knock"} == attacks - NOT_ATTACKS
        assert len(best.findings) == len({(one.attack, one.metric) for one in best.findings})

    def test_the_searcher_is_always_among_them(self, search):
        members = specs(SUPPRESS)
        found, _ = search(
            lambda attack, spec: attack == SEARCHER and spec in members[:2],
            attacks=("zero-knowledge",),
        )
        assert [one.mechanism for one in found.best] == [members[2]]


class TestRecommendation:
    def test_keeps_most_of_the_pattern(self, search):
        found, _ = search(lambda *_: False, (SUPPRESS, LAPLACE, ROUND))
        assert [one.family for one in found.best] == [SUPPRESS, LAPLACE, ROUND]
        kept = [one.pattern_kept for one in found.best]
        assert len(set(kept)) == 3
        assert found.recommended.pattern_kept == max(kept)
        assert found.to_json()["recommended"] == found.recommended.mechanism
        # Also where more than the winner are confirmed.
        best = tuple(replace(one, confirmation=one.verdict) for one in found.best)
        assert replace(found, best=best).recommended.pattern_kept == max(kept)

    def test_families_do_not_disturb_each_other(self, search):
        members = specs(SUPPRESS)

        def breaks(_, spec):
            return spec in members[:5]

        (alone, _), (together, _) = search(breaks), search(breaks, (LAPLACE, SUPPRESS))
        assert [one.mechanism for one in alone.best] == [one.mechanism for one in together.best[1:]]

    def test_stronger_protections_lose_more(self, search):
        members = specs(SUPPRESS)
        lost = []
        for n in (0, 2, 6):
            found, _ = search(lambda _, spec, n=n: spec in members[:n])
            lost.append(1 - found.best[0].utility["cells_kept"])
        assert lost == sorted(lost)
        assert lost[0] < lost[-1]

    def test_only_the_most_useful_is_checked_unless_all_are_to_be(self, search):
        both, families = (SEARCHER, "knock-knock"), (SUPPRESS, LAPLACE, ROUND)
        found, trials = search(lambda *_: False, families, both)
        assert len(checks(trials)) == 1
        (checked,) = [one for one in found.best if one.checked]
        assert checked == found.recommended == max(found.best, key=lambda one: one.pattern_kept)
        found, trials = search(lambda *_: False, families, both, check_all=True)
        assert len(checks(trials)) == 3
        assert all(one.checked for one in found.best)
        assert found.recommended.mechanism == checked.mechanism

    def test_the_next_useful_is_checked_where_one_fails(self, search):
        """An attack breaks all of the most useful family, so another one is recommended."""
        both, families = (SEARCHER, "knock-knock"), (SUPPRESS, LAPLACE, ROUND)
        first, _ = search(lambda *_: False, families, both)
        broken = set(specs(first.recommended.family))
        found, _ = search(
            lambda attack, spec: attack == "knock-knock" and spec in broken, families, both
        )
        assert found.recommended is not None
        assert found.recommended.checked
        assert found.recommended.family != first.recommended.family
        # What is left of the broken family was never found to pass all attacks.
        assert not any(one.checked and one.mechanism in broken for one in found.best)

    def test_controls_of_all_trials_share_the_chance_of_a_false_alarm(self, search):
        """Two of each attack, and that of the law."""
        n = len(specs(SUPPRESS)) + len(specs(ROUND)) + 2 * MOST_CONFIRMATIONS
        found, _ = search(lambda *_: False, (SUPPRESS, ROUND), (SEARCHER, "knock-knock"))
        notes = {
            one.note
            for candidate in found.candidates
            for one in candidate.findings
            if one.metric == CONTROL
        }
        assert notes == {f"99 % interval for all {5 * n} controls together"}

    def test_a_trial_that_fails_ends_the_search(self, file):
        class Failing(Pretender):
            def do(self, job, tasks):
                for task in tasks:
                    yield Outcome(task, None, "ZeroDivisionError: a test")

        workers = Failing(None)
        with pytest.raises(TrialFailedError, match="ZeroDivisionError: a test"):
            prepare_search(file, OPTIONS, families=(ROUND,)).run(workers=workers)
        assert workers.closed

    def test_workers_are_let_go(self, file):
        workers = Pretender(lambda *_: False)
        prepare_search(file, OPTIONS, families=(ROUND,)).run(policy=POLICY, workers=workers)
        assert workers.closed

    @pytest.mark.parametrize(
        "wrong",
        [
            {"group_size": (400,)},
            {"releases": 5},
            {"attacks": ("knock-nock",)},
            {"group_size": (8, 9)},
            {"knowledge": ("all", "regions")},
        ],
    )
    def test_bad_input_is_refused_before_any_trial(self, file, wrong):
        with pytest.raises(InputError):
            prepare_search(file, AuditOptions.of(**CHOSEN | wrong))

    def test_no_family_is_refused(self, file):
        with pytest.raises(InputError, match=r"no family.*suppress"):
            prepare_search(file, OPTIONS, families=())


class TestConfirmation:
    def test_what_is_recommended_passed_twice(self, search):
        found, trials = search(lambda *_: False, (LAPLACE,), (SEARCHER, "knock-knock"))
        chosen = found.recommended
        assert confirmations(trials) == [chosen.mechanism]
        assert trials[-1] == f"{chosen.mechanism} with {SEARCHER}, knock-knock{FRESH}"
        assert chosen.verdict.decision == chosen.confirmation.decision == "accept"
        attacks = {one.attack for one in chosen.confirmation_findings}
        assert attacks - NOT_ATTACKS == {SEARCHER, "knock-knock"}
        assert chosen.last_findings == chosen.confirmation_findings != chosen.findings
        (shown,) = [one for one in found.to_json()["candidates"] if one["confirmed"]]
        assert shown["mechanism"] == chosen.mechanism
        assert shown["confirmation"]["verdict"] == chosen.confirmation.to_json()
        assert len(shown["confirmation"]["findings"]) == len(chosen.confirmation_findings)
        html = found._repr_html_()
        assert f"{chosen.mechanism}, confirmation" in html
        assert "quote those of the confirmation" in html

    def test_is_on_fresh_releases_of_people_drawn_anew(self, file):
        class Watching(Pretender):
            plans = ()

            def do(self, job, tasks):
                self.plans += (job.plan,)
                return super().do(job, tasks)

        workers = Watching(lambda *_: False)
        found = prepare_search(file, OPTIONS, families=(LAPLACE,)).run(
            policy=POLICY, workers=workers
        )
        *before, last = workers.plans
        assert {plan.seed for plan in before} == {OPTIONS.seed}
        assert last.seed == found.confirmation_seed != OPTIONS.seed
        assert len(last.targets) == len(before[0].targets)
        assert set(last.targets) != set(before[0].targets)

    @pytest.mark.parametrize("n_lucky", [1, 2])
    def test_the_next_stronger_is_tried_where_it_fails(self, search, n_lucky):
        members, both = specs(LAPLACE), (SEARCHER, "knock-knock")
        found, trials = search(
            lambda _, spec: spec in members[:3],
            (LAPLACE,),
            both,
            later=lambda attack, spec: attack == "knock-knock" and spec in members[: 3 + n_lucky],
        )
        assert checks(trials) == confirmations(trials) == members[3 : 4 + n_lucky]
        assert found.recommended.mechanism == members[3 + n_lucky]
        by_spec = {one.mechanism: one for one in found.candidates}
        for spec in members[3 : 3 + n_lucky]:
            lucky = by_spec[spec]
            assert lucky.verdict.decision == "accept"
            assert lucky.confirmation.decision != "accept"
            assert not lucky.passes
            assert lucky not in found.best

    def test_is_not_tried_until_one_passes_by_chance(self, search):
        members = specs(LAPLACE)
        found, trials = search(lambda *_: False, (LAPLACE,), later=lambda *_: True)
        assert confirmations(trials) == members[:MOST_CONFIRMATIONS]
        assert found.best == ()
        assert found.recommended is None
        assert "fresh releases" in found.why_nothing

    def test_all_confirmations_share_the_chance_of_a_wrong_one(self, file):
        """Whatever their families: together they never spend more than a look may."""
        families = (SUPPRESS, LAPLACE, ROUND)
        workers = Pretender(lambda *_: False, lambda *_: True)
        prepared = prepare_search(file, OPTIONS, families=families)
        found = prepared.run(policy=POLICY, workers=workers)
        tried = [one for one in found.candidates if one.confirmation is not None]
        assert MOST_CONFIRMATIONS < len(tried) <= prepared.look.shared == 3 * MOST_CONFIRMATIONS
        assert len(tried) * prepared.look.error <= prepared.look.spends == ERROR / 2
        # The ends that decide are taken at that error: with alike targets they are known.
        (one,) = [
            one for one in tried[0].findings if (one.attack, one.metric) == (SEARCHER, "accuracy")
        ]
        assert one.at_most == pytest.approx(1 - 0.5 * prepared.look.error ** (1 / 4))

    def test_another_family_is_confirmed_where_one_fails(self, search):
        first, _ = search(lambda *_: False, (LAPLACE, ROUND))
        broken = specs(first.recommended.family)
        found, trials = search(
            lambda *_: False, (LAPLACE, ROUND), later=lambda _, spec: spec in broken
        )
        assert found.recommended.family != first.recommended.family
        tried = confirmations(trials)
        assert tried[0] == first.recommended.mechanism
        assert tried[-1] == found.recommended.mechanism

    def test_only_the_winner_is_confirmed_if_all_are_checked(self, search):
        both = (SEARCHER, "knock-knock")
        found, trials = search(lambda *_: False, (LAPLACE, ROUND), both, check_all=True)
        assert confirmations(trials) == [found.recommended.mechanism]
        assert len(found.best) == 2

    def test_what_is_useless_is_neither_checked_nor_recommended(self, search):
        members = specs(SUPPRESS)
        found, trials = search(lambda _, spec: spec in members[:10], attacks=TestLastCheck.BOTH)
        (best,) = found.best
        assert best.useless
        assert checks(trials) == confirmations(trials) == []
        assert found.recommended is None
        assert "useless" in found.why_nothing

    @pytest.mark.parametrize("which", ["verdict", "confirmation"])
    def test_a_verdict_of_useless_is_heard(self, search, which):
        found, _ = search(lambda *_: False, (LAPLACE,))
        chosen = found.recommended
        emptied = replace(getattr(chosen, which), useless=True)
        found = replace(found, best=(replace(chosen, **{which: emptied}),))
        assert found.recommended is None
        assert "useless" in found.why_nothing


class Counting(Pretender):
    """Counts its tasks, and is interrupted after some of them."""

    def __init__(self, breaks, *, stop_after=None):
        super().__init__(breaks)
        self.done, self.stop_after = 0, stop_after

    def do(self, job, tasks):
        for outcome in super().do(job, tasks):
            if self.done == self.stop_after:
                raise KeyboardInterrupt
            self.done += 1
            yield outcome


class TestRunFolder:
    # Two trials to search, checks, a confirmation: all of them can be interrupted.
    @pytest.fixture
    def run(self, file, tmp_path):
        options = AuditOptions.of(**CHOSEN | {"attacks": (SEARCHER, "knock-knock")})
        members = specs(ROUND)
        broken = {SEARCHER: members[:1], "knock-knock": members[:2]}

        def run(folder="search", *, stop_after=None, policy=POLICY, families=(ROUND,)):
            workers = Counting(lambda attack, spec: spec in broken[attack], stop_after=stop_after)
            out = None if folder is None else tmp_path / folder
            prepared = prepare_search(file, options, families=families, out=out)
            return prepared.run(policy=policy, workers=workers), workers.done

        return run

    def test_interrupted_at_any_moment(self, run, tmp_path, full):
        """The same result, and no task is done twice."""
        expected, total = run(None)
        assert expected.recommended is not None
        assert list(tmp_path.iterdir()) == [tmp_path / "traces.parquet"]
        for n in (0, 1, 4, 7, total // 2, total - 1) if full else (0, total // 2, total - 1):
            folder = f"search-{n}"
            with pytest.raises(InterruptedSearch, match=r"in trial \d+ of at most \d+.* resumes"):
                run(folder, stop_after=n)
            assert run(folder) == (expected, total - n)
            assert run(folder) == (expected, 0)

    def test_interrupted_again_and_again(self, run):
        expected, total = run(None)
        for _ in range(total // 9):
            with pytest.raises(InterruptedSearch):
                run(stop_after=9)
        assert run() == (expected, total % 9)

    def test_nothing_is_kept_without_a_folder(self, run, tmp_path):
        with pytest.raises(InterruptedSearch, match="nothing is kept"):
            run(None, stop_after=3)
        assert list(tmp_path.iterdir()) == [tmp_path / "traces.parquet"]

    def test_other_searches_on_the_same_traces_share_their_trials(self, run):
        found, total = run()
        again, done = run(policy=Policy("another", {"accuracy": 0.95}))
        assert done == 0
        assert [one.mechanism for one in again.candidates] == [
            one.mechanism for one in found.candidates
        ]
        # The same search is the same look, and a search for something else the next one.
        assert found.recommended.confirmation.look == again.recommended.confirmation.look == 1
        other, done = run(families=(ROUND, "round(to=?) | suppress(k=1)"))
        assert done > 0
        assert {one.verdict.look for one in other.candidates} == {2}
        assert run()[0] == found
        assert run(families=("round(to=?) | suppress(k=1)",))[1] < total

    def test_a_failed_task_is_tried_again(self, file, tmp_path):
        class Failing(Pretender):
            def do(self, job, tasks):
                *others, last = super().do(job, tasks)
                yield from others
                yield Outcome(last.task, None, "ZeroDivisionError: a test")

        prepared = prepare_search(file, OPTIONS, families=(ROUND,), out=tmp_path / "search")
        with pytest.raises(TrialFailedError, match="ZeroDivisionError: a test"):
            prepared.run(policy=POLICY, workers=Failing(lambda *_: False))
        assert prepared.kept == 1
        (log,) = (tmp_path / "search").glob("trials/*/log.txt")
        assert "ZeroDivisionError" in log.read_text()
        workers = Counting(lambda *_: False)
        prepared.run(policy=POLICY, workers=workers)
        assert workers.done % 4 == 1

    @pytest.mark.parametrize("what", ["something else", "a file", "damage", "another format"])
    def test_other_folders_are_refused(self, file, tmp_path, what):
        folder = tmp_path / "search"
        if what == "a file":
            folder.write_text("notes")
        else:
            folder.mkdir()
            name = "notes.txt" if what == "something else" else "search.json"
            (folder / name).write_text('{"format": 0}' if what == "another format" else "[")
        with pytest.raises(FileError, match=r"search.*Name a new folder"):
            prepare_search(file, OPTIONS, out=folder)

    def test_an_audit_is_no_search(self, file, tmp_path):
        RunFolder(tmp_path / "run").path.mkdir()
        RunFolder(tmp_path / "run").begin({"plan": {}, "traces": "", "versions": {}}, {})
        with pytest.raises(FileError, match="not the folder of a search"):
            prepare_search(file, OPTIONS, out=tmp_path / "run")

    def test_other_traces_and_software_are_refused(self, file, tmp_path, traces, monkeypatch):
        folder = tmp_path / "search"
        prepare_search(file, OPTIONS, families=(ROUND,), out=folder).run(
            policy=POLICY, workers=Pretender(lambda *_: False)
        )
        other = tmp_path / "other.parquet"
        traces.select(range(30)).save(other)
        with pytest.raises(FileError, match="other traces"):
            prepare_search(other, OPTIONS, out=folder)
        monkeypatch.setattr("whosthere.auditing.work.versions", lambda: {"numpy": "0"})
        with pytest.raises(FileError, match="other software"):
            prepare_search(file, OPTIONS, out=folder)

    def test_two_searches_at_once_are_refused(self, file, tmp_path):
        folder = tmp_path / "search"
        prepared = prepare_search(file, OPTIONS, families=(ROUND,), out=folder)
        with only_one(folder), pytest.raises(FileError, match="another search is at work"):
            prepared.run(policy=POLICY, workers=Pretender(lambda *_: False))


class TestProgress:
    def test_says_which_trial_and_how_far_it_is(self, file):
        seen = []
        prepared = prepare_search(file, OPTIONS, families=(SUPPRESS, LAPLACE))
        prepared.run(policy=POLICY, workers=Pretender(lambda *_: False), on_progress=watching(seen))
        most = 5 + 5 + 1
        assert prepared.trials_to_search + prepared.trials_at_last == most
        assert seen[0] == Seen(1, most, f"suppress(k=10) with {SEARCHER}", 0, 4)
        assert [one.done for one in seen] == [0, 1, 2, 3, 4] * seen[-1].number
        assert {one.most for one in seen} == {most}
        numbers = list(dict.fromkeys(one.number for one in seen))
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers[-1] <= most

    def test_the_most_grows_where_a_check_fails(self, file):
        seen = []
        options = AuditOptions.of(**CHOSEN | {"attacks": (SEARCHER, "knock-knock")})
        members = specs(LAPLACE)
        prepared = prepare_search(file, options, families=(LAPLACE,))
        prepared.run(
            policy=POLICY,
            workers=Pretender(lambda attack, spec: attack != SEARCHER and spec in members[:2]),
            on_progress=watching(seen),
        )
        assert seen[0].most == 5 + 2
        assert seen[-1].most == 5 + 2 + 2 * 3
        assert all(one.number <= one.most for one in seen)

    @pytest.mark.parametrize("check_all", [False, True])
    def test_an_estimate_before_the_start(self, file, check_all):
        options = AuditOptions.of(**CHOSEN | {"attacks": (SEARCHER, "log-likelihood")})
        prepared = prepare_search(
            file, options, families=(ROUND, LAPLACE), check_all=check_all, estimate=True
        )
        assert prepared.cost.seconds > 0
        assert prepared.cost.bytes_per_worker > 10**8
        shown = json.loads(json.dumps(prepared.to_json(), allow_nan=False))
        assert list(shown["families"]) == [ROUND, LAPLACE]
        assert shown["families"][ROUND][0] == "to=2"
        assert shown["most_trials_to_search"] == 4 + 5
        assert shown["trials_to_check_and_confirm"] == (3 if check_all else 2)
        assert prepare_search(file, options).cost is None


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "traces.parquet"
    simulate("milan-like", seed=7, users=400, days=1, regions=25).traces().save(path)
    return path


def check_found(found, limit):
    """Check that everything rests on what was measured."""
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["candidates"]
    for one in found.candidates:
        measured = {f.attack: f.at_most for f in one.findings if f.metric == "accuracy"}
        assert SEARCHER in measured
        # What is accepted may still fail to be confirmed.
        assert (one.verdict.decision == "accept") == (max(measured.values()) <= limit)
    assert all(one.passes and (one.confirmed or one.useless) for one in found.best)


@pytest.mark.parametrize("template", [SUPPRESS, pytest.param(LAPLACE, marks=pytest.mark.full)])
def test_real_search(city, template, full):
    limit, targets, releases = (0.6, 26, 20) if full else (0.85, 12, 4)
    policy = Policy("only accuracy", {"accuracy": limit}, keep=FLOORS)
    options = AuditOptions.of(
        group_size=40, attacks=SEARCHER, targets=targets, releases=releases, seed=2
    )
    found = prepare_search(city, options, families=(template,)).run(policy=policy)
    check_found(found, limit)
    if template == SUPPRESS:
        # Who suppresses all counts up to 40 of groups of 40 publishes nothing, which is safe.
        assert found.best
    if full:
        assert prepare_search(city, options, families=(template,)).run(policy=policy) == found


EASY = 0.9


@pytest.fixture(scope="module")
def quick_search(city):
    """Give a function that searches in earnest, with few people and an easy policy."""
    policy = Policy("only accuracy", {"accuracy": EASY}, keep=FLOORS)
    options = AuditOptions.of(
        group_size=40, attacks=(SEARCHER, "log-likelihood"), targets=12, releases=4, seed=3
    )

    def run(workers=None, **chosen):
        prepared = prepare_search(city, options, families=(LAPLACE,), **chosen)
        return prepared.run(policy=policy, workers=workers)

    return run, options, policy


@pytest.fixture(scope="module")
def alone(quick_search):
    """Give what one process finds."""
    run, _, _ = quick_search
    return run()


def test_two_processes_find_the_same(quick_search, alone, tmp_path):
    run, _, _ = quick_search
    assert alone.recommended is not None
    check_found(alone, EASY)
    assert run(LocalProcesses(2), out=tmp_path / "search") == alone
    assert run(ThisProcess(), out=tmp_path / "search") == alone


def _estimates(findings):
    return {(one.attack, one.metric): one.estimate for one in findings if one.holds is None}


def test_the_confirmation_is_what_an_audit_under_its_seed_finds(
    quick_search, alone, city, searcher_releases, tmp_path
):
    _, options, policy = quick_search
    confirmed = alone.recommended
    again = replace(
        merged(options, {"mechanisms": confirmed.mechanism}),
        seed=alone.confirmation_seed,
        releases_of={SEARCHER: searcher_releases},
    )
    audited = prepare_audit(city, again, tmp_path / "run").run(policy=policy, what_if=False)
    (verdict,) = audited.verdicts
    assert verdict.decision == confirmed.confirmation.decision
    # Confirmations share the error of a look: their deciding ends lie further out.
    assert _estimates(audited.findings) == _estimates(confirmed.confirmation_findings)
