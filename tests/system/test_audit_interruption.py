"""An audit that is killed, interrupted or loses a worker ends in the same findings."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from whosthere.auditing import work
from whosthere.auditing.interruption import InterruptedAudit
from whosthere.auditing.options import AuditOptions, merged
from whosthere.auditing.plan_file import read_plan_file
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.work import DaskCluster, LocalProcesses, ThisProcess
from whosthere.data.cities import simulate
from whosthere.errors import FileError
from whosthere.game import leaks

MECHANISMS = ("raw", "laplace(eps=5, unit=user-day, max_visits=3) | suppress(k=1)")
FEW = "groups=20, validation=10"
ATTACKS = (f"knock-knock({FEW})", f"zero-knowledge({FEW}, reference=60)", "likelihood-ratio")
OPTIONS = AuditOptions.of(
    mechanisms=MECHANISMS,
    attacks=ATTACKS,
    group_size=50,
    targets=4,
    releases=4,
    seed=3,
)
N_TASKS = 8
TYPED = [
    *(typed for one in MECHANISMS for typed in ("--mechanism", one)),
    *(typed for one in ATTACKS for typed in ("--attack", one)),
    *("--group-size", "50", "--targets", "4", "--releases", "4", "--seed", "3"),
]
# Five variants of one attack, and two knowledges, that all meet the same releases.
VARIANTS = """
mechanisms = ["raw", "laplace(eps=5, unit=user-day, max_visits=3) | suppress(k=1)"]
group_size = 50
knowledge = ["all", "share(0.5)"]
attacks = [
    "zero-knowledge(reference=60, groups=20, validation=10)",
    "zero-knowledge(sampling=independent, reference=60, groups=20, validation=10)",
    "zero-knowledge(marginals=mechanism, reference=60, groups=20, validation=10)",
    "zero-knowledge(activity=constant, rule=no, reference=60, groups=20, validation=10)",
    "zero-knowledge(fit=per-target, reference=60, groups=20, validation=10)",
]
targets = 4
releases = 2
seed = 3
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "traces.parquet"
    simulate("milan-like", seed=7, users=400, days=1, regions=25).traces().save(path)
    return path


@pytest.fixture(scope="module")
def city(traces, tmp_path_factory):
    """Give traces, the plan, and the results of one process that nobody disturbed."""
    out = tmp_path_factory.mktemp("audit") / "undisturbed"
    prepared = prepare_audit(traces, OPTIONS, out)
    prepared.run()
    return traces, prepared.plan, results(out)


@pytest.fixture(scope="module")
def variants(traces, tmp_path_factory):
    """Give the same for the variants."""
    folder = tmp_path_factory.mktemp("variants")
    plan = folder / "variants.toml"
    plan.write_text(VARIANTS)
    undisturbed = prepare_audit(traces, read_plan_file(plan), folder / "undisturbed").run()
    assert sum(map(len, undisturbed.plan["contests"].values())) == 2 * 2 * 5
    # Five attacks, and the ceiling.
    assert undisturbed.scores.height == N_TASKS * 2 * (5 + 1) * 2
    return traces, plan, results(folder / "undisturbed")


def run(traces, out, **chosen):
    return prepare_audit(traces, OPTIONS, out).run(**chosen)


def results(folder):
    """Return all that must be the same: everything but the seconds that scores took."""
    tables = [pl.read_parquet(folder / f"{name}.parquet") for name in ("scores", "control")]
    return (
        *(table.drop("seconds").to_dicts() for table in tables),
        *(
            pl.read_parquet(folder / f"{name}.parquet").to_dicts()
            for name in ("targets", "leaks", "marginals", "regions")
        ),
        (folder / "what_if.json").read_bytes(),
        (folder / "findings.json").read_bytes(),
        (folder / "verdicts.json").read_bytes(),
    )


def finished(folder):
    return len(list((folder / "tasks").glob("target-*.parquet")))


