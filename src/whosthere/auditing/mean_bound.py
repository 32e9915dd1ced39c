"""Bounds for a mean over all people, of whom a sample may have missed the few who differ most.

Gaffke (2005): give the people of a sample, and one person more whom nobody saw, random weights that
are evenly distributed over all that add up to 1. The unseen person has the worst possible value. A
quantile of the weighted mean is then a bound for the mean over everybody. Where values are only 0
or 1, it is the bound of Clopper and Pearson.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# The integral of `_chance_below` is a sum over logarithms of frequencies. Its error falls
# exponentially with the step; with this one, and from where to where it goes, it is below 1e-9.
_STEP, _BELOW, _ABOVE = 0.1, 25.0, 16.0
# So many deviations from 0, a sum is below 0 with a chance of less than 1e-13.
_SURELY_ABOVE = 30.0


def lower_bound(values: Floats, unseen: float, tail: float) -> float:
    """Return what the mean over everybody is above, except with a chance of `tail`.

    Parameters
    ----------
    values
        Of the people in the sample, shape (n_people,).
    unseen
        The worst value that somebody else may have; at most the smallest of the values.
    """
    least, mean = float(unseen), float(values.mean())
    # If all are alike, the mean is unlike them by as much as the unseen person weighs.
    alike = mean + (least - mean) * -np.expm1(np.log(tail) / values.size)
    if np.ptp(values) == 0 or least == values.max():
        return float(alike)
    distinct, repeats = np.unique(np.append(values, least), return_counts=True)

    def too_likely(bound: float) -> float:
        return _chance_below(distinct - bound, repeats) - tail

    return float(brentq(too_likely, least, mean, xtol=1e-9))


def upper_bound(values: Floats, unseen: float, tail: float) -> float:
    """Return what the mean over everybody is below, except with a chance of `tail`.

    Arguments are as for `lower_bound`; `unseen` is at least the largest of the values.
    """
    return -lower_bound(-values, -unseen, tail)


def _chance_below(values: Floats, repeats: NDArray[np.intp]) -> float:
    """Return the chance that a randomly weighted sum of values is below 0.

    Evenly distributed weights are exponential ones divided by their sum, which does not change the
    sign. The characteristic function of the sum of exponential variables times `values` is known,
    and Gil-Pelaez' formula gives the chance.
    """
    away = values @ repeats / np.sqrt(values**2 @ repeats)
    if away > _SURELY_ABOVE:
        return 0.0
    # What is far from 0 oscillates.
    step = min(_STEP, 1 / max(away, 1e-9))
    second, first = np.sort(np.abs(np.repeat(values, np.minimum(repeats, 2))))[-2:]
    span = np.arange(-np.log(first) - _BELOW, -np.log(max(second, 1e-9 * first)) + _ABOVE, step)
    reached = np.exp(span)[:, None] * values
    size = np.exp(-0.5 * np.log1p(reached**2) @ repeats)
    return float(0.5 - step / np.pi * (size * np.sin(np.arctan(reached) @ repeats)).sum())
