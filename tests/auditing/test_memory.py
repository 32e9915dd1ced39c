"""The model of memory, against what fresh processes took and against itself."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from whosthere.auditing.memory import bytes_of_worker
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.cities import simulate
from whosthere.game.population import Population

# Not `getrusage`, whose peak a process inherits from the one that started it.
ONE_TASK = """
import os, sys
from pathlib import Path
# Threads take memory: with two processors it is the same on every machine.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.auditing.work import Job, work_on
from whosthere.data.traces import Traces

path, mechanism, m, *attacks = sys.argv[1:]
options = AuditOptions.of(
    mechanisms=mechanism, group_sizes=int(m), attacks=attacks, targets=1, releases=2
)
plan = make_plan(options, Traces.load(path))
outcome = work_on(Job.on(plan, Path(path)), plan.tasks[0])
assert outcome.failure is None, outcome.failure
status = Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)
"""
SMALL = ("milan-like", {"users": 400, "days": 1, "regions": 25})
WEEK = ("milan-like", {"users": 2000, "days": 7, "regions": 100})
MONTH = ("cdr-like", {"users": 2000, "days": 30, "regions": 500})
ALL = ("knock-knock", "zero-knowledge", "likelihood-ratio")


def options_of(mechanism, m, attacks, **others):
    usual = {"targets": 1, "releases": 2}
    chosen = {"mechanisms": mechanism, "group_sizes": m, "attacks": attacks}
    return AuditOptions.of(**chosen | usual | others)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("city", "mechanism", "m", "attacks"),
    [
        (SMALL, "suppress(k=1)", 50, ("likelihood-ratio",)),
        (WEEK, "suppress(k=1)", 500, ALL),
        (MONTH, "laplace(eps=1, unit=user-day, max_visits=10)", 300, ("likelihood-ratio",)),
        (MONTH, "suppress(k=1)", 300, ("zero-knowledge",)),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_within_a_quarter_of_what_a_process_takes(tmp_path, city, mechanism, m, attacks):
    traces = simulate(city[0], seed=7, **city[1]).traces()
    path = tmp_path / "traces.parquet"
    traces.save(path)
    typed = [sys.executable, "-c", ONE_TASK, path, mechanism, str(m), *attacks]
    # A kernel that has to be compiled takes memory that is not the audit's.
    for _ in range(2):
        done = subprocess.run(typed, capture_output=True, text=True, check=True, env=os.environ)
    measured = int(done.stdout)
    plan = make_plan(options_of(mechanism, m, attacks), traces)
    assert bytes_of_worker(plan, Population.of(traces)) == pytest.approx(measured, rel=0.25)


class TestWhatItDependsOn:
    @pytest.fixture
    def needed(self, traces):
        def run(mechanism="raw", m=8, attacks="zero-knowledge", **others):
            plan = make_plan(options_of(mechanism, m, attacks, **others), traces)
            return bytes_of_worker(plan, Population.of(traces))

        return run

    def test_groups_to_learn_from(self, needed, traces):
        for sampling, rows in (("paired", 1000), ("independent", 2000)):
            few, many = (
                needed(attacks=f"zero-knowledge(groups={n}, sampling={sampling})")
                for n in (1000, 3000)
            )
            assert many - few == rows * traces.n_cells

    def test_the_dearest_attack_alone(self, needed):
        cheap, dear = "zero-knowledge(groups=1000)", "zero-knowledge(groups=3000)"
        assert needed(attacks=(cheap, dear)) == needed(attacks=dear) > needed(attacks=cheap)

    def test_the_dearest_scheme_alone(self, needed):
        bounding = "laplace(eps=1, unit=user-day, max_visits=1)"
        alone = needed(bounding, attacks="likelihood-ratio")
        assert alone <= needed(("raw", bounding), attacks="likelihood-ratio")

    def test_past_releases(self, needed, traces):
        few, many = (needed(attacks="knock-knock-past-groups", past_releases=n) for n in (100, 200))
        assert many - few == 100 * 8 * traces.n_cells

    def test_neither_targets_nor_releases(self, needed):
        assert needed() == needed(targets=5) == needed(releases=40)

    def test_people(self, traces):
        plan = make_plan(options_of("raw", 8, "likelihood-ratio"), traces)
        wide = replace(plan, first_epoch=36)
        both = Population.of(traces, 36)
        assert bytes_of_worker(wide, both) > bytes_of_worker(wide, Population(both.tested))
