"""Times of the foundation: help, simulated cities, counting, noise, probabilities and intervals.

    python benchmarks/foundation.py

Prints JSON. Each time is the best of several repetitions on one process.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.cities import simulate
from whosthere.inference.exposed import share_exposed
from whosthere.inference.metrics import empirical_eps, tpr_at_fpr
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


def _intervals(rng: np.random.Generator) -> dict[str, float]:
    """Time what is measured of 50 targets with 100 releases each."""
    targets, labels = np.repeat(np.arange(50), 100), np.arange(5000) % 2 == 0
    scores = rng.normal(size=5000) + labels
    held_out = rng.random(5000) < 0.5
    aucs = rng.uniform(0.5, 1, 50)
    return {
        "TPR at 1 % FPR": best_of(3, lambda: tpr_at_fpr(scores, labels, targets, 0.01)),
        "certified eps": best_of(3, lambda: empirical_eps(scores, labels, held_out=held_out)),
        "share of exposed people": best_of(3, lambda: share_exposed(aucs, 50, 50)),
    }


def main() -> None:
    """Measure and print."""
    help_of = [sys.executable, "-m", "whosthere", "--help"]
    seconds = {"help": best_of(5, lambda: subprocess.run(help_of, capture_output=True, check=True))}
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
    for spec in (
        "laplace(eps=1)",
        "discrete-laplace(eps=1, unit=user, max_visits=100000)",
        "gaussian(eps=1, unit=user, max_visits=50)",
    ):
        mechanism = Mechanism.parse(spec)
        seconds[f"exact noise of {spec} at 500 x 720"] = best_of(
            3, lambda mechanism=mechanism: mechanism.steps[0].draw_securely((500, 720))
        )
    seconds |= _intervals(rng)
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
