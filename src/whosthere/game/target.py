"""The game of one target: somebody is in or not, among m - 1 others drawn at random."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks import (
    Auxiliary,
    FittedAttack,
    NotApplicableError,
    PastRelease,
)
from whosthere.adversary.attacks.base import OF_ONE_RELEASE, SAYS_NOTHING, View
from whosthere.adversary.suspects import over
from whosthere.arrays import own
from whosthere.data.clusters import Clusters, DrawGroup, draw_group
from whosthere.data.floor import rounded_up
from whosthere.data.traces import Group
from whosthere.game.checks import Checks
from whosthere.game.households import HouseholdRound, as_one, optimum_of_household
from whosthere.game.optimum import Candidates, optimal_scores
from whosthere.game.rounds import Game, GameRound, Player, Rounds, RoundTable, Task
from whosthere.privacy.publish import Publication, Stays
from whosthere.seeds import derived_seed, generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.adversary.suspects import Known
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Contest, Plan
    from whosthere.game.rounds import Population
    from whosthere.privacy.publish import PublishedTable
    from whosthere.privacy.release import Release
    from whosthere.privacy.scheme import Scheme


@dataclass(frozen=True)
class TargetGame(Game):
    """Each target has a task under each scheme; every other test round holds the target.

    `groups` draws the others where they are not drawn uniformly. In a series of tables, the share
    `turnover` of the others is replaced from each table to the next, by people who were in none.
    Whoever is in the target's place is in all tables as the target would be, and is drawn uniformly
    from all who are left: so the target is as likely to be in, whoever the others are, and the best
    test is the same.

    Where `households` are given, the target's is in or out as a whole. So are those of the others,
    and one of the same size is in its place.
    """

    groups: DrawGroup | None = None
    turnover: float = 0.0
    households: Clusters | None = None
    name: ClassVar[str] = "target"

    @property
    def draws_uniformly(self) -> bool:
        return self.groups is None

    def replaced(self, scheme: Scheme) -> int:
        """Return how many of the others are replaced from each table to the next."""
        return max(round(self.turnover * (scheme.group_size - 1)), 1) if self.turnover else 0

    def people_in(self, scheme: Scheme) -> int:
        """Return how many people a publication holds, those who come and go included."""
        times = scheme.tables[0].layout.times or 1
        return scheme.group_size + (times - 1) * self.replaced(scheme)

    def __str__(self) -> str:
        if self.households is not None:
            return f"{self.name}(households={self.households})"
        if self.groups is None:
            return f"{self.name}(turnover={self.turnover:g})" if self.turnover else self.name
        # Not where a function is in memory, which differs between runs.
        named = getattr(self.groups, "__qualname__", type(self.groups).__qualname__)
        by = self.groups if isinstance(self.groups, Clusters) else named
        return f"{self.name}(groups={by})"

    def tasks(self, plan: Plan) -> tuple[Task, ...]:
        return tuple(Task(*chosen) for chosen in product(plan.targets, plan.schemes))

    def rounds(self, population: Population, plan: Plan, task: Task) -> TargetRounds:
        return TargetRounds(population, plan, task)


TARGET_GAME = TargetGame()


class TargetRounds(Rounds):
    """A target under a scheme, with the people who may be published besides."""

    @property
    def target(self) -> int:
        """The row of the person whose membership is asked."""
        return self.task.number

    @property
    def groups(self) -> DrawGroup | None:
        """What draws the others, if they are not drawn uniformly."""
        return self.plan.game.groups if isinstance(self.plan.game, TargetGame) else None

    @property
    def people_in_all(self) -> int:
        """How many people a publication holds, those who come and go included."""
        game, scheme = self.plan.game, self.task.scheme
        return game.people_in(scheme) if isinstance(game, TargetGame) else scheme.group_size

    @cached_property
    def tables(self) -> tuple[TargetTable, ...]:
        """The tables of the scheme."""
        return tuple(TargetTable(self, place) for place in range(len(self.task.scheme.tables)))

    @cached_property
    def household(self) -> NDArray[np.int64]:
        """Rows of those who are in or out together with the target, who is the last of them."""
        if self.plan.game.households is None:
            return np.array([self.target])
        return self.plan.game.households.members(self.target)

    @cached_property
    def _others(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Everybody of other households in random order: the reference, and the pool."""
        order = self.rng("people").permutation(self.population.tested.n_users)
        others = order[~np.isin(order, self.household)]
        n, households = self.plan.reference_size, self.plan.game.households
        if households is None:
            return others[:n], others[n:]
        reference = households.at_most(self.rng("reference"), others, n)
        return reference, others[~np.isin(others, reference)]

    @cached_property
    def of_same_size(self) -> NDArray[np.int64]:
        """The households of the pool with as many people as the target's, which comes last.

        A row for each, shape (n_households, n_people).
        """
        own, households = self.household, self.plan.game.households
        if households is None:
            return np.append(self.pool, own)[:, None]
        same = self.pool[households.sizes[households.of[self.pool]] == own.size]
        same = same[np.argsort(households.of[same], kind="stable")]
        return np.append(same, own).reshape(-1, own.size)

    @property
    def pool(self) -> NDArray[np.int64]:
        """Rows of the people who may be in test rounds besides the target's household."""
        return self._others[1]

    @property
    def reference_rows(self) -> NDArray[np.int64]:
        """Rows of the people whose traces an attacker may have; none is in a test round."""
        return self._others[0]

    def test(self, i: int) -> GameRound:
        """Publish a test round: those with an even number hold the target."""
        return self._round("test", i, self.pool, self.target)

    def control(self, i: int) -> GameRound:
        """Publish a round as with the target, but with somebody else in the target's place."""
        return self._round("control", i, self.pool, None)

    def past(self, i: int) -> GameRound:
        """Publish a round of the past, every other one with the target, from the reference."""
        window = int(self.rng("past window", i).integers(len(self.population.past)))
        return self._round("past", i, self.reference_rows, self.target, window)

    def _round(
        self,
        role: str,
        i: int,
        people: NDArray[np.int64],
        put_in: int | None,
        window: int | None = None,
    ) -> GameRound:
        """Publish a group in the tested time or a window of the past; the one put in comes last.

        Without anybody to put in, one of the group counts as put in.
        """
        m = self.task.scheme.group_size
        # Without the mechanism: the same groups meet every protection, so that a difference
        # between protections is not one between groups.
        rng = self.rng(f"{role} group", m, i)
        last, instead = put_in if i % 2 == 0 else None, None
        if self.plan.game.households is not None:
            others, instead = self.drawn_households(rng, people, self.plan.game.households)
            rows = np.append(others, instead if last is None else self.household)
        elif self.groups is not None:
            others = draw_group(self.groups, rng, people, m - 1)
            last = int(rng.choice(np.setdiff1d(people, others))) if last is None else last
            rows = np.append(others, last)
        elif last is not None:
            rows = np.append(rng.choice(people, m - 1, replace=False), last)
        else:
            rows = rng.choice(people, m, replace=False)
        stays = self._stays(role, i, rows, people)
        if stays is not None:
            rows = stays.rows
        made = self.published(role, i, rows, window, rng=rng, stays=stays)
        labels, key = {self.target: put_in is None or i % 2 == 0}, (role, i)
        if instead is not None:
            return HouseholdRound(made, labels, key, instead=instead)
        return GameRound(made, labels, key)

    def drawn_households(
        self, rng: np.random.Generator, people: NDArray[np.int64], households: Clusters
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw the others, and who is in if the target's household is not.

        That is one household of the same size, of all that are left; or several, if there is none.
        """
        n = self.household.size
        others = households.exactly(rng, people, self.task.scheme.group_size - n)
        left = people[~np.isin(people, others)]
        of_same = left[households.sizes[households.of[left]] == n]
        if not of_same.size:
            return others, households.exactly(rng, left, n)
        drawn = households.of[rng.choice(of_same)]
        return others, of_same[households.of[of_same] == drawn]

    def _stays(
        self, role: str, i: int, rows: NDArray[np.int64], people: NDArray[np.int64]
    ) -> Stays | None:
        """Replace some of the others from each table to the next; the last one stays.

        A series is the beginning of every longer one.
        """
        m, n = rows.size, self.people_in_all
        if n == m:
            return None
        layout, rng = self.task.scheme.tables[0].layout, self.rng(f"{role} turnover", m, i)
        times, new = layout.times or 1, rng.permutation(np.setdiff1d(people, rows))[: n - m]
        first, until = np.zeros(n - 1, np.int64), np.full(n, times)
        first[m - 1 :] = np.repeat(np.arange(1, times), new.size // (times - 1))
        for table in range(1, times):
            there = np.flatnonzero((first < table) & (until[:-1] == times))
            until[rng.choice(there, new.size // (times - 1), replace=False)] = table
        everybody = np.concatenate([rows[:-1], new, rows[-1:]])
        return Stays(own(everybody, np.int64), np.append(first, 0), until, layout.every)

    def older(self, drawn: GameRound) -> Publication:
        """Publish the people of a round in the time before it, or else in its own once more."""
        role, i = drawn.key
        rows = drawn.publication.tables[0].group.rows
        stays = drawn.publication.tables[0].stays
        rng = self.rng("older", i)
        return self.published(f"older {role}", i, rows, 0, rng=rng, stays=stays)

    def players(self, contests: Iterable[Contest]) -> Iterator[Player]:
        """Prepare the attacks; one by friends, for instance, needs a target with friends."""
        for contest in contests:
            with suppress(NotApplicableError):
                yield self.player(contest)

    def player(self, contest: Contest) -> Player:
        """Prepare an attack, or raise `NotApplicableError`."""
        fit = partial(self._fitted, contest)
        if contest.attack.uses & OF_ONE_RELEASE:
            return Player(contest, fit(self.test(0)), fit)
        return Player(contest, fit(None))

    @cached_property
    def known(self) -> Callable[[Knowledge], list[Known]]:
        """What is known of the target over each table, by rule, and the same for all attacks.

        It is drawn once, over the regions and epochs of the traces.
        """
        return cache(self._known)

    def _known(self, rule: Knowledge) -> list[Known]:
        # All tables cover the same time.
        finest = self.population.under(self.tables[0].layout.in_finest_cells).tested
        known = rule.of(finest.select([self.target]), self.rng("knowledge"))
        return [over(known, table.layout.all_at_once) for table in self.tables]

    def _fitted(self, contest: Contest, drawn: GameRound | None) -> dict[int, FittedAttack]:
        """Fit an attack to the target, and to a round if it has something of that."""
        attack, rule = contest.attack, contest.setting.knowledge
        # By name and not by parameters: variants of an attack share their random numbers, so
        # that a difference between them is not one between draws.
        key = *self.task.scheme.key, specs.content(rule), attack.name
        seed = derived_seed(self.plan.seed, "attack", self.target, *key)
        views = [
            View(table.facts, known, table.auxiliary(attack.uses, drawn), table.layout)
            for table, known in zip(self.tables, self.known(rule), strict=True)
        ]
        if not any(table.traces.trace(self.target).size for table in self.tables):
            attack.check_tables(views)
            return {self.target: SAYS_NOTHING}
        return {self.target: attack.fit_tables(views, seed=seed)}

    def optima(self, drawn: Mapping[int, GameRound]) -> dict[int, dict[int, float | None]]:
        if not self.task.scheme.has_law:
            return {i: {self.target: None} for i in drawn}
        if self.plan.game.households is not None:
            return {i: {self.target: optimum_of_household(self, one)} for i, one in drawn.items()}
        candidates = ([table.candidates(i) for table in self.tables] for i in drawn)
        best = optimal_scores([one.publication for one in drawn.values()], candidates)
        return {i: {self.target: score} for i, score in zip(drawn, best, strict=True)}

    def checks(self) -> tuple[Checks, ...]:
        return tuple(map(Checks, self.tables))

    def about(self, person: int) -> dict[str, Any]:
        visits = self.population.tested.trace(person).size
        classes, uniqueness = self.population.visit_classes, self.tables[0].uniqueness()
        return {"visits": rounded_up(visits, classes), "uniqueness": round(uniqueness, 1)}

    def rng(self, role: str, *key: int | str) -> np.random.Generator:
        """Return random numbers that belong to the target, and to what they are for."""
        return generator(self.plan.seed, role, self.target, *key)


@dataclass(frozen=True, eq=False)
class TargetTable(RoundTable):
    """One table of the scheme, and what an attacker of the target has of it."""

    rounds: TargetRounds

    def auxiliary(self, uses: frozenset[str], drawn: GameRound | None = None) -> Auxiliary:
        """Return what else an attack has: the parts that it uses, and no other.

        Some of them belong to a round.
        """
        parts: dict[str, Any] = {part: getattr(self, f"_{part}") for part in uses - OF_ONE_RELEASE}
        if drawn is not None and "others" in uses:
            counted = drawn.publication.tables[self.place].counted
            besides = counted.rows[: -self.rounds.household.size]
            parts["others"] = counted.everybody.select(besides)
        if drawn is not None and "older" in uses:
            parts["older"] = self.rounds.older(drawn).releases[self.place]
        return Auxiliary(**parts)

    @cached_property
    def _everybody(self) -> Traces:
        return self.traces.select(np.append(self.rounds.pool, self.rounds.household[:-1]))

    @cached_property
    def _reference(self) -> Traces:
        return self.traces.select(self.rounds.reference_rows)

    @cached_property
    def _friends(self) -> Traces | None:
        """Traces of all friends of the target; they may be in releases like anybody else."""
        rows = self.people.friends_of(self.rounds.target)
        return self.traces.select(rows) if rows.size else None

    @cached_property
    def _past(self) -> tuple[PastRelease, ...]:
        drawn = (self.rounds.past(i) for i in range(self.rounds.plan.past_releases))
        return tuple(
            PastRelease(self._release(one), one.labels[self.rounds.target]) for one in drawn
        )

    @cached_property
    def _example(self) -> Release:
        """One of the first two test releases, drawn at random: with the target or without.

        It does not depend on how many releases there are.
        """
        drawn = self.rounds.rng("example", *self.rounds.task.scheme.key).integers(2)
        return self._release(self.rounds.test(int(drawn)))

    @cached_property
    def _example_in(self) -> Release:
        """The first test release, which holds the target."""
        return self._release(self.rounds.test(0))

    def _release(self, drawn: GameRound) -> Release:
        return drawn.publication.releases[self.place]

    def uniqueness(self) -> float:
        """Return the chance that the target is alone in a visited cell, mean over the cells."""
        pool = self.rounds.pool
        cells = self.traces.trace(self.rounds.target)
        visitors = self.traces.counts(pool).reshape(-1)[cells]
        if not cells.size:
            return 0.0
        absent = 1 - visitors / pool.size
        return float(np.mean(absent ** (self.rounds.task.scheme.group_size - 1)))

    def cells_of_target(self, made: PublishedTable) -> NDArray[np.int32]:
        """Return cells in which the target is counted, or would be if it is not there.

        Some are left out, so that how many they are does not tell how many the target visited.
        """
        is_there = made.group.rows[-1] == self.rounds.target
        cells = made.counted.trace(-1) if is_there else self.traces.trace(self.rounds.target)
        classes = self.people.visit_classes
        return cells[: max(int(classes[classes <= cells.size].max(initial=0)), 1)]

    def candidates(self, i: int) -> Candidates:
        """Return everybody who may be the last member of a group, the target last."""
        people = self._pool_and_target
        if not self.mechanism.bounds_visits:
            return Candidates(people, people)
        bounding = self.rounds.rng("would-be bounding", *self.rounds.task.scheme.key, i)
        bounded = self.mechanism.bound(people.traces, bounding)
        return Candidates(people, Group.all_of(bounded))

    @cached_property
    def households(self) -> Traces:
        """What each of the households of the same size adds, the target's last."""
        return as_one(self.traces, self.rounds.of_same_size)

    @cached_property
    def _pool_and_target(self) -> Group:
        rows = np.append(self.rounds.pool, self.rounds.target)
        return Group(self.traces, own(rows, np.int64))
