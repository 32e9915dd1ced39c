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

    from whosthere.arrays import Floats


# Where the integral of `_chance_below` is evaluated, in hyperbolic sines of deviations.
_PLACES = np.arange(0.0, 16.0, 0.2)


def lower_bound(values: Floats, unseen: float, tail: float) -> float:
    """Return what the mean over everybody is above, except with a chance of `tail`.

    `values` are those of the people in the sample, `unseen` is the worst that somebody else may
    have: at most the smallest of them.
    """
    least, mean = float(unseen), float(values.mean())
    # If all are alike, the mean is unlike them by as much as the unseen person weighs.
    shifted = mean + (least - mean) * -np.expm1(np.log(tail) / values.size)
    if np.ptp(values) == 0 or least == values.max():
        return float(shifted)
    distinct, repeats = np.unique(np.append(values, least), return_counts=True)
    return float(
        brentq(lambda end: _chance_below(distinct - end, repeats) - tail, least, mean, xtol=1e-8)
    )


def upper_bound(values: Floats, unseen: float, tail: float) -> float:
    """Return the same for what the mean is below; `unseen` is at least the largest value."""
    return -lower_bound(-values, -unseen, tail)


def _chance_below(values: Floats, repeats: NDArray[np.intp]) -> float:
    """Return the chance that a randomly weighted sum of values is below 0.

    Evenly distributed weights are exponential ones divided by their sum, which does not change the
    sign. The sum of exponential variables times `values` has a known transform, the product of
    1 / (1 - value * t), and the chance is an integral of it over a line in the complex plane.
    Through the saddle point nothing oscillates, so that even small chances come out exactly.
    """
    if values.min() >= 0:
        return 0.0
    if values.max() <= 0:
        return 1.0
    edge = 1 / float(values.min())

    def slope(t: float) -> float:
        return float((values / (1 - values * t)) @ repeats - 1 / t)

    saddle = brentq(slope, edge * (1 - 1e-12), edge * 1e-12, xtol=1e-14 * -edge)
    curvature = ((values / (1 - values * saddle)) ** 2) @ repeats + 1 / saddle**2
    line = saddle + 1j * np.sinh(_PLACES) / np.sqrt(curvature)
    logs = -np.log1p(-line[:, None] * values) @ repeats - np.log(-line)
    heights = np.exp(logs).real * np.cosh(_PLACES)
    heights[0] /= 2
    return float(heights.sum() * (_PLACES[1] - _PLACES[0]) / np.sqrt(curvature) / np.pi)
