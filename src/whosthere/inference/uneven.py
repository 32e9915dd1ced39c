"""People by their AUCs where scores need not be normal, nor be spread alike with and without them.

A rare count can rule a person out, or give them away: then single OUT or IN releases decide the
AUC, and its noise is another than that of normal scores. With ten OUT releases of each person and
normal noise, the exposed people of a mixture (`whosthere.inference.exposed`) would be off.

So a true person is an AUC together with a spread: IN scores may be less spread than OUT scores, as
much, or more. Measured of each person are the AUC and its balance, the part of OUT releases in its
variance (`whosthere.kernels.panels`), which tells the spreads apart. What is said about AUCs holds
for all spreads that the measurements leave possible.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, owens_t

from whosthere.arrays import Floats, frozen
from whosthere.inference.exposed import (
    BINS,
    N_BINS,
    ODD,
    TRUE_AUCS,
    Mixture,
    beta_law,
    bin_of,
    close_to,
    kinds_of,
)
from whosthere.kernels import in_parts, measure_draws

if TYPE_CHECKING:
    from whosthere.arrays import Ints64

SPREADS = (0.1, 0.4, 1.0, 2.5, 10.0)
"""How many times as much IN scores may be spread as OUT scores."""
# Where people have an AUC of 0.9, these spreads have balances of 1, 0.91, 0.5, 0.09 and 0.
_BALANCES = frozen([0.1, 0.3, 0.5, 0.7, 0.9], np.float64)
_N_BALANCES = 6
# With a seventh of it, a percentile was missed in 4 of 20 simulated panels of 5,000 people.
_PAIRS_TO_DRAW = 20_000_000
_MOST_PAIRS_TO_DRAW = 150**2
_USUAL_LIMIT = 0.9


def people_by_aucs(
    aucs: Floats,
    balances: Floats,
    n_in: Ints64,
    n_out: Ints64,
    *,
    limit: float | None,
    effective: float,
) -> Mixture:
    """Return people by their measured AUCs and balances, over so many releases of each."""
    # The same grid with and without a limit: its laws are drawn once.
    grid = np.union1d(TRUE_AUCS, close_to(limit or _USUAL_LIMIT))
    kinds, kind = kinds_of(n_in, n_out, aucs.size)
    both, place = np.unique(2 * kind + (n_in < n_out), return_inverse=True)
    laws = [_law(*kinds[one // 2][:: 1 if one % 2 else -1], tuple(grid.tolist())) for one in both]
    chances = np.concatenate(laws, axis=1).T
    place = (place * N_BINS + bin_of(aucs)) * _N_BALANCES + np.searchsorted(_BALANCES, balances)
    grid = np.repeat(grid, len(SPREADS))
    return Mixture.of_chances(grid, close_to(limit), chances, place, effective)


@lru_cache(maxsize=128)
def _law(n_in: int, n_out: int, grid: tuple[float, ...]) -> Floats:
    """Return the law of bins of AUCs and balances, by true AUC and spread in turn."""
    inner = np.asarray(grid[1:-1])
    law = np.zeros((len(grid), len(SPREADS), N_BINS, _N_BALANCES))
    law[0, :, 0, 0] = law[-1, :, -1, 0] = 1
    make = _drawn if n_in * n_out <= _MOST_PAIRS_TO_DRAW else _beta

    def laws(first: int, stop: int) -> list[Floats]:
        return [make(n_in, n_out, inner, spread) for spread in SPREADS[first:stop]]

    law[1:-1] = np.stack([one for some in in_parts(laws, len(SPREADS)) for one in some], axis=1)
    chances = law.reshape(len(grid) * len(SPREADS), -1)
    return frozen((1 - ODD) * chances + ODD / chances.shape[1], np.float64)


def _drawn(n_in: int, n_out: int, grid: Floats, spread: float) -> Floats:
    rng = np.random.default_rng(0)
    n = min(max(_PAIRS_TO_DRAW // (n_in * n_out), 1000), 10_000)
    out, in_ = rng.normal(size=(n, n_out)), spread * rng.normal(size=(n, n_in))
    shifts = math.sqrt(1 + spread**2) * ndtri(grid)
    counts = np.zeros((grid.size, N_BINS, _N_BALANCES))
    measure_draws(out, in_, shifts, BINS[1:-1].copy(), _BALANCES, counts)
    return counts / n


def _beta(n_in: int, n_out: int, grid: Floats, spread: float) -> Floats:
    """Return a law with the right mean and variance, for so many that the balance adds little."""

    def both(alike: float) -> Floats:
        """How two pairs with a score in common vary together."""
        return np.asarray(
            grid - 2 * owens_t(ndtri(grid), math.sqrt((1 - alike) / (1 + alike))) - grid**2
        )

    of_out = 1 / (1 + spread**2)
    varying = (n_in - 1) * both(of_out) + (n_out - 1) * both(1 - of_out)
    law = beta_law(grid, (grid * (1 - grid) + varying) / (n_in * n_out))
    return np.repeat(law[:, :, None] / _N_BALANCES, _N_BALANCES, axis=2)
