"""Undoing what suppression and noise do to a marginal distribution, as the paper does it.

Suppression takes visits from quiet regions and epochs: the marginal that is left is too uneven
and gets compressed. Noise adds about the same to all of them: the marginal is too even and gets
stretched. Both are rules of thumb that use no knowledge beyond the release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Where even this power is not enough, the values differ by rounding errors alone.
_MOST_POWER = 1e12
# Halvings of the search interval: enough for every digit of a power.
_HALVINGS = 60


def log_compressed(marginal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(1 + x / least) of each probability x, normalised, to undo suppression.

    `least` is the smallest probability above 0; there must be one. What is 0 stays 0: nothing
    tells which of the regions or epochs without any count are merely quiet.
    """
    logs = _logs(marginal)
    # log(1 + exp(.)) without the quotient, which could be too large a number.
    compressed = np.logaddexp(0, logs - logs[np.isfinite(logs)].min())
    return np.asarray(compressed / compressed.sum())


def power_transformed(marginal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raise each probability to one power p >= 1 and normalise, to undo noise.

    The power is the one at which the variance of the probabilities is that of n uniform draws
    divided by their sum. Its expected value tends to 1 / (3 n^2) for large n, which is what is
    used for every n: the draws have variance 1 / 12, and their sum is n / 2. The variance never
    falls as the power grows, so the power is found by bisection. Where no power meets the
    target, 1 is kept: the marginal is returned as it is.
    """
    logs = _logs(marginal)
    target = 1 / (3 * logs.size**2)
    if _variance(logs, 1) >= target:
        return marginal
    high = 2.0
    while _variance(logs, high) < target:
        if high > _MOST_POWER:
            return marginal
        high *= 2
    low = high / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _variance(logs, middle) < target else (low, middle)
    return _powers(logs, high)


def _logs(marginal: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.log(marginal)


def _powers(logs: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Return exp(power * logs), normalised; no power is too large for it."""
    values = np.exp(power * (logs - logs.max()))
    return np.asarray(values / values.sum())


def _variance(logs: NDArray[np.float64], power: float) -> float:
    return float(_powers(logs, power).var())
