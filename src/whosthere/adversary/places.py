"""Two ends of trips: what a table of flows tells about the places between which people move.

A rate is a factor of the origin times one of the destination times one of the epoch. To these come
components of origins by destinations, as many as stand out of the noise of the sums over epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere import kernels
from whosthere.adversary.components import edge_of, leading, log_share

if TYPE_CHECKING:
    from whosthere.adversary.components import Completion
    from whosthere.arrays import Floats, Floats32, Ints32
    from whosthere.data.flows import Pairs

# Factors of places and of epochs are fitted in turn so often, or until none of an epoch moves more.
_TURNS, _STILL = 8, 1e-3
_ROUNDS, _SHAPED_ROUNDS = 12, 4
# Pairs that are not published are taken for this much rarer, on a logarithmic scale.
_MISSING = -20.0
_BINS = 400
# Cells that are looked at together.
_BLOCK = 2**21


class Expected(NamedTuple):
    """What a cell is expected to be published as, less what an empty one is, by its log rate.

    A table from the logarithm `first` on, in steps.
    """

    table: Floats
    first: float
    step: float

    def at(self, log_rates: Floats) -> Floats:
        """Return it for cells of the given rates, same shape."""
        last = self.first + (self.table.size - 1) * self.step
        grid = self.first + self.step * np.arange(self.table.size)
        within = np.interp(log_rates, grid, self.table)
        below = self.table[0] * np.exp(np.minimum(log_rates - self.first, 0.0))
        beyond = np.exp(log_rates) + self.table[-1] - np.exp(last)
        found = np.where(log_rates < self.first, below, within)
        return np.asarray(np.where(log_rates > last, beyond, found))


def fit_places(
    pairs: Pairs, sums: tuple[Floats, Floats, Floats], expected: Expected
) -> tuple[Floats, Floats]:
    """Return logarithms of rates by pair, without components, and by epoch.

    `sums` are those of what was published by origin, by destination and by epoch, less those of
    empty cells, with the same total.
    """
    by_origin, by_destination, by_epoch = sums
    n, step = len(pairs.places), expected.step
    absent = np.where(pairs.grid < 0, _MISSING, 0.0)
    columns = np.log(by_epoch / by_epoch.sum())
    for _ in range(_TURNS):
        # The sum over epochs of a pair, by the logarithm of its factor.
        first = expected.first - columns.max()
        size = int((np.log(by_origin.max()) + 3 - first) / step) + 2
        factors = first + step * np.arange(max(size, 2))
        summed = np.asarray(sum(expected.at(factors + one) for one in columns))
        if len(pairs) == n * n:
            x, y = kernels.fit_rank_one(by_origin, by_destination, summed, first, step, _ROUNDS)
        else:
            fitting = absent, summed, first, step, _SHAPED_ROUNDS
            x, y = kernels.fit_shaped(by_origin, by_destination, *fitting)
        rows = x[pairs.origins] + y[pairs.destinations]
        times, edges = np.histogram(rows, bins=_BINS)
        middles, used = (edges[1:] + edges[:-1]) / 2, times > 0
        tried = np.arange(columns.min() - 3, columns.max() + 3, step)
        reached = [times[used] @ expected.at(middles[used] + one) for one in tried]
        moved = np.interp(by_epoch, np.maximum.accumulate(reached), tried)
        longest, columns = float(np.abs(moved - columns).max()), moved
        if longest < _STILL or columns.size == 1:
            break
    return rows, columns


def components_of_places(
    pairs: Pairs, symbols: Ints32, base: Floats, completed: Completion, rounds: int
) -> Floats:
    """Return what the components of origins by destinations add to log rates, by pair.

    Hidden counts are completed by the rates found so far, in so many rounds.
    """
    n, at = len(pairs.places), (pairs.origins, pairs.destinations)
    moved = np.zeros(len(pairs), np.float32)
    total = np.exp(base).sum(axis=1)
    for _ in range(rounds):
        excess, squared, variance = _by_pair(symbols, base, moved, completed)
        deviation = np.sqrt(squared)
        residuals, varies = np.zeros((n, n), np.float32), np.zeros((n, n))
        residuals[at], varies[at] = excess / deviation, variance / squared
        by_row, by_column = varies.sum(axis=1), varies.sum(axis=0)
        left, right = leading(residuals, edge_of(by_row, by_column), by_row.sum() / n**2)
        if not left.shape[1]:
            break
        moved = log_share((left @ right.T)[at], deviation / total)
    return np.asarray(moved, np.float64)


def _by_pair(
    symbols: Ints32, base: Floats, moved: Floats32, completed: Completion
) -> tuple[Floats, Floats, Floats]:
    """Return sums over epochs, by pair: counts beyond the rates, squared deviations, variances."""
    found = np.empty((3, len(base)))
    size = max(_BLOCK // base.shape[1], 1)
    for begin in range(0, len(base), size):
        part = slice(begin, begin + size)
        assumed = np.repeat(moved[part, None], base.shape[1], axis=1)
        of_cells = completed.residuals(symbols[part], base[part], assumed)[0]
        deviations = completed.relative_deviations(base[part]) * np.exp(base[part])
        squared = deviations**2
        place = (base[part] - completed.tables.first) / completed.tables.step
        weight = np.interp(place, np.arange(completed.weight.size), completed.weight)
        sums = of_cells * deviations, squared, weight * squared
        found[:, part] = [one.sum(axis=1) for one in sums]
    return found[0], found[1], found[2]
