"""What published counts say about the rates of cells around them.

Each count pulls at the logarithm of its rate: by the slope of its log-likelihood, with the
information that it holds. Neighbours of a kind are some columns of a table of regions, in some
epochs around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Floats32, Ints32, Ints64
    from whosthere.kernels.lines import Scales


@part()
def _slope(
    symbol: int, log_rate: float, slopes: Floats, information: Floats, scales: Scales
) -> tuple[float, float]:
    """Return the slope of a log-likelihood by the logarithm of a rate, and the information."""
    bin_of_symbol, first, step, noise, shift, base, marks, unit, _ = scales
    last = information.size - 1
    row = slopes[bin_of_symbol[min(symbol, bin_of_symbol.size - 1)]]
    place = max((log_rate - first) / step, 0.0)
    if place < last:
        k = int(place)
        away = place - k
        known = information[k] + away * (information[k + 1] - information[k])
        return row[k] + away * (row[k + 1] - row[k]), known
    if symbol < marks:
        return row[last], information[last]
    rate = np.exp(log_rate)
    known = rate * rate / (rate + noise)
    return (unit * (symbol + base) - rate - shift) * known / rate, known


@kernel()
def slopes_by_cell(
    symbols: Ints32, log_rates: Floats, slopes: Floats, information: Floats, scales: Scales
) -> tuple[Floats32, Floats32]:
    """Return slopes of log-likelihoods and information, shape (n_regions, n_epochs)."""
    slope, known = np.empty(symbols.shape, np.float32), np.empty(symbols.shape, np.float32)
    for s in range(symbols.shape[0]):
        for t in range(symbols.shape[1]):
            slope[s, t], known[s, t] = _slope(
                symbols[s, t], log_rates[s, t], slopes, information, scales
            )
    return slope, known


@kernel()
def pulls(
    regions: Ints64,
    kinds: Ints64,
    near: Ints32,
    lags: Ints64,
    slope: Floats32,
    known: Floats32,
    least: float,
) -> Floats32:
    """Return what neighbours of each kind say, shape (n_regions * n_epochs, n_kinds).

    A kind is the first column of `near` and the one after the last, and the same of `lags`. `near`
    has -1 where a region has fewer neighbours. `least` is the information that none is needed.
    """
    n_epochs = slope.shape[1]
    found = np.empty((regions.size * n_epochs, kinds.shape[0]), np.float32)
    pull, sure = np.empty(n_epochs, np.float32), np.empty(n_epochs, np.float32)
    for i in range(regions.size):
        for k in range(kinds.shape[0]):
            for t in range(n_epochs):
                pull[t], sure[t] = 0.0, least
            for j in range(kinds[k, 0], kinds[k, 1]):
                other = near[regions[i], j]
                if other >= 0:
                    for lag in lags[kinds[k, 2] : kinds[k, 3]]:
                        _add_later(pull, slope[other], lag)
                        _add_later(sure, known[other], lag)
            for t in range(n_epochs):
                found[i * n_epochs + t, k] = pull[t] / sure[t]
    return found


@part(once=True)
def _add_later(to: Floats32, values: Floats32, lag: int) -> None:
    """Add what was so many epochs later."""
    begin, end = max(-lag, 0), to.size - max(lag, 0)
    into, of = to[begin:end], values[begin + lag : end + lag]
    for t in range(into.size):
        into[t] += of[t]


@kernel(fastmath=True)
def slope_by_weights(
    symbols: Ints32,
    log_rates: Floats,
    pulled: Floats32,
    weights: Floats,
    most: float,
    every: int,
    slopes: Floats,
    information: Floats,
    scales: Scales,
) -> tuple[Floats, Floats]:
    """Return slope and curvature of the log-likelihood by the weight of each kind.

    Cells lie in a row, `pulled` has the shape (n_cells, n_kinds). No rate moves by more than
    `most`, as a logarithm. The curvature is that of `every` so manieth cell, times as many.
    """
    n = weights.size
    gradient, curvature, own = np.zeros(n), np.zeros((n, n)), np.empty(n)
    for i in range(symbols.size):
        moved = 0.0
        for k in range(n):
            own[k] = pulled[i, k]
            moved += weights[k] * own[k]
        log_rate = log_rates[i] + min(max(moved, -most), most)
        slope, known = _slope(symbols[i], log_rate, slopes, information, scales)
        for k in range(n):
            gradient[k] += slope * own[k]
        if i % every == 0:
            for k in range(n):
                informed = every * known * own[k]
                for j in range(n):
                    curvature[k, j] += informed * own[j]
    return gradient, curvature
