"""An audit that is killed, interrupted or loses a worker ends in the same findings."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from whosthere.auditing import work
from whosthere.auditing.cluster import DaskCluster
from whosthere.auditing.plan import PlanOptions, make_plan
from whosthere.auditing.run import InterruptedAudit, run_audit
from whosthere.auditing.work import Job, LocalProcesses, ThisProcess
from whosthere.data.cities import simulate

OPTIONS = PlanOptions(
    mechanisms=("raw", "laplace(eps=5, unit=user-day, max_visits=3) | suppress(k=1)"),
    group_sizes=(50,),
    targets=6,
    releases=4,
    seed=3,
)
N_UNITS = 12
TYPED = [
    *("--mechanism", "raw"),
    *("--mechanism", "laplace(eps=5, unit=user-day, max_visits=3) | suppress(k=1)"),
    *("--group-size", "50", "--targets", "6", "--releases", "4", "--seed", "3", "--workers", "2"),
]


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    """Give traces, the plan, and the results of one process that nobody disturbed."""
    folder = tmp_path_factory.mktemp("audit")
    traces = simulate("milan-like", seed=7, users=400, days=1, regions=25).traces()
    traces.save(folder / "traces.parquet")
    plan = make_plan(OPTIONS, traces)
    run_audit(plan, folder / "traces.parquet", folder / "undisturbed")
    return folder / "traces.parquet", plan, results(folder / "undisturbed")


def results(folder):
    """Return all that must be the same: everything but the seconds that scores took."""
    tables = [pl.read_parquet(folder / f"{name}.parquet") for name in ("scores", "control")]
    return (
        *(table.drop("seconds").to_dicts() for table in tables),
        (folder / "findings.json").read_bytes(),
        (folder / "verdicts.json").read_bytes(),
    )


def finished(folder):
    return len(list((folder / "units").glob("target-*.parquet")))


def children_of(process):
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def wait_until(true, seconds=60):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def start(traces, out):
    # Programs in the background may have been told to ignore Ctrl-C; this one listens again.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "if __name__ == '__main__':\n"
        "    from whosthere.cli.main import main\n"
        "    main()\n"
    )
    script = out.parent / "start.py"
    script.write_text(code)
    return subprocess.Popen(
        [sys.executable, script, "audit", traces, *TYPED, "--out", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_two_processes_find_the_same(city, tmp_path):
    traces, plan, expected = city
    seen = []
    run_audit(
        plan,
        traces,
        tmp_path / "run",
        workers=LocalProcesses(2),
        on_progress=lambda *progress: seen.append(progress),
    )
    assert results(tmp_path / "run") == expected
    assert seen == [(done, N_UNITS) for done in range(N_UNITS + 1)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_killed_at_random_moments(city, tmp_path):
    traces, _, expected = city
    out = tmp_path / "run"
    rng = random.Random(1)
    for least in (1, 3, 5):
        with start(traces, out) as process:
            wait_until(lambda least=least: finished(out) >= least)
            time.sleep(rng.uniform(0, 0.1))
            workers = children_of(process)
            process.kill()
            process.communicate()
        # Nobody is left behind who would go on working.
        wait_until(lambda left=workers: not any(Path(f"/proc/{pid}").exists() for pid in left))
        assert least <= finished(out) < N_UNITS
        assert not (out / "findings.json").exists()
    before = {path: path.stat().st_mtime_ns for path in (out / "units").glob("target-*")}
    with start(traces, out) as process:
        shown, _ = process.communicate()
    assert process.returncode == 0
    assert f"{len(before)} of {N_UNITS} units are done already" in shown
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    assert results(out) == expected


@pytest.mark.slow
def test_ctrl_c(city, tmp_path):
    traces, _, expected = city
    out = tmp_path / "run"
    with start(traces, out) as process:
        wait_until(lambda: finished(out) >= 2)
        # A terminal sends it to all processes that were started together.
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    said = complaint.splitlines()
    assert all(" units done" in line for line in said[:-1])
    assert "units are done and kept. The same command goes on from there" in said[-1]
    with start(traces, out) as process:
        process.communicate()
    assert process.returncode == 0
    assert results(out) == expected


class InterruptedAfter(ThisProcess):
    """Somebody who presses Ctrl-C after some units."""

    def __init__(self, n):
        self.n = n

    def do(self, job, units):
        for i, outcome in enumerate(super().do(job, units)):
            if i == self.n:
                raise KeyboardInterrupt
            yield outcome


def test_interrupted_after_any_unit(city, tmp_path):
    traces, plan, expected = city
    for n in (0, 1, N_UNITS // 2):
        with pytest.raises(InterruptedAudit, match="goes on from there"):
            run_audit(plan, traces, tmp_path / "run", workers=InterruptedAfter(n))
    run_audit(plan, traces, tmp_path / "run")
    assert results(tmp_path / "run") == expected


def test_a_worker_that_dies_is_replaced(city, tmp_path):
    traces, plan, expected = city
    killed = []

    def kill_one(done, _total):
        if done == 3 and not killed:
            killed.append(multiprocessing.active_children()[0])
            killed[0].kill()

    result = run_audit(
        plan, traces, tmp_path / "run", workers=LocalProcesses(2), on_progress=kill_one
    )
    assert killed
    assert not result.failed
    assert results(tmp_path / "run") == expected


def test_a_unit_that_kills_its_worker_is_given_up(city, tmp_path):
    """Every worker is killed as soon as it is there: in the end all units are given up."""
    traces, plan, _ = city
    units = plan.units[:2]
    with LocalProcesses(1) as workers:
        outcomes = workers.do(Job.on(plan, traces), units)
        stop = threading.Event()

        def kill_all():
            while not stop.is_set():
                for child in multiprocessing.active_children():
                    child.kill()
                time.sleep(0.01)

        threading.Thread(target=kill_all, daemon=True).start()
        done = list(outcomes)
        stop.set()
    assert {outcome.unit for outcome in done} == set(units)
    assert all("died" in outcome.failure for outcome in done)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as running:
        yield running


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_loses_a_worker(city, cluster, tmp_path):
    traces, plan, expected = city
    killed = []

    def kill_one(done, _total):
        if done == 2 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    workers = DaskCluster(cluster.scheduler_address)
    result = run_audit(plan, traces, tmp_path / "run", workers=workers, on_progress=kill_one)
    assert killed
    assert not result.failed
    assert results(tmp_path / "run") == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_failures_on_a_cluster_are_told(city, cluster, tmp_path):
    traces, plan, _ = city
    moved = tmp_path / "traces.parquet"
    moved.write_bytes(traces.read_bytes())
    failures = []

    def replace_traces(done, _total):
        if not done:
            moved.write_bytes(b"something else")

    result = run_audit(
        plan,
        moved,
        tmp_path / "run",
        workers=DaskCluster(cluster.scheduler_address),
        on_progress=replace_traces,
        on_failure=lambda unit, why: failures.append((unit, why)),
    )
    assert set(result.failed) == set(plan.units)
    assert all("has changed since the audit began" in why for _, why in failures)


def test_a_failing_unit_does_not_stop_the_others(city, tmp_path, whosthere, monkeypatch):
    traces, plan, expected = city
    broken = plan.units[3]
    score_unit = work.score_unit

    def score_or_fail(traces, plan, unit):
        if unit == broken:
            raise ZeroDivisionError("a test")
        return score_unit(traces, plan, unit)

    monkeypatch.setattr(work, "score_unit", score_or_fail)
    typed = [*TYPED[:-1], "1", "--out", tmp_path / "run"]
    code, shown, complaint = whosthere("audit", traces, *typed)
    assert code == 1
    assert f"1 of {N_UNITS} units failed" in complaint
    assert f"{broken} failed: ZeroDivisionError: a test" in complaint
    assert "Traceback" not in complaint + shown
    assert "Traceback" in (tmp_path / "run" / "log.txt").read_text()
    assert json.loads((tmp_path / "run" / "verdicts.json").read_text())["failed_units"] == 1
    monkeypatch.undo()
    assert whosthere("audit", traces, *typed)[0] == 0
    assert results(tmp_path / "run") == expected
