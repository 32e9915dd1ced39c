"""How often pairs of whole numbers occur."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Nearly all pairs may be the same: one after the other goes to another table, so that none waits
# for the one before.
_TABLES = 4


@njit(cache=True, nogil=True)
def count_pairs(
    first: NDArray[np.int32], second: NDArray[np.int32], width: int, span: int
) -> NDArray[np.int64]:
    """Return how often ``first * width + second`` is each number from 0 on, shape (span,)."""
    times = np.zeros((_TABLES, span), np.int64)
    for i in range(first.size):
        times[i % _TABLES, first[i] * width + second[i]] += 1
    total: NDArray[np.int64] = times.sum(axis=0)
    return total
