"""How often the intervals of an audit hold for people, and how often verdicts would be wrong.

    python benchmarks/interval_coverage.py > benchmarks/results/interval_coverage.json

In every scenario, people differ by how far the attacker's scores of their IN releases are above
those of their OUT releases. Each repetition draws targets from all people, and releases for each
target. The truth is that of all people: of 400,000 of them, given the law of their scores.

Rates are shares of the repetitions. `too_high` and `too_low` are those in which the lower end is
above the truth, or the upper end below it: 2.5 % each is nominal. `covered` is the rest. A metric
without an interval covers. `error` is one standard error of the larger of the two; with 400
repetitions, that of a rate of 2.5 % is 0.8 %. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np
from scipy.special import ndtr, ndtri

from whosthere.inference import exposed, metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from whosthere.inference.metrics import Estimate

SCALES = {"quick": (55, 10), "paper": (50, 50), "large": (400, 10)}
ONLY_LARGE = "miscalibrated"
"""Scenarios that are also drawn at the large scale: with fewer targets a TPR at 1 % FPR has no
lower end above 0."""
LIMITS = {"auc": 0.6, "tpr_at_fpr_1pct": 0.1, "share_auc_90": 0.1}
RATES = {"tpr_at_fpr_10pct": 0.1, "tpr_at_fpr_1pct": 0.01}
PERCENTILES = {"risk_p90": 0.9}
CALLED_IN = 0.5
EVERYBODY = 400_000
N_RESAMPLES = 2000


@dataclass(frozen=True)
class Scenario:
    """All people, by how far their IN scores are shifted; and how scores are recorded.

    `draw` returns shifts and offsets of n people. OUT scores are normal around the offset, and IN
    scores around offset + shift. If `discrete`, scores are rounded to whole numbers.
    """

    name: str
    draw: Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
    discrete: bool = False

    def scores(self, n: int, each: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return scores, labels and targets, shape (n * 2 * each,)."""
        shift, offset = self.draw(n, rng)
        labels = np.arange(2 * each) % 2 == 0
        scores = rng.normal(size=(n, 2 * each)) + offset[:, None] + shift[:, None] * labels
        scores = np.round(scores) if self.discrete else scores
        return scores.ravel(), np.tile(labels, n), np.repeat(np.arange(n), 2 * each)

    @cached_property
    def truth(self) -> dict[str, float]:
        rng = np.random.default_rng(987654321)
        shift, offset = self.draw(EVERYBODY, rng)
        aucs = self._auc(shift)
        pooled = self._auc(shift + offset - rng.permutation(offset))
        tpr, fpr = self._above(CALLED_IN, shift + offset), self._above(CALLED_IN, offset)
        right = (tpr + 1 - fpr) / 2
        true = {
            "auc": aucs.mean(),
            "pooled_auc": pooled.mean(),
            "accuracy": right.mean(),
            "share_auc_90": (aucs >= 0.9 - 1e-9).mean(),
        }
        true |= {
            name: self._above(self._threshold(offset, fpr), shift + offset).mean()
            for name, fpr in RATES.items()
        }
        true |= {
            name: np.quantile(aucs, q, method="inverted_cdf") for name, q in PERCENTILES.items()
        }
        return {name: float(value) for name, value in true.items()}

    def _above(self, threshold: float, means: np.ndarray) -> np.ndarray:
        edge = np.floor(threshold) + 0.5 if self.discrete else threshold
        return ndtr(means - edge)

    def _auc(self, shift: np.ndarray) -> np.ndarray:
        if not self.discrete:
            return ndtr(shift / np.sqrt(2))
        values = np.arange(-8, 16)
        distinct, place = np.unique(np.round(shift, 3), return_inverse=True)
        pmf = [ndtr(values + 0.5 - mean) - ndtr(values - 0.5 - mean) for mean in distinct]
        out = ndtr(values + 0.5) - ndtr(values - 0.5)
        below = np.cumsum(out) - out / 2
        return (np.array(pmf) @ below)[place]

    def _threshold(self, offset: np.ndarray, fpr: float) -> float:
        if self.discrete:
            return next(t for t in range(-8, 16) if self._above(t, offset).mean() <= fpr)
        low, high = -10.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if ndtr(offset - middle).mean() > fpr else (low, middle)
        return high


def shift_of(auc: float) -> float:
    return float(np.sqrt(2) * ndtri(auc))


def kinds(*parts: tuple[float, float]) -> Callable:
    """People of a few kinds: (share, AUC) each."""
    shares, aucs = zip(*parts, strict=True)

    def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        shifts = np.array([shift_of(auc) for auc in aucs])
        if n == EVERYBODY:  # exactly these shares
            return np.repeat(shifts, np.round(n * np.array(shares)).astype(int)), np.zeros(n)
        return shifts[rng.choice(len(shares), n, p=shares)], np.zeros(n)

    return draw


def miscalibrated(share: float, auc: float) -> Callable:
    """A few people whose scores are high in all releases, and others with an AUC."""

    def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        odd = np.arange(n) < round(n * share) if n == EVERYBODY else rng.random(n) < share
        return np.full(n, shift_of(auc)), 6.0 * odd

    return draw


