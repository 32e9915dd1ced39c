"""How long an audit will take, and how much memory, from a short trial."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from whosthere.auditing.plan import Unit
from whosthere.auditing.unit import Scene

if TYPE_CHECKING:
    from collections.abc import Collection

    from whosthere.auditing.plan import Plan
    from whosthere.auditing.setting import Setting
    from whosthere.data.traces import Traces

# Settings are tried until this many seconds are over; the others are taken to be like them.
_SECONDS_TO_TRY = 15.0


@dataclass(frozen=True)
class Cost:
    """What an audit is expected to cost.

    Attributes
    ----------
    seconds
        Of one processor.
    bytes_per_worker
        Memory that one process takes; None where the system does not tell.
    """

    seconds: float
    bytes_per_worker: int | None


def estimate_cost(plan: Plan, traces: Traces, units: Collection[Unit]) -> Cost:
    """Try each attack twice in as many settings as a short time allows, and scale up."""
    units_in: dict[Setting, int] = {}
    for unit in units:
        units_in[unit.setting] = units_in.get(unit.setting, 0) + 1
    if not units_in:
        return Cost(0.0, _peak_memory())
    begun = time.perf_counter()
    tried: dict[Setting, float] = {}
    with threadpool_limits(1):
        for setting in units_in:
            # Whatever must be compiled or loaded slows down the first try alone.
            tried[setting] = min(_try(plan, traces, setting) for _ in range(2))
            if time.perf_counter() - begun > _SECONDS_TO_TRY:
                break
    usual = fmean(tried.values())
    seconds = sum(n * tried.get(setting, usual) for setting, n in units_in.items())
    return Cost(seconds, _peak_memory())


def _try(plan: Plan, traces: Traces, setting: Setting) -> float:
    """Return how many seconds a unit of a setting takes, from its first release."""
    begun = time.perf_counter()
    scene = Scene(traces, plan, Unit(plan.targets[0], setting))
    attacks = [scene.fit(attack) for attack in plan.attacks_in(setting, traces).values()]
    fitted = time.perf_counter()
    published = next(scene.tests())
    for attack in attacks:
        attack.score(published.release)
    scored = time.perf_counter()
    return fitted - begun + (scored - fitted) * (plan.releases + plan.control_releases)


def _peak_memory() -> int | None:
    """Return the most memory that this process has taken so far, in bytes."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
