"""What the controls of an audit see: faults planted into audits, and sound audits beside them.

Each fault is planted from outside, and the audit claims what it claims without the fault:
milan-like with 2,000 people, groups of 500, the likelihood ratio alone at the quick scale (55
targets with 60 releases each). An alarm is an audit that does not trust itself. How much of the
processor time of a whole audit its checks take is measured in further audits without faults.

    python benchmarks/planted_faults.py > benchmarks/results/planted_faults.json
    python benchmarks/planted_faults.py --seeds 2 --only noise   # a look at some of them

What is done is kept in --keep FILE as it comes, and not done again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

import whosthere as wt
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.traces import Group
from whosthere.game.checks import Checks
from whosthere.game.rounds import Population
from whosthere.game.scoring import score_task, tests_and_controls
from whosthere.game.target import TargetRounds
from whosthere.inference.control import impossible_values
from whosthere.inference.measure import control_holds, measure
from whosthere.kernels.threads import one_thread
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import Gaussian, Laplace
from whosthere.privacy.publish import Publication
from whosthere.privacy.rounding import Round, Suppress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

EVENT = "laplace(eps={}, unit=event)"
USER_DAY = "laplace(eps=5, unit=user-day, max_visits=2)"
SOUND = (
    "raw",
    "suppress(k=2)",
    "round(to=5)",
    EVENT.format(0.5),
    "gaussian(eps=1, delta=1e-6, unit=event)",
    USER_DAY,
)
SOUNDLY, TIMED = "none", "none, whole and timed"


@contextmanager
def patched(owner: type, name: str, made: Callable) -> Iterator[None]:
    """Replace a method by what `made` makes of it."""
    before = getattr(owner, name)
    setattr(owner, name, made(before))
    try:
        yield
    finally:
        setattr(owner, name, before)


def _suppress_at(k):
    return patched(
        Suppress, "publish", lambda publish: lambda _self, *given: publish(Suppress(k), *given)
    )


def _round_to(to):
    return patched(
        Round, "publish", lambda publish: lambda _self, *given: publish(Round(to), *given)
    )


def _noise_times(step, factor):
    """Draw noise of another scale, by the same numbers."""

    def made(draw):
        def drawn(self, shape, rng):
            if step is Laplace:
                return draw(replace(self, eps=self.eps / factor), shape, rng)
            # The scale of normal noise is no simple function of eps.
            other = replace(self)
            other.__dict__["scale"] = self.scale * factor
            return draw(other, shape, rng)

        return drawn

    return patched(step, "draw", made)


def _changed(trial, **parts: object):
    """Return a round with something else about its only table."""
    table = replace(trial.publication.only, **parts)
    return replace(trial, publication=Publication((table,)))


def _target_in(share):
    """Make a share of the releases labelled IN without the target."""

    def made(test):
        def tested(self, i):
            trial = test(self, i)
            left_out = i % 2 == 0 and np.random.default_rng([i, self.task.number]).random() > share
            # Released as one without the target, and the group said to hold it all the same.
            if not left_out:
                return trial
            other = test(self, i + 100_001)
            group = other.publication.only.group
            claimed = Group(group.everybody, np.append(group.rows[:-1], self.target))
            made = _changed(other, group=claimed, counted=claimed)
            return replace(made, labels=trial.labels)

        return tested

    return patched(TargetRounds, "test", made)


def _no_bounding():
    return patched(Mechanism, "bound", lambda _: lambda _self, traces, _rng: traces)


def _counts_as(change):
    return patched(Group, "counts", lambda counts: lambda self: change(self, counts(self)))


def _somebody_twice(group, counts):
    twice = counts.copy()
    twice.reshape(-1)[group.trace(0)] += 1
    return np.minimum(twice, group.n_users)


def _noise_again():
    """Draw the same noise for a release with the target and the next one without."""

    def made(rng):
        return lambda self, role, *key: (
            rng(self, role, *key[:-1], key[-1] // 2) if "noise" in role else rng(self, role, *key)
        )

    return patched(TargetRounds, "rng", made)


def _people_again():
    """Draw the same people for two releases with the target, and for two without."""

    def made(rng):
        return lambda self, role, *key: (
            rng(self, role, *key[:-1], key[-1] // 4) if "group" in role else rng(self, role, *key)
        )

    return patched(TargetRounds, "rng", made)


def _noise_of_half_again():
    """Use the noise of the first release for the first half of all cells of every other one."""
    kept = {}

    def made(draw_for):
        def drawn(self, people, shape, rng):
            noise = draw_for(self, people, shape, rng)
            half = shape[0] // 2
            noise[0][:half] = kept.setdefault("half", noise[0][:half].copy())
            return noise

        return drawn

    return patched(Mechanism, "draw_for", made)


def _trial_as(change, role="test"):
    """Change what becomes of a trial, given its scene."""
    return patched(
        TargetRounds, role, lambda trial: lambda self, i: change(self, i, trial(self, i))
    )


def _of_others(scene, _, trial):
    """Claim others than those who were counted."""
    group = trial.publication.only.group
    others = np.setdiff1d(scene.pool, group.rows)[: group.n_users - 1]
    claimed = Group(group.everybody, np.append(others, group.rows[-1]))
    return _changed(trial, group=claimed)


def _unprotected_in(scene, _, trial):
    """Publish the true counts of releases with the target, as if its noise were 0."""
    if not trial.labels[scene.target]:
        return trial
    made = trial.publication.only
    nothing = tuple(np.zeros_like(draw) for draw in made.noise)
    release = replace(made.release, values=made.counts)
    return _changed(trial, release=release, noise=nothing)


def _next_cell(group, counts):
    """Count the last of the group, who may be the target, one hour later in one cell."""
    moved = counts.copy().reshape(-1)
    cell = group.trace(-1)[:1]
    moved[cell] -= 1
    moved[(cell + 1) % moved.size] += 1
    return np.clip(moved, 0, group.n_users).reshape(counts.shape)


FAULTS = {
    "k = 3 instead of 5": ("suppress(k=5)", lambda: _suppress_at(3)),
    "k = 1 instead of 2": ("suppress(k=2)", lambda: _suppress_at(1)),
    "Laplace noise times 0.5, eps 1": (EVENT.format(1), lambda: _noise_times(Laplace, 0.5)),
    "eps 0.55 instead of 0.5": (EVENT.format(0.5), lambda: _noise_times(Laplace, 0.5 / 0.55)),
    "Gaussian noise times 0.5": (
        "gaussian(eps=1, delta=1e-6, unit=event)",
        lambda: _noise_times(Gaussian, 0.5),
    ),
    "target in 80 % of IN, k = 1": ("suppress(k=1)", lambda: _target_in(0.8)),
    "target in 80 % of IN, eps 0.5": (EVENT.format(0.5), lambda: _target_in(0.8)),
    "target in 80 % of IN, eps 0.1": (EVENT.format(0.1), lambda: _target_in(0.8)),
    "bounding skipped, user-day eps 5": (USER_DAY, _no_bounding),
    "rounding to 4 instead of 5": ("round(to=5)", lambda: _round_to(4)),
    "counts shifted by one region, k = 1": (
        "suppress(k=1)",
        lambda: _counts_as(lambda _, counts: np.roll(counts, 1, axis=0)),
    ),
    "counts shifted by one hour, k = 1": (
        "suppress(k=1)",
        lambda: _counts_as(lambda _, counts: np.roll(counts, 1, axis=1)),
    ),
    "one person counted twice, k = 1": ("suppress(k=1)", lambda: _counts_as(_somebody_twice)),
    "noise used twice, eps 0.5": (EVENT.format(0.5), _noise_again),
    "noise used again in half the cells, eps 0.5": (EVENT.format(0.5), _noise_of_half_again),
    "the same people twice, k = 1": ("suppress(k=1)", _people_again),
    "other people counted than claimed, k = 1": ("suppress(k=1)", lambda: _trial_as(_of_others)),
    "target counted in the next cell once, eps 0.1": (
        EVENT.format(0.1),
        lambda: _counts_as(_next_cell),
    ),
    "releases with the target unprotected, eps 0.5": (
        EVENT.format(0.5),
        lambda: _trial_as(_unprotected_in),
    ),
    "controls hold the target, eps 0.1": (
        EVENT.format(0.1),
        lambda: _trial_as(lambda scene, i, _: scene.test(2 * i + 1000), "control"),
    ),
}


@cache
def _city():
    return wt.simulate("milan-like", seed=7, users=2000).traces()


def alarm(mechanism: str, seed: int) -> tuple[bool, list[str]]:
    """Return whether an audit does not trust itself, and which controls fail.

    A single fault is enough for an alarm, so that an audit with one is not run to its end.
    """
    options = AuditOptions.of(
        mechanisms=mechanism, group_size=500, attacks="likelihood-ratio", seed=seed
    )
    plan, people = make_plan(options, _city()), Population.of(_city())
    scores = {}
    for task in plan.tasks:
        scores[task] = score_task(people, plan, task)
        if (fault := _fault_in(scores[task])) is not None:
            return True, [f"faults: {fault}"]
    findings = measure(*tests_and_controls(plan, scores), seed=seed, n_limits=4)
    failed = [f"{one.metric}: {one.note}" for one in findings if one.holds is False]
    return control_holds(findings) is False, failed


def _fault_in(scores: pl.DataFrame) -> str | None:
    """Return a fault that is seen in one task alone, whatever the others hold."""
    if (faults := scores["fault"].drop_nulls()).len():
        return faults[0]
    if impossible_values(np.sum(scores["law"].drop_nulls().to_list(), axis=0)):
        return "a published value is impossible"
    for name in ("noise", "others"):
        if scores[name].drop_nulls().is_duplicated().any():
            return f"{name} used before"
    return None


def share_of_checks(mechanism: str, seed: int) -> float:
    """Return the share of the processor time of a whole audit that its checks take."""
    seconds = 0.0

    def timed(function: Callable) -> Callable:
        def measured(*given: object) -> object:
            nonlocal seconds
            begun = time.process_time()
            made = function(*given)
            seconds += time.process_time() - begun
            return made

        return measured

    begun = time.process_time()
    with ExitStack() as watched:
        for name in ("__init__", "see", "fault_of_control", "sums"):
            watched.enter_context(patched(Checks, name, timed))
        wt.audit(
            _city(),
            mechanisms=mechanism,
            group_size=500,
            attacks="likelihood-ratio",
            seed=seed,
            workers=1,
        )
    return seconds / (time.process_time() - begun)


def run(job: tuple[str, str, int]) -> dict[str, object]:
    fault, mechanism, seed = job
    row = {"fault": fault, "mechanism": mechanism, "seed": seed}
    planted = FAULTS[fault][1]() if fault in FAULTS else nullcontext()
    # As in the workers of an audit.
    with planted, one_thread():
        if fault == TIMED:
            return row | {"share": round(share_of_checks(mechanism, seed), 4)}
        seen, failed = alarm(mechanism, seed)
    return row | {"alarm": seen, "why": failed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="audits with each fault")
    parser.add_argument("--sound", type=int, default=200, help="audits without any")
    parser.add_argument("--only", default="", help="faults whose names hold this")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file of what is done already, a line each")
    given = parser.parse_args()
    jobs = [
        (fault, mechanism, seed)
        for fault, (mechanism, _) in FAULTS.items()
        if given.only in fault
        for seed in range(given.seeds)
    ]
    jobs += [(SOUNDLY, SOUND[i % len(SOUND)], 1000 + i) for i in range(given.sound)]
    # The first in a process compiles and reads what the others find done.
    jobs += [(TIMED, mechanism, seed) for seed in range(2) for mechanism in SOUND if given.sound]
    done = {}
    if given.keep and given.keep.exists():
        rows = [json.loads(line) for line in given.keep.read_text().splitlines()]
        done = {(row["fault"], row["mechanism"], row["seed"]): row for row in rows}
    left = [job for job in jobs if job not in done]
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        for row in pool.map(run, left):
            done[row["fault"], row["mechanism"], row["seed"]] = row
            print(json.dumps(row), file=sys.stderr, flush=True)
            if given.keep:
                with given.keep.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print(json.dumps(summary([done[job] for job in jobs]), indent=1, ensure_ascii=False))


def summary(rows: list[dict]) -> dict[str, object]:
    """Return how often each fault was seen, and by which controls; the same of sound audits."""
    faults: dict[str, dict] = {}
    sound: dict[str, dict] = {}
    for row in rows:
        name = row["fault"] if row["fault"] in FAULTS else row["mechanism"]
        group = faults if row["fault"] in FAULTS else sound
        one = group.setdefault(name, {"audits": 0, "alarms": 0, "by": [], "shares": []})
        if row["fault"] == TIMED:
            one["shares"].append(row["share"])
            continue
        one["audits"] += 1
        one["alarms"] += row["alarm"]
        one["by"] = sorted({*one["by"], *(why.split(":")[0] for why in row["why"])})
    for one in (*faults.values(), *sound.values()):
        if shares := one.pop("shares"):
            one["share_of_processor_time"] = round(median(shares), 3)
    return {"faults": faults, "sound": sound}


if __name__ == "__main__":
    main()
