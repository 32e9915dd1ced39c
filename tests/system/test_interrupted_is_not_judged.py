"""What stops an audit on its way, other than its tasks, is no reason to judge what is there."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import whosthere as wt

M = ("-m", "20", "-M", "raw", "-M", "suppress(k=1)", "-a", "likelihood-ratio")
TYPED = ("audit", "t.parquet", *M, "--targets", "3", "--releases", "4", "--seed", "1",
         "--no-what-if", "--out", "run")  # fmt: skip
N_TASKS = 6


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    city = wt.simulate("milan-like", seed=1, users=200, regions=4, days=1)
    city.traces().save(tmp_path / "t.parquet")
    return tmp_path


def finished(folder):
    return len(list((folder / "run" / "tasks").glob("*.parquet")))


def looks(folder):
    judged = json.loads((folder / "run" / "verdicts.json").read_text())
    return {one["look"] for one in judged["verdicts"]}


# What an attack does as soon as so many tasks are kept.
PATCHED = """
import glob, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from whosthere.adversary.attacks import LikelihoodRatio
def fit_tables(self, *given, fit=LikelihoodRatio.fit_tables, **words):
    if glob.glob("run/manifest.json") and len(glob.glob("run/tasks/*.parquet")) >= {after}:
        {what}
    return fit(self, *given, **words)
LikelihoodRatio.fit_tables = fit_tables
"""
# As Ctrl-C or SIGTERM in the middle of compiled code, which makes of it what it likes.
SIGNAL = """
        try:
            signal.raise_signal(signal.{name})
        except KeyboardInterrupt as interrupt:
            {then}
"""
BECOMES = (
    "raise SystemError('returned a result with an exception set') from interrupt",
    "given = ()",  # which is an error that does not say why
    "pass",
)


def audited(what, *, after):
    """Run the command with an attack that does something else when so many tasks are kept."""
    script = PATCHED.format(what=what, after=after) + "from whosthere.cli.main import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", script, *TYPED, "--workers", "1"],
        capture_output=True,
        text=True,
        check=False,
    )


def resumed(whosthere):
    """Let the command end, undisturbed."""
    assert whosthere(*TYPED, "--workers", "1")[0] == 0


@pytest.mark.parametrize(
    ("name", "code", "becomes"),
    [("SIGINT", 130, 0), ("SIGTERM", 143, 1), ("SIGINT", 130, 2)],
    ids=["another error", "one that does not say why", "nothing"],
)
def test_a_signal_in_compiled_code_is_an_interrupt(folder, whosthere, name, code, becomes):
    ended = audited(SIGNAL.format(name=name, then=BECOMES[becomes]), after=2)
    assert ended.returncode == code, ended.stderr
    said = ended.stderr.splitlines()[-1]
    assert re.fullmatch(r"error: interrupted; 2 of 6 tasks are done and kept\. The .*", said)
    assert "failed" not in ended.stderr
    assert not (folder / "run" / "verdicts.json").exists()
    resumed(whosthere)
    assert looks(folder) == {1}


def test_all_tasks_failing_is_one_message(folder, whosthere):
    ended = audited("raise ZeroDivisionError('a test')", after=0)
    assert ended.returncode == 1
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error")]
    assert errors == ["error: all 6 tasks failed with ZeroDivisionError: a test."]
    assert "Traceback" not in ended.stderr
    assert not (folder / "run" / "verdicts.json").exists()
    resumed(whosthere)
    assert looks(folder) == {1}


def test_equal_failures_are_one_line(folder, whosthere):
    ended = audited("raise ZeroDivisionError('a test')", after=2)
    assert ended.returncode == 1
    [line] = [line for line in ended.stderr.splitlines() if "ZeroDivisionError" in line]
    assert " and 3 other tasks failed: ZeroDivisionError: a test (more in run/log.txt)" in line
    assert "4 of 6 tasks failed; the results rest on the others" in ended.stderr


@contextmanager
def running(*arguments, **environment):
    """Have a process of a cluster run."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *map(str, arguments)],
        env=os.environ | environment,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def cluster(folder, preload):
    """Give the scheduler of a cluster and its address; its worker runs some code first."""
    pytest.importorskip("distributed")
    (folder / "preload.py").write_text(preload)
    at = folder / "scheduler.json"
    with running("scheduler", "--port", 0, "--no-dashboard", "--scheduler-file", at) as scheduler:
        while not at.exists() or not at.read_text().endswith("}"):
            time.sleep(0.01)
        address = json.loads(at.read_text())["address"]
        typed = ("--nthreads", 1, "--no-dashboard", "--no-nanny", "--preload", "preload.py")
        with running("worker", address, *typed):
            yield scheduler, address


@pytest.mark.slow
def test_a_lost_cluster_is_an_interruption(folder, whosthere):
    waits = PATCHED.format(what="time.sleep(3600)", after=2)
    with cluster(folder, waits) as (scheduler, address):
        audit = subprocess.Popen(
            [sys.executable, "-m", "whosthere", *TYPED, "--cluster", address],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"},
        )
        while finished(folder) < 2:
            assert audit.poll() is None, audit.communicate()
            time.sleep(0.01)
        scheduler.kill()
        _, err = audit.communicate()
    assert audit.returncode == 1
    said = [line for line in err.splitlines() if line.startswith("error")]
    assert len(said) == 1, err
    assert "the connection to it was lost; " in said[0]
    assert re.search("[2-5] of 6 tasks are done and kept", said[0])
    assert not (folder / "run" / "verdicts.json").exists()
    resumed(whosthere)
    assert looks(folder) == {1}


@pytest.mark.slow
def test_workers_of_other_versions_are_refused_before_the_first_task(folder, whosthere):
    other = "import whosthere.auditing.manifest as m; m.__version__ = '99.0'"
    with cluster(folder, other) as (_, address):
        code, _, err = whosthere(*TYPED, "--cluster", address)
    assert code == 2
    [said] = [line for line in err.splitlines() if line.startswith("error")]
    assert "'whosthere': '99.0'" in said
    assert finished(folder) == 0
    resumed(whosthere)
    assert looks(folder) == {1}
