"""Who does the tasks: the same scores from everybody, guards, and attacks of a user's own."""

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import cloudpickle
import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.adversary.attacks import Answer, Attack, FittedAttack
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.auditing.work import (
    Job,
    LocalProcesses,
    ThisProcess,
    Workers,
    chosen_workers,
    work_on,
)
from whosthere.data.neighbours import as_graph
from whosthere.errors import AuditFailedError, FileError, InputError, LostWorkersError
from whosthere.inference.vocabulary import CEILING
from whosthere.kernels.threads import usable_processors
from whosthere.seeds import generator

CHOSEN = {
    "mechanisms": ("raw", "suppress(k=1)"),
    "group_size": 8,
    "targets": 3,
    "releases": 4,
    "what_if": False,
}


@dataclass(frozen=True)
class Busiest(Attack):
    """An attack as a user would write it: counts people where the target was seen."""

    weight: float = 1.0

    name: ClassVar[str] = "busiest"
    summary: ClassVar[str] = "counts people where the target was seen"

    def fit(self, facts, knowledge, auxiliary, *, seed):
        rng = generator(seed, "busiest")
        return FittedBusiest(knowledge.cells, self.weight, float(rng.normal()))


@dataclass(frozen=True, eq=False)
class FittedBusiest(FittedAttack):
    cells: object
    weight: float
    luck: float

    def score(self, release):
        seen = release.counts.reshape(-1)[self.cells].mean()
        return Answer(float(self.weight * seen + self.luck), 1.0)


@dataclass(frozen=True)
class Breaks(Busiest):
    """Fails on some of its targets, or on all; writes down each call."""

    target: int | None = -1
    calls: Path | None = field(default=None, compare=False)

    name: ClassVar[str] = "breaks"

    def fit(self, facts, knowledge, auxiliary, *, seed):
        if self.calls is not None:
            with self.calls.open("a") as file:
                file.write("x")
        if self.target is None or knowledge.cells.size == self.target:
            raise ZeroDivisionError("an attack of the user's own")
        return super().fit(facts, knowledge, auxiliary, seed=seed)


@dataclass(frozen=True)
class Deadly(Busiest):
    """Ends the process that it runs in."""

    name: ClassVar[str] = "deadly"

    def fit(self, facts, knowledge, auxiliary, *, seed):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module", autouse=True)
def _as_in_a_notebook():
    """Let other processes have the attacks of this module, which they cannot import."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


class Kept(Workers):
    """Workers who stay for the next audit."""

    def __init__(self, workers):
        self.workers = workers

    def do(self, job, tasks):
        return self.workers.do(job, tasks)


@pytest.fixture(scope="module")
def two():
    """Two processes, which are started once."""
    with LocalProcesses(2) as workers:
        yield Kept(workers)
        # And then again, which does no harm.
        workers.close()


@pytest.fixture(scope="module", autouse=True)
def nobody_but_targets():
    """Look at nobody else closer: where people are found is no matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whosthere.game.leaks.PEOPLE_TO_LOOK_AT", 3)
        yield


@pytest.fixture(scope="module")
def people():
    return wt.simulate("milan-like", seed=7, users=200, days=1, regions=25).traces()


@pytest.fixture
def job(traces, tmp_path):
    path = tmp_path / "traces.parquet"
    traces.save(path)
    options = AuditOptions.of(
        mechanisms="raw", group_size=8, attacks="likelihood-ratio", targets=3, releases=4
    )
    return Job.on(make_plan(options, traces), path)


def without_times(frame):
    return frame.drop("seconds").to_dicts()


