"""Random words that belong to a key and a position: no state, any order, always the same."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def random_word(key: np.uint64, position: int) -> np.uint64:
    """Return output number `position` of the SplitMix64 generator seeded with `key`: 64 bits."""
    z = key + (np.uint64(position) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def random_share(key: np.uint64, position: int) -> float:
    """Return a number from 0 to just below 1 that belongs to a key and a position."""
    return float((random_word(key, position) >> np.uint64(11)) * (1.0 / 9007199254740992.0))
