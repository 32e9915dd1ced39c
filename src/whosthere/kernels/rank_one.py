"""Fitting rates of the form exp(row + column) to sums of published counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

# No update moves a rate by more than this, on a logarithmic scale.
_LONGEST_STEP = 2.0


@njit(cache=True, nogil=True)
def fit_rank_one(
    row_excess: NDArray[np.float64],
    column_excess: NDArray[np.float64],
    shape: NDArray[np.float64],
    table: NDArray[np.float64],
    first: float,
    step: float,
    rounds: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find rows x and columns y so that expected sums meet the given ones.

    The rate of cell (s, t) is ``exp(x[s] + y[t] + shape[s, t])``, where `shape` may have a
    single row and column to say that it is 0 everywhere. ``table[i]`` is what a cell of rate
    ``exp(first + i * step)`` is expected to be published as, less what an empty one is; above
    the table it grows with the rate. Each update is a Newton step on the logarithm of a sum,
    which is exact where the expectation is a power of the rate.

    Parameters
    ----------
    row_excess, column_excess
        Sums of published counts, less those of empty cells; positive.
    """
    n_rows, n_columns = row_excess.size, column_excess.size
    shaped = shape.size > 1
    total = row_excess.sum()
    x = np.log(row_excess / n_columns)
    y = np.log(column_excess / total * n_columns)
    offsets = np.empty(max(n_rows, n_columns))
    for round_ in range(rounds):
        repeats = 2 if round_ == 0 else 1
        for s in range(n_rows):
            for t in range(n_columns):
                offsets[t] = y[t] + (shape[s, t] if shaped else 0.0)
            for _ in range(repeats):
                x[s] += _log_step(x[s], offsets[:n_columns], row_excess[s], table, first, step)
        for t in range(n_columns):
            for s in range(n_rows):
                offsets[s] = x[s] + (shape[s, t] if shaped else 0.0)
            for _ in range(repeats):
                y[t] += _log_step(y[t], offsets[:n_rows], column_excess[t], table, first, step)
    return x, y


@njit(cache=True, nogil=True)
def _log_step(
    x: float,
    offsets: NDArray[np.float64],
    wanted: float,
    table: NDArray[np.float64],
    first: float,
    step: float,
) -> float:
    """Return the change of x that brings the sum of expected counts to the wanted one."""
    last = table.size - 1
    top = np.exp(first + last * step)
    beyond = table[last] - top
    total, slope = 0.0, 0.0
    scale = 1.0 / step
    shift = (x - first) * scale
    for i in range(offsets.size):
        place = shift + offsets[i] * scale
        if place <= 0.0:
            # Below the table the expectation is proportional to the rate.
            value = table[0] * np.exp(place * step)
            total += value
            slope += value
        elif place >= last:
            value = np.exp(first + place * step)
            total += value + beyond
            slope += value
        else:
            k = int(place)
            rise = table[k + 1] - table[k]
            total += table[k] + (place - k) * rise
            slope += rise * scale
    if total <= 0.0:
        return 0.0  # nothing is ever published, whatever the rate
    change = np.log(wanted / total) * total / max(slope, 1e-300)
    return float(min(max(change, -_LONGEST_STEP), _LONGEST_STEP))
