"""`whosthere recommend`: its estimate, its trials, its confirmation, and its resuming."""

import io
import json
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from whosthere.auditing import work
from whosthere.cli import console
from whosthere.data.cities import simulate
from whosthere.progress import progress
from whosthere.search import tester

BASE = (
    "recommend traces.parquet -m 50 -F laplace(eps=?,unit=event) -a likelihood-ratio "
    "--targets 3 --releases 4 --workers 1 --policy policy.toml"
)
POLICY = 'name = "easy"\n[limits]\nauc = 0.99\n'


@pytest.fixture(scope="module")
def traces():
    return simulate("milan-like", seed=7, users=600, days=1, regions=4).traces()


@pytest.fixture
def folder(traces, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    traces.save("traces.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def recommend(whosthere, folder, monkeypatch):
    monkeypatch.setattr(console, "_SECONDS_BETWEEN_LINES", 0)
    return lambda *more: whosthere(*BASE.split(), *more)


def trials(err):
    """Return what was tried, in order, each once."""
    lines = (line.rpartition(": ")[0] for line in err.splitlines() if line.startswith("trial "))
    return list(dict.fromkeys(lines))


def test_says_what_is_tried_and_what_was_confirmed(recommend, folder):
    code, out, err = recommend("--out", "search")
    assert code == 0
    assert "At most 6 trials (search 5, check and confirmation 1), about" in out
    assert trials(err)[0].startswith("trial 1 of at most 6: laplace(eps=0.7, unit=event) with")
    assert trials(err)[-1].endswith("on fresh releases")
    found = json.loads((folder / "search/recommendation.json").read_text())
    chosen = found["recommended"]
    (candidate,) = [one for one in found["candidates"] if one["mechanism"] == chosen]
    confirmed = candidate["confirmation"]
    _, _, screen = out.partition("\n\n")
    first, below, _, *others = screen.splitlines()
    assert first.startswith(f"  ACCEPT  {chosen} (confirmed on fresh releases)  finds")
    assert f"pattern {confirmed['verdict']['left']['pattern_correlation']:.2f}" in first
    assert below.strip() == confirmed["verdict"]["protection"]
    assert others[0].startswith(f"Recommended: {chosen}. ")
    assert others[0].endswith("Its numbers are those of the confirmation.")
    assert others[1].startswith('"finds": people in a release whom')
    assert others[2:] == ["Written: search"]


def test_details_have_all_that_was_tried_and_the_reasons(recommend, folder):
    out = recommend("--out", "search", "--details", "--explain")[1]
    found = json.loads((folder / "search/recommendation.json").read_text())
    lines = out.splitlines()
    (place,) = [
        i
        for i, line in enumerate(lines)
        if line.startswith(f"  ACCEPT  {found['recommended']}, m=50  (pattern correlation ")
        and line.endswith("  (by likelihood-ratio alone)  (confirmed on fresh releases)")
    ]
    (candidate,) = [one for one in found["candidates"] if one["confirmed"]]
    reasons = candidate["confirmation"]["verdict"]["reasons"]
    assert lines[place + 1 : place + 1 + len(reasons)] == reasons
    assert any("chosen because it passed" in line for line in lines)
    assert any("confirmation" in line and "accept" in line for line in lines)
    assert any(line.startswith("Risk is that of the strongest attack") for line in lines)
    assert "What will be searched" in out


def test_nothing_that_passes_can_fail_a_pipeline(recommend, folder, refused):
    (folder / "policy.toml").write_text("[limits]\nauc = 0.1\n")
    assert recommend("--json")[0] == 0
    code, out, _ = recommend("--fail-on", "nothing", "--json")
    assert code == 3
    assert json.loads(out)["recommended"] is None
    code, out, _ = recommend()
    assert code == 0
    assert "  REJECT" in out
    assert "(the strongest tried)" in out
    assert "Nothing that was tried passes the policy" in out
    assert "Use nothing" in refused(*BASE.split(), "--fail-on", "reject")
    (folder / "policy.toml").write_text(POLICY)
    assert recommend("--fail-on", "nothing")[0] == 0


def test_coarser_tables_and_the_front_of_all(recommend, folder, refused):
    code, out, err = recommend(
        "--coarsen", "epochs=12h", "--coarsen", "regions=2", "--out", "search"
    )
    assert code == 0, err
    found = json.loads((folder / "search/recommendation.json").read_text())
    front = found["front"]
    assert f"Of {len(found['candidates'])} tried, no other beats these in both:" in out
    for one in front:
        name = ", ".join(filter(None, (one["mechanism"], one["coarsened"])))
        low, high = one["auc"]["low"], one["auc"]["high"]
        risk = f"{one['auc']['estimate']:.3f} {low:.2f}\N{EN DASH}{high:.2f}"
        shown = f"mean AUC {risk}  pattern {one['pattern_correlation']:.2f}  {name} ("
        assert shown in out
    assert "  ACCEPT" in out
    # Each family has one line, whatever was made larger.
    assert len([line for line in out.splitlines() if line.startswith("  ACCEPT")]) == 1
    assert "Give a multiple of 1h" in refused(*BASE.split(), "--coarsen", "epochs=90min")


def test_few_lines_of_progress_without_a_terminal(recommend, monkeypatch):
    monkeypatch.setattr(console, "_SECONDS_BETWEEN_LINES", 1_000)
    assert len(recommend()[2].splitlines()) == 1


def test_the_table_has_every_limited_metric(recommend, folder):
    limits = "auc = 0.99\npooled_auc = 0.99\nshare_auc_90 = 1\nauc_p90 = 1\n"
    (folder / "policy.toml").write_text(f"[limits]\n{limits}")
    out = recommend("--details")[1]
    (head,) = [line for line in out.splitlines() if "verdict" in line and "mean AUC" in line]
    for words in ("AUC, all", "AUC >= 0.9", "AUC of the person at the 90th percentile"):
        assert words in head


def test_a_bar_takes_the_place_of_the_one_before(monkeypatch):
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress(terminal, one_bar=True) as move:
        for number in (1, 2):
            for done in range(3):
                move(f"trial {number} of at most 5: round(to={number})", done, 2)
        shown.truncate(0)
        terminal.print("above the bar")
    last = shown.getvalue()
    assert "trial 2 of at most 5: round(to=2)" in last
    assert "2/2" in last
    assert "trial 1" not in last


def test_a_dry_run_shows_the_search_and_leaves_nothing(recommend, files):
    before = files()
    code, out, err = recommend("--dry-run", "--out", "search")
    assert (code, err) == (0, "")
    assert "eps: 70, 50, 30, " in out
    assert "At most 6 trials" in out
    assert "GB of memory" in out
    assert files() == before
    code, out, _ = recommend("--dry-run", "--json")
    assert code == 0
    shown = json.loads(out)
    assert shown["most_trials_to_search"] == 5
    assert shown["seconds_of_one_processor"] > 0
    assert files() == before


def test_says_beforehand_if_nothing_can_be_accepted(recommend, folder):
    assert "this search can accept" in recommend("--dry-run")[1]
    (folder / "policy.toml").write_text("[limits]\nshare_auc_90 = 0.1\n")
    _, out, _ = recommend("--dry-run")
    assert re.search("this search can (decide nothing|reject but not accept)", out)
    assert "are needed" in out


@pytest.mark.parametrize("after", [0, 4, 13])
def test_an_interrupted_search_resumes(recommend, monkeypatch, after):
    _, expected, _ = recommend("--json")
    score_task, done = work.score_task, []

    def score_until(*arguments):
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(arguments)
        return score_task(*arguments)

    monkeypatch.setattr(work, "score_task", score_until)
    code, out, err = recommend("--out", "search", "--json")
    assert (code, out) == (130, "")
    assert "The same command resumes there" in err.splitlines()[-1]
    monkeypatch.setattr(work, "score_task", lambda *a: done.append(a) or score_task(*a))
    code, out, err = recommend("--out", "search", "--json")
    assert (code, out) == (0, expected)
    # No task is done twice.
    assert len(done) == 3 * len(trials(err))
    code, out, _ = recommend("--out", "search")
    assert code == 0
    assert "Trials already begun: " in out
    assert len(done) == 3 * len(trials(err))


def test_nothing_is_kept_without_a_folder(recommend, monkeypatch, files):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = files()
    monkeypatch.setattr(work, "score_task", interrupt)
    code, _, err = recommend("--json")
    assert code == 130
    assert "nothing is kept, because no folder was named" in err
    assert files() == before


def test_a_trial_that_fails_is_reported(recommend, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a test")

    monkeypatch.setattr(work, "score_task", fail)
    code, _, err = recommend()
    assert code == 1
    assert err.splitlines()[-1].endswith(" failed: ZeroDivisionError: a test.")


def test_more_releases_of_one_attack(recommend):
    code, out, _ = recommend("--releases-of", "likelihood-ratio=80", "--json")
    assert code == 0
    (chosen,) = [one for one in json.loads(out)["candidates"] if one["confirmed"]]
    for findings in (chosen["findings"], chosen["confirmation"]["findings"]):
        (auc,) = [
            one for one in findings if (one["attack"], one["metric"]) == ("likelihood-ratio", "auc")
        ]
        assert auc["n_in"] + auc["n_out"] == 3 * 80


@pytest.mark.parametrize(
    ("more", "problem", "fix"),
    [
        ("--out traces.parquet", "is not the folder of a search", "Name a new folder"),
        ("--out .", "is not the folder of a search", "Name a new folder"),
        ("--out traces.parquet/search", "traces.parquet", "may write to"),
        ("--releases-of likelihood-ratio=7", "must be even", "got 7"),
        ("--releases-of likelihood-ratio", "likelihood-ratio", "Write it like"),
        ("--releases-of knock-knock=20", "knock-knock", "likelihood-ratio"),
    ],
)
def test_bad_input_is_refused(refused, folder, more, problem, fix):
    said = refused(*BASE.split(), *more.split())
    assert problem in said
    assert fix in said


def test_other_traces_are_refused(refused, recommend, folder, traces):
    assert recommend("--out", "search", "--json")[0] == 0
    (folder / "traces.parquet").unlink()
    traces.select(range(100)).save("traces.parquet")
    said = refused(*BASE.split(), "--out", "search")
    assert "other traces, or the traces have changed" in said


def test_what_is_not_confirmed_is_shown_and_not_recommended(recommend, monkeypatch):
    confirmed = tester.Tester.confirmed

    def reject(self, tried):
        found = confirmed(self, tried)
        verdict = replace(found.candidate.confirmation, decision="reject")
        return replace(found, candidate=replace(found.candidate, confirmation=verdict))

    monkeypatch.setattr(tester.Tester, "confirmed", reject)
    code, out, _ = recommend()
    assert code == 0
    assert len(re.findall(r" \(not confirmed\) +finds", out)) == tester.MOST_CONFIRMATIONS
    assert "Nothing that was tried again on fresh releases passes the policy 'easy'." in out
    assert "Recommended" not in out
    assert recommend("--details")[1].count("  (not confirmed)") == tester.MOST_CONFIRMATIONS