def children_of(process):
    threads = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [pid for thread in threads for pid in thread.read_text().split()]


def wait_until(true):
    while not true():
        time.sleep(0.005)


# Programs in the background may have been told to ignore Ctrl-C; this one listens again.
AUDIT = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
if __name__ == "__main__":
    from whosthere.auditing.store import RunFolder
    from whosthere.cli.main import main
    from whosthere.game import leaks
    leaks.PEOPLE_TO_LOOK_AT = {people}
    left, write = {most}, RunFolder.write_task
    def write_or_wait(*arguments):
        global left
        if not left:
            time.sleep(3600)
        left -= 1
        write(*arguments)
    RunFolder.write_task = write_or_wait
    main()
"""


def start(traces, out, typed=(*TYPED, "--workers", "2"), *, most=N_TASKS):
    """Start an audit that keeps at most so many tasks, and then waits to be stopped."""
    script = out.parent / "start.py"
    script.write_text(AUDIT.format(most=most, people=leaks.PEOPLE_TO_LOOK_AT))
    return subprocess.Popen(
        [sys.executable, script, "audit", traces, *typed, "--out", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(traces, out, typed, *, least, rng):
    """Kill a command when so many of its tasks are done, or a moment later."""
    with start(traces, out, typed, most=2) as process:
        wait_until(lambda: finished(out) >= least)
        time.sleep(rng.uniform(0, 0.05))
        workers = children_of(process)
        assert workers
        process.kill()
        process.communicate()
    # Nobody is left behind who would go on working.
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert least <= finished(out) < N_TASKS
    assert not (out / "findings.json").exists()


def resume(whosthere, traces, out, typed):
    """Let a command end, which must do nothing twice."""
    before = {path: path.stat().st_mtime_ns for path in (out / "tasks").glob("target-*")}
    code, shown, _ = whosthere("audit", traces, *typed, "--workers", "1", "--out", out)
    assert code == 0
    assert f"{len(before)} of {N_TASKS} tasks are done already" in shown
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_killed_at_random_moments(city, tmp_path, whosthere, full):
    traces, _, expected = city
    rng = random.Random(1)
    for least in (1, 2, 4) if full else (2,):
        kill(traces, tmp_path / "run", [*TYPED, "--workers", "2"], least=least, rng=rng)
    resume(whosthere, traces, tmp_path / "run", TYPED)
    assert results(tmp_path / "run") == expected


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_variants_and_knowledges_killed_at_random_moments(variants, tmp_path, whosthere):
    traces, plan, expected = variants
    typed = ["--plan", plan]
    rng = random.Random(2)
    for least in (1, 2, 4):
        kill(traces, tmp_path / "run", [*typed, "--workers", "2"], least=least, rng=rng)
    resume(whosthere, traces, tmp_path / "run", typed)
    assert results(tmp_path / "run") == expected


@pytest.mark.slow
def test_ctrl_c(city, tmp_path):
    traces, _, expected = city
    out = tmp_path / "run"
    with start(traces, out, most=N_TASKS - 1) as process:
        wait_until(lambda: finished(out) >= 2)
        # A terminal sends it to all processes that were started together.
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate()
    assert process.returncode == 130
    said = complaint.splitlines()
    assert all(line.startswith("tasks: ") for line in said[:-1])
    assert "tasks are done and kept. The same command resumes there" in said[-1]
    assert 2 <= finished(out) < N_TASKS
    run(traces, out)
    assert results(out) == expected


class InterruptedAfter(ThisProcess):
    """Somebody who presses Ctrl-C after some tasks."""

    def __init__(self, n):
        self.n = n

    def do(self, job, tasks):
        for i, outcome in enumerate(super().do(job, tasks)):
            if i == self.n:
                raise KeyboardInterrupt
            yield outcome


def test_variants_and_knowledges_interrupted(variants, tmp_path):
    traces, plan, expected = variants
    options = read_plan_file(plan)
    for n in (1, 4):
        with pytest.raises(InterruptedAudit):
            prepare_audit(traces, options, tmp_path / "run").run(workers=InterruptedAfter(n))
    prepare_audit(traces, options, tmp_path / "run").run()
    assert results(tmp_path / "run") == expected


def test_interrupted_after_any_task(city, tmp_path):
    traces, _, expected = city
    for n in (0, 1, N_TASKS // 2):
        with pytest.raises(InterruptedAudit, match="The same command resumes there"):
            run(traces, tmp_path / "run", workers=InterruptedAfter(n))
    run(traces, tmp_path / "run")
    assert results(tmp_path / "run") == expected


def test_interrupted_where_attacks_score_different_numbers_of_releases(traces, tmp_path):
    cheap = merged(OPTIONS, {"attacks": ("likelihood-ratio", "log-likelihood")})
    options = replace(cheap, releases_of={"likelihood-ratio": 6})
    undisturbed = prepare_audit(traces, options, tmp_path / "undisturbed").run()
    # One attack on more releases, the other one on fewer, and the ceiling on all of them.
    assert undisturbed.scores.height == N_TASKS * (6 + 4 + 6)
    out = tmp_path / "run"
    with pytest.raises(InterruptedAudit):
        prepare_audit(traces, options, out).run(workers=InterruptedAfter(3))
    for others in (cheap, replace(options, releases_of={"log-likelihood": 6})):
        with pytest.raises(FileError, match="releases_of"):
            prepare_audit(traces, others, out)
    prepare_audit(traces, options, out).run()
    assert results(out) == results(tmp_path / "undisturbed")


def test_two_processes_find_the_same_and_one_that_dies_is_replaced(city, tmp_path):
    traces, _, expected = city
    killed, seen = [], []

    def kill_one(*progress):
        seen.append(progress)
        if progress[1] == 3 and not killed:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    result = run(traces, tmp_path / "run", workers=LocalProcesses(2), on_progress=kill_one)
    assert killed
    assert not result.failed_tasks
    assert results(tmp_path / "run") == expected
    assert seen[: 2 * N_TASKS + 1] == [
        *(("tasks", done, N_TASKS) for done in range(N_TASKS + 1)),
        *(("leaks", done, N_TASKS) for done in range(1, N_TASKS + 1)),
    ]


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
    traces, _, expected = city
    killed = []

    def kill_one(_what, done, _total):
        if done == 2 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    workers = DaskCluster(cluster.scheduler_address)
    result = run(traces, tmp_path / "run", workers=workers, on_progress=kill_one)
    assert killed
    assert not result.failed_tasks
    assert results(tmp_path / "run") == expected


def test_a_failing_task_does_not_stop_the_others(city, tmp_path, whosthere, monkeypatch):
    traces, plan, expected = city
    broken = plan.tasks[3]
    score_task = work.score_task

    def score_or_fail(population, plan, task, done):
        if task == broken:
            raise ZeroDivisionError("a test")
        return score_task(population, plan, task, done)

    monkeypatch.setattr(work, "score_task", score_or_fail)
    typed = [*TYPED, "--workers", "1", "--out", tmp_path / "run"]
    code, shown, complaint = whosthere("audit", traces, *typed)
    assert code == 1
    assert f"1 of {N_TASKS} tasks failed" in complaint
    assert f"{broken} failed: ZeroDivisionError: a test" in complaint
    assert "Traceback" not in complaint + shown
    assert "Traceback" in (tmp_path / "run" / "log.txt").read_text()
    assert json.loads((tmp_path / "run" / "verdicts.json").read_text())["failed_tasks"] == 1
    monkeypatch.undo()
    assert whosthere("audit", traces, *typed)[0] == 0
    # There was a verdict before: the ends that decide lie further out at the second look.
    *same, _, verdicts = results(tmp_path / "run")
    assert same == list(expected[:-2])
    assert {one["look"] for one in json.loads(verdicts)["verdicts"]} == {2}