class TestGuards:
    def test_a_job_that_fits_is_done(self, job):
        outcome = work_on(job, job.plan.tasks[0])
        assert not outcome.failure
        by_attack = dict(outcome.scores.group_by("attack").len().iter_rows())
        # The ceiling has no control releases.
        assert by_attack.pop(CEILING) == 4
        assert list(by_attack.values()) == [4 + 2]

    @pytest.mark.parametrize("name", ["whosthere", "numpy", "numba", "scipy"])
    def test_a_worker_with_other_software_refuses(self, job, name):
        other = replace(job, versions=job.versions | {name: "99.0"})
        with pytest.raises(LostWorkersError, match=r"a worker has .*, the audit .*99\.0") as error:
            work_on(other, job.plan.tasks[0])
        assert repr(job.versions) in str(error.value)

    def test_and_so_does_one_of_several(self, job, two):
        other = replace(job, versions=job.versions | {"numpy": "99.0"})
        with pytest.raises(LostWorkersError, match=r"'numpy': '99\.0'"):
            list(two.do(other, job.plan.tasks))

    def test_a_worker_that_finds_another_file_refuses(self, job):
        with pytest.raises(LostWorkersError, match="has changed since the audit began"):
            work_on(replace(job, traces_fingerprint="ff"), job.plan.tasks[0])
        gone = replace(job, traces=f"{job.traces}.gone")
        with pytest.raises(LostWorkersError, match=r"\.gone: does not exist"):
            work_on(gone, job.plan.tasks[0])


def _largest_growth():
    """Return by how many bytes a worker may grow before loky replaces it, as the worker sees it."""
    return importlib.import_module("loky.process_executor")._MAX_MEMORY_LEAK_SIZE


class TestWorkers:
    @pytest.mark.parametrize("n", [0, -1])
    def test_nobody_can_do_nothing(self, n):
        with pytest.raises(InputError, match="at least 1"):
            LocalProcesses(n)

    def test_one_is_this_process(self):
        assert isinstance(chosen_workers(1), ThisProcess)
        assert isinstance(chosen_workers(2), LocalProcesses)
        assert 1 <= usable_processors() <= os.cpu_count()

    def test_a_task_that_kills_its_worker_is_given_up(self, job, traces):
        options = AuditOptions.of(
            mechanisms="raw", group_size=8, attacks=Deadly(), targets=1, releases=4
        )
        deadly = replace(job, plan=make_plan(options, traces))
        with LocalProcesses(1) as workers:
            done = list(workers.do(deadly, deadly.plan.tasks))
        assert {outcome.task for outcome in done} == set(deadly.plan.tasks)
        assert all("died" in outcome.failure for outcome in done)

    def test_a_worker_that_needs_much_memory_is_not_started_anew(self, job, two):
        assert list(two.do(job, job.plan.tasks[:1]))
        assert two.workers._pool.submit(_largest_growth).result() > 1e15

    def test_nothing_to_do(self, job):
        with LocalProcesses(2) as workers:
            assert list(workers.do(job, ())) == []

    def test_they_can_be_used_again(self, job, two):
        first, second = (
            {one.task: without_times(one.scores) for one in two.do(job, job.plan.tasks)}
            for _ in range(2)
        )
        assert first == second


