"""How long an audit will take, from a short trial, and how much memory, by a model."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from whosthere.auditing.memory import bytes_of_worker
from whosthere.game.plan import Task
from whosthere.game.rounds import Scene

if TYPE_CHECKING:
    from collections.abc import Collection

    from whosthere.game.plan import Plan
    from whosthere.game.population import Population
    from whosthere.game.setting import Scheme

SECONDS_TO_TRY = 15.0
"""Settings are tried until so many seconds are over; the others are taken to be like them."""


@dataclass(frozen=True)
class Cost:
    """What an audit is expected to cost.

    Attributes
    ----------
    seconds
        Of one processor.
    bytes_per_worker
        Memory that one process takes.
    """

    seconds: float
    bytes_per_worker: int


def estimate_cost(
    plan: Plan,
    population: Population,
    tasks: Collection[Task],
    *,
    seconds_to_try: float = SECONDS_TO_TRY,
) -> Cost:
    """Try each attack twice under as many schemes as a short time allows, and scale up."""
    memory = bytes_of_worker(plan, population)
    tasks_under = Counter(task.scheme for task in tasks)
    if not tasks_under:
        return Cost(0.0, memory)
    begun = time.perf_counter()
    tried: dict[Scheme, float] = {}
    with threadpool_limits(1):
        for scheme in tasks_under:
            # Whatever must be compiled or loaded slows down the first try alone.
            tried[scheme] = min(_try(plan, population, scheme) for _ in range(2))
            if time.perf_counter() - begun > seconds_to_try:
                break
    usual = fmean(tried.values())
    seconds = sum(n * tried.get(scheme, usual) for scheme, n in tasks_under.items())
    return Cost(seconds, memory)


def _try(plan: Plan, population: Population, scheme: Scheme) -> float:
    """Return how many seconds a task under a scheme takes, from its first release."""
    begun = time.perf_counter()
    scene = Scene(population, plan, Task(plan.targets[0], scheme))
    fitted = list(scene.fit_all(plan.contests_under(scheme)))
    made = time.perf_counter()
    seconds = made - begun
    trial = scene.test(0)
    scene.optimum(0, trial)
    last = time.perf_counter()
    seconds += (last - made) * (plan.releases_under(scheme) + plan.control_releases)
    for contest, attack in fitted:
        attack.score(trial.release)
        now = time.perf_counter()
        seconds += (now - last) * (plan.releases_by(contest.attack) + plan.control_releases)
        last = now
    return seconds
