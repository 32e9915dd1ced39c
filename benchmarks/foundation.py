"""Times of the foundation: simulated cities, counting, bounding, noise and exact probabilities.

    python benchmarks/foundation.py

Prints JSON. Each time is the best of several repetitions on one process.
"""

from __future__ import annotations

import json
import os
import platform
import time
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.cities import simulate
from whosthere.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 1


def best_of(repetitions: int, work: Callable[[], object]) -> float:
    """Return the shortest wall time of some repetitions, in seconds."""
    times = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def main() -> None:
    """Measure and print."""
    seconds: dict[str, float] = {}
    for name in ("milan-like", "cdr-like"):
        seconds[f"simulate {name}"] = best_of(2, lambda name=name: simulate(name, seed=SEED))
    traces = simulate("cdr-like", seed=SEED).traces()
    rng = np.random.default_rng(SEED)
    group = rng.choice(traces.n_users, 1000, replace=False)
    traces.counts(group)
    seconds["count a group of 1000 at 500 x 720"] = best_of(20, lambda: traces.counts(group))
    traces.bounded(20, per_day=True, rng=rng)
    seconds["bound 11,000 users to 20 visits a day"] = best_of(
        3, lambda: traces.bounded(20, per_day=True, rng=rng)
    )
    counts = traces.counts(group)
    for spec in (
        "laplace(eps=1, unit=event)",
        "discrete-laplace(eps=1, unit=event)",
        "gaussian(eps=1, unit=event)",
        "suppress(k=1)",
        "laplace(eps=1, unit=event) | suppress(k=1)",
    ):
        mechanism = Mechanism.parse(spec)
        seconds[f"apply {spec} at 500 x 720"] = best_of(
            5, lambda mechanism=mechanism: mechanism.apply(counts, 1000, rng)
        )
        seconds[f"pmf {spec}, 100 x 100 values, m = 3,000,000"] = best_of(
            5,
            lambda mechanism=mechanism: mechanism.pmf(
                np.arange(2000, 2100), np.arange(2000, 2100)[:, None], 3_000_000
            ),
        )
    report = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "seed": SEED,
        "seconds": {name: float(f"{value:.3g}") for name, value in seconds.items()},
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
