"""Folders of audits that were changed, damaged or left by a killed process: commands notice."""

import json
import random
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.reporting.report import REPORT

SAFE = "suppress(k=50)"
TYPED = ("-m", "20", "-M", SAFE, "-M", "raw", "-a", "likelihood-ratio", "--targets", "20",
         "--releases", "4", "--seed", "1", "--workers", "1", "--no-what-if")  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with traces, and the folder of an audit that accepts one of two protections."""
    folder = tmp_path_factory.mktemp("finished")
    city = wt.simulate("milan-like", seed=1, users=300, regions=4, days=1)
    city.traces().save(folder / "t.parquet")
    (folder / "policy.toml").write_text("[limits]\nauc = 0.8\n")
    typed = ("audit", "t.parquet", *TYPED, "--policy", "policy.toml", "--out", "run")
    subprocess.run([sys.executable, "-m", "whosthere", *typed], cwd=folder, check=True)
    return folder


@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def audit(whosthere):
    def run():
        typed = ("t.parquet", *TYPED, "--policy", "policy.toml", "--out", "run")
        return whosthere("audit", *typed)

    return run


READ = {
    "report": ("report", "run"),
    "inspect": ("inspect", "run"),
    "compare": ("compare", "run", "run"),
    "release": ("release", "t.parquet", "-M", SAFE, "-m", "20", "--audit", "run",
                "-o", "r.parquet"),
}  # fmt: skip


def less_found(folder):
    """Let an attack find nobody in the scores of the tasks."""
    rng = np.random.default_rng(1)
    for path in (folder / "run" / "tasks").glob("*.parquet"):
        about = pl.read_parquet_metadata(path)
        table = pl.read_parquet(path)
        noise = pl.Series("score", rng.normal(size=table.height))
        table.with_columns(noise).write_parquet(path, metadata={"whosthere": about["whosthere"]})


def accepted(folder):
    path = folder / "run" / "verdicts.json"
    path.write_text(path.read_text().replace('"reject"', '"accept"'))


def smaller(folder):
    path = folder / "run" / "findings.json"
    found = json.loads(path.read_text())
    halved = [one | {"estimate": one["estimate"] and one["estimate"] / 2} for one in found]
    path.write_text(json.dumps(halved))


def first_look(folder):
    path = folder / "run" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"looks": []}))


def emptied(folder):
    path = folder / "run" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"settings": []}))


@pytest.mark.parametrize("change", [less_found, accepted, smaller, first_look, emptied])
@pytest.mark.parametrize("command", READ)
def test_what_was_changed_is_noticed(folder, whosthere, change, command):
    assert whosthere(*READ[command])[0] == 0
    (folder / "r.parquet").unlink(missing_ok=True)
    change(folder)
    code, _, err = whosthere(*READ[command])
    assert (code, err.count("\n")) == (2, 1)
    assert "is not as it was written" in err
    assert not (folder / "r.parquet").exists()


def test_changed_scores_are_not_judged(folder, audit):
    less_found(folder)
    code, _, err = audit()
    assert code == 2
    assert "tasks" in err
    assert "is not as it was written" in err
    shutil.rmtree(folder / "run" / "tasks")
    assert audit()[0] == 0


def test_results_that_were_changed_are_made_again(folder, audit, whosthere):
    before = (folder / "run" / "findings.json").read_bytes()
    smaller(folder)
    accepted(folder)
    assert audit()[0] == 0
    assert (folder / "run" / "findings.json").read_bytes() == before
    assert whosthere("inspect", "run")[0] == 0


# What has the form of a file of ours is harder to notice than what has none.
KINDS = ("bytes", "cut", "value", "value", "other", "other", "folder")


def damaged(path, others, how, rng):
    """Return a file's content with bytes changed or cut off, a value gone, or that of another."""
    content = path.read_bytes()
    at, noise = rng.randrange(len(content) or 1), rng.randbytes(rng.randint(1, 9))
    if how == "other":
        return rng.choice([one for one in others if one.suffix == path.suffix]).read_bytes()
    if how == "value" and path.suffix == ".json":
        found = json.loads(content)
        place = found if isinstance(found, dict) else rng.choice(found)
        place[rng.choice(list(place))] = rng.choice([None, "x", [], {}])
        return json.dumps(found).encode()
    return content[:at] + (b"" if how == "cut" else noise + content[at + len(noise) :])


def test_damage_ends_in_a_message(folder, whosthere, full):
    rng = random.Random(1)
    whole = sorted(path for path in (folder / "run").rglob("*") if path.is_file())
    again = ("audit", "t.parquet", *TYPED, "--policy", "policy.toml", "--out", "run", "--dry-run")
    commands = [again, *READ.values()]
    for i in range(600 if full else 60):
        path, how = rng.choice(whole), rng.choice(KINDS)
        before, now = path.read_bytes(), damaged(path, whole, how, rng)
        path.unlink()
        path.mkdir() if how == "folder" else path.write_bytes(now)
        code, _, err = whosthere(*commands[i % len(commands)])
        assert code in {0, 1, 2}, (path, how)
        assert "Traceback" not in err, (path, how)
        if how == "folder":
            path.rmdir()
        path.write_bytes(before)
        (folder / "r.parquet").unlink(missing_ok=True)


# Killed on its way: the n-th file has its name, or will never have it.
KILLED = """
import os, signal, sys
from whosthere.cli.main import main
renamed, left = os.replace, int(sys.argv.pop(1))
def replace(*names):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    renamed(*names)
os.replace = replace
main()
"""


def killed(folder, n, *typed):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(n), *typed], cwd=folder, check=False, capture_output=True
    )
    assert done.returncode == -9, done.stderr


def test_a_kill_at_any_file_is_resumed(folder, audit):
    """Whether a file is there already, or only known to come."""
    expected = {
        name: (folder / "run" / name).read_bytes() for name in ("findings.json", "verdicts.json")
    }
    shutil.rmtree(folder / "run")
    typed = ("audit", "t.parquet", *TYPED, "--policy", "policy.toml", "--out", "run")
    for n in (0, 8, 3):
        killed(folder, n, *typed)
    assert list((folder / "run").rglob(".*.part"))
    assert audit()[0] == 0
    assert {name: (folder / "run" / name).read_bytes() for name in expected} == expected
    assert not list((folder / "run").rglob(".*.part"))
    assert (folder / "run" / REPORT).exists()


SEARCH = ("recommend", "t.parquet", "-m", "20", "--family", "suppress(k=?)", "-a",
          "likelihood-ratio", "--targets", "3", "--releases", "4", "--workers", "1",
          "--out", "search", "--report", "choice.html")  # fmt: skip


@pytest.mark.slow
def test_a_search_with_a_report_is_repeated(folder, whosthere):
    page = folder / "choice.html"
    assert whosthere(*SEARCH)[0] == 0
    page.unlink()
    assert whosthere(*SEARCH)[0] == 0
    assert whosthere(*SEARCH)[0] == 0
    page.write_text("mine")
    code, _, err = whosthere(*SEARCH)
    assert (code, page.read_text()) == (2, "mine")
    assert "exists already" in err
