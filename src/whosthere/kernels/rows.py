"""Loops over compressed rows: row r holds ``cells[indptr[r]:indptr[r + 1]]``, sorted, distinct."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def count_cells(
    indptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    rows: NDArray[np.int64],
    counts: NDArray[np.int32],
) -> None:
    """Add one to ``counts[c]`` for every cell c of every given row."""
    for row in rows:
        for i in range(indptr[row], indptr[row + 1]):
            counts[cells[i]] += 1


@njit(cache=True, nogil=True)
def take_rows(
    indptr: NDArray[np.int64], cells: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Copy the given rows, in the given order, into new compressed rows."""
    taken_indptr = np.zeros(rows.size + 1, np.int64)
    for j in range(rows.size):
        taken_indptr[j + 1] = taken_indptr[j] + indptr[rows[j] + 1] - indptr[rows[j]]
    taken = np.empty(taken_indptr[-1], np.int32)
    for j in range(rows.size):
        start = indptr[rows[j]]
        for i in range(taken_indptr[j + 1] - taken_indptr[j]):
            taken[taken_indptr[j] + i] = cells[start + i]
    return taken_indptr, taken


@njit(cache=True, nogil=True)
def group_by_row(
    row_of: NDArray[np.int32], cell_of: NDArray[np.int32], n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Turn unordered (row, cell) pairs with repetitions into compressed rows."""
    bounds = np.zeros(n_rows + 1, np.int64)
    for row in row_of:
        bounds[row + 1] += 1
    for row in range(n_rows):
        bounds[row + 1] += bounds[row]
    grouped = np.empty(row_of.size, np.int32)
    next_free = bounds[:-1].copy()
    for i in range(row_of.size):
        row = row_of[i]
        grouped[next_free[row]] = cell_of[i]
        next_free[row] += 1

    indptr = np.zeros(n_rows + 1, np.int64)
    end = 0
    for row in range(n_rows):
        mine = np.sort(grouped[bounds[row] : bounds[row + 1]])
        for i in range(mine.size):
            if i == 0 or mine[i] != mine[i - 1]:
                grouped[end] = mine[i]
                end += 1
        indptr[row + 1] = end
    return indptr, grouped[:end].copy()


@njit(cache=True, nogil=True)
def _scrambled(key: np.uint64, position: int) -> np.uint64:
    """Return output number `position` of the SplitMix64 generator seeded with `key`."""
    z = key + np.uint64(position + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def sample_within_periods(
    indptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    period_of_epoch: NDArray[np.int32],
    limit: int,
    key: np.uint64,
) -> NDArray[np.bool_]:
    """Mark a uniformly random `limit` of each row's cells per period, all where fewer.

    A cell's epoch is its remainder modulo ``period_of_epoch.size``. Each stored cell draws a
    random priority from `key` and its own position, so no array of random numbers is made;
    the `limit` smallest priorities of a row and period stay.
    """
    n_epochs = period_of_epoch.size
    n_periods = period_of_epoch.max() + 1
    keep = np.ones(cells.size, np.bool_)
    visits = np.zeros(n_periods, np.int64)
    thresholds = np.zeros(n_periods, np.uint64)
    for row in range(indptr.size - 1):
        start, stop = indptr[row], indptr[row + 1]
        if stop - start <= limit:
            continue
        visits[:] = 0
        for i in range(start, stop):
            visits[period_of_epoch[cells[i] % n_epochs]] += 1
        for period in range(n_periods):
            if visits[period] <= limit:
                continue
            priorities = np.empty(visits[period], np.uint64)
            filled = 0
            for i in range(start, stop):
                if period_of_epoch[cells[i] % n_epochs] == period:
                    priorities[filled] = _scrambled(key, i)
                    filled += 1
            priorities.sort()
            thresholds[period] = priorities[limit]
        for i in range(start, stop):
            period = period_of_epoch[cells[i] % n_epochs]
            if visits[period] > limit:
                keep[i] = _scrambled(key, i) < thresholds[period]
    return keep
