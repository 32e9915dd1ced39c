"""How long an audit will take and how much memory, from a short trial of it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.threads import one_thread

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from whosthere.game.plan import Plan
    from whosthere.game.rounds import Population, Rounds, Task
    from whosthere.privacy.scheme import Scheme

SECONDS_TO_TRY = 15.0
"""Schemes are tried until so many seconds are over; the others are taken to lie between them."""

# Bytes of a score, of its label, and of both with the numbers of round and person.
_SCORE, _LABEL, _ROW = 4, 1, 13
# While a worker puts a task's scores together and hands them over, they are there so many times
# (measured). To measure an attack, its scores stand beside those of the ceiling, and are copied
# when rounds are put together.
_HANDED_OVER, _MEASURED = 5, 3

FOLLOWED_BY = 1.3
"""How much longer an audit takes than its tasks: a closer look, what if, measuring, a report."""


@dataclass(frozen=True)
class Cost:
    """What an audit is expected to cost: seconds of one processor, and the memory of each worker.

    The latter is the most that this process took until it had tried, and the scores of a task; 0
    where nobody can tell. Where all people are asked, their scores of all rounds are measured
    together in this process, which takes it to `bytes_to_measure`.
    """

    seconds: float
    bytes_per_worker: int
    bytes_to_measure: int = 0

    @property
    def memory(self) -> str:
        """The memory of each worker in words, and that of this process where it is more."""
        if not self.bytes_per_worker:
            return "some of memory each"
        each = f"{self.bytes_per_worker / 1e9:.1f} GB of memory each"
        if self.bytes_to_measure <= self.bytes_per_worker:
            return each
        return f"{each}, {self.bytes_to_measure / 1e9:.1f} GB to measure"


def estimate_cost(
    plan: Plan,
    population: Population,
    tasks: Collection[Task],
    *,
    seconds_to_try: float = SECONDS_TO_TRY,
) -> Cost:
    """Try each attack twice under as many schemes as a short time allows, and scale up.

    The first scheme is tried, then the last, then those halfway between: mostly they stand in the
    order of their strength, on which the time depends.

    Tries are too short to wait for a processor that others use, as all work will have to. So they
    are timed by what they use, and how long that takes is seen over all of them.
    """
    tasks_under: dict[Scheme, list[Task]] = {}
    for task in tasks:
        tasks_under.setdefault(task.scheme, []).append(task)
    if not tasks_under:
        return Cost(0.0, 0)
    begun, used = time.perf_counter(), time.process_time()
    schemes = list(tasks_under)
    tried: dict[int, float] = {}
    with one_thread():
        for i in _ends_first(len(schemes)):
            task = tasks_under[schemes[i]][0]
            # Whatever must be compiled or loaded slows down the first try alone.
            tried[i] = min(_try(plan.game.rounds(population, plan, task)) for _ in range(2))
            if time.perf_counter() - begun > seconds_to_try:
                break
    known = sorted(tried)
    each = np.interp(range(len(schemes)), known, [tried[i] for i in known])
    sizes = [[_n_rounds(plan, task) for task in some] for some in tasks_under.values()]
    seconds = float(each @ np.array([sum(some) / some[0] for some in sizes]))
    used = time.process_time() - used
    waited = max((time.perf_counter() - begun) / used, 1.0) if used else 1.0
    peak = _peak_memory()
    of_scores = _bytes_of_scores(plan.game.rounds(population, plan, tasks_under[schemes[0]][0]))
    return Cost(seconds * waited, *(peak + more if peak else 0 for more in of_scores))


def _n_rounds(plan: Plan, task: Task) -> int:
    """Return how many rounds of a task some attack scores."""
    tests = (
        len(plan.game.tests(plan, task, one.attack)) for one in plan.contests_under(task.scheme)
    )
    return max(tests) + len(plan.game.controls(plan, task))


def _bytes_of_scores(rounds: Rounds) -> tuple[int, int]:
    """Return what scores of all who are asked take in a worker, and when they are measured."""
    plan = rounds.plan
    asked = 0 if rounds.everybody is None else rounds.everybody.size
    # Each attack, and the ceiling beside it.
    columns = 2 * max(len(plan.contests_under(one)) for one in plan.schemes)
    in_task = _n_rounds(plan, rounds.task) * asked * (_ROW + _SCORE * (columns - 1))
    in_all = max(map(plan.releases_by, plan.attacks)) * asked * (_SCORE + _LABEL)
    return _HANDED_OVER * in_task, _MEASURED * in_all


def _ends_first(n: int) -> Iterable[int]:
    """Return 0 to n - 1: both ends, what is halfway between, halfway between these, and so on."""
    shares = [0.0, 1.0, *(i / d for d in (2, 4, 8, 16) for i in range(1, d, 2))]
    return dict.fromkeys([*(round(share * (n - 1)) for share in shares), *range(n)])


def _try(rounds: Rounds) -> float:
    """Return how many seconds of a processor a task takes, from its first round."""
    plan, game, task = rounds.plan, rounds.plan.game, rounds.task
    contests, controls = plan.contests_under(task.scheme), len(game.controls(plan, task))
    most = _n_rounds(plan, task)
    rounds_by = {one.attack: len(game.tests(plan, task, one.attack)) + controls for one in contests}
    begun = time.process_time()
    players = list(rounds.players(contests))
    made = time.process_time()
    seconds = made - begun
    drawn = rounds.test(0)
    rounds.optima({0: drawn})
    for check in rounds.checks():
        check.see(drawn)
    last = time.process_time()
    seconds += (last - made) * most
    for player in players:
        player.said(drawn)
        now = time.process_time()
        seconds += (now - last) * rounds_by[player.contest.attack]
        last = now
    return seconds


def _peak_memory() -> int:
    """Return the most memory that this process took, in bytes; 0 where nobody can tell."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
