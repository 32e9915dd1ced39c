"""One task: a target among others, the releases they are published in, and the attacks on them."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whosthere import specs
from whosthere.adversary.attacks import (
    Auxiliary,
    FittedAttack,
    NotApplicableError,
    PastRelease,
)
from whosthere.auditing.omniscient import omniscient_over_releases
from whosthere.auditing.scores import SCHEMA
from whosthere.privacy.facts import Facts
from whosthere.privacy.publish import Publication, publish_group
from whosthere.seeds import derived_seed, generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from whosthere.adversary.familiarity import Familiarity
    from whosthere.adversary.knowledge import Knowledge
    from whosthere.auditing.plan import Contest, Plan, Task
    from whosthere.auditing.population import Population
    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release


@dataclass(frozen=True, eq=False)
class Trial:
    """A release whose membership is known to the audit alone.

    Attributes
    ----------
    publication
        How it was made; attacks see its release only.
    put_in
        Whether somebody was put in: the target, or in a control a stand-in. That one comes last
        in the group.
    """

    publication: Publication
    put_in: bool

    @property
    def release(self) -> Release:
        """What attacks see."""
        return self.publication.release

    def others(self) -> NDArray[np.int64]:
        """Return the true counts of all others in the cells of the one put in, (n_cells,)."""
        own = self.publication.counted.trace(self.publication.group.n_users - 1)
        return self.publication.counts.reshape(-1)[own].astype(np.int64) - 1


@dataclass(frozen=True, eq=False)
class Scene:
    """A target under a scheme, with the people who may be published besides.

    Every random draw belongs to what it is for: the same target, scheme and number of a release
    give the same release, whoever attacks it and whatever is known.

    Parameters
    ----------
    population
        Everybody.
    plan, task
        What is to be done, and the part of it that is done here.
    """

    population: Population
    plan: Plan
    task: Task

    @property
    def traces(self) -> Traces:
        """Everybody in the tested time."""
        return self.population.tested

    @property
    def facts(self) -> Facts:
        """What is public about the releases."""
        scheme = self.task.scheme
        return Facts(self.traces.regions, self.traces.epochs, scheme.group_size, scheme.mechanism)

    @cached_property
    def _others(self) -> NDArray[np.int64]:
        """Everybody except the target in random order: first the reference, then the pool."""
        order = self._rng("people").permutation(self.traces.n_users)
        return np.asarray(order[order != self.task.target])

    @property
    def pool(self) -> NDArray[np.int64]:
        """Rows of the people who may be in test releases besides the target."""
        return self._others[self.plan.reference_size :]

    @property
    def referees(self) -> NDArray[np.int64]:
        """Rows of the people whose traces an attacker may have; none is in a test release."""
        return self._others[: self.plan.reference_size]

    def knowledge(self, familiarity: Familiarity) -> Knowledge:
        """Return what the attacker knows of the target."""
        own = self.traces.trace(self.task.target)
        return familiarity.of(own, self.traces.epochs.n, self._rng("knowledge"))

    def auxiliary(self, uses: frozenset[str]) -> Auxiliary:
        """Return what else an attack has: the parts that it uses, and no other."""
        return Auxiliary(**{part: getattr(self, f"_{part}") for part in uses})

    @cached_property
    def _reference(self) -> Traces:
        return self.traces.select(self.referees)

    @cached_property
    def _friends(self) -> Traces | None:
        """Traces of all friends of the target; they may be in releases like anybody else."""
        graph = self.population.friends
        rows = np.zeros(0) if graph is None else graph.of(self.task.target)
        return self.traces.select(rows) if rows.size else None

    @cached_property
    def _past(self) -> tuple[PastRelease, ...]:
        """Releases of the past, every other one with the target, from people of the reference."""
        return tuple(
            PastRelease(trial.release, trial.put_in)
            for trial in (self._past_trial(i) for i in range(self.plan.past_releases))
        )

    @cached_property
    def _example(self) -> Release:
        """One of the test releases, drawn at random."""
        drawn = self._rng("example", *self._scheme_key).integers(self.plan.releases)
        return self.test(int(drawn)).release

    def uniqueness(self) -> float:
        """Return the chance that the target is alone in a visited cell, mean over the cells."""
        cells = self.traces.trace(self.task.target)
        visitors = self.traces.counts(self.pool).reshape(-1)[cells]
        absent = 1 - visitors / self.pool.size
        return float(np.mean(absent ** (self.task.scheme.group_size - 1)))

    def check(self, contest: Contest) -> None:
        """Raise `NotApplicableError` if an attack cannot be made on the target."""
        known = self.knowledge(contest.setting.knowledge)
        contest.attack.check(self.facts, known, self.auxiliary(contest.attack.uses))

    def fit(self, contest: Contest) -> FittedAttack:
        """Prepare an attack on the target."""
        attack, familiarity = contest.attack, contest.setting.knowledge
        # By name and not by parameters: variants of an attack share their random numbers, so that
        # a difference between them is not one between draws.
        seed = derived_seed(
            self.plan.seed,
            "attack",
            self.task.target,
            *self._scheme_key,
            specs.content(familiarity),
            attack.name,
        )
        known, auxiliary = self.knowledge(familiarity), self.auxiliary(attack.uses)
        return attack.fit(self.facts, known, auxiliary, seed=seed)

    def fit_all(self) -> Iterator[tuple[Contest, FittedAttack]]:
        """Prepare all attacks that apply to the target, one after the other.

        One by friends, for instance, does not apply to somebody without any.
        """
        for contest in self.plan.contests_under(self.task.scheme):
            try:
                fitted = self.fit(contest)
            except NotApplicableError:
                continue
            yield contest, fitted

    def test(self, i: int) -> Trial:
        """Publish a test release: those with an even number hold the target."""
        return self._trial("test", i, self.traces, self.pool, self.task.target)

    def control(self, i: int) -> Trial:
        """Publish a release as with the target, but with somebody else in the target's place."""
        return self._trial("control", i, self.traces, self.pool, None)

    def _past_trial(self, i: int) -> Trial:
        windows = self.population.past
        window = int(self._rng("past window", i).integers(len(windows)))
        return self._trial("past", i, windows[window], self.referees, self.task.target)

    def _trial(
        self, role: str, i: int, traces: Traces, people: NDArray[np.int64], put_in: int | None
    ) -> Trial:
        """Publish a group; without anybody to put in, one of the group counts as put in."""
        m = self.task.scheme.group_size
        # Without the mechanism: the same groups meet every protection, so that a difference
        # between protections is not one between groups.
        rng = self._rng(f"{role} group", m, i)
        if put_in is not None and i % 2 == 0:
            rows = np.append(rng.choice(people, m - 1, replace=False), put_in)
        else:
            rows = rng.choice(people, m, replace=False)
        mechanism = self.task.scheme.mechanism
        noise = self._rng(f"{role} noise", *self._scheme_key, i)
        # Making random numbers takes time, and most mechanisms drop no visits.
        bounding = noise
        if mechanism.bounds_visits:
            bounding = self._rng(f"{role} bounding", *self._scheme_key, i)
        publication = publish_group(traces.select(rows), mechanism, bounding=bounding, noise=noise)
        return Trial(publication, put_in is None or i % 2 == 0)

    @property
    def _scheme_key(self) -> tuple[str, int]:
        """The scheme by its content, which does not depend on how it is written."""
        return self.task.scheme.mechanism.content, self.task.scheme.group_size

    def _rng(self, role: str, *key: int | str) -> np.random.Generator:
        return generator(self.plan.seed, role, self.task.target, *key)


