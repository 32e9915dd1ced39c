"""One task: a target among others, the releases they are published in, and the attacks on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks import (
    Auxiliary,
    FittedAttack,
    NotApplicableError,
    PastRelease,
)
from whosthere.arrays import own
from whosthere.data.group import Group
from whosthere.game.optimum import Candidates, optimal_score
from whosthere.privacy.facts import Facts
from whosthere.privacy.publish import Publication, publish_group
from whosthere.seeds import derived_seed, generator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.adversary.knowledge_rules import Familiarity
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Contest, Plan, Task
    from whosthere.game.population import Population
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

    def own_cells(self) -> NDArray[np.int32]:
        """Return the cells in which the last member of the group is counted."""
        return self.publication.counted.trace(-1)


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
        """One of the first two test releases, drawn at random: with the target or without.

        It does not depend on how many releases there are.
        """
        drawn = self._rng("example", *self._scheme_key).integers(2)
        return self.test(int(drawn)).release

    @cached_property
    def _example_in(self) -> Release:
        """The first test release, which holds the target."""
        return self.test(0).release

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

    def fit_all(self, contests: Iterable[Contest]) -> Iterator[tuple[Contest, FittedAttack]]:
        """Prepare those of some attacks that apply to the target, one after the other.

        One by friends, for instance, does not apply to somebody without any.
        """
        for contest in contests:
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
        group = Group(traces, own(rows, np.int64))
        publication = publish_group(group, mechanism, bounding=bounding, noise=noise)
        return Trial(publication, put_in is None or i % 2 == 0)

    def cells_of_target(self, trial: Trial) -> NDArray[np.int32]:
        """Return cells in which the target is counted, or would be if it is not there.

        Some are left out, so that how many they are does not tell how many the target visited.
        """
        is_there = trial.publication.group.rows[-1] == self.task.target
        cells = trial.own_cells() if is_there else self.traces.trace(self.task.target)
        classes = self.population.visit_classes
        return cells[: max(int(classes[classes <= cells.size].max(initial=0)), 1)]

    def optimum(self, i: int, trial: Trial) -> float:
        """Return what the best test of the game says about test release number i."""
        return optimal_score(trial.publication, self._candidates(i))

    def _candidates(self, i: int) -> Candidates:
        """Return everybody who may be the last member of a group, the target last."""
        people, mechanism = self._pool_and_target, self.task.scheme.mechanism
        if not mechanism.bounds_visits:
            return Candidates(people, people)
        bounding = self._rng("would-be bounding", *self._scheme_key, i)
        bounded = mechanism.bound(people.traces, bounding).traces
        return Candidates(people, Group.all_of(bounded))

    @cached_property
    def _pool_and_target(self) -> Group:
        return Group(self.traces, own(np.append(self.pool, self.task.target), np.int64))

    @property
    def _scheme_key(self) -> tuple[str, int]:
        """The scheme by its content, which does not depend on how it is written."""
        return self.task.scheme.mechanism.content, self.task.scheme.group_size

    def _rng(self, role: str, *key: int | str) -> np.random.Generator:
        return generator(self.plan.seed, role, self.task.target, *key)
