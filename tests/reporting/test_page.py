"""Pages: complete, valid, inert, and asking for nothing."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import html5lib
import polars as pl
import pytest

import whosthere as wt
from whosthere.auditing.follow_up import MeanOverTargets, WhatIf
from whosthere.auditing.loading import load
from whosthere.auditing.policy import Policy
from whosthere.reporting.report import audit_report, comparison_report, recommendation_report

EVIL = "<script>alert('whosthere')</script>\"'&<img src=x onerror=alert(1)>"
BACKWARDS = "\u202egnorw\u202c \u05d0\u05d1\u05d2"
LONG = "x" * 10_000
ADDRESS = re.compile(r"(?:https?:)?//[a-z]|\burl\(|@import|\bsrc=", re.IGNORECASE)


class Reader(HTMLParser):
    """Collects tags, attributes and visible text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.ids, self.links, self.text = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if "href" in found else []

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def html(full_audit):
    return audit_report(full_audit).html


@pytest.fixture(scope="module")
def recommendation():
    people = wt.simulate("milan-like", seed=7, users=200, days=1, regions=9).traces()
    return wt.recommend(
        people,
        group_size=20,
        families="suppress(k=?)",
        attacks="likelihood-ratio",
        policy={"auc": 0.99},
        targets=3,
        releases=4,
        workers=1,
    )


@pytest.fixture(scope="module")
def pages(html, audit, recommendation):
    return {
        "audit": html,
        "plain audit": audit_report(audit).html,
        "comparison": comparison_report([audit, replace(audit, folder=Path("other"))]).html,
        "recommendation": recommendation_report(recommendation).html,
    }


KINDS = ("audit", "plain audit", "comparison", "recommendation")
each = pytest.mark.parametrize("kind", KINDS)


@each
def test_is_valid_html(pages, kind):
    parser = html5lib.HTMLParser(strict=True)
    parser.parse(pages[kind])


@each
def test_asks_for_nothing(pages, kind):
    assert not ADDRESS.findall(pages[kind])
    for tag, _ in Reader(pages[kind]).tags:
        assert tag not in {"img", "link", "iframe", "object", "embed", "form", "base"}


@each
def test_only_our_style_and_script_may_run(pages, kind):
    page = pages[kind]
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#39;none&#39;")
    for tag in ("style", "script"):
        [content] = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy
    found = Reader(page).tags
    assert [tag for tag, _ in found].count("script") == 1
    assert not [name for _, attributes in found for name in attributes if name.startswith("on")]
    assert not [attributes for _, attributes in found if "style" in attributes]


@each
def test_links_lead_somewhere_and_ids_are_unique(pages, kind):
    found = Reader(pages[kind])
    assert len(found.ids) == len(set(found.ids))
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    assert found.links


@each
def test_can_be_read_by_everybody(pages, kind):
    found = Reader(pages[kind]).tags
    tags = [tag for tag, _ in found]
    assert found[0] == ("html", {"lang": "en"})
    assert {"main", "header", "footer", "nav", "h1"} <= set(tags)
    assert tags.count("table") == tags.count("caption")
    for tag, attributes in found:
        if tag == "th":
            assert attributes.get("scope") in {"row", "col"}
        if tag == "svg":
            assert attributes["aria-label"]
    assert ("a", {"class": "skip", "href": "#main"}) in found
    labels = [a["aria-label"] for tag, a in found if tag == "section" and "aria-label" in a]
    assert len(labels) == len(set(labels)) > 0


def test_has_all_sections(html, audit):
    ids = Reader(html).ids
    for section in (
        *("verdicts", "choose", "who", "where", "sure", "method", "limits", "policy"),
        *("repeat", "glossary"),
    ):
        assert section in ids
    assert "where" not in Reader(audit_report(audit).html).ids


def test_says_every_verdict_with_its_reasons(html, full_audit):
    text = " ".join("".join(Reader(html).text).split())
    for verdict in full_audit.verdicts:
        for sentence in (*verdict.reasons, *verdict.guaranteed, *verdict.meaning):
            assert sentence in text
    for word in ("ACCEPT", "REJECT"):
        assert word in text


def test_is_complete_without_the_script(html):
    """What the script hides is there, and what only works with it is hidden."""
    found = Reader(html).tags
    panels = [attributes for tag, attributes in found if tag == "article"]
    assert len(panels) == 6 + 3 + 3 + 3
    assert not [attributes for attributes in panels if "hidden" in attributes]
    assert next(a for _, a in found if a.get("class") == "chooser").keys() >= {"hidden"}
    assert not [tag for tag, _ in found if tag in {"button", "input"}]


