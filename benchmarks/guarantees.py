"""Guarantees beside what the best attacker reaches, for people with many visits and at random.

    python benchmarks/guarantees.py > benchmarks/results/guarantees.json

For each person, the attacker knows everybody else in a release, which visits of each are counted,
and who would be there instead: of all others the one with most visits. The published counts of the
cells that tell the two apart are independent, so that the laws of the sum of their log ratios are
convolutions. Ratios are rounded to a fine grid first. That is still a test that somebody can make,
so its exact AUC and rates are reached; the best test is better by next to nothing.

The 50 people with most visits and 200 at random are looked at in both cities. `least_margin` is the
least of guarantee minus reached over the people of a group, `pooled` what one threshold for all of
them reaches, beside the guarantee for everybody. Nothing may be below 0. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from whosthere.data.cities import simulate
from whosthere.privacy.guarantees import GameGuarantee, game_guarantee, guarantee_for_all
from whosthere.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces

CITIES = {"milan-like": 500, "cdr-like": 1000}
"""Cities by how many people a release holds."""
MECHANISMS = (
    "laplace(eps=0.02, unit=event)",
    "laplace(eps=0.5, unit=event)",
    "laplace(eps=1, unit=user-day, max_visits=10)",
    "laplace(eps=2, unit=user, max_visits=20)",
    "discrete-laplace(eps=0.1, unit=event)",
    "discrete-laplace(eps=1, unit=user, max_visits=1)",
    "gaussian(eps=0.1, delta=1e-6, unit=event)",
    "gaussian(eps=2, delta=1e-6, unit=user, max_visits=20)",
)
MOST, AT_RANDOM = 50, 200
RATES = (0.1, 0.01, 0.001)
# Grid points in the log ratio of one step of the noise, and deviations that a sum may be off.
_FINE, _FAR = 16, 14


class Reached(NamedTuple):
    """What the best attacker reaches for one person.

    `lowest` is the grid point at which the laws of the sum begin, with and without the person;
    `most` the largest possible sum.
    """

    lowest: int
    with_person: NDArray[np.float64]
    without: NDArray[np.float64]
    most: float


@dataclass(frozen=True, eq=False)
class Best:
    """The best attacker on releases of a mechanism."""

    mechanism: Mechanism
    m: int

    @property
    def between(self) -> float:
        """How far grid points are apart."""
        noise = self.mechanism.steps[0]
        step = 1 / noise.scale if noise.delta == 0 else 1 / (2 * noise.scale)
        return step / _FINE

    def reached(self, own: NDArray[np.int64], other: NDArray[np.int64]) -> Reached:
        """Return what is reached, given others' counts in the cells that tell two people apart."""
        counts = np.unique(np.concatenate([own, other]))
        published = np.arange(self.m + 1)
        logs = [
            [self.mechanism.log_pmf(published, n + extra, self.m) for n in counts]
            for extra in (1, 0)
        ]
        with np.errstate(invalid="ignore"):
            # What is never published has no ratio, and no chance.
            ratio = np.nan_to_num(np.array(logs[0]) - np.array(logs[1]), nan=0.0)
        points = np.rint(ratio / self.between).astype(np.int64)
        chances = [np.exp(side) for side in logs]
        many = [np.searchsorted(counts, cells) for cells in (own, other)]
        times = [np.bincount(places, minlength=counts.size) for places in many]
        low, high = self._range(points, chances, times)
        size = next_fast_len(high - low + 1, real=True)
        product = [np.ones(size // 2 + 1, np.complex128) for _ in range(2)]
        for row, (n_own, n_other) in enumerate(zip(*times, strict=True)):
            laws = [
                rfft(np.bincount(points[row] % size, side[row], minlength=size)) for side in chances
            ]
            for which in range(2):
                product[which] *= laws[which] ** n_own * np.conj(laws[1 - which]) ** n_other
        found = [np.roll(np.maximum(irfft(one, size), 0), -low % size) for one in product]
        possible = np.array(chances) > 0
        most = np.where(possible.all(axis=0), ratio, -np.inf).max(axis=1)
        least = np.where(possible.all(axis=0), ratio, np.inf).min(axis=1)
        return Reached(low, found[0], found[1], float(times[0] @ most - times[1] @ least))

    def _range(self, points, chances, times) -> tuple[int, int]:
        """Return between which grid points the sum lies, but for a chance of next to nothing."""
        means = [(side * points).sum(axis=1) for side in chances]
        spread = max(
            math.sqrt(sum(n @ (side * points**2).sum(axis=1) for n in times)) for side in chances
        )
        with_person = times[0] @ means[0] - times[1] @ means[1]
        without = times[0] @ means[1] - times[1] @ means[0]
        reach = _FAR * spread + _FINE
        return math.floor(min(with_person, without) - reach), math.ceil(
            max(with_person, without) + reach
        )


def auc(with_person: NDArray[np.float64], without: NDArray[np.float64]) -> float:
    """Return the area under the ROC curve of sums, ties counting one half."""
    return float(np.dot(with_person, np.cumsum(without) - without / 2))


def tpr(with_person: NDArray[np.float64], without: NDArray[np.float64], fpr: float) -> float:
    """Return the true-positive rate at a false-positive rate, a coin deciding about ties."""
    x, y = (np.append(0, np.cumsum(side[::-1])) for side in (without, with_person))
    return float(np.interp(fpr, x, y))


def pooled(all_reached: list[Reached]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean laws of several people on one grid."""
    low = min(one.lowest for one in all_reached)
    size = max(one.lowest + one.without.size for one in all_reached) - low
    sides = np.zeros((2, size))
    for one in all_reached:
        place = slice(one.lowest - low, one.lowest - low + one.without.size)
        sides[0, place] += one.with_person / len(all_reached)
        sides[1, place] += one.without / len(all_reached)
    return sides[0], sides[1]


def compared(traces: Traces, text: str, rows: NDArray[np.int64], m: int, seed: int) -> dict:
    """Compare guarantees with what is reached for some people."""
    mechanism = Mechanism.parse(text)
    rng = np.random.default_rng(seed)
    kept = mechanism.bound(traces, rng)
    best = Best(mechanism, m)
    order = np.argsort(-kept.visits_per_user(), kind="stable")
    all_reached, promised = [], []
    for row in rows:
        other = int(order[0] if order[0] != row else order[1])
        everybody_else = np.setdiff1d(np.arange(traces.n_users), [row, other])
        group = rng.choice(everybody_else, m - 1, replace=False)
        others = kept.counts(group).reshape(-1).astype(np.int64)
        own, theirs = kept.trace(int(row)), kept.trace(other)
        all_reached.append(
            best.reached(others[np.setdiff1d(own, theirs)], others[np.setdiff1d(theirs, own)])
        )
        promised.append(of_one(mechanism, traces, int(row)))
    worst = guarantee_for_all([(mechanism, traces)]).worst
    laws = pooled(all_reached)
    aucs = np.array([auc(one.with_person, one.without) for one in all_reached])
    margins = {"auc": [one.auc for one in promised] - aucs}
    for rate in RATES:
        found = np.array([tpr(one.with_person, one.without, rate) for one in all_reached])
        margins[f"tpr_at_{rate:g}"] = [float(one.tpr(rate)) for one in promised] - found
    between, pure = best.between, math.isfinite(worst.pure_eps)
    return {
        "people": len(rows),
        "least_margin": {name: float(values.min()) for name, values in margins.items()},
        "largest_auc": {"reached": aucs.max(), "guaranteed": worst.auc},
        "pooled": {
            "auc": {"reached": auc(*laws), "guaranteed": worst.auc},
            **{
                f"tpr_at_{rate:g}": {
                    "reached": tpr(*laws, rate),
                    "guaranteed": float(worst.tpr(rate)),
                }
                for rate in RATES
            },
        },
        "log_odds": {
            "reached": max(one.most for one in all_reached) if pure else None,
            "guaranteed": worst.pure_eps if pure else None,
        },
        "chance_of_more": {
            "reached": max(beyond(one, worst.eps, between) for one in all_reached),
            "guaranteed": worst.chance_of_more,
        },
    }


def of_one(mechanism: Mechanism, traces: Traces, row: int) -> GameGuarantee:
    """Return the guarantee for one person, whoever is counted in that one's place."""
    units, visits = mechanism.guarantee.unit.contributions(traces)
    others = np.arange(traces.n_users) != row
    return game_guarantee(
        mechanism,
        units_of_target=int(units[row]),
        units_of_other=int(units[others].max()),
        visits_of_target=int(visits[row]),
        visits_of_other=int(visits[others].max()),
    )


def beyond(reached: Reached, eps: float, between: float) -> float:
    """Return the chance, with the person, that the sum is above eps, one grid point aside."""
    points = reached.lowest + np.arange(reached.with_person.size)
    return float(reached.with_person[points * between > eps + between].sum())


def main() -> None:
    """Compare for both cities, all mechanisms, and two groups of people."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--users", type=int, default=None)
    options = parser.parse_args()
    rows, begun = [], time.perf_counter()
    for city, m in CITIES.items():
        traces = simulate(city, seed=options.seed, users=options.users).traces()
        order = np.argsort(-traces.visits_per_user(), kind="stable")
        drawn = np.random.default_rng(options.seed).choice(traces.n_users, AT_RANDOM, replace=False)
        for text in MECHANISMS:
            for who, people in {"most visits": order[:MOST], "at random": drawn}.items():
                found = compared(traces, text, people, m, options.seed)
                rows.append({"city": city, "m": m, "mechanism": text, "who": who, **found})
                print(f"{time.perf_counter() - begun:.0f} s: {city}, {text}", file=sys.stderr)
    print(json.dumps({"seed": options.seed, "results": rows}, indent=1))


if __name__ == "__main__":
    main()
