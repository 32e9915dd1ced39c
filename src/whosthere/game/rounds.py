"""Games: who is in what is published, and whose membership is asked.

A game is played in rounds. A round is one draw of people, what is published of them, and what each
attack says about those whose membership is asked. Rounds come in blocks, called tasks: whatever the
game, these are what is planned, done, kept, resumed and extended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from whosthere.arrays import own
from whosthere.data.floor import class_ends
from whosthere.data.traces import Group
from whosthere.privacy.cell_key import people_keys
from whosthere.privacy.facts import Facts
from whosthere.privacy.publish import Publication, publish_table
from whosthere.privacy.scheme import ORDINARY, Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks import Answer, Attack, FittedAttack
    from whosthere.arrays import Bools, Floats, Ints64
    from whosthere.data.clusters import Clusters
    from whosthere.data.neighbours import Neighbours
    from whosthere.data.traces import Traces
    from whosthere.game.checks import RoundChecks
    from whosthere.game.plan import Contest, Plan
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.publish import Stays
    from whosthere.privacy.scheme import Scheme


@dataclass(frozen=True, eq=False)
class Population:
    """Everybody's traces in the tested time, and in the windows of the same length before.

    `earlier` has the latest window first. `friends` is a graph over the rows of the traces of who
    knows whom; None where that is not known.
    """

    tested: Traces
    earlier: tuple[Traces, ...] = ()
    friends: Neighbours | None = None
    _under: dict[Layout, Population] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, traces: Traces, first_epoch: int = 0) -> Population:
        """Cut traces at the epoch where the tested time begins."""
        # Groups are chosen by the thousand, and nobody asks for the friendships within them.
        friends, bare = traces.friends, replace(traces, friends=None)
        if first_epoch == 0:
            return cls(bare, (), friends)
        n = traces.epochs.n - first_epoch
        starts = range(first_epoch - n, -1, -n)
        earlier = tuple(bare.between(start, n) for start in starts)
        return cls(bare.between(first_epoch, n), earlier, friends)

    def under(self, layout: Layout) -> Population:
        """Return the same people over the cells of a table; made once for each layout."""
        if layout == ORDINARY:
            return self
        if layout not in self._under:
            earlier = tuple(layout(traces) for traces in self.earlier)
            self._under[layout] = Population(layout(self.tested), earlier, self.friends)
        return self._under[layout]

    def friends_of(self, row: int) -> NDArray[np.integer]:
        """Return the rows of somebody's friends; none where nothing is known about friends."""
        return np.zeros(0, np.int64) if self.friends is None else self.friends.of(row)

    @cached_property
    def visit_classes(self) -> NDArray[np.int64]:
        """What numbers of visits in the tested time are rounded up to before they are written."""
        return class_ends(self.tested.visits_per_user())

    @property
    def past(self) -> tuple[Traces, ...]:
        """What past releases are made from: the earlier times or, without any, the tested one."""
        return self.earlier or (self.tested,)


@dataclass(frozen=True)
class Task:
    """A piece of work by itself: a block of rounds under one scheme.

    `number` says which block of the game it is; where each target has a block, it is the row of the
    target. `what` says what the number is of, for messages and names of files.
    """

    number: int
    scheme: Scheme
    what: str = "target"

    def __str__(self) -> str:
        return f"{self.what} {self.number} in {self.scheme}"


@dataclass(frozen=True, eq=False)
class GameRound:
    """One draw of a game, whose labels are known to the audit alone.

    Attacks see only the releases of what was published. `labels` says by the row of each person
    whose membership is asked whether that one is in. In a control nobody is: it is whether somebody
    was put in the place of that one.
    """

    publication: Publication
    labels: Mapping[int, bool]
    key: tuple[str, int] = ("", 0)
    """What the round is for, and its number."""

    def labels_of(self, rows: Ints64) -> Bools:
        """Return the labels of people by their rows, shape (n_rows,)."""
        return np.array([self.labels[int(row)] for row in rows])


class Said(NamedTuple):
    """What an attack says about a round: `answers` about targets, by row.

    `everybody` are scores of all who are asked, in the order of their rows, where the game asks
    more than targets and the attack scores them at once.
    """

    answers: Mapping[int, Answer]
    everybody: Floats | None = None


@dataclass(frozen=True, eq=False)
class Player:
    """An attack in a setting, fitted to each person whose membership is asked, by row.

    `fit` fits it to a round, if it has something that belongs to one release alone.
    """

    contest: Contest
    fitted: Mapping[int, FittedAttack]
    fit: Callable[[GameRound], Mapping[int, FittedAttack]] | None = None

    def said(self, drawn: GameRound) -> Said:
        """Return what the attack says about each person, and about everybody if it knows that."""
        return Said(self.answers(drawn))

    def answers(self, drawn: GameRound) -> dict[int, Answer]:
        """Return what the attack says about each person, by row."""
        fitted = self.fitted if self.fit is None else self.fit(drawn)
        releases = drawn.publication.releases
        return {person: one.score_tables(releases) for person, one in fitted.items()}


