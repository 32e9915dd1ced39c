"""How often intervals on the spread of risk over people hold, where true risks are known.

    python benchmarks/everybody_distribution.py > benchmarks/results/everybody_distribution.txt

Everybody is in or out of each round by chance, and has a true AUC and a true TPR at 1 % FPR by one
threshold for all. In each repetition, panels are drawn anew, people and rounds. Percentiles and
shares above limits are those of the people of the panel. Nominal are 95 %. `missed` is the share of
panels in which a true value is outside of its interval; of all percentiles and shares, the worst is
shown first, then each. Scores are normal, as the mixture takes them to be, and far from it.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from whosthere.inference.looks import FIRST_ERRORS
from whosthere.inference.panel import Panel
from whosthere.inference.risk import PERCENTILES, mixture, share_above
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = {"auc": (0.7, 0.9), "tpr": (0.1, 0.5)}
SIZES = ((400, 20, 0.5), (400, 100, 0.9), (5000, 100, 0.5))
"""People, rounds and the chance to be in."""
_DRAWN = 2_000_000


@dataclass(frozen=True)
class Scenario:
    """How noise is drawn, with what a round has in common, and how people differ.

    `noise` is for OUT scores; IN scores are shifted, and may be spread wider by a factor. If `all`,
    a person is found for certain in a share of the IN rounds, and not at all in the others.
    """

    name: str
    noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    people: Callable[[np.random.Generator, int], np.ndarray]
    common: float = 0.0
    wider: float = 1.0
    certain: bool = False

    @cached_property
    def laws(self) -> tuple[np.ndarray, np.ndarray, float]:
        """OUT minus IN without shift, IN without shift, both sorted, and the true threshold."""
        rng = generator(1, self.name, "laws")
        out, in_ = (
            self.noise(rng, (_DRAWN,)) * factor + self.common * rng.normal(size=_DRAWN)
            for factor in (1, self.wider)
        )
        return np.sort(out - in_), np.sort(in_), float(np.quantile(out, 0.99))

    def truth(self, shifts: np.ndarray) -> dict[str, np.ndarray]:
        gaps, in_, threshold = self.laws
        if self.certain:
            return {"auc": (1 + shifts) / 2, "tpr": shifts + (1 - shifts) * 0.01}
        auc = np.searchsorted(gaps, shifts) / gaps.size
        return {"auc": auc, "tpr": 1 - np.searchsorted(in_, threshold - shifts) / in_.size}

    def panel(
        self, shifts: np.ndarray, n_rounds: int, include: float, rng: np.random.Generator
    ) -> Panel:
        shape = n_rounds, shifts.size
        labels = rng.random(shape) < include
        scores = self.noise(rng, shape) * np.where(labels, self.wider, 1.0)
        scores += self.common * rng.normal(size=(n_rounds, 1))
        if self.certain:
            scores[labels & (rng.random(shape) < shifts)] += 1000
        else:
            scores += shifts * labels
        return Panel(scores.astype(np.float32), labels)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def few_exposed(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.1, 2.5, np.abs(rng.normal(0, 0.6, n)))


def smooth(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.abs(rng.normal(0, 1.2, n))


def alike(_: np.random.Generator, n: int) -> np.ndarray:
    return np.full(n, 1.2)


SCENARIOS = (
    Scenario("normal, smooth", normal, smooth),
    Scenario("normal, one in ten exposed", normal, few_exposed),
    Scenario("normal, all alike", normal, alike),
    Scenario("normal, rounds in common 0.3", normal, smooth, common=0.3),
    Scenario("normal, rounds in common 1", normal, few_exposed, common=1.0),
    Scenario("IN twice as wide", normal, few_exposed, wider=2.0),
    Scenario("Laplace", lambda rng, shape: rng.laplace(size=shape), few_exposed),
    Scenario("Student t with 3", lambda rng, shape: rng.standard_t(3, shape), few_exposed),
    Scenario("log-normal", lambda rng, shape: rng.lognormal(0, 1, shape), few_exposed),
    Scenario("certain or not at all", normal, lambda rng, n: rng.beta(1, 3, n), certain=True),
)


def misses(scenario: Scenario, size: tuple[int, int, float], seed: int) -> dict[str, list[bool]]:
    n_people, n_rounds, include = size
    rng = generator(seed, scenario.name, *map(str, size))
    shifts = scenario.people(rng, n_people)
    people, truth = scenario.panel(shifts, n_rounds, include, rng).people, scenario.truth(shifts)
    missed = {}
    for risk, true in truth.items():
        spread = mixture(people, risk)
        found = [
            (spread.percentile(q, FIRST_ERRORS), np.quantile(true, q, method="inverted_cdf"))
            for q in PERCENTILES
        ]
        found += [
            (share_above(people, limit, risk=risk), (true >= limit).mean())
            for limit in LIMITS[risk]
        ]
        missed[risk] = [not one.low - 1e-9 <= value <= one.high + 1e-9 for one, value in found]
    return missed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    options = parser.parse_args()
    n, begun = options.repetitions, time.perf_counter()
    print(f"python benchmarks/everybody_distribution.py --repetitions {n}")
    print(f"{'scenario':<30}{'people':>7}{'rounds':>7}{'in':>5} risk  worst missed  "
          + " ".join(f"{'p' + format(100 * q, 'g'):>5}" for q in PERCENTILES)
          + "  shares above")  # fmt: skip
    for scenario in (one for one in SCENARIOS if options.only in one.name):
        for size in SIZES:
            each = [misses(scenario, size, seed) for seed in range(n)]
            for risk, limits in LIMITS.items():
                rates = np.mean([one[risk] for one in each], axis=0)
                worst = rates.max()
                error = np.sqrt(max(worst * (1 - worst), 1 / n) / n)
                shown = " ".join(f"{rate:5.0%}" for rate in rates[: len(PERCENTILES)])
                shares = ", ".join(
                    f"{limit}: {rate:.0%}"
                    for limit, rate in zip(limits, rates[len(PERCENTILES) :], strict=True)
                )
                print(f"{scenario.name:<30}{size[0]:>7,}{size[1]:>7}{size[2]:>5} {risk}   "
                      f"{worst:>5.0%} ± {error:.0%}    {shown}  {shares}", flush=True)  # fmt: skip
    print(f"{time.perf_counter() - begun:.0f} s, Python {platform.python_version()}, "
          f"numpy {np.__version__}")  # fmt: skip


if __name__ == "__main__":
    main()