def test_names_nobody(full_audit):
    html = audit_report(full_audit).html
    numbers = set(re.findall(r"\d+", html))
    rows = {str(row) for row in full_audit.plan["targets"]}
    told = {row for row in rows if re.search(rf"target {row}\b", html)}
    assert not told
    # Some of these may be there by chance as a part of some number, but not all.
    assert len(rows & numbers) < len(rows) / 2


@pytest.fixture(scope="module")
def foreign(made_audit, with_places):
    settings = (f"{EVIL}, m=100", f"{BACKWARDS}, m=100", f"{LONG}, m=100")
    policy = Policy(f"{EVIL}{BACKWARDS}{LONG}", {"auc": 0.6})
    attacks = (EVIL, f"{BACKWARDS}{LONG}", "likelihood-ratio")
    audit = made_audit(settings, attacks, policy=policy, name=f"{EVIL}\x07", targets=8, releases=8)
    ids = [EVIL, BACKWARDS, LONG, "'", '"', "&amp;", "a\x00b", "</svg>", "-->"]
    with_notes = tuple(replace(one, note=EVIL) for one in audit.findings)
    nothing = MeanOverTargets(None, None, None)
    change = WhatIf(EVIL, LONG, EVIL, nothing, nothing, {}, {})
    audit = with_places(replace(audit, findings=with_notes), ids)
    audit = replace(
        audit,
        what_if=(*audit.what_if, change),
        manifest={
            **audit.manifest,
            "traces": LONG,
            "versions": {EVIL: BACKWARDS},
            "machine": {"system": EVIL},
        },
    )
    return audit_report(audit).html


class TestForeignNames:
    """Whatever files and people call things comes out as text."""

    def test_is_inert(self, foreign):
        found = Reader(foreign).tags
        assert [tag for tag, _ in found].count("script") == 1
        assert "img" not in {tag for tag, _ in found}
        assert not [name for _, attributes in found for name in attributes if "onerror" in name]
        assert "<script>alert" not in foreign
        assert "&lt;script&gt;alert" in foreign

    def test_is_still_valid(self, foreign):
        html5lib.HTMLParser(strict=True).parse(foreign)

    def test_long_names_are_cut(self, foreign):
        assert "x" * 700 not in foreign
        assert len(foreign) < 1_000_000

    def test_directions_are_isolated(self, foreign):
        """Every name with a mark of direction stands in an element that isolates it."""
        outside = re.sub(r"<bdi>.*?</bdi>|<svg.*?</svg>|<[^>]+>", "", foreign, flags=re.DOTALL)
        cells = re.findall(r"<t[hd][^>]*>(?!<)[^<]*\u202e", foreign)
        assert not cells
        assert outside.count("\u202e") <= foreign.count("\u202e") / 3

    def test_control_characters_are_gone(self, foreign):
        assert "\x00" not in foreign
        assert "\x07" not in foreign
        foreign.encode("utf-8")


def test_size_of_twelve_settings_and_three_attacks(made_audit, with_places):
    settings = tuple(f"suppress(k={k}), m=1000" for k in range(1, 13))
    attacks = ("knock-knock", "zero-knowledge", "likelihood-ratio")
    # Measuring takes time: all settings are the same one under different names.
    one = made_audit(settings[:1], attacks, targets=50, strengths=(1.0,))
    renamed = [pl.lit(name).alias("setting") for name in settings]
    audit = replace(
        one,
        findings=tuple(replace(f, setting=name) for name in settings for f in one.findings),
        verdicts=tuple(replace(one.verdicts[0], setting=name) for name in settings),
        scores=pl.concat([one.scores.with_columns(name) for name in renamed]),
        targets=pl.concat([one.targets.with_columns(name) for name in renamed]),
    )
    page = audit_report(with_places(audit, [f"region {i}" for i in range(100)])).html
    assert page.count("<svg") == 12 * (3 * 3 + 2 + 2 + 2) + 4
    assert len(page.encode()) < 2_000_000


def test_every_task_failed(audit):
    empty = replace(
        audit, findings=(), verdicts=(), scores=pl.DataFrame(), targets=pl.DataFrame(),
        failed_tasks=9, trusted=None,
    )  # fmt: skip
    page = audit_report(empty).html
    assert "9 of 120 tasks failed" in page
    html5lib.HTMLParser(strict=True).parse(page)