class TestAttacksOfAUsersOwn:
    @pytest.fixture(scope="class")
    @classmethod
    def alone(cls, people):
        attacks = (Busiest(), "likelihood-ratio", Busiest(2.5))
        return wt.audit(people, **CHOSEN, attacks=attacks, workers=1)

    def test_are_audited_like_ours(self, alone):
        assert not alone.failed_tasks
        names = ["busiest", "likelihood-ratio", "busiest(weight=2.5)"]
        assert all(attacks == names for attacks in alone.plan["contests"].values())
        frame = alone.to_frame()
        metrics = frame.group_by("attack", maintain_order=True).agg(pl.col("metric").sort())
        by_attack = dict(metrics.iter_rows())
        assert by_attack["busiest"] == by_attack["likelihood-ratio"]
        assert by_attack["busiest"] == by_attack["busiest(weight=2.5)"]

    def test_score_the_same_in_other_processes(self, people, alone, two):
        attacks = (Busiest(), "likelihood-ratio", Busiest(2.5))
        together = wt.audit(people, **CHOSEN, attacks=attacks, workers=two)
        assert without_times(together.scores) == without_times(alone.scores)
        assert together.findings == alone.findings

    def test_variants_share_their_luck(self, people, alone):
        """A difference between two variants is one between parameters, not between draws."""
        once, weighted = (
            alone.scores.filter(pl.col("attack") == name)
            for name in ("busiest", "busiest(weight=2.5)")
        )
        luck = (2.5 * once["score"] - weighted["score"]) / 1.5
        # Without the luck that they share, whole people are left.
        visits = people.visits_per_user()[once["target"].to_numpy()]
        counted = (once["score"] - luck).to_numpy() * visits
        np.testing.assert_allclose(counted, np.round(counted), atol=1e-6)
        assert np.unique(np.round(luck.to_numpy(), 6)).size == alone.n_tasks

    def test_one_that_breaks_does_not_stop_the_others(self, people, two, tmp_path):
        plan = make_plan(
            AuditOptions.of(
                mechanisms="raw", group_size=8, attacks="likelihood-ratio", targets=3, releases=4
            ),
            people,
        )
        visits = [people.trace(target).size for target in plan.targets]
        unlucky = Breaks(target=visits[-1])
        chosen = CHOSEN | {"mechanisms": "raw", "workers": two, "out": tmp_path / "a"}
        with pytest.warns(UserWarning, match="failed.*ZeroDivisionError: an attack"):
            result = wt.audit(people, **chosen, attacks=unlucky)
        assert plan.targets[-1] not in result.scores.filter(attack=str(unlucky))["target"]
        assert result.failed_tasks == visits.count(visits[-1]) < 3
        assert (
            "ZeroDivisionError: an attack of the user's own"
            in (tmp_path / "a" / "log.txt").read_text()
        )

    @pytest.mark.parametrize("n_workers", [1, 2])
    def test_a_slip_ends_the_audit_at_once(self, people, two, tmp_path, n_workers):
        """Neither hundreds of tasks fail one after the other, nor is the folder spoilt."""
        chosen = CHOSEN | {"targets": 20, "workers": two if n_workers == 2 else 1}
        out = tmp_path / "a"
        slip = Breaks(target=None, calls=tmp_path / "calls")
        with pytest.raises(AuditFailedError, match=r"no other was begun: ZeroDiv.*\n.*: Traceback"):
            wt.audit(people, **chosen, attacks=(slip, "likelihood-ratio"), out=out)
        # One for each of two mechanisms at most.
        assert 1 <= len((tmp_path / "calls").read_text()) <= 2
        assert not (out / "manifest.json").exists()
        mended = replace(slip, target=-1)
        chosen |= {"targets": 2, "workers": 1}
        result = wt.audit(people, **chosen, attacks=(mended, "likelihood-ratio"), out=out)
        assert result.n_tasks == 4
        assert not result.failed_tasks

    def test_and_leaves_an_audit_that_it_was_added_to_as_it_was(self, people, tmp_path):
        chosen = CHOSEN | {"targets": 2, "workers": 1, "out": tmp_path / "a"}
        wt.audit(people, **chosen, attacks="likelihood-ratio")
        before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*.*")}
        with pytest.raises(AuditFailedError):
            wt.audit(
                people, **chosen, attacks=("likelihood-ratio", Breaks(target=None)), extend=True
            )
        assert {path: path.read_bytes() for path in (tmp_path / "a").rglob("*.*")} == before
        extended = wt.audit(
            people, **chosen, attacks=("likelihood-ratio", Breaks(target=-1)), extend=True
        )
        assert not extended.failed_tasks


MODULE = """
from dataclasses import dataclass, field
from typing import ClassVar
from whosthere.attacks import Answer, Attack, FittedAttack

@dataclass(frozen=True)
class Mine(Attack):
    shift: float = 0.0
    marks: list = field(default_factory=list, hash=False)

    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "says nothing"

    def fit(self, facts, knowledge, auxiliary, *, seed):
        return Fitted(FACTOR, self.shift)

class Fitted(FittedAttack):
    def __init__(self, factor, shift):
        self.factor, self.shift = factor, shift

    def score(self, release):
        return Answer(self.factor * float(release.counts.sum()) + self.shift, 0.0)
"""