def score_task(population: Population, plan: Plan, task: Task) -> pl.DataFrame:
    """Score all releases of a task with all attacks; the columns are those of `SCHEMA`."""
    scene = Scene(population, plan, task)
    players = list(_players(scene))
    columns: dict[str, list[Any]] = defaultdict(list)
    others = []
    for i in range(plan.releases):
        trial = scene.test(i)
        if trial.put_in:
            others.append(trial.others())
        _score(players, trial, columns, release=i, control=False)
    for i in range(plan.control_releases):
        _score(players, scene.control(i), columns, release=i, control=True)
    best = omniscient_over_releases(task.scheme.mechanism, others, task.scheme.group_size).pooled
    of_task = {
        "target": task.target,
        "visits": int(scene.traces.trace(task.target).size),
        "uniqueness": scene.uniqueness(),
        "ceiling": best.auc,
    }
    n = len(columns["score"])
    return pl.DataFrame(
        {name: columns[name] if name not in of_task else [of_task[name]] * n for name in SCHEMA},
        schema=SCHEMA,
    )


@dataclass(frozen=True, eq=False)
class _Player:
    """A fitted attack, and what its fit costs for each release that it scores."""

    contest: Contest
    fitted: FittedAttack
    seconds: float


def _players(scene: Scene) -> Iterator[_Player]:
    releases = scene.plan.releases + scene.plan.control_releases
    begun = time.perf_counter()
    for contest, fitted in scene.fit_all():
        yield _Player(contest, fitted, (time.perf_counter() - begun) / releases)
        begun = time.perf_counter()


def _score(
    players: list[_Player],
    trial: Trial,
    columns: dict[str, list[Any]],
    *,
    release: int,
    control: bool,
) -> None:
    """Let all attacks score a release, and add a row for each."""
    for player in players:
        begun = time.perf_counter()
        answer = player.fitted.score(trial.release)
        row = {
            "setting": str(player.contest.setting),
            "attack": str(player.contest.attack),
            "release": release,
            "label": trial.put_in,
            "score": answer.score,
            "threshold": answer.threshold,
            "seconds": time.perf_counter() - begun + player.seconds,
            "control": control,
        }
        for name, value in row.items():
            columns[name].append(value)
