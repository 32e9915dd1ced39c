"""What kernels draw by: random words that belong to a key, and sorting by what was drawn.

A word belongs to a key and a position: no state, any order, always the same. Sorting is written
out because numba takes seconds to compile what numpy has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Floats, Ints32, Words

    Keys = Floats | Words | Ints32


@kernel()
def random_word(key: np.uint64, position: int | np.int64) -> np.uint64:
    """Return output number `position` of the SplitMix64 generator seeded with `key`: 64 bits."""
    z = key + (np.uint64(position) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@part()
def random_share(key: np.uint64, position: int | np.int64) -> float:
    """Return a number from 0 to just below 1 that belongs to a key and a position."""
    return float((random_word(key, position) >> np.uint64(11)) * (1.0 / 9007199254740992.0))


@part()
def put_smallest_first(keys: Keys, values: NDArray[np.integer], n: int) -> None:
    """Reorder both arrays so that the `n` smallest keys come first (Hoare's selection)."""
    low, high = 0, keys.size - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            return


@part()
def sort_both(keys: Keys, values: NDArray[np.integer]) -> None:
    """Sort both arrays by the keys (Shell's sort)."""
    gap = 1
    while 9 * gap < keys.size:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, keys.size):
            key, value, j = keys[i], values[i], i
            while j >= gap and keys[j - gap] > key:
                keys[j], values[j] = keys[j - gap], values[j - gap]
                j -= gap
            keys[j], values[j] = key, value
        gap //= 3