class TestFront:
    def test_folders_results_and_several(self, audit, written, tmp_path):
        folder = written(audit, tmp_path / "first run")
        made = wt.report(folder, out=tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == made.html
        assert made.title == "Audit first run"
        assert "Audit first run" in repr(made)
        assert "2 audits side by side" in wt.report([folder, str(folder)]).html
        with pytest.raises(wt.InputError, match="exists already"):
            wt.report(folder, out=tmp_path / "page.html")
        wt.report(folder, out=tmp_path / "page.html", force=True)

    def test_reading_and_writing_change_nothing(self, full_audit, written, tmp_path):
        folder = written(full_audit, tmp_path / "run")
        assert audit_report(load(folder)).html == audit_report(full_audit).html

    def test_the_same_audit_gives_the_same_page(self, audit):
        assert audit_report(audit).html == audit_report(audit).html


class TestRecommendation:
    def test_says_what_to_use_and_what_it_costs(self, pages, recommendation):
        text = " ".join("".join(Reader(pages["recommendation"]).text).split())
        assert recommendation.recommended.mechanism in text
        assert "What is left" in text
        for candidate in recommendation.candidates:
            assert candidate.mechanism in text

    def test_shows_the_confirmation_and_says_to_quote_it(self, pages, recommendation):
        page = pages["recommendation"]
        text = " ".join("".join(Reader(page).text).split())
        assert "quote the numbers of this confirmation" in text
        assert f"seed {recommendation.confirmation_seed}" in text
        chosen = recommendation.recommended
        assert f"{chosen.choice} (confirmation)" in text
        # The first screen shows the confirmation, not what chose the protection.
        for reason in chosen.confirmation.reasons:
            assert reason in text
        again = replace(chosen.confirmation, reasons=("All is lost.",), decision="reject")
        failed = replace(chosen, confirmation=again)
        found = replace(
            recommendation,
            best=(),
            candidates=tuple(failed if c == chosen else c for c in recommendation.candidates),
        )
        assert "passes again on fresh releases" in recommendation_report(found).html

    def test_nothing_passes(self, recommendation):
        nothing = replace(recommendation, best=())
        page = recommendation_report(nothing).html
        assert "Nothing that was tried passes" in page

    def test_says_on_which_data_it_rests(self, pages, recommendation):
        text = " ".join("".join(Reader(pages["recommendation"]).text).split())
        assert "people, " in text
        assert f"SHA-256 {recommendation.about['traces']}" in text

    def test_what_leaves_nothing_is_no_green_accept(self, recommendation):
        def emptied(one):
            emptied = replace(one.last_verdict, decision="accept", useless=True)
            return replace(one, verdict=emptied, confirmation=None)

        candidates = tuple(map(emptied, recommendation.candidates))
        page = recommendation_report(replace(recommendation, candidates=candidates, best=())).html
        shown, explained = page.count('class="badge accept"'), 1
        assert shown == explained
        assert page.count('class="badge useless"') == len(candidates) + explained
        assert '<g class="accept"' not in page

    def test_is_a_report_from_python(self, recommendation):
        assert wt.report(recommendation).title == "Recommendation"


@pytest.fixture(scope="module")
def result():
    people = wt.simulate("milan-like", seed=7, users=200, days=1, regions=9).traces()
    return wt.audit(
        people, mechanisms="raw", group_size=20, attacks="likelihood-ratio", targets=3,
        releases=4, workers=1,
    )  # fmt: skip


def test_the_manifest_says_what_the_data_cover(result):
    people = result.manifest["data"]["people"]
    assert f"{people} people, " in audit_report(result).html


class TestNotebook:
    def test_shows_the_first_screen(self, result):
        shown = result._repr_html_()
        assert "What to do" in shown
        assert "<svg" in shown
        assert all(reason in shown.replace("&#39;", "'") for reason in result.verdicts[0].reasons)

    def test_has_no_script_and_changes_nothing_else(self, result):
        shown = result._repr_html_()
        assert "<script" not in shown
        assert not ADDRESS.findall(shown)
        [style] = re.findall(r"<style>(.*?)</style>", shown, re.DOTALL)
        assert ":root" not in style
        assert not re.search(r"^(body|html|h1|\*)", style.split(".whosthere {", 1)[0], re.MULTILINE)

    def test_needs_no_folder(self, result):
        assert result.folder is None
        assert wt.report(result).title == "Audit audit"
