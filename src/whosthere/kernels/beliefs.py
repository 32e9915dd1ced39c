"""What a published count tells about each of its visitors, given how sure we are of the others.

The true count is a sum of people who are there or not, each with a chance of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Ints32, Ints64

# Up to so many visitors a sum is exact. Beyond, it is normal if it varies as much as this.
_FEW = 96
_LEAST_VARIANCE = 4.0
# How many deviations of a normal sum are looked at.
_WINDOW = 6.0


@kernel()
def log_ratios_of_visitors(
    starts: Ints64, there: Floats, laws: Floats, law_of_cell: Ints32, most: float
) -> Floats:
    """Return how much likelier each visitor makes what was published, as a logarithm.

    The visitors of cell c are those from ``starts[c]`` to ``starts[c + 1]``. Each is there with a
    chance, `there`. The chance of what was published, given that n are there, is ``laws[l, n]``
    with l the law of the cell, in any unit. Logarithms are cut at `most` on either side.
    """
    found = np.zeros(there.size)
    largest = 0
    for c in range(starts.size - 1):
        largest = max(largest, starts[c + 1] - starts[c])
    sums = np.zeros(largest + 2)
    # What is expected to be published, given how many of the first i are there: i + 2 numbers each.
    expected = np.zeros((min(largest, _FEW) + 1) ** 2 + largest + 2)
    for c in range(starts.size - 1):
        first, end = starts[c], starts[c + 1]
        law = laws[law_of_cell[c]]
        mean, variance = 0.0, 0.0
        for v in range(first, end):
            mean += there[v]
            variance += there[v] * (1.0 - there[v])
        if end - first > _FEW and variance > _LEAST_VARIANCE:
            _crowd(first, end, there, law, mean, variance, most, found)
        else:
            n = end - first
            if (n + 1) * (n + 2) // 2 + n > expected.size:
                expected = np.zeros((n + 1) * (n + 2) // 2 + n)
            _few(first, end, there, law, most, sums, expected, found)
    return found


@part()
def _few(
    first: int,
    end: int,
    there: Floats,
    law: Floats,
    most: float,
    sums: Floats,
    expected: Floats,
    found: Floats,
) -> None:
    """Sum over all who may be there, from the last to the first, and then the other way."""
    n = end - first
    # Row i of the triangle has the numbers 0 to i + 1, and begins at i * (i + 3) / 2.
    at = (n - 1) * (n + 2) // 2
    for s in range(n + 1):
        expected[at + s] = law[s]
    for i in range(n - 1, 0, -1):
        chance, below = there[first + i], at - i - 1
        for s in range(i + 1):
            expected[below + s] = (1.0 - chance) * expected[at + s] + chance * expected[at + s + 1]
        at = below
    sums[0] = 1.0
    for i in range(n):
        without, within = 0.0, 0.0
        for s in range(i + 1):
            without += sums[s] * expected[at + s]
            within += sums[s] * expected[at + s + 1]
        found[first + i] = _log_ratio(within, without, most)
        chance = there[first + i]
        sums[i + 1] = 0.0
        for s in range(i + 1, 0, -1):
            sums[s] = (1.0 - chance) * sums[s] + chance * sums[s - 1]
        sums[0] *= 1.0 - chance
        at += i + 2


@part()
def _crowd(
    first: int,
    end: int,
    there: Floats,
    law: Floats,
    mean: float,
    variance: float,
    most: float,
    found: Floats,
) -> None:
    """Take the sum of the others for normal."""
    for v in range(first, end):
        others = mean - there[v]
        spread = variance - there[v] * (1.0 - there[v])
        reach = _WINDOW * np.sqrt(spread)
        lowest, highest = max(int(others - reach), 0), min(int(others + reach) + 1, end - first - 1)
        without, within = 0.0, 0.0
        for s in range(lowest, highest + 1):
            density = np.exp(-0.5 * (s - others) ** 2 / spread)
            without += density * law[s]
            within += density * law[s + 1]
        found[v] = _log_ratio(within, without, most)


@part()
def _log_ratio(within: float, without: float, most: float) -> float:
    if within <= 0.0:
        # Impossible either way says nothing.
        return -most if without > 0.0 else 0.0
    if without <= 0.0:
        return most
    return min(max(float(np.log(within / without)), -most), most)
