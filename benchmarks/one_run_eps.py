"""What guesses about many people in one release prove about eps, on mechanisms of known eps.

    python benchmarks/one_run_eps.py > benchmarks/results/one_run_eps.txt

Each person is in by an independent coin, and has cells of their own, in which 1,000 others are
known to be: so nothing is lost where counts are limited to 0..m. The product's own mechanisms, with
the unit user, publish the counts. The attacker knows the mechanism and scores each person by the
exact log-likelihood ratio. Guesses are the highest and the lowest scores: 1, 5, 20 or 50 % of all
people on either side, a choice of four that shares the error. The level is 95 %.

`above` is the share of runs in which the bound is above the true eps, which must be at most 5 %,
with its standard error; `mean` is the mean bound. Discrete Gaussian noise has the budget rho at
which the exact eps, at a delta of 1e-6, is the one that is stated, and the bound is one at this
delta; what zero-concentrated privacy alone promises there (`promised`) is more. With 20 cells to a
person, the budget is spread over 20 visits, and Laplace noise hides the sum better than it
promises.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from typing import TYPE_CHECKING

import numpy as np

from whosthere.inference.one_run import one_run_eps
from whosthere.privacy.mechanism import Mechanism
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Callable

EPS = (0.5, 1, 2, 4)
DELTA = 1e-6
KINDS = {
    "laplace": "laplace(eps={eps}, unit=user, max_visits={cells})",
    "discrete-laplace": "discrete-laplace(eps={eps}, unit=user, max_visits={cells})",
    "discrete-gaussian": "discrete-gaussian(rho={rho:.9f}, delta=1e-6, unit=user, max_visits=1)",
}
SETTINGS = (
    ("laplace", 1, 1, 1_000),
    ("laplace", 1, 1, 10_000),
    ("laplace", 1, 1, 100_000),
    ("laplace", 1, 10, 10_000),
    ("laplace", 20, 1, 10_000),
    ("discrete-laplace", 1, 1, 10_000),
    ("discrete-gaussian", 1, 1, 1_000),
    ("discrete-gaussian", 1, 1, 10_000),
    ("discrete-gaussian", 1, 1, 100_000),
    ("discrete-gaussian", 1, 10, 10_000),
)
"""Mechanism, cells of a person, releases and people."""
SHARES = (0.01, 0.05, 0.2, 0.5)
OTHERS = 1_000


def exact_eps(rho: float) -> float:
    """Return the eps of discrete Gaussian noise on one count, for one person, at delta."""
    z = np.arange(-400, 401)
    weights = np.exp(-rho * z**2)
    chances = weights / weights.sum()

    def spent(eps: float) -> float:
        return float(np.maximum(chances[:-1] - math.exp(eps) * chances[1:], 0).sum())

    return bisected(lambda eps: spent(eps) <= DELTA, 0, 50)


def bisected(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least number for which something holds that does at `high`."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def mechanism_of(kind: str, cells: int, eps: float) -> Mechanism:
    rho = bisected(lambda one: exact_eps(one) >= eps, 1e-4, 10)
    return Mechanism.parse(KINDS[kind].format(eps=eps, cells=cells, rho=rho))


def bound(
    mechanism: Mechanism, cells: int, shape: tuple[int, int], rng: np.random.Generator
) -> float:
    """Publish releases of people once, and return what the guesses prove."""
    labels = rng.random(shape) < 0.5
    counts = np.repeat((OTHERS + labels)[:, :, None], cells, axis=2)
    m = OTHERS + shape[1]
    published = mechanism.apply(counts, m, rng)
    values, place = np.unique(published, return_inverse=True)
    with_person, without = (mechanism.log_pmf(values, OTHERS + one, m) for one in (1, 0))
    scores = (with_person - without)[place].reshape(counts.shape).sum(axis=2)
    guesses = [(int(share * labels.size),) * 2 for share in SHARES]
    return one_run_eps(scores, labels, guesses, 0.95, mechanism.steps[0].delta)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--only", default="", help="rows that begin so, numbers without commas")
    options = parser.parse_args()
    n, begun = options.repetitions, time.perf_counter()
    print(f"python benchmarks/one_run_eps.py --repetitions {n}")
    print(f"{'mechanism':<18}{'cells':>6}{'releases':>9}{'people':>9}{'eps':>5}{'above':>15}"
          f"{'mean':>7}{'mean/eps':>9}{'largest':>8}{'promised':>9}")  # fmt: skip
    for kind, cells, releases, people in SETTINGS:
        if not f"{kind} {cells} {releases} {people}".startswith(options.only):
            continue
        for eps in EPS:
            mechanism = mechanism_of(kind, cells, eps)
            found = np.array(
                [
                    bound(
                        mechanism,
                        cells,
                        (releases, people),
                        generator(1, kind, cells, releases, people, str(eps), i),
                    )
                    for i in range(n)
                ]
            )
            above = (found > eps).mean()
            error = np.sqrt(max(above * (1 - above), 1 / n) / n)
            print(f"{kind:<18}{cells:>6}{releases:>9}{people:>9,}{eps:>5}"
                  f"{above:>8.1%} ± {error:.1%}{found.mean():>7.2f}{found.mean() / eps:>9.2f}"
                  f"{found.max():>8.2f}"
                  f"{mechanism.guarantee.eps:>9.2f}", flush=True)  # fmt: skip
    print(f"{time.perf_counter() - begun:.0f} s, Python {platform.python_version()}, "
          f"numpy {np.__version__}")  # fmt: skip


if __name__ == "__main__":
    main()
