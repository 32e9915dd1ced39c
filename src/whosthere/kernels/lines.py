"""Chances of published symbols at several rates of a cell at once.

Tables hold a number for each bin of symbols and each rate, shape (n_bins, n_rates), so that the
rates of one bin lie side by side. Rates are on a logarithmic grid. Beyond it, a published count is
normal. A mark is no count: its tables end with the grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Ints32, Ints64

_LOG_TWO_PI = float(np.log(2 * np.pi))


class Scales(NamedTuple):
    """How tables are read."""

    bin_of_symbol: Ints32
    # Logarithm of the first rate, and the distance of the logarithms.
    first: float
    step: float
    # Beyond the grid, the variance of a count is the rate and the noise, its mean rate and shift.
    noise: float
    shift: float
    # A count is its symbol and the base. Symbols below `marks` are no counts.
    base: int
    marks: int
    # What a count is multiplied by to be one of people, as rates are.
    unit: float
    # What the target adds to a count.
    added: float


@kernel()
def sum_log_chances(
    symbols: Ints32, log_rates: Floats, nodes: Floats, log_chance: Floats, scales: Scales
) -> Floats:
    """Add up log chances over the cells of each line, at each of its nodes: (n_lines, n_nodes).

    Symbols and rates have the shape (n_lines, n_cells); negative symbols are left out. `nodes` are
    added to all logarithms of rates of a line.
    """
    sums = np.zeros(nodes.shape)
    for line in range(symbols.shape[0]):
        _add_log_chances(symbols[line], log_rates[line], nodes[line], log_chance, scales,
                         sums[line])  # fmt: skip
    return sums


@kernel()
def log_ratios_at_nodes(
    symbols: Ints32,
    log_rates: Floats,
    line: Ints64,
    nodes: Floats,
    log_ratio: Floats,
    scales: Scales,
) -> Floats:
    """Return the log ratio of each cell at the nodes of its line, shape (n_cells, n_nodes).

    Parameters are as for `sum_log_chances`, but by cell: `line` is that of each, shape (n_cells,).
    """
    bin_of_symbol, first, step, noise, shift, base, marks, unit, added = scales
    found = np.empty((symbols.size, nodes.shape[1]))
    last = log_ratio.shape[1] - 1
    for i in range(symbols.size):
        symbol = symbols[i]
        row = log_ratio[bin_of_symbol[min(symbol, bin_of_symbol.size - 1)]]
        for q in range(nodes.shape[1]):
            log_rate = log_rates[i] + nodes[line[i], q]
            place = max((log_rate - first) / step, 0.0)
            if place < last:
                k = int(place)
                below = row[k]
                # Where the person cannot be at one rate, it is so at the next one, too.
                rises = np.isfinite(below) and np.isfinite(row[k + 1])
                found[i, q] = below + (place - k) * (row[k + 1] - below) if rises else below
            elif symbol < marks:
                found[i, q] = row[last]
            else:
                rate = np.exp(log_rate)
                away = unit * (symbol + base) - rate - shift
                found[i, q] = added * (away - 0.5 * added) / (rate + noise)
    return found


@kernel()
def information_on_levels(
    symbols: Ints32, log_rates: Floats, information: Floats, scales: Scales
) -> Floats:
    """Return what lines tell about the logarithm of a factor of all their rates, shape (n_lines,).

    `information` is that of a published count about the rate (Fisher's), by rate.
    """
    found = np.empty(symbols.shape[0])
    for line in range(found.size):
        found[line] = _information(symbols[line], log_rates[line], information, scales)
    return found


@kernel()
def find_levels(
    symbols: Ints32,
    log_rates: Floats,
    expected: Floats,
    spread: float,
    looks: Floats,
    narrowest: float,
    n_nodes: int,
    information: Floats,
    log_chance: Floats,
    scales: Scales,
) -> tuple[Floats, Floats]:
    """Return nodes and log chances of levels of lines, shape (n_lines, n_nodes) each.

    Before symbols are seen, the logarithm of a level is normal, with an expectation for each line
    and a `spread`. `looks` says how many deviations around the mean the nodes of each look reach;
    no look is less than the part `narrowest` of the one before wide.
    """
    nodes, logs = np.empty((expected.size, n_nodes)), np.empty((expected.size, n_nodes))
    for line in range(expected.size):
        known = _information(symbols[line], log_rates[line], information, scales)
        deviation = 1.0 / np.sqrt(known + spread**-2)
        middle = expected[line] * (deviation / spread) ** 2
        for width in looks:
            for q in range(n_nodes):
                place = 2.0 * q / (n_nodes - 1) - 1.0
                nodes[line, q] = middle + deviation * width * place
                logs[line, q] = -0.5 * ((nodes[line, q] - expected[line]) / spread) ** 2
            _add_log_chances(symbols[line], log_rates[line], nodes[line], log_chance, scales,
                             logs[line])  # fmt: skip
            top, total = -np.inf, 0.0
            for q in range(n_nodes):
                top = max(top, logs[line, q])
            for q in range(n_nodes):
                total += np.exp(logs[line, q] - top)
            mean = squares = 0.0
            for q in range(n_nodes):
                logs[line, q] -= top + np.log(total)
                mean += np.exp(logs[line, q]) * nodes[line, q]
            for q in range(n_nodes):
                squares += np.exp(logs[line, q]) * (nodes[line, q] - mean) ** 2
            middle, deviation = mean, max(np.sqrt(squares), narrowest * deviation)
    return nodes, logs


@kernel()
def means_without_each(
    symbols: Ints32,
    log_rates: Floats,
    nodes: Floats,
    log_weight: Floats,
    log_chance: Floats,
    scales: Scales,
) -> Floats:
    """Return the mean of the nodes of each line without each of its cells: (n_lines, n_cells).

    `log_weight` are the log chances of the nodes given all cells; all else is as for
    `sum_log_chances`.
    """
    bin_of_symbol, found = scales.bin_of_symbol, np.zeros(symbols.shape)
    left = np.empty(nodes.shape[1])
    for line in range(symbols.shape[0]):
        for i in range(symbols.shape[1]):
            symbol = symbols[line, i]
            if symbol < 0:
                continue
            row = log_chance[bin_of_symbol[min(symbol, bin_of_symbol.size - 1)]]
            top = -np.inf
            for q in range(left.size):
                log_rate = log_rates[line, i] + nodes[line, q]
                left[q] = log_weight[line, q] - _log_chance(symbol, log_rate, row, scales)
                top = max(top, left[q])
            total = mean = 0.0
            for q in range(left.size):
                weight = np.exp(left[q] - top)
                total += weight
                mean += weight * nodes[line, q]
            found[line, i] = mean / total
    return found


@part()
def _add_log_chances(
    symbols: Ints32,
    log_rates: Floats,
    nodes: Floats,
    log_chance: Floats,
    scales: Scales,
    sums: Floats,
) -> None:
    """Add the log chances of the cells of a line at its nodes to `sums`."""
    for i in range(symbols.size):
        symbol = symbols[i]
        if symbol >= 0:
            row = log_chance[scales.bin_of_symbol[min(symbol, scales.bin_of_symbol.size - 1)]]
            for q in range(nodes.size):
                sums[q] += _log_chance(symbol, log_rates[i] + nodes[q], row, scales)


@part()
def _information(symbols: Ints32, log_rates: Floats, information: Floats, scales: Scales) -> float:
    """Return what a line tells about the logarithm of a factor of all its rates."""
    last, found = information.size - 1, 0.0
    for i in range(symbols.size):
        if symbols[i] >= 0:
            place = max((log_rates[i] - scales.first) / scales.step, 0.0)
            rate = np.exp(log_rates[i])
            if place > last:
                # The noise stays, and people add their own.
                of_rate = 1.0 / (rate + scales.noise)
            else:
                k = min(int(place), last - 1)
                of_rate = information[k] + (place - k) * (information[k + 1] - information[k])
            found += rate**2 * of_rate
    return found


@part()
def _log_chance(symbol: int, log_rate: float, row: Floats, scales: Scales) -> float:
    """Return the log chance of a symbol in a cell of a rate, given the `row` of its bin."""
    place, last = (log_rate - scales.first) / scales.step, row.size - 1
    if place < last:
        # Below the table, chances are powers of the rate.
        k = max(int(place), 0)
        return float(row[k] + (place - k) * (row[k + 1] - row[k]))
    if symbol < scales.marks:
        return float(row[last])
    rate = np.exp(log_rate)
    variance = rate + scales.noise
    away = scales.unit * (symbol + scales.base) - rate - scales.shift
    # Symbols lie a unit apart.
    spread = _LOG_TWO_PI + np.log(variance) - 2.0 * np.log(scales.unit)
    return float(-0.5 * (spread + away**2 / variance))
