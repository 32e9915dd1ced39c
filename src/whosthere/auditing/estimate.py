"""How long an audit will take and how much memory, from a short trial of it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.threads import one_thread

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from whosthere.game.plan import Plan
    from whosthere.game.rounds import Population, Rounds, Task

SECONDS_TO_TRY = 15.0
"""Schemes are tried until so many seconds are over; the others are taken to lie between them."""

FOLLOWED_BY = 1.3
"""How much longer an audit takes than its tasks: a closer look, what if, measuring, a report."""


@dataclass(frozen=True)
class Cost:
    """What an audit is expected to cost: seconds of one processor, and the memory of each worker.

    The latter is the most that this process took until it had tried; 0 where nobody can tell.
    """

    seconds: float
    bytes_per_worker: int

    @property
    def memory(self) -> str:
        """The memory of each worker in words."""
        known = f"{self.bytes_per_worker / 1e9:.1f} GB" if self.bytes_per_worker else "some"
        return f"{known} of memory each"


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
    tasks_under = Counter(task.scheme for task in tasks)
    if not tasks_under:
        return Cost(0.0, 0)
    begun, used = time.perf_counter(), time.process_time()
    schemes = list(tasks_under)
    tried: dict[int, float] = {}
    with one_thread():
        for i in _ends_first(len(schemes)):
            task = next(one for one in tasks if one.scheme == schemes[i])
            # Whatever must be compiled or loaded slows down the first try alone.
            tried[i] = min(_try(plan.game.rounds(population, plan, task)) for _ in range(2))
            if time.perf_counter() - begun > seconds_to_try:
                break
    known = sorted(tried)
    each = np.interp(range(len(schemes)), known, [tried[i] for i in known])
    seconds = float(each @ np.array([*tasks_under.values()]))
    used = time.process_time() - used
    waited = max((time.perf_counter() - begun) / used, 1.0) if used else 1.0
    return Cost(seconds * waited, _peak_memory())


def _ends_first(n: int) -> Iterable[int]:
    """Return 0 to n - 1: both ends, what is halfway between, halfway between these, and so on."""
    shares = [0.0, 1.0, *(i / d for d in (2, 4, 8, 16) for i in range(1, d, 2))]
    return dict.fromkeys([*(round(share * (n - 1)) for share in shares), *range(n)])


def _try(rounds: Rounds) -> float:
    """Return how many seconds of a processor a task takes, from its first round."""
    plan, game, task = rounds.plan, rounds.plan.game, rounds.task
    contests, controls = plan.contests_under(task.scheme), len(game.controls(plan, task))
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
    seconds += (last - made) * max(rounds_by.values())
    for player in players:
        player.answers(drawn)
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