class TestIdentity:
    @pytest.fixture
    def mine(self, tmp_path):
        """Import an attack from a file with the given code in it."""

        def load(factor):
            path = tmp_path / "mine.py"
            path.write_text(MODULE.replace("FACTOR", factor))
            spec = importlib.util.spec_from_file_location("mine_of_a_user", path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
            return module.Mine()

        yield load
        sys.modules.pop("mine_of_a_user", None)

    def test_the_code_is_part_of_it(self, people, tmp_path, mine):
        out = tmp_path / "run"
        chosen = CHOSEN | {"workers": 1, "out": out}
        wt.audit(people, **chosen, attacks=(mine("1.0"), "likelihood-ratio"))
        plan = json.loads((out / "manifest.json").read_text())["plan"]
        assert set(plan["code"]) == {"mine"}
        assert len(plan["code"]["mine"]) == 16

    def test_other_code_is_another_audit(self, people, tmp_path, mine):
        traces = tmp_path / "traces.parquet"
        people.save(traces)
        chosen = CHOSEN | {"workers": 1, "out": tmp_path / "run"}
        first = wt.audit(traces, **chosen, attacks=mine("1.0"))
        again = wt.audit(traces, **chosen, attacks=mine("1.0"))
        assert again.findings == first.findings
        with pytest.raises(FileError, match=r"by another plan \(code"):
            wt.audit(traces, **chosen, attacks=mine("2.00"))

    def test_ours_go_without(self, people):
        options = AuditOptions.of(mechanisms="raw", group_size=8, targets=1)
        assert make_plan(options, people).to_json()["code"] == {}


SCRIPT = """
import sys
print("begun")
import whosthere as wt
{attack}
result = wt.audit(sys.argv[1], mechanisms="raw", group_size=8, attacks=Mine(0.5), targets=2,
                  releases=4, workers=2, what_if=False)
assert not result.failed_tasks
print(result.scores.filter(result.scores["attack"] != "ceiling")["score"].to_list())
result.plot().savefig("plot.png")
"""


def test_a_script_needs_no_guard(job, tmp_path):
    """Workers are other processes, but they do not run the user's script again. Nothing is said or
    left behind that was not asked for."""
    there = {path.name for path in tmp_path.iterdir()}
    script = tmp_path / "study.py"
    attack = MODULE.replace("FACTOR", "1.0")
    script.write_text(textwrap.dedent(SCRIPT).format(attack=attack))
    done = subprocess.run(
        [sys.executable, "-W", "error", script, job.traces],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert {path.name for path in tmp_path.iterdir()} == there | {"study.py", "plot.png"}
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    begun, said = done.stdout.splitlines()
    assert begun == "begun"
    scores = json.loads(said)
    assert len(scores) == 8
    assert all(score % 1 == 0.5 for score in scores)


class TestThroughTheFront:
    def test_past_groups_and_loc_mia(self, people):
        """Two of the five targets have no friends: loc-mia says nothing about them."""
        targets = (0, 1, 2, 40, 41)
        users = [people.users[row] for row in targets]
        social = replace(
            people, friends=as_graph(np.array([(0, 5), (1, 6), (2, 7)]), people.n_users)
        )
        loc_mia = "loc-mia(groups=20, validation=10)"
        result = wt.audit(
            social,
            mechanisms="raw",
            group_size=8,
            attacks=("knock-knock-past-groups", loc_mia),
            users=users,
            releases=4,
            past_releases=10,
            workers=1,
            what_if=False,
        )
        assert not result.failed_tasks
        n_targets = {
            one.attack: one.n_targets for one in result.findings if one.metric == "accuracy"
        }
        assert n_targets == {"knock-knock-past-groups": 5, loc_mia: 3}
        attacked = result.scores.filter(pl.col("attack") == loc_mia)["target"]
        assert sorted(set(attacked)) == [0, 1, 2]

    def test_without_a_control_nothing_is_trusted(self, people):
        result = wt.audit(people, **CHOSEN, attacks=Busiest(), control_releases=0, workers=1)
        assert result.trusted is None
        assert result.plan["control_releases"] == 0
        assert len(result.verdicts) == 2
