"""Fitting rates of the form exp(row + column) to sums of published counts.

What a cell is expected to be published as is a table over the logarithm of its rate. A row's sum
is that of the table at row + column, over all columns. Where nothing but these decides about a
rate, it only matters how many columns lie where on the table: columns are counted in bins as wide
as the table's steps, each split between the two bins around it, and the sums of all rows follow
from the bins. So a round takes time for the rows, the columns and the table, but not for the cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Floats32, Ints32
    from whosthere.kernels.lines import Scales

# No update moves a rate by more than this, on a logarithmic scale.
_LONGEST_STEP = 2.0
# Factors are final once a round moves none by more than this.
_TOLERANCE = 1e-4
# Rates are looked for down to so many e-folds below the table.
_BELOW = 8.0


@kernel()
def fit_rank_one(
    row_excess: Floats, column_excess: Floats, table: Floats, first: float, step: float, rounds: int
) -> tuple[Floats, Floats]:
    """Find rows x and columns y so that expected sums meet the given ones.

    The rate of cell (s, t) is ``exp(x[s] + y[t])``. ``table[i]`` is what a cell of rate
    ``exp(first + i * step)`` is expected to be published as, less what an empty one is; above
    the table it grows with the rate, below it is proportional to the rate. Rows and columns are
    solved for in turn until they stand still. The sums given are of published counts, less those of
    empty cells; positive, with the same total.
    """
    x, y = _first_guess(row_excess, column_excess)
    highest = np.log(max(_range(row_excess)[1], _range(column_excess)[1])) + 2.0
    below = int(_BELOW / step)
    size = below + max(int((highest - first) / step) + 2, table.size)
    expected = _extended(table, first, step, below, size)
    start = first - below * step
    for _ in range(rounds):
        change = max(
            _solve(x, y, row_excess, expected, start, step),
            _solve(y, x, column_excess, expected, start, step),
        )
        if change < _TOLERANCE:
            break
    return x, y


@part()
def _first_guess(row_excess: Floats, column_excess: Floats) -> tuple[Floats, Floats]:
    """Return the logarithms of rows and columns where nothing is lost or added."""
    x, y, total = np.empty(row_excess.size), np.empty(column_excess.size), 0.0
    for s in range(x.size):
        total += row_excess[s]
        x[s] = np.log(row_excess[s] / y.size)
    for t in range(y.size):
        y[t] = np.log(column_excess[t] / total * y.size)
    return x, y


@part()
def _range(values: Floats) -> tuple[float, float]:
    """Return the smallest and the largest value."""
    low = high = values[0]
    for i in range(values.size):
        low, high = min(low, values[i]), max(high, values[i])
    return low, high


@part()
def _extended(table: Floats, first: float, step: float, below: int, size: int) -> Floats:
    """Return a table from `below` steps before its first entry on, with `size` entries."""
    last = table.size - 1
    beyond = table[last] - np.exp(first + last * step)
    made = np.empty(size)
    for i in range(size):
        place = i - below
        if place < 0:
            made[i] = table[0] * np.exp(place * step)
        elif place <= last:
            made[i] = table[place]
        else:
            made[i] = np.exp(first + place * step) + beyond
    return made


@part()
def _solve(
    own: Floats, others: Floats, wanted: Floats, expected: Floats, start: float, step: float
) -> float:
    """Move each of `own` to where its expected sum is the wanted one; return the longest move."""
    lowest, highest = _range(others)
    n_bins = int((highest - lowest) / step) + 2
    bins = np.zeros(n_bins)
    for i in range(others.size):
        place = (others[i] - lowest) / step
        k = int(place)
        bins[k] += 1.0 - (place - k)
        bins[k + 1] += place - k
    sums = np.zeros(max(expected.size - n_bins + 1, 1))
    for b in range(min(n_bins, expected.size)):
        for i in range(sums.size):
            sums[i] += bins[b] * expected[i + b]
    if sums[-1] <= 0.0:
        return 0.0  # nothing is ever published, whatever the rate
    for i in range(1, sums.size):
        sums[i] = max(sums[i], sums[i - 1])
    longest = 0.0
    for i in range(own.size):
        low, high = 0, sums.size - 1
        while low < high - 1:
            middle = (low + high) // 2
            if sums[middle] < wanted[i]:
                low = middle
            else:
                high = middle
        place = float(high)
        if sums[high - 1] > 0.0 and sums[high] > sums[high - 1]:
            part = np.log(wanted[i] / sums[high - 1]) / np.log(sums[high] / sums[high - 1])
            place = high - 1 + min(max(part, 0.0), 1.0)
        found = start - lowest + place * step
        longest = max(longest, abs(found - own[i]))
        own[i] = found
    return longest


@kernel()
def fit_shaped(
    row_excess: Floats,
    column_excess: Floats,
    shape: Floats,
    table: Floats,
    first: float,
    step: float,
    rounds: int,
) -> tuple[Floats, Floats]:
    """Find rows x and columns y where cells differ from row times column by a known `shape`.

    The rate of cell (s, t) is ``exp(x[s] + y[t] + shape[s, t])``; all else is as for
    `fit_rank_one`. Each update is a Newton step on the logarithm of a sum, which is exact where
    the expectation is a power of the rate.
    """
    n_rows, n_columns = row_excess.size, column_excess.size
    x, y = _first_guess(row_excess, column_excess)
    offsets = np.empty(max(n_rows, n_columns))
    for round_ in range(rounds):
        repeats = 2 if round_ == 0 else 1
        for s in range(n_rows):
            for t in range(n_columns):
                offsets[t] = y[t] + shape[s, t]
            for _ in range(repeats):
                x[s] += _log_step(x[s], offsets[:n_columns], row_excess[s], table, first, step)
        for t in range(n_columns):
            for s in range(n_rows):
                offsets[s] = x[s] + shape[s, t]
            for _ in range(repeats):
                y[t] += _log_step(y[t], offsets[:n_rows], column_excess[t], table, first, step)
    return x, y


@part()
def _log_step(
    x: float, offsets: Floats, wanted: float, table: Floats, first: float, step: float
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


@kernel()
def standardised_residuals(
    symbols: Ints32,
    log_base: Floats,
    moved: Floats32,
    completed: Floats32,
    precision: Floats,
    weight: Floats,
    scales: Scales,
) -> tuple[Floats32, Floats, Floats]:
    """Return (completed count - base rate) * precision, and weights by row and by column.

    `log_base` are logarithms of the base rates, shape (n_rows, n_columns), and `moved` that of how
    many times larger the rate itself is, which decides what a hidden count is completed to; it may
    have a single row and column to say that it is 0 everywhere. Beyond the tables, a count is taken
    as it is, less what is added on average, and the precision is one by the root of the base rate
    and the noise. Marks are always completed by the tables.

    Tables are by rate and bin of the published symbol, shape (n_rates, n_bins), or by rate. What is
    returned has the shapes (n_rows, n_columns), (n_rows,) and (n_columns,).
    """
    bin_of_symbol, first, step, noise, shift, base_value, marks, unit, _ = scales
    n_rows, n_columns = symbols.shape
    is_moved = moved.size > 1
    last = completed.shape[0] - 1
    per_step = 1.0 / step
    made = np.empty((n_rows, n_columns), np.float32)
    by_row, by_column = np.zeros(n_rows), np.zeros(n_columns)
    for s in range(n_rows):
        for t in range(n_columns):
            base = np.exp(log_base[s, t])
            place = max((log_base[s, t] - first) * per_step, 0.0)
            k = min(int(place), last - 1)
            part = place - k
            if part > 1.0:
                inverse, own = 1.0 / np.sqrt(base + noise), weight[last]
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
                found = unit * (symbol + base_value) - shift
            else:
                part = min(part, 1.0)
                column = bin_of_symbol[symbol]
                low, high = completed[k, column], completed[k + 1, column]
                found = low + part * (high - low)
            made[s, t] = (found - base) * inverse
    return made, by_row, by_column


@kernel()
def relative_deviations(log_base: Floats, precision: Floats, scales: Scales) -> Floats:
    """Return the deviation of each cell over its base rate, shape (n_rows, n_columns)."""
    first, step = scales.first, scales.step
    last = precision.size - 1
    made = np.empty(log_base.shape)
    for s in range(log_base.shape[0]):
        for t in range(log_base.shape[1]):
            base = np.exp(log_base[s, t])
            place = max((log_base[s, t] - first) / step, 0.0)
            if place > last:
                made[s, t] = np.sqrt(base + scales.noise) / base
            else:
                k = min(int(place), last - 1)
                inverse = precision[k] + (place - k) * (precision[k + 1] - precision[k])
                made[s, t] = 1.0 / (inverse * base)
    return made
