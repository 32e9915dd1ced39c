"""Loops over matrices of counts in which rows may come in pairs that hardly differ.

A matrix has `base` rows, each of which stands for one row, or for two: the first with some of its
counts changed, the second as it is. The changes of base row b are ``changes[bounds[b] :
bounds[b + 1]]`` in the cells `changed`; there are none where rows are single.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Columns handled together: their sums stay in the processor's first cache.
_BLOCK = 4096
# The sum of squares of so many bytes fits into 32 bits.
_MOST_BYTES = (2**32 - 1) // 255**2


class Rows(NamedTuple):
    """The matrix; `copies` is 2 where rows come in pairs, else 1."""

    base: NDArray[np.unsignedinteger]
    copies: int
    bounds: NDArray[np.int64]
    changed: NDArray[np.int32]
    changes: NDArray[np.int32]


@njit(cache=True, nogil=True)
def column_sums(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum and the sum of squares of each column, exactly for counts."""
    base = rows.base
    n, p = base.shape
    total, squares = np.zeros(p), np.zeros(p)
    if base.itemsize == 1:
        # Sums of bytes fit into 32 bits, in which they are several times faster.
        small = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK, np.uint32)
        for first in range(0, n, _MOST_BYTES):
            _add_sums(base[first : first + _MOST_BYTES], small[0], small[1], total, squares)
    else:
        _add_sums(base, np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64), total, squares)
    total *= rows.copies
    squares *= rows.copies
    for b in range(n):
        for i in range(rows.bounds[b], rows.bounds[b + 1]):
            cell, change = rows.changed[i], np.float64(rows.changes[i])
            total[cell] += change
            squares[cell] += change * (2.0 * base[b, cell] + change)
    return total, squares


@njit(cache=True, nogil=True)
def _add_sums(
    base: NDArray[np.unsignedinteger],
    sums: NDArray[np.unsignedinteger],
    sums_of_squares: NDArray[np.unsignedinteger],
    total: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Add the sums of some rows to `total` and `squares`; two blocks of integers are for work."""
    p = total.size
    for start in range(0, p, _BLOCK):
        stop = min(start + _BLOCK, p)
        sums[:] = 0
        sums_of_squares[:] = 0
        for i in range(base.shape[0]):
            row = base[i, start:stop]
            for j in range(row.size):
                sums[j] += row[j]
            for j in range(row.size):
                sums_of_squares[j] += np.uint64(row[j]) * np.uint64(row[j])
        for j in range(stop - start):
            total[start + j] += sums[j]
            squares[start + j] += sums_of_squares[j]


@njit(cache=True, nogil=True, fastmath=True)
def standardised_sums(
    rows: Rows,
    weights: NDArray[np.float64],
    mean: NDArray[np.float32],
    scale: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the weighted sum of each column less its mean, over its scale; shape (n_columns,).

    In single precision.
    """
    base = rows.base
    n, p = base.shape
    total = np.zeros(p, np.float32)
    shared = np.empty(n, np.float32)
    for b in range(n):
        weight = 0.0
        for i in range(b * rows.copies, (b + 1) * rows.copies):
            weight += weights[i]
        shared[b] = weight
    for b in range(n):
        own = np.float32(weights[b * rows.copies])
        for i in range(rows.bounds[b], rows.bounds[b + 1]):
            total[rows.changed[i]] += own * np.float32(rows.changes[i])
    all_weights = np.float32(weights.sum())
    in_eights = n - n % 8
    for start in range(0, p, _BLOCK):
        stop = start + _BLOCK
        sums = total[start:stop]
        # Eight rows at a time: the sums are fetched and stored an eighth as often.
        for i in range(0, in_eights, 8):
            w0, w1, w2, w3 = shared[i], shared[i + 1], shared[i + 2], shared[i + 3]
            w4, w5, w6, w7 = shared[i + 4], shared[i + 5], shared[i + 6], shared[i + 7]
            r0, r1 = base[i, start:stop], base[i + 1, start:stop]
            r2, r3 = base[i + 2, start:stop], base[i + 3, start:stop]
            r4, r5 = base[i + 4, start:stop], base[i + 5, start:stop]
            r6, r7 = base[i + 6, start:stop], base[i + 7, start:stop]
            for j in range(sums.size):
                first = w0 * np.float32(r0[j]) + w1 * np.float32(r1[j])
                second = w2 * np.float32(r2[j]) + w3 * np.float32(r3[j])
                third = w4 * np.float32(r4[j]) + w5 * np.float32(r5[j])
                fourth = w6 * np.float32(r6[j]) + w7 * np.float32(r7[j])
                sums[j] += (first + second) + (third + fourth)
        for i in range(in_eights, n):
            row = base[i, start:stop]
            for j in range(sums.size):
                sums[j] += shared[i] * np.float32(row[j])
        means, scales = mean[start:stop], scale[start:stop]
        for j in range(sums.size):
            sums[j] = (sums[j] - all_weights * means[j]) / scales[j]
    return total


@njit(cache=True, nogil=True)
def standardised_columns(
    rows: Rows,
    cells: NDArray[np.int64],
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return some columns less their means, over their scales, as rows: (n_cells, n_rows)."""
    base = rows.base
    n, p = base.shape
    columns = np.empty((cells.size, n * rows.copies))
    for b in range(n):
        row = base[b]
        for k in range(cells.size):
            value = (row[cells[k]] - mean[cells[k]]) / scale[cells[k]]
            for i in range(b * rows.copies, (b + 1) * rows.copies):
                columns[k, i] = value
    if rows.changed.size:
        place = np.full(p, -1, np.int32)
        for k in range(cells.size):
            place[cells[k]] = k
        for b in range(n):
            for i in range(rows.bounds[b], rows.bounds[b + 1]):
                k = place[rows.changed[i]]
                if k >= 0:
                    columns[k, b * rows.copies] += rows.changes[i] / scale[cells[k]]
    return columns
