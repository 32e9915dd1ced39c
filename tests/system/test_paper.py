"""The paper's study from the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import polars as pl
import pytest

from whosthere.paper.experiments import EXPERIMENTS


def whosthere(*arguments):
    command = [sys.executable, "-m", "whosthere", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_all_experiments_pass_at_the_smallest_scale(tmp_path):
    done = whosthere("paper", "all", "--scale", "smoke", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    results = pl.read_csv(tmp_path / "results.csv", schema_overrides={"value": pl.String})
    page = (tmp_path / "README.md").read_text()
    for name in EXPERIMENTS:
        assert results["experiment"].str.starts_with(name).any()
        assert f"### {name}: " in page
        assert (tmp_path / "figures" / f"{name}.svg").exists()
        assert (tmp_path / name / "report.html").stat().st_size < 2e6
        plan = json.loads((tmp_path / name / "manifest.json").read_text())["plan"]
        assert (len(plan["targets"]), plan["releases"]) == (2, 2)
    assert "cannot tell" in done.stdout
    again = whosthere("paper", "ssc", "--scale", "smoke", "--out", tmp_path, "--dry-run")
    assert again.returncode == 0
    assert "0 of 12" in again.stdout


def test_a_dry_run_leaves_nothing_behind(tmp_path):
    out = tmp_path / "study"
    arguments = ("paper", "ssc", "--scale", "smoke", "--out", out, "--dry-run")
    done = whosthere(*arguments)
    assert done.returncode == 0, done.stderr
    assert "12 of 12" in done.stdout
    assert "about" in done.stdout
    assert not out.exists()


def test_experiments_are_listed():
    listed = whosthere("paper", "--list").stdout
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
def test_what_cannot_be_done_is_refused(tmp_path, arguments, said):
    command = [sys.executable, "-m", "whosthere", "paper", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
