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
    precision: NDArray[np.float64],
    weight: NDArray[np.float64],
    first: float,
    step: float,
    added: float,
    shift: float,
    least_share: float,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Return (completed count - base rate) * precision, and weights by row and by column.

    The base rate of cell (s, t) is ``exp(rows[s] + columns[t] + shape[s, t])``, where `shape` may
    have a single row and column to say that it is 0 everywhere. The rate is that plus
    ``left[s] @ right[t] / precision``, but `least_share` of it at least, and decides what a hidden
    count is completed to. Beyond the tables, counts are taken as they are, less `shift`, and the
    precision is one by the root of the rate and `added`.

    Parameters
    ----------
    completed
        By rate and bin of the published value, shape (n_rates, n_bins).
    precision, weight
        By rate, shape (n_rates,).

    Returns
    -------
    tuple
        Shapes (n_rows, n_columns), (n_rows,) and (n_columns,).
    """
    n_rows, n_columns = counts.shape
    n_components = left.shape[1]
    shaped = shape.size > 1
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
            if n_components:
                extra = np.float32(0.0)
                for i in range(n_components):
                    extra += left[s, i] * right[t, i]
                share = max(1.0 + extra / (inverse * base), least_share)
                place = max(place + np.log(share) * per_step, 0.0)
                k = min(int(place), last - 1)
                part = place - k
            value = counts[s, t]
            if part > 1.0 or value >= bin_of_value.size:
                found = value - shift
            else:
                column = bin_of_value[value]
                low, high = completed[k, column], completed[k + 1, column]
                found = low + part * (high - low)
            made[s, t] = (found - base) * inverse
    return made, by_row, by_column
