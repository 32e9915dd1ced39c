"""The rounds of an audit one by one, for studies: with all that the audit knows of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from whosthere.adversary.attacks import Answer, Attack
from whosthere.adversary.knowledge import All, Knowledge
from whosthere.errors import InputError
from whosthere.game.plan import Contest, Plan, Setting
from whosthere.game.rounds import GameRound, Player, Population
from whosthere.game.target import TargetGame, TargetRounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.publish import Publication
    from whosthere.privacy.release import Release


@dataclass(frozen=True, eq=False)
class Round:
    """One release of an audit, and everything that the audit knows of it; people are rows."""

    target: int
    mechanism: str
    group_size: int
    number: int
    """Whose membership is asked, what is done to the counts of how many people, and the number of
    the release, as in `AuditResult.scores`."""
    label: bool
    """Whether the target is in; in a control round, whether a stand-in takes the place."""
    publication: Publication = field(repr=False)
    """What is published, with the group, its true counts and the noise."""
    release: Release = field(repr=False)
    """What an attacker sees."""
    others: NDArray[np.int64] = field(repr=False)
    """The people who are in besides the target, with its household, or whoever is in its place."""
    pool: NDArray[np.int64] = field(repr=False)
    """Who may be in besides the target."""
    reference: NDArray[np.int64] = field(repr=False)
    """Whose traces an attacker may have."""
    traces: Traces = field(repr=False)
    """Everybody in the tested time."""
    _rounds: TargetRounds = field(repr=False)
    _drawn: GameRound = field(repr=False)
    _player: Callable[[Contest], Player] = field(repr=False)

    @property
    def ceiling(self) -> float | None:
        """The score of the best test; None where the mechanism has no law."""
        return self._rounds.optima({self.number: self._drawn})[self.number][self.target]

    def score(self, attack: Attack | str, knowledge: Knowledge | str = All()) -> Answer:
        """Let an attack answer, as the audit does; it is fitted once for each target and scheme."""
        setting = Setting(self._rounds.task.scheme, Knowledge.parse(knowledge))
        return self._player(Contest(setting, Attack.parse(attack))).answers(self._drawn)[
            self.target
        ]


def rounds_of(traces: Traces, plan: Plan, *, control: bool = False) -> Iterator[Round]:
    """Return all test rounds of a plan, or all control rounds, target by target."""
    if not isinstance(plan.game, TargetGame):
        problem = "rounds one by one are those of a target, and everybody is asked (`everybody`)"
        raise InputError(problem, fix="Give a group size (`group_size`)")
    population = Population.of(traces, plan.first_epoch)
    for task in plan.tasks:
        rounds = TargetRounds(population, plan, task)
        player = cache(rounds.player)
        tests = max((plan.game.tests(plan, task, one) for one in plan.attacks), key=len)
        for i in plan.game.controls(plan, task) if control else tests:
            drawn = rounds.control(i) if control else rounds.test(i)
            made, people = drawn.publication, drawn.publication.tables[0].group.rows
            what = rounds.target, task.scheme.how, task.scheme.group_size, i
            others = people[: -rounds.household.size]
            seen = drawn.labels[rounds.target], made, made.releases[0], others
            whom = rounds.pool, rounds.reference_rows, population.tested
            yield Round(*what, *seen, *whom, rounds, drawn, player)
