"""The law of a sum of counts of which something was published each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Ints64

# Laws that are no longer than the first are kept as they are. What is so unlikely, compared with
# the likeliest count, is cut off longer ones; the second pair is for sums.
_SHORT, _UNLIKELY = 32, 40.0
_SHORT_SUM, _UNLIKELY_SUM = 512, 1e-25
_NEVER = -math.inf


@kernel()
def law_of_sum(
    log_rates: Floats, log_chances: Floats, which: Ints64, shifts: Ints64
) -> tuple[int, Floats, float, bool]:
    """Return the law of the sum of independent Poisson counts, given what was published of each.

    Of cell i a row of `log_chances` was published: ``log_chances[which[i], n]`` is the log chance
    of that if there are n, of which ``shifts[i]`` are no part of the Poisson count.

    Returned are the least sum, the chances of the sums from there on together with what was
    published, the logarithm of what these are to be multiplied by, and whether nothing was cut off.
    There are no chances where what was published cannot be.
    """
    least, scale, whole = 0, 0.0, True
    found = np.ones(1)
    most = log_chances.shape[1]
    for i in range(which.size):
        row, shift, rate = log_chances[which[i]], shifts[i], log_rates[i]
        own = np.empty(max(most - shift, 0))
        top = _NEVER
        for n in range(own.size):
            own[n] = row[n + shift] + n * rate - math.lgamma(n + 1.0)
            top = max(top, own[n])
        if top == _NEVER:
            return 0, np.empty(0), 0.0, True
        first, end = _support(own, _NEVER)
        if end - first > _SHORT:
            first, end = _support(own, top - _UNLIKELY)
            whole = False
        scale += top - np.exp(rate)
        least += first
        made = np.zeros(found.size + end - first - 1)
        largest = 0.0
        for n in range(first, end):
            chance = np.exp(own[n] - top)
            for j in range(found.size):
                made[j + n - first] += chance * found[j]
        for j in range(made.size):
            largest = max(largest, made[j])
        scale += np.log(largest)
        first, end = 0, made.size
        if made.size > _SHORT_SUM:
            first, end = _support(made, _UNLIKELY_SUM * largest)
            whole = False
        least += first
        found = np.empty(end - first)
        for j in range(found.size):
            found[j] = made[first + j] / largest
    return least, found, scale, whole


@kernel()
def thinned(least: int, chances: Floats, kept: float) -> tuple[int, Floats, bool]:
    """Return the law of how many of some are kept, each by itself and with the same chance.

    Chances are of counts from `least` on, as for `law_of_sum`, and so is what is returned, with
    whether nothing was cut off. The generating function of what is kept is that of all at
    1 - kept + kept * s, found by Horner's rule: nothing is subtracted, so nothing gets lost.
    """
    if kept >= 1 or not chances.size:
        return least, chances, True
    n, lost = least + chances.size, 1.0 - kept
    whole = n <= _SHORT_SUM
    cut = 0.0
    if not whole:
        for i in range(chances.size):
            cut = max(cut, _UNLIKELY_SUM * chances[i])
    found = np.zeros(n)
    first, end = 0, -1
    for i in range(n):
        end += 1
        for j in range(end, first, -1):
            found[j] = lost * found[j] + kept * found[j - 1]
        found[first] *= lost
        if i < chances.size:
            found[0] += chances[chances.size - 1 - i]
            continue
        while first < end and found[first] < cut:
            found[first] = 0.0
            first += 1
        while end > first and found[end] < cut:
            found[end] = 0.0
            end -= 1
    return first, found[first : end + 1], whole


@part()
def _support(values: Floats, above: float) -> tuple[int, int]:
    """Return where values above a number begin, and where they end."""
    first, end = 0, values.size
    while first < end and not values[first] > above:
        first += 1
    while end > first and not values[end - 1] > above:
        end -= 1
    return first, end
