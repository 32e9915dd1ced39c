"""One unit of work: all attacks on one target in one setting, on the same releases."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whosthere.adversary.attacks import Attack, Auxiliary, Facts, FittedAttack
from whosthere.auditing.omniscient import omniscient_over_releases
from whosthere.auditing.scores import SCHEMA
from whosthere.privacy.release import Release
from whosthere.seeds import derived_seed, generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.auditing.plan import Plan, Unit
    from whosthere.data.traces import Traces


@dataclass(frozen=True, eq=False)
class Published:
    """A test release, and what the audit alone knows of it.

    Attributes
    ----------
    release
        What the attacks see.
    others
        True counts of all others in the cells that the person put in is counted in, shape
        (n_cells,); None where nobody was put in.
    """

    release: Release
    others: NDArray[np.int32] | None


@dataclass(frozen=True, eq=False)
class Scene:
    """A target in a setting, with the people who may be published beside it.

    Parameters
    ----------
    traces
        Everybody.
    plan, unit
        What is to be done, and the part of it that is done here.
    """

    traces: Traces
    plan: Plan
    unit: Unit

    @property
    def facts(self) -> Facts:
        """What is public about the releases."""
        setting = self.unit.setting
        return Facts(self.traces.regions, self.traces.epochs, setting.group_size, setting.mechanism)

    @cached_property
    def _others(self) -> NDArray[np.int64]:
        """Everybody but the target in random order: first the reference, then the pool."""
        rng = generator(self.plan.seed, self.unit.target, "pools")
        order = rng.permutation(self.traces.n_users)
        return np.asarray(order[order != self.unit.target])

    @property
    def pool(self) -> NDArray[np.int64]:
        """Rows of the people who may be in test releases beside the target."""
        return self._others[self.plan.reference_size :]

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker knows of the target."""
        known = self.unit.setting.known
        rng = generator(self.plan.seed, self.unit.target, str(known), "knowledge")
        return known.of(self.traces.trace(self.unit.target), self.traces.epochs.n, rng)

    @cached_property
    def auxiliary(self) -> Auxiliary:
        """What else the attacker has: real traces of people who are in no test release."""
        return Auxiliary(self.traces.select(self._others[: self.plan.reference_size]))

    def uniqueness(self) -> float:
        """Return the chance that the target is alone in a visited cell, mean over the cells."""
        cells = self.traces.trace(self.unit.target)
        visitors = self.traces.counts(self.pool).reshape(-1)[cells]
        absent = 1 - visitors / self.pool.size
        return float(np.mean(absent ** (self.unit.setting.group_size - 1)))

    def fit(self, attack: Attack) -> FittedAttack:
        """Prepare an attack on the target."""
        seed = derived_seed(
            self.plan.seed, self.unit.target, str(self.unit.setting), attack.name, "attack"
        )
        return attack.fit(self.facts, self.knowledge, self.auxiliary, seed=seed)

    def tests(self) -> Iterator[Published]:
        """Publish the test releases: every other one with the target."""
        rng = self._group_rng("test groups")
        noise = self._noise_rng("test noise")
        m = self.unit.setting.group_size
        for i in range(self.plan.releases):
            if i % 2 == 0:
                group = rng.choice(self.pool, m - 1, replace=False)
                yield self._publish(np.append(group, self.unit.target), noise, put_in=True)
            else:
                yield self._publish(rng.choice(self.pool, m, replace=False), noise, put_in=False)

    def controls(self) -> Iterator[Published]:
        """Publish releases in the same way as with the target, but with somebody else instead."""
        rng = self._group_rng("control groups")
        noise = self._noise_rng("control noise")
        for _ in range(self.plan.control_releases):
            group = rng.choice(self.pool, self.unit.setting.group_size, replace=False)
            yield self._publish(group, noise, put_in=True)

    def _publish(
        self, rows: NDArray[np.int64], rng: np.random.Generator, *, put_in: bool
    ) -> Published:
        """Bound, count and protect a group; the last one of it may be the one put in."""
        facts = self.facts
        group = facts.mechanism.bound(self.traces.select(rows), rng).traces
        truth = group.counts()
        counts = facts.mechanism.apply(truth, facts.group_size, rng)
        release = Release(
            counts, Facts(facts.regions, facts.epochs, facts.group_size, facts.mechanism)
        )
        own = group.trace(group.n_users - 1)
        return Published(release, truth.reshape(-1)[own] - 1 if put_in else None)

    def _group_rng(self, role: str) -> np.random.Generator:
        # Without the mechanism: the same groups meet every protection, so that a difference
        # between protections is not one between groups.
        return generator(self.plan.seed, self.unit.target, self.unit.setting.group_size, role)

    def _noise_rng(self, role: str) -> np.random.Generator:
        return generator(self.plan.seed, self.unit.target, str(self.unit.setting), role)


def score_unit(traces: Traces, plan: Plan, unit: Unit) -> pa.Table:
    """Score all releases of a unit with all attacks; the columns are those of `SCHEMA`."""
    scene = Scene(traces, plan, unit)
    fitted = [
        _Timed.fit(scene, attack) for attack in plan.attacks_in(unit.setting, traces).values()
    ]
    rows: list[dict[str, Any]] = []
    others = []
    for i, published in enumerate(scene.tests()):
        rows += [{"release": i, "control": False, **one.row(published)} for one in fitted]
        if published.others is not None:
            others.append(published.others)
    for i, published in enumerate(scene.controls()):
        rows += [{"release": i, "control": True, **one.row(published)} for one in fitted]
    best = omniscient_over_releases(unit.setting.mechanism, others, unit.setting.group_size).pooled
    of_unit = {
        "setting": str(unit.setting),
        "target": unit.target,
        "visits": int(traces.trace(unit.target).size),
        "uniqueness": scene.uniqueness(),
        "ceiling": best.auc,
    }
    return pa.Table.from_pylist([{**of_unit, **row} for row in rows], schema=SCHEMA)


@dataclass(frozen=True, eq=False)
class _Timed:
    """A fitted attack, and what its fit costs for each release that it scores."""

    name: str
    attack: FittedAttack
    seconds: float

    @classmethod
    def fit(cls, scene: Scene, attack: Attack) -> _Timed:
        begun = time.perf_counter()
        fitted = scene.fit(attack)
        releases = scene.plan.releases + scene.plan.control_releases
        return cls(attack.name, fitted, (time.perf_counter() - begun) / releases)

    def row(self, published: Published) -> dict[str, Any]:
        begun = time.perf_counter()
        answer = self.attack.score(published.release)
        return {
            "attack": self.name,
            "label": published.others is not None,
            "score": answer.score,
            "threshold": answer.threshold,
            "seconds": time.perf_counter() - begun + self.seconds,
        }
