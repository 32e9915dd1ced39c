"""How far published counts lie from rates of the form row times column plus a few components."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def standardised_residuals(
    symbols: NDArray[np.int32],
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    shape: NDArray[np.float64],
    moved: NDArray[np.float32],
    completed: NDArray[np.float32],
    bin_of_symbol: NDArray[np.int32],
    precision: NDArray[np.float64],
    weight: NDArray[np.float64],
    first: float,
    step: float,
    added: float,
    shift: float,
    base_value: int,
    marks: int,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Return (completed count - base rate) * precision, and weights by row and by column.

    The base rate of cell (s, t) is ``exp(rows[s] + columns[t] + shape[s, t])``, where `shape` may
    have a single row and column to say that it is 0 everywhere. So may `moved`, the logarithm of
    how many times larger the rate itself is, which decides what a hidden count is completed to.
    Beyond the tables, a count, which is a symbol and `base_value`, is taken as it is, less `shift`,
    and the precision is one by the root of the base rate and `added`. Symbols below `marks` are no
    counts: they are always completed by the tables.

    Parameters
    ----------
    completed
        By rate and bin of the published symbol, shape (n_rates, n_bins).
    precision, weight
        By rate, shape (n_rates,).

    Returns
    -------
    tuple
        Shapes (n_rows, n_columns), (n_rows,) and (n_columns,).
    """
    n_rows, n_columns = symbols.shape
    shaped, is_moved = shape.size > 1, moved.size > 1
    last = completed.shape[0] - 1
    per_step = 1.0 / step
    row_factors, column_factors = np.exp(rows), np.exp(columns)
    made = np.empty((n_rows, n_columns), np.float32)
    by_row, by_column = np.zeros(n_rows), np.zeros(n_columns)
    for s in range(n_rows):
        for t in range(n_columns):
            base = row_factors[s] * column_factors[t]
            place = (rows[s] + columns[t] - first) * per_step
            if shaped:
                base *= np.exp(shape[s, t])
                place += shape[s, t] * per_step
            place = max(place, 0.0)
            k = min(int(place), last - 1)
            part = place - k
            if part > 1.0:
                inverse, own = 1.0 / np.sqrt(base + added), weight[last]
            else:
                inverse = precision[k] + part * (precision[k + 1] - precision[k])
                own = weight[k] + part * (weight[k + 1] - weight[k])
            by_row[s] += own
            by_column[t] += own
            if is_moved:
                place = max(place + moved[s, t] * per_step, 0.0)
                k = min(int(place), last - 1)
                part = place - k
            symbol = symbols[s, t]
            if (part > 1.0 or symbol >= bin_of_symbol.size) and symbol >= marks:
                found = symbol + base_value - shift
            else:
                part = min(part, 1.0)
                column = bin_of_symbol[symbol]
                low, high = completed[k, column], completed[k + 1, column]
                found = low + part * (high - low)
            made[s, t] = (found - base) * inverse
    return made, by_row, by_column


@njit(cache=True, nogil=True)
def relative_deviations(
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    shape: NDArray[np.float64],
    precision: NDArray[np.float64],
    first: float,
    step: float,
    added: float,
) -> NDArray[np.float32]:
    """Return the deviation of each cell over its base rate, shape (n_rows, n_columns).

    Parameters are as for `standardised_residuals`.
    """
    shaped = shape.size > 1
    last = precision.size - 1
    row_factors, column_factors = np.exp(rows), np.exp(columns)
    made = np.empty((rows.size, columns.size), np.float32)
    for s in range(rows.size):
        for t in range(columns.size):
            base = row_factors[s] * column_factors[t]
            place = (rows[s] + columns[t] - first) / step
            if shaped:
                base *= np.exp(shape[s, t])
                place += shape[s, t] / step
            place = max(place, 0.0)
            if place > last:
                made[s, t] = np.sqrt(base + added) / base
            else:
                k = min(int(place), last - 1)
                inverse = precision[k] + (place - k) * (precision[k + 1] - precision[k])
                made[s, t] = 1.0 / (inverse * base)
    return made