def heavy_tailed(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Risk from none to certainty, and scores that are not perfectly comparable."""
    return rng.lognormal(-1.2, 1.2, n), 0.3 * rng.normal(size=n)


TPR_LIMIT = float(ndtr((ndtri(0.1) - ndtri(0.01)) / np.sqrt(2)))

SCENARIOS = (
    Scenario("nobody exposed (AUC 0.5)", kinds((1, 0.5))),
    Scenario("homogeneous (AUC 0.55)", kinds((1, 0.55))),
    Scenario("homogeneous (AUC 0.8)", kinds((1, 0.8))),
    Scenario("3 % exposed (AUC 0.999), others 0.55", kinds((0.03, 0.999), (0.97, 0.55))),
    Scenario("5 % exposed (AUC 0.999), others 0.58", kinds((0.05, 0.999), (0.95, 0.58))),
    Scenario("8 % exposed (AUC 0.999), others 0.62", kinds((0.08, 0.999), (0.92, 0.62))),
    Scenario("12 % exposed (AUC 0.999), others 0.5", kinds((0.12, 0.999), (0.88, 0.5))),
    Scenario("10 % exposed (AUC 0.95), others 0.55", kinds((0.1, 0.95), (0.9, 0.55))),
    Scenario("heavy-tailed risk", heavy_tailed),
    Scenario("all at the limit of the AUC (0.6)", kinds((1, 0.6))),
    Scenario("all at the limit of the TPR (0.1)", kinds((1, TPR_LIMIT))),
    Scenario("all at an AUC of 0.9", kinds((1, 0.9))),
    Scenario("all just below an AUC of 0.9 (0.89)", kinds((1, 0.89))),
    Scenario("all exposed (AUC 0.999)", kinds((1, 0.999))),
    Scenario("ties, 12 % exposed", kinds((0.12, 0.999), (0.88, 0.55)), discrete=True),
    Scenario("ties, homogeneous (AUC 0.75)", kinds((1, 0.75)), discrete=True),
    Scenario("1.5 % miscalibrated, others 0.8", miscalibrated(0.015, 0.8)),
    Scenario("3 % miscalibrated, others 0.8", miscalibrated(0.03, 0.8)),
)


def estimates(scenario: Scenario, scale: str, seed: int) -> dict[str, Estimate]:
    """Draw one audit and measure it."""
    n, each = SCALES[scale]
    place = SCENARIOS.index(scenario), each
    scores, labels, targets = scenario.scores(n, each, np.random.default_rng([*place, seed]))
    _, aucs = metrics.auc_by_target(scores, labels, targets)
    _, right = metrics.accuracy_by_target(scores > CALLED_IN, labels, targets)
    found = {
        "auc": metrics.mean_over_targets(aucs, unseen=(0.5, 1)),
        "pooled_auc": metrics.pooled_auc(scores, labels, targets),
        "accuracy": metrics.mean_over_targets(right, unseen=(0.5, 1)),
        "share_auc_90": exposed.share_exposed(aucs, each, each),
    }
    found |= {
        name: metrics.tpr_at_fpr(scores, labels, targets, fpr, n_resamples=N_RESAMPLES)
        for name, fpr in RATES.items()
    }
    found |= {name: exposed.risk_percentile(aucs, each, each, q) for name, q in PERCENTILES.items()}
    return found


def part(scenario: int, scale: str, seeds: range) -> dict[str, np.ndarray]:
    """Return value, low and high of every metric, shape (n_seeds, 3)."""
    rows = [estimates(SCENARIOS[scenario], scale, seed) for seed in seeds]
    return {
        name: np.array(
            [
                (
                    np.nan if row[name].value is None else row[name].value,
                    -np.inf if row[name].low is None else row[name].low,
                    np.inf if row[name].high is None else row[name].high,
                )
                for row in rows
            ]
        )
        for name in rows[0]
    }


def summary(metric: str, ends: np.ndarray, truth: float) -> dict:
    # Grids and rounding must not count as misses.
    value, low, high = ends.T
    too_high, too_low = (low > truth + 1e-9).mean(), (high < truth - 1e-9).mean()
    worse = max(too_high, too_low)
    row = {
        "truth": round(truth, 4),
        "mean_value": round(float(np.nanmean(value)), 4),
        "covered": round(1 - too_high - too_low, 4),
        "too_high": round(float(too_high), 4),
        "too_low": round(float(too_low), 4),
        "error": round(float(np.sqrt(worse * (1 - worse) / len(ends))), 4),
        "mean_width": round(float(np.mean(np.minimum(high, 1) - np.maximum(low, -1))), 4),
    }
    if metric in LIMITS:
        limit = LIMITS[metric]
        row["limit"] = limit
        row["accepted"] = round(float((high <= limit).mean()), 4)
        row["rejected"] = round(float((low > limit).mean()), 4)
        wrong = "false_acceptance" if truth > limit + 1e-9 else "false_rejection"
        row[wrong] = row["accepted" if truth > limit + 1e-9 else "rejected"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    options = parser.parse_args()
    begun = time.perf_counter()
    results = []
    with ProcessPoolExecutor(options.workers) as pool:
        jobs = {
            (place, scale): [
                pool.submit(part, place, scale, range(first, min(first + 50, options.repetitions)))
                for first in range(0, options.repetitions, 50)
            ]
            for place, scenario in enumerate(SCENARIOS)
            for scale in SCALES
            if options.only in scenario.name and (scale != "large" or ONLY_LARGE in scenario.name)
        }
        for (place, scale), futures in jobs.items():
            scenario = SCENARIOS[place]
            found = [future.result() for future in futures]
            for metric in found[0]:
                ends = np.concatenate([one[metric] for one in found])
                row = summary(metric, ends, scenario.truth[metric])
                place_of = {"scenario": scenario.name, "scale": scale, "metric": metric}
                results.append(place_of | row)
            print(f"{scenario.name}, {scale}: done", file=sys.stderr, flush=True)
    print(
        json.dumps(
            {
                "command": "python benchmarks/interval_coverage.py "
                f"--repetitions {options.repetitions}",
                "repetitions": options.repetitions,
                "scales": {name: f"{n} x {m}+{m}" for name, (n, m) in SCALES.items()},
                "seconds": round(time.perf_counter() - begun),
                "python": platform.python_version(),
                "numpy": np.__version__,
                "results": results,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
