"""What `audit` says beforehand, of named targets, and again through `inspect`."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import whosthere as wt
from whosthere.cli import console
from whosthere.data.files import add_checksum

QUICK = ("-m", "20", "-M", "raw", "-a", "likelihood-ratio", "--releases", "4", "--no-what-if")


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "traces.parquet"
    wt.simulate("milan-like", seed=2, users=300, regions=9, days=1).traces().save(path)
    return path


def in_one_line(text):
    return " ".join(text.split())


def test_a_dry_run_says_whether_the_plan_can_accept(traces, tmp_path, whosthere):
    dry = ("--out", tmp_path / "run", "--dry-run")
    code, shown, _ = whosthere("audit", traces, *QUICK, "--targets", "5", *dry)
    assert code == 0
    said = in_one_line(shown)
    assert "this plan can reject but not accept" in said
    assert "at least 42 are needed" in said
    shown = whosthere("audit", traces, *QUICK[:-3], "--targets", "55", *dry)[1]
    assert "this plan can accept and reject" in in_one_line(shown)


@pytest.mark.parametrize(
    ("chosen", "limits", "said"),
    [
        (("--targets", "55", "--control-releases", "0"), "auc = 0.6", "without one every verdict"),
        (("--targets", "1"), "auc = 0.6", "no confidence interval"),
        (("--targets", "2", "--releases", "2"), "auc = 0.6", "even if nobody is found"),
    ],
)
def test_a_plan_that_can_decide_nothing_says_so(traces, tmp_path, whosthere, chosen, limits, said):
    policy = tmp_path / "policy.toml"
    policy.write_text(f"[limits]\n{limits}\n")
    dry = ("--policy", policy, "--out", tmp_path / "run", "--dry-run")
    shown = in_one_line(whosthere("audit", traces, *QUICK, *chosen, *dry)[1])
    assert "this plan can decide nothing:" in shown
    assert said in shown


def test_named_targets_get_a_line_each(traces, tmp_path, whosthere):
    users = [wt.Traces.load(traces).users[i] for i in (5, 2)]
    named = [word for user in users for word in ("--user", user)]
    code, shown, _ = whosthere("audit", traces, *QUICK, *named, "--out", tmp_path / "run")
    assert code == 0
    table = shown[shown.index("Named targets") :]
    lines = [line.split("│")[1].strip() for line in table.splitlines() if "raw, m=20" in line]
    assert lines == ["1", "2"]
    # Nobody is named, on the screen or in anything that is kept.
    assert not any(user in shown for user in users)
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file():
            assert not any(user.encode() in path.read_bytes() for user in users)


def test_how_targets_were_chosen_is_shown_and_shown_again(traces, tmp_path, whosthere):
    people = wt.Traces.load(traces)
    named = ("--user", people.users[5], "--user", people.users[2])
    for name, chosen, said in (
        ("all", ("--targets", "3"), "3 people, drawn at random; groups of 20;"),
        ("some", ("--targets", "3", "--min-visits", "2"), "people with 2 or more visits"),
        ("named", named, "2 people, named by hand;"),
    ):
        run = tmp_path / name
        shown = in_one_line(whosthere("audit", traces, *QUICK, *chosen, "--out", run)[1])
        assert said in shown
        assert ("The targets are named by hand" in shown) is (name == "named")
        assert said in in_one_line(whosthere("inspect", run)[1])
        found = json.loads(whosthere("inspect", run, "--json")[1])
        assert found["targets_chosen"]["how"] == ("by hand" if name == "named" else "at random")
        assert (
            found["targets_chosen"]
            == json.loads((run / "verdicts.json").read_text())["targets_chosen"]
        )
    assert "different people" in in_one_line(
        whosthere("compare", tmp_path / "all", tmp_path / "some")[1]
    )


def test_a_finished_audit_is_shown_again(traces, tmp_path, whosthere):
    run = tmp_path / "run"
    options = ("--targets", "3", "--out", run, "--details", "--explain")
    first = whosthere("audit", traces, *QUICK, *options)[1]
    code, again, _ = whosthere("inspect", run, "--explain")
    assert code == 0
    shown = again.rstrip().splitlines()
    assert len(shown) > 20
    assert set(shown) <= set(first.splitlines())
    assert "- mean AUC: How well" in again
    assert "- mean AUC: How well" not in whosthere("inspect", run)[1]
    found = json.loads(whosthere("inspect", run, "--json")[1])
    assert found["verdicts"][0]["setting"] == "raw, m=20"


def test_cautions_are_said_again(traces, tmp_path, whosthere):
    others = wt.Traces.load(traces).n_users - 1
    m = others * 2 // 3
    run, large = tmp_path / "run", ("-m", m, *QUICK[2:])
    shown = whosthere("audit", traces, *large, "--targets", "3", "--out", run)[1]
    caution = f"Groups of {m} are drawn from {others} people"
    assert in_one_line(shown).count(f"Note: {caution}") == 1
    assert caution in in_one_line(whosthere("inspect", run)[1])
    assert caution in (run / "report.html").read_text(encoding="utf-8")
    assert caution in json.loads(whosthere("inspect", run, "--json")[1])["cautions"][0]


@pytest.mark.parametrize("attack", ["likelihood-ratio", "likelihood-ratio(rates=independent)"])
def test_no_column_is_lost_in_a_narrow_terminal(traces, tmp_path, whosthere, monkeypatch, attack):
    run = tmp_path / "run"
    whosthere("audit", traces, *QUICK, "--targets", "3", "--out", run)
    for name in ("findings.json", "verdicts.json"):
        text = (run / name).read_text()
        (run / name).write_text(text.replace('"likelihood-ratio"', f'"{attack}"'))
        add_checksum(run / "checksums.txt", run / name, name)
    narrow = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(console, "out", narrow)
    whosthere("inspect", run)
    lines = narrow.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    (head,) = [
        line for line in lines if "attack" in line and "\N{BOX DRAWINGS HEAVY VERTICAL}" in line
    ]
    assert all(word in head for word in ("mean AUC", "AUC, all", "accuracy", "eps"))
    assert any("0.9" in line for line in lines[: lines.index(head) + 1])


def test_one_is_not_many(traces, tmp_path, whosthere):
    run = ("--targets", "1", "--out", tmp_path / "run")
    code, shown, said = whosthere("audit", traces, *QUICK[:-1], *run)
    assert code == 0
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    for text in (in_one_line(shown), in_one_line(said), page):
        for wrong in ("1 targets", "1 regions", "1 tasks,", "tried done"):
            assert not re.search(rf"(?<![\d,.]){wrong}", text), wrong
    assert "1 person, drawn at random;" in in_one_line(shown)


def test_an_unfinished_audit_says_how_far_it_is(traces, tmp_path, whosthere):
    run = tmp_path / "run"
    whosthere("audit", traces, *QUICK, "--targets", "3", "--out", run)
    (run / "verdicts.json").unlink()
    next((run / "tasks").iterdir()).unlink()
    code, shown, _ = whosthere("inspect", run)
    assert code == 0
    assert "2 of 3 tasks are done" in in_one_line(shown)
    found = json.loads(whosthere("inspect", run, "--json")[1])
    assert (found["tasks_done"], found["tasks"]) == (2, 3)
    (run / "manifest.json").write_text("{}")
    code, _, said = whosthere("inspect", run)
    assert code == 2
    assert "manifest.json: is not as it was written" in in_one_line(said)


def test_an_audit_is_extended(traces, tmp_path, whosthere):
    run = ("--out", tmp_path / "run")
    assert whosthere("audit", traces, *QUICK, "--targets", "3", *run)[0] == 0
    code, _, said = whosthere("audit", traces, *QUICK, "--targets", "5", *run)
    assert code == 2
    assert "by another plan" in in_one_line(said)
    assert "(--extend)" in in_one_line(said)
    code, shown, _ = whosthere("audit", traces, *QUICK, "--targets", "5", *run, "--extend")
    assert code == 0
    assert "3 of 5 tasks are done already" in in_one_line(shown)


def test_traces_of_people_who_go_together_say_so(tmp_path, whosthere):
    strangers = wt.simulate("milan-like", seed=3, users=600, days=7).traces()
    pairs = strangers.select(np.repeat(np.arange(300), 2))
    pairs = replace(pairs, users=tuple(f"{i:04d}" for i in range(600)))
    for name, traces in (("strangers", strangers), ("pairs", pairs)):
        path = tmp_path / f"{name}.parquet"
        traces.save(path)
        shown = in_one_line(whosthere("inspect", path)[1])
        for said in ("going together, 5 to 9 visits", "Note: About 100.0% of the people with 5"):
            assert (said in shown) is (name == "pairs")
        found = json.loads(whosthere("inspect", path, "--json")[1])["going_together"]
        assert {band["sharing"] for band in found} == {None} or name == "pairs"


@pytest.mark.parametrize("width", [30, 45, 60, 80])
def test_no_number_is_cut_off_in_a_narrow_terminal(monkeypatch, width):
    heads = ("attack", "mean AUC", "AUC, all", "accuracy", "TPR at 1% FPR", "AUC >= 0.9", "eps")
    cells = ["likelihood-ratio", *(f"0.{i}61\n0.{i}3\N{EN DASH}0.{i}9" for i in range(1, 6)), 0.577]
    narrow = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    monkeypatch.setattr(console, "out", narrow)
    console.table("Reached", heads, [cells, ["ceiling", *[""] * 5, 0.988]])
    shown = narrow.file.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    for one in ("likelihood-ratio", "0.161", "0.561", "0.577", "0.988"):
        assert one in shown, one