@dataclass(frozen=True, eq=False)
class RoundTable:
    """One table of the scheme that rounds publish, by its place there."""

    rounds: Rounds
    place: int

    @property
    def mechanism(self) -> Mechanism:
        """What is done to its counts."""
        return self.rounds.task.scheme.tables[self.place].mechanism

    @property
    def layout(self) -> Layout:
        """Which cells it has."""
        return self.rounds.task.scheme.tables[self.place].layout

    @cached_property
    def people(self) -> Population:
        """Everybody, over the cells of the table."""
        return self.rounds.population.under(self.layout)

    @property
    def traces(self) -> Traces:
        """Everybody in the tested time, over the cells of the table."""
        return self.people.tested

    @cached_property
    def facts(self) -> Facts:
        """What is public about the table."""
        return Facts.of(self.traces, self.rounds.task.scheme.group_size, self.mechanism)


class Rounds(ABC):
    """The rounds of one task.

    Every random draw belongs to what it is for: a round with the same number is the same, whoever
    attacks it and whatever is known.
    """

    def __init__(self, population: Population, plan: Plan, task: Task) -> None:
        self.population, self.plan, self.task = population, plan, task

    @property
    @abstractmethod
    def tables(self) -> Sequence[RoundTable]:
        """The tables of the scheme."""

    @abstractmethod
    def rng(self, role: str, *key: int | str) -> np.random.Generator:
        """Return random numbers that belong to the rounds, and to what they are for."""

    def published(
        self,
        role: str,
        i: int,
        rows: NDArray[np.int64],
        window: int | None = None,
        *,
        rng: np.random.Generator,
        stays: Stays | None = None,
    ) -> Publication:
        """Publish some people in the tested time or a window of the past."""
        scheme = self.task.scheme
        # Making random numbers takes time, and not every mechanism asks for some.
        noise = bounding = rng
        if any(mechanism.random_steps for mechanism in scheme.mechanisms):
            noise = self.rng(f"{role} noise", *scheme.key, i)
        if any(mechanism.bounds_visits for mechanism in scheme.mechanisms):
            bounding = self.rng(f"{role} bounding", *scheme.key, i)
        made, keys = [], None
        if len(self.tables) > 1 and noise is not rng:
            # The same people have the same keys in all tables.
            keys = people_keys(rows.size, self.rng(f"{role} keys", *scheme.key, i))
        for table in self.tables:
            traces = table.traces if window is None else table.people.past[window]
            group, how = Group(traces, own(rows, np.int64), keys), table.mechanism
            made.append(publish_table(group, how, bounding=bounding, noise=noise, stays=stays))
        return Publication(tuple(made))

    @abstractmethod
    def test(self, i: int) -> GameRound:
        """Draw a round that attacks are measured on."""

    @abstractmethod
    def control(self, i: int) -> GameRound:
        """Draw a round in which there is nothing to find."""

    @abstractmethod
    def players(self, contests: Iterable[Contest]) -> Iterator[Player]:
        """Prepare those of some attacks that apply to anybody who is asked, one after the other."""

    @abstractmethod
    def optima(self, drawn: Mapping[int, GameRound]) -> dict[int, dict[int, float | None]]:
        """Return what the best test of the game says about test rounds, by number and row.

        None where a mechanism without a law leaves nobody able to tell.
        """

    @property
    def everybody(self) -> Ints64 | None:
        """Rows of all who are asked, sorted; None where that is nobody but the targets."""
        return None

    @property
    def units(self) -> Ints64 | None:
        """The household of each of these; None where everybody is in or out alone."""
        return None

    def optimum_of_everybody(self, drawn: GameRound) -> Floats | None:  # noqa: ARG002
        """Return what the best test says about all who are asked; None where nobody can tell."""
        return None

    @abstractmethod
    def checks(self) -> Sequence[RoundChecks]:
        """Return what checks the rounds of the task, for each table."""

    @abstractmethod
    def about(self, person: int) -> dict[str, Any]:
        """Return what is kept of somebody whose membership is asked: `visits`, `uniqueness`."""


class Game(ABC):
    """A way to draw rounds. To add one: a subclass, and one of `Rounds`."""

    name: ClassVar[str]

    @property
    def draws_uniformly(self) -> bool:
        """Whether all groups of a size are equally likely, as attacks assume."""
        return True

    @property
    def households(self) -> Clusters | None:
        """Who is always in or out together; None where people are drawn one by one."""
        return None

    @abstractmethod
    def tasks(self, plan: Plan) -> tuple[Task, ...]:
        """Cut the rounds of a plan into blocks, so that all settings grow at the same pace."""

    def obstacle(self, contest: Contest) -> str | None:  # noqa: ARG002
        """Return why an attack cannot be made in this game at all, None if it may."""
        return None

    @abstractmethod
    def rounds(self, population: Population, plan: Plan, task: Task) -> Rounds:
        """Return the rounds of a task."""

    def tests(self, plan: Plan, task: Task, attack: Attack) -> range:  # noqa: ARG002
        """Return the numbers of the test rounds of a task that an attack scores."""
        return range(plan.releases_by(attack))

    def controls(self, plan: Plan, task: Task) -> range:  # noqa: ARG002
        """Return the numbers of the control rounds of a task."""
        return range(plan.control_releases)
