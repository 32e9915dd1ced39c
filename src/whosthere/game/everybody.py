"""The game of everybody: each person is in or out by chance, and all are asked at once.

A publisher counts all people there are, not a sample of them. So each round includes every person
independently with the same chance, and tests them all: those who are in against those who are not.
How many are in, m, is public, and about the same in all rounds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whosthere.adversary.attacks import Answer, NotApplicableError
from whosthere.adversary.attacks.base import OF_ONE_RELEASE, AttackOnEverybody, View
from whosthere.adversary.suspects import over
from whosthere.arrays import own
from whosthere.data.floor import rounded_up
from whosthere.data.traces import Group
from whosthere.game.checks import (
    RoundChecks,
    Seen,
    Tally,
    independent_cells,
    noise_of_cells,
    number_of,
)
from whosthere.game.households import has_ceiling
from whosthere.game.optimum import optimum_of_everybody
from whosthere.game.rounds import Game, GameRound, Player, Rounds, RoundTable, Said, Task
from whosthere.game.target import TargetRounds
from whosthere.inference.control import ROLES
from whosthere.privacy.step import WITHHELD
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from whosthere.adversary.attacks import Attack, FittedAttack
    from whosthere.adversary.knowledge import Knowledge
    from whosthere.adversary.suspects import Known
    from whosthere.arrays import Bools, Floats, Ints32, Ints64
    from whosthere.data.clusters import Clusters
    from whosthere.game.plan import Contest, Plan
    from whosthere.game.rounds import Population
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.publish import PublishedTable
    from whosthere.privacy.release import Release

DIGITS = 4
"""To how many digits scores of everybody, natural logarithms of odds, are told."""
ROUNDS_IN_BLOCK = 5
"""How many rounds a task has, so that little is lost when it is interrupted."""
BLOCK, CONTROL = "block", "control"
"""What the number of a task is of: test rounds, or control rounds."""
# Of so few people, the same may be drawn twice by chance.
_FEW = 500


def set_aside(seed: int, n_people: int, n: int, households: Clusters | None = None) -> Ints64:
    """Return the rows of people who are in no release: an attacker has their traces instead.

    They are n people, or as many as whole `households` make up.
    """
    rng = generator(seed, "set aside")
    if households is not None:
        return households.at_most(rng, np.arange(n_people), n)
    return np.sort(rng.permutation(n_people)[:n])


@dataclass(frozen=True)
class EverybodyGame(Game):
    """Each round includes everybody with the chance `include`, except those who are set aside.

    Asked are all of them who made at least `min_visits` visits. Attacks that score one person after
    the other are made on the targets of the plan alone, who are some of them. Where `households`
    are given, each is included as a whole, with the same chance.
    """

    include: float = 0.9
    min_visits: int = 1
    households: Clusters | None = None
    name: ClassVar[str] = "everybody"

    def __str__(self) -> str:
        least = f", min_visits={self.min_visits}" if self.min_visits > 1 else ""
        whole = "" if self.households is None else f", households={self.households}"
        return f"{self.name}(include={self.include:g}{least}{whole})"

    def group_size(self, n_people: int) -> int:
        """Return how many of so many people to expect in a round."""
        return max(round(self.include * n_people), 2)

    def tasks(self, plan: Plan) -> tuple[Task, ...]:
        tests = max(map(plan.releases_by, plan.attacks))
        return tuple(
            Task(number, scheme, what)
            for what, rounds in ((BLOCK, tests), (CONTROL, plan.control_releases))
            for number, scheme in product(range(ceil(rounds / ROUNDS_IN_BLOCK)), plan.schemes)
        )

    def obstacle(self, contest: Contest) -> str | None:
        attack = contest.attack
        if attack.uses & OF_ONE_RELEASE:
            return f"{attack} has something of one release, and is for the game of one target"
        return None

    def rounds(self, population: Population, plan: Plan, task: Task) -> EverybodyRounds:
        return EverybodyRounds(population, plan, task, self)

    def tests(self, plan: Plan, task: Task, attack: Attack) -> range:
        return _of_block(task, plan.releases_by(attack)) if task.what == BLOCK else range(0)

    def controls(self, plan: Plan, task: Task) -> range:
        return _of_block(task, plan.control_releases) if task.what == CONTROL else range(0)


def _of_block(task: Task, n: int) -> range:
    first = task.number * ROUNDS_IN_BLOCK
    return range(first, max(min(first + ROUNDS_IN_BLOCK, n), first))


@dataclass(frozen=True, eq=False, kw_only=True)
class EverybodyRound(GameRound):
    """One draw of the game; `included` says of each row of the traces whether that one is in.

    In a control it is a coin, and who is in is another matter.
    """

    included: Bools

    def labels_of(self, rows: Ints64) -> Bools:
        return self.included[rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class _EverybodyPlayer(Player):
    """An attack that scores all who are asked at once: `score`, in the order of their `rows`."""

    rows: Ints64
    score: Callable[[GameRound], Floats]

    def said(self, drawn: GameRound) -> Said:
        # How many are in is public, and rates follow it in their last digits: that is no evidence.
        scores = np.round(self.score(drawn), DIGITS)
        places = np.searchsorted(self.rows, list(drawn.labels))
        answers = {
            person: Answer(float(scores[place]), 0.0)
            for person, place in zip(drawn.labels, places, strict=True)
        }
        return Said(answers, scores)


@dataclass(frozen=True, eq=False, kw_only=True)
class _SamplePlayer(Player):
    """An attack on the targets alone, prepared for groups of the size to expect."""

    facts: tuple[Facts, ...]

    def answers(self, drawn: GameRound) -> dict[int, Answer]:
        each = zip(drawn.publication.releases, self.facts, strict=True)
        releases = [_of_group(*one) for one in each]
        return {person: one.score_tables(releases) for person, one in self.fitted.items()}


def _of_group(release: Release, facts: Facts) -> Release:
    """Return a release as if it were of a group of another, similar size."""
    highest = facts.mechanism.alphabet(facts.most_count).highest
    values = np.minimum(release.values, highest)
    return replace(
        release, values=np.where(release.values == WITHHELD, WITHHELD, values), facts=facts
    )


class EverybodyRounds(Rounds):
    """Some rounds under a scheme."""

    def __init__(self, population: Population, plan: Plan, task: Task, game: EverybodyGame) -> None:
        super().__init__(population, plan, task)
        self.game = game
        self._optima: dict[tuple[str, int], Floats] = {}

    @cached_property
    def tables(self) -> tuple[RoundTable, ...]:
        return tuple(RoundTable(self, place) for place in range(len(self.task.scheme.tables)))

    @cached_property
    def reference_rows(self) -> Ints64:
        """Rows of the people who are set aside."""
        n = self.population.tested.n_users
        return set_aside(self.plan.seed, n, self.plan.reference_size, self.game.households)

    @cached_property
    def people(self) -> Ints64:
        """Rows of the people who may be in a round."""
        return np.setdiff1d(np.arange(self.population.tested.n_users), self.reference_rows)

    @cached_property
    def everybody(self) -> Ints64:
        visits = self.population.tested.visits_per_user()
        return self.people[visits[self.people] >= self.game.min_visits]

    @property
    def units(self) -> Ints64 | None:
        return None if self.game.households is None else self._unit_of[self.everybody]

    @cached_property
    def _unit_of(self) -> Ints64:
        """The household of each row of the traces."""
        n, households = self.population.tested.n_users, self.game.households
        return np.arange(n) if households is None else households.of

    def test(self, i: int) -> EverybodyRound:
        return self._round("test", i)

    def control(self, i: int) -> EverybodyRound:
        """Publish a round, and toss a coin for everybody instead of telling who is in."""
        drawn = self._round("control", i)
        unit = self._unit_of
        coins = (self.rng("control coins", i).random(int(unit.max()) + 1) < 0.5)[unit]
        return replace(drawn, labels=self._labels(coins), included=coins)

    def _round(self, role: str, i: int) -> EverybodyRound:
        # Without the mechanism: the same groups meet every protection.
        rng = self.rng(f"{role} group", i)
        included = np.zeros(self.population.tested.n_users, np.bool_)
        chance = rng.random(self.people.size)
        if self.game.households is not None:
            _, unit = np.unique(self._unit_of[self.people], return_inverse=True)
            chance = chance[unit]
        included[self.people] = chance < self.game.include
        made = self.published(role, i, np.flatnonzero(included), rng=rng)
        return EverybodyRound(made, self._labels(included), (role, i), included=included)

    def _labels(self, included: Bools) -> dict[int, bool]:
        return {target: bool(included[target]) for target in self.plan.targets}

    def players(self, contests: Iterable[Contest]) -> Iterator[Player]:
        for contest in contests:
            if isinstance(contest.attack, AttackOnEverybody):
                yield self._on_everybody(contest, contest.attack)
                continue
            player = self._on_sample(contest)
            if player.fitted:
                yield player

    def _on_everybody(self, contest: Contest, attack: AttackOnEverybody) -> Player:
        known = self.known(contest.setting.knowledge)
        views = [
            View(table.facts, of_table, table.auxiliary(attack.uses), table.layout)
            for table, of_table in zip(_Asked(self, -1).tables, known, strict=True)
        ]
        scorer = attack.scorer(views)

        def score(drawn: GameRound) -> Floats:
            return scorer(drawn.publication.releases)

        return _EverybodyPlayer(contest, {}, rows=self.everybody, score=score)

    def _on_sample(self, contest: Contest) -> Player:
        fitted: dict[int, FittedAttack] = {}
        for target in self.plan.targets:
            with suppress(NotApplicableError):
                fitted |= _Asked(self, target).player(contest).fitted
        return _SamplePlayer(contest, fitted, facts=tuple(one.facts for one in self.tables))

    @cached_property
    def known(self) -> Callable[[Knowledge], list[Known]]:
        """What is known of all who are asked over each table, by rule.

        It is drawn once for all attacks, over the regions and epochs of the traces.
        """
        return cache(self._known)

    def _known(self, rule: Knowledge) -> list[Known]:
        finest = self.population.under(self.tables[0].layout.in_finest_cells).tested
        everybody = self.everybody
        asked = finest if everybody.size == finest.n_users else finest.select(everybody)
        drawn = rule.of(asked, self.rng("knowledge"))
        return [over(drawn, table.layout.all_at_once) for table in self.tables]

    def optima(self, drawn: Mapping[int, GameRound]) -> dict[int, dict[int, float | None]]:
        found = {i: self.optimum_of_everybody(one) for i, one in drawn.items()}
        places = np.searchsorted(self.everybody, self.plan.targets)
        return {
            i: dict(
                zip(
                    self.plan.targets,
                    [None] * places.size if best is None else best[places].tolist(),
                    strict=True,
                )
            )
            for i, best in found.items()
        }

    def optimum_of_everybody(self, drawn: GameRound) -> Floats | None:
        scheme = self.task.scheme
        if not (scheme.has_law if self.game.households is None else has_ceiling(scheme)):
            return None
        # Under its key: a round takes far more memory than what is said of it.
        if drawn.key not in self._optima:
            self._optima[drawn.key] = self._optimal(drawn)
        return self._optima[drawn.key]

    def _optimal(self, drawn: GameRound) -> Floats:
        included = drawn.labels_of(np.arange(self.population.tested.n_users))
        out = self.people[~included[self.people]]
        groups = []
        for table in self.tables:
            group = Group(table.traces, own(out, np.int64))
            if table.mechanism.bounds_visits:
                key = *self.task.scheme.key, drawn.key[1]
                bounding = self.rng("would-be bounding", *key)
                group = Group.all_of(table.mechanism.bound(group.traces, bounding))
            groups.append(group)
        scores, made = np.zeros(included.size), drawn.publication
        if self.game.households is None:
            scores[included], scores[out] = optimum_of_everybody(made, groups)
            return scores[self.everybody]
        # Households in the place of people.
        unit_in, unit_out = (
            np.unique(self._unit_of[rows], return_inverse=True)[1]
            for rows in (made.tables[0].group.rows, out)
        )
        tables = [replace(one, counted=_as_units(one.counted, unit_in)) for one in made.tables]
        inside, outside = optimum_of_everybody(
            replace(made, tables=tuple(tables)), [_as_units(one, unit_out) for one in groups]
        )
        scores[included], scores[out] = inside[unit_in], outside[unit_out]
        return scores[self.everybody]

    def checks(self) -> tuple[EverybodyChecks, ...]:
        return tuple(EverybodyChecks(table, self.people) for table in self.tables)

    def about(self, person: int) -> dict[str, Any]:
        visits = self.population.tested.trace(person).size
        classes = self.population.visit_classes
        uniqueness = _Asked(self, person).tables[0].uniqueness()
        return {"visits": rounded_up(visits, classes), "uniqueness": round(uniqueness, 1)}

    def rng(self, role: str, *key: int | str) -> np.random.Generator:
        return generator(self.plan.seed, self.game.name, role, *key)


def _as_units(people: Group, unit: Ints64) -> Group:
    return Group.all_of(people.together(unit)) if people.n_users else people


class _Asked(TargetRounds):
    """One of those who are asked, and what an attacker of that one has; the rounds are everybody's.

    Random numbers are those of the person in the game of one target.
    """

    def __init__(self, all_rounds: EverybodyRounds, person: int) -> None:
        task = Task(person, all_rounds.task.scheme)
        super().__init__(all_rounds.population, all_rounds.plan, task)
        self._all_rounds = all_rounds

    @cached_property
    def pool(self) -> Ints64:
        people = self._all_rounds.people
        return np.asarray(people[people != self.target])

    @cached_property
    def household(self) -> Ints64:
        # All others are in the pool.
        return np.array([self.target])

    @property
    def reference_rows(self) -> Ints64:
        return self._all_rounds.reference_rows

    def _known(self, rule: Knowledge) -> list[Known]:
        row = np.searchsorted(self._all_rounds.everybody, [self.target])
        return [one.select(row) for one in self._all_rounds.known(rule)]

    def test(self, i: int) -> GameRound:
        return self._all_rounds.test(i)


class EverybodyChecks(RoundChecks):
    """The checks of the releases of one table: all of its cells are somebody's."""

    def __init__(self, table: RoundTable, people: Ints64) -> None:
        super().__init__(table)
        self._people = people
        self._by_size: dict[int, Tally] = {}

    def see(self, drawn: GameRound) -> Seen:
        made, counts = self._recounted(drawn)
        fault = self._fault_of(drawn, made, counts)
        if self.mechanism.has_law:
            cells = independent_cells(made, self.mechanism)
            tally = self._by_size.setdefault(made.release.facts.most_count, Tally())
            tally.add(counts[cells], made.release.symbols.reshape(-1)[cells])
        noise, used_twice = noise_of_cells(made, self.mechanism)
        households = self.table.rounds.plan.game.households
        units = self._people if households is None else np.unique(households.of[self._people])
        few = units.size < _FEW
        number = None if few else number_of(made.group.rows, self.table.traces.n_users)
        return Seen(fault or used_twice, noise, number)

    def fault_of_control(self, drawn: GameRound) -> str | None:
        made, counts = self._recounted(drawn)
        return self._fault_of(None, made, counts)

    def sums(self) -> list[float]:
        each = [tally.sums(self.mechanism, most) for most, tally in self._by_size.items()]
        added = [sum(parts) for parts in zip(*each, strict=True)]
        # There is nobody whose cells are looked at apart from all others.
        return [*added, *([0.0] * len(added) * (len(ROLES) - 1))]

    def _fault_of(
        self, claimed: GameRound | None, made: PublishedTable, counts: Ints32
    ) -> str | None:
        """Return the first thing that is wrong with a release, which may claim who is in."""
        rows, everybody = made.group.rows, self.table.traces
        is_in = np.zeros(everybody.n_users, np.bool_)
        is_in[rows] = True
        if isinstance(claimed, EverybodyRound) and not np.array_equal(is_in, claimed.included):
            return "the label is not that of the group"
        households = self.table.rounds.plan.game.households
        if households is not None and not households.are_whole(rows):
            return "a household is not in as a whole"
        m = np.count_nonzero(is_in[self._people])
        if not rows.size == m == made.release.group_size or made.group.everybody is not everybody:
            return "the group is not as many different people of the pool as it should be"
        return self._fault_of_counts(made, counts)
