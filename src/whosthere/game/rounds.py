"""Games: who is in what is published, and whose membership is asked.

A game is played in rounds. A round is one draw of people, what is published of them, and what each
attack says about those whose membership is asked. Rounds come in blocks, called tasks: whatever the
game, these are what is planned, done, kept, resumed and extended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from whosthere.adversary.attacks import Answer, Attack, FittedAttack
    from whosthere.game.checks import Checks
    from whosthere.game.plan import Contest, Plan
    from whosthere.game.population import Population
    from whosthere.privacy.publish import Publication
    from whosthere.privacy.release import Release
    from whosthere.privacy.scheme import Scheme


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


@dataclass(frozen=True, eq=False)
class Player:
    """An attack in a setting, fitted to each person whose membership is asked, by row."""

    contest: Contest
    fitted: Mapping[int, FittedAttack]

    def answers(self, releases: Sequence[Release]) -> dict[int, Answer]:
        """Return what the attack says about each person, by row."""
        return {person: one.score_tables(releases) for person, one in self.fitted.items()}


class Rounds(ABC):
    """The rounds of one task.

    Every random draw belongs to what it is for: a round with the same number is the same, whoever
    attacks it and whatever is known.
    """

    def __init__(self, population: Population, plan: Plan, task: Task) -> None:
        self.population, self.plan, self.task = population, plan, task

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
    def optimum(self, i: int, drawn: GameRound) -> Mapping[int, float]:
        """Return what the best test of the game says about test round number i, by row."""

    @abstractmethod
    def checks(self) -> Sequence[Checks]:
        """Return what checks the rounds of the task, for each table."""

    @abstractmethod
    def about(self, person: int) -> dict[str, Any]:
        """Return what is kept of somebody whose membership is asked: `visits`, `uniqueness`."""


class Game(ABC):
    """A way to draw rounds. To add one: a subclass, and one of `Rounds`."""

    name: ClassVar[str]

    @abstractmethod
    def tasks(self, plan: Plan) -> tuple[Task, ...]:
        """Cut the rounds of a plan into blocks, so that all settings grow at the same pace."""

    @abstractmethod
    def rounds(self, population: Population, plan: Plan, task: Task) -> Rounds:
        """Return the rounds of a task."""

    def tests(self, plan: Plan, task: Task, attack: Attack) -> range:  # noqa: ARG002
        """Return the numbers of the test rounds of a task that an attack scores."""
        return range(plan.releases_by(attack))

    def controls(self, plan: Plan, task: Task) -> range:  # noqa: ARG002
        """Return the numbers of the control rounds of a task."""
        return range(plan.control_releases)
