"""The paper's study from the command line."""

import json

import polars as pl
import pytest

from whosthere.data.cities import simulate
from whosthere.paper.claims import Status
from whosthere.paper.experiments import EXPERIMENTS
from whosthere.paper.figures import DATA_FIGURES


@pytest.fixture(scope="module")
def small_city(tmp_path_factory):
    """Give the options for a city that is just large enough for every experiment."""
    path = tmp_path_factory.mktemp("city") / "traces.parquet"
    simulate("milan-like", seed=5, users=750, regions=9, days=1).traces().save(path)
    return ["--dataset", path, "--group-size", "100", "--min-visits", "2", "--workers", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Of every kind one: together they have all mechanisms, attacks and knowledge of the study alone.
OF_EVERY_KIND = (
    "ssc", "group-size", "regions-only", "fit", "eight-bit", "limits", "other-attackers",
    "informed", "greedy-leak", "reused-noise",
)  # fmt: skip


@pytest.mark.slow
def test_all_experiments_run_on_a_small_city(whosthere, folder, small_city, full):
    some = tuple(EXPERIMENTS) if full else OF_EVERY_KIND
    check_experiments(whosthere, folder, some, [*small_city, "--targets", "1"], targets=1)


@pytest.mark.slow
@pytest.mark.full
def test_all_experiments_run_on_the_usual_city(whosthere, folder):
    check_experiments(whosthere, folder, tuple(EXPERIMENTS), (), targets=2)


def check_experiments(whosthere, folder, names, city, *, targets):
    typed = ("--scale", "smoke", "--out", folder, *city)
    code, shown, complaint = whosthere("paper", *names, *typed)
    assert code == 0, complaint
    results = pl.read_csv(folder / "results.csv", schema_overrides={"value": pl.String})
    page = (folder / "README.md").read_text()
    for name in names:
        assert results["experiment"].str.starts_with(name).any()
        assert f"### {name}: " in page
        assert (folder / "figures" / f"{name}.svg").exists()
        assert (folder / name / "report.html").stat().st_size < 2e6
        plan = json.loads((folder / name / "manifest.json").read_text())["plan"]
        assert (len(plan["targets"]), plan["releases"]) == (targets, 2)
    assert "can decide nothing" in shown
    code, shown, _ = whosthere("paper", "ssc", *typed, "--dry-run")
    assert code == 0
    assert f"0 of {6 * targets}" in shown
    code, shown, _ = whosthere("paper", "ssc", *typed, "--no-figures", "--json")
    assert code == 0
    found = json.loads(shown)
    assert len(found["results"]) == results.height
    assert {one["status"] for one in found["claims"]} <= {status.value for status in Status}
    for name in DATA_FIGURES:
        assert (folder / "figures" / f"{name}.svg").exists()


def test_a_dry_run_leaves_nothing_behind(whosthere, folder, small_city, monkeypatch):
    monkeypatch.setattr("whosthere.paper.study._SECONDS_TO_TRY_ALL", 0.1)
    code, shown, complaint = whosthere(
        "paper", "ssc", "--scale", "smoke", "--out", "study", "--dry-run", *small_city
    )
    assert code == 0, complaint
    assert "12 of 12" in shown
    assert "about" in shown
    # It writes nothing, and needs no folder.
    code, shown, complaint = whosthere(
        "paper", "ssc", "--scale", "smoke", "--dry-run", "--json", *small_city
    )
    assert code == 0, complaint
    assert json.loads(shown)["experiments"]["ssc"]["tasks_left"] == 12
    assert not list(folder.iterdir())


def test_experiments_are_listed(whosthere):
    _, listed, _ = whosthere("paper", "--list")
    assert all(name in listed for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ssc",), "no folder is given"),
        (("--out", "x"), "no experiment is named"),
        (("scc", "--out", "x"), "no experiment 'scc'"),
        (("ssc", "--out", "x", "--scale", "huge"), "no scale 'huge'"),
        (("ssc", "--out", "x", "--dataset", "rome"), "no data set 'rome'"),
        (("ssc", "--out", "x", "--releases", "3"), "must be even"),
        (("ssc", "--out", "x", "--like", "cdr"), "has the numbers of milan, not those of cdr"),
        (("ssc", "--out", "x", "--reference-size", "4500"), "leaves groups of 499 at most"),
        (("ssc", "--out", "x", "-m", "4000", "--scale", "smoke"), "ssc needs groups of 4,000"),
    ],
)
def test_what_cannot_be_done_is_refused(whosthere, folder, arguments, said):
    code, _, complaint = whosthere("paper", *arguments)
    assert code == 2
    assert said in complaint
    assert "Traceback" not in complaint
