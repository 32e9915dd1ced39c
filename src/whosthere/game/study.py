"""The rounds of an audit one by one, for studies: with all that the audit knows of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from whosthere.adversary.attacks import attack as attack_of
from whosthere.adversary.knowledge import AllVisits, knowledge_rule
from whosthere.game.plan import Contest, Setting
from whosthere.game.rounds import Population
from whosthere.game.target import TargetRounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from whosthere.adversary.attacks import Answer, Attack
    from whosthere.adversary.knowledge import KnowledgeRule
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan
    from whosthere.game.rounds import GameRound, Player
    from whosthere.privacy.publish import Publication
    from whosthere.privacy.release import Release
    from whosthere.privacy.scheme import Scheme


@dataclass(frozen=True, eq=False)
class Round:
    """One release of an audit, and everything that the audit knows of it.

    People are rows of the traces, `scheme` is the mechanism and the group size.

    Attributes
    ----------
    number
        The number of the release, the same as in `AuditResult.scores`.
    """

    number: int
    _rounds: TargetRounds = field(repr=False)
    _drawn: GameRound = field(repr=False)
    _player: Callable[[Contest], Player] = field(repr=False)

    @property
    def target(self) -> int:
        """The person whose membership is asked."""
        return self._rounds.target

    @property
    def scheme(self) -> Scheme:
        """What is published, and of how many people."""
        return self._rounds.task.scheme

    @property
    def label(self) -> bool:
        """Whether the target is in; in a control round, whether a stand-in takes the place."""
        return self._drawn.labels[self.target]

    @property
    def publication(self) -> Publication:
        """What is published, with the group, its true counts and the noise."""
        return self._drawn.publication

    @property
    def release(self) -> Release:
        """What an attacker sees."""
        return self.publication.release

    @property
    def others(self) -> NDArray[np.int64]:
        """The m - 1 people who are in besides the target, or besides whoever is in its place."""
        return self.publication.group.rows[:-1]

    @property
    def pool(self) -> NDArray[np.int64]:
        """Everybody who may be in besides the target."""
        return self._rounds.pool

    @property
    def reference(self) -> NDArray[np.int64]:
        """The people whose traces an attacker may have; none of them is in a release."""
        return self._rounds.reference_rows

    @property
    def traces(self) -> Traces:
        """Everybody, in the tested time."""
        return self._rounds.population.tested

    @property
    def ceiling(self) -> float | None:
        """The score of the best test; None where the mechanism has no law."""
        return self._rounds.optima({self.number: self._drawn})[self.number][self.target]

    def score(self, attack: Attack | str, knowledge: KnowledgeRule | str = AllVisits()) -> Answer:
        """Let an attack answer, as the audit does; it is fitted once for each target and scheme."""
        setting = Setting(self.scheme, knowledge_rule(knowledge))
        player = self._player(Contest(setting, attack_of(attack)))
        return player.answers(self._drawn)[self.target]


def rounds_of(traces: Traces, plan: Plan, *, control: bool = False) -> Iterator[Round]:
    """Return all test rounds of a plan, or all control rounds, target by target."""
    population = Population.of(traces, plan.first_epoch)
    for task in plan.tasks:
        rounds = TargetRounds(population, plan, task)
        player = cache(rounds.player)
        tests = max((plan.game.tests(plan, task, one) for one in plan.attacks), key=len)
        numbers = plan.game.controls(plan, task) if control else tests
        for i in numbers:
            drawn = rounds.control(i) if control else rounds.test(i)
            yield Round(i, rounds, drawn, player)
