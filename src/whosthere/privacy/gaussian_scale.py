"""How much Gaussian noise a guarantee needs (Balle and Wang, 2018)."""

from __future__ import annotations

import math

from scipy.special import log_ndtr

# The noise per unit of sensitivity is searched between these, as logarithms to base e.
_LEAST, _MOST = math.log(1e-9), math.log(1e12)


def gaussian_sigma(eps: float, delta: float, sensitivity: float) -> float:
    """Return the least standard deviation that gives (eps, delta) differential privacy.

    `sensitivity` is the l2 sensitivity. The result is rounded to the side that keeps the
    guarantee.
    """
    low, high = _LEAST, _MOST
    target = math.log(delta)
    while low < (middle := (low + high) / 2) < high:
        if log_delta(eps, math.exp(middle)) > target:
            low = middle
        else:
            high = middle
    return math.exp(high) * sensitivity


def log_delta(eps: float, ratio: float) -> float:
    """Return the log of the least delta of Gaussian noise, `ratio` = sigma / sensitivity.

    The exact condition is delta = P(N < a) - e^eps P(N < b) with N standard normal,
    a = 1 / (2 ratio) - eps ratio and b = a - 1 / ratio. Both terms can be far below the least
    float and nearly equal, hence the logs.
    """
    a = 0.5 / ratio - eps * ratio
    b = -0.5 / ratio - eps * ratio
    log_a = float(log_ndtr(a))
    gap = eps + float(log_ndtr(b)) - log_a
    return log_a + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def gaussian_eps(delta: float, distance: float) -> float:
    """Return the least eps that Gaussian noise gives with delta to data sets that far apart.

    `distance` is in standard deviations. The result is rounded up.
    """
    if distance == 0:
        return 0.0
    if delta == 0 or distance == math.inf:
        return math.inf
    ratio, target = 1 / distance, math.log(delta)
    if log_delta(0.0, ratio) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while log_delta(high, ratio) > target:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        if log_delta(middle, ratio) > target:
            low = middle
        else:
            high = middle
    return high
