"""How far published counts lie from rates of the form row times column plus a few components."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def standardised_residuals(
    counts: NDArray[np.int32],
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    shape: NDArray[np.float64],
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    completed: NDArray[np.float32],
    bin_of_value: NDArray[np.int32],
    deviation: NDArray[np.float64],
    first: float,
    step: float,
    added: float,
    shift: float,
    least_share: float,
) -> NDArray[np.float32]:
    """Return (completed count - base rate) / deviation, shape (n_rows, n_columns).

    The base rate of cell (s, t) is ``exp(rows[s] + columns[t] + shape[s, t])``, where `shape` may
    have a single row and column to say that it is 0 everywhere. The rate is that plus
    ``deviation * (left[s] @ right[t])``, but `least_share` of it at least, and decides what a
    hidden count is completed to. Beyond the tables, counts are taken as they are, less `shift`, and
    the squared deviation is the rate plus `added`.

    Parameters
    ----------
    completed
        By rate and bin of the published value, shape (n_rates, n_bins).
    deviation
        By rate, shape (n_rates,).
    """
    n_rows, n_columns = counts.shape
    n_components = left.shape[1]
    shaped = shape.size > 1
    last = completed.shape[0] - 1
    top = first + last * step
    row_factors, column_factors = np.exp(rows), np.exp(columns)
    made = np.empty((n_rows, n_columns), np.float32)
    for s in range(n_rows):
        for t in range(n_columns):
            log_base = rows[s] + columns[t]
            base = row_factors[s] * column_factors[t]
            if shaped:
                log_base += shape[s, t]
                base *= np.exp(shape[s, t])
            if log_base >= top:
                spread = np.sqrt(base + added)
            else:
                place = max((log_base - first) / step, 0.0)
                k = min(int(place), last - 1)
                spread = deviation[k] + (place - k) * (deviation[k + 1] - deviation[k])
            log_rate = log_base
            if n_components:
                extra = np.float32(0.0)
                for i in range(n_components):
                    extra += left[s, i] * right[t, i]
                log_rate = np.log(max(base + spread * extra, least_share * base))
            value = counts[s, t]
            if log_rate >= top or value >= bin_of_value.size:
                found = value - shift
            else:
                place = max((log_rate - first) / step, 0.0)
                k = min(int(place), last - 1)
                column = bin_of_value[value]
                low, high = completed[k, column], completed[k + 1, column]
                found = low + (place - k) * (high - low)
            made[s, t] = (found - base) / spread
    return made


@njit(cache=True, nogil=True)
def sums_by_rate(
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    shape: NDArray[np.float64],
    table: NDArray[np.float64],
    first: float,
    step: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add up by row and by column what a table says of each cell's base rate.

    Beyond its ends, the table continues with its first and last entries.
    """
    by_row, by_column = np.zeros(rows.size), np.zeros(columns.size)
    shaped = shape.size > 1
    last = table.size - 1
    for s in range(rows.size):
        for t in range(columns.size):
            log_base = rows[s] + columns[t] + (shape[s, t] if shaped else 0.0)
            place = min(max((log_base - first) / step, 0.0), float(last))
            k = min(int(place), last - 1)
            value = table[k] + (place - k) * (table[k + 1] - table[k])
            by_row[s] += value
            by_column[t] += value
    return by_row, by_column
