"""Rates of flows: how many others make a trip between two places, from the release alone.

A rate is a factor of the origin times one of the destination times one of the epoch. To these come
components of origins by destinations, as many as stand out of the noise of the sums over epochs.
Trips between two places, in both directions and over all epochs, share a level that is not known:
what it may be is learned from all such lines, and integrated over (see `lines`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels
from whosthere.adversary.components import edge_of, leading, log_share
from whosthere.adversary.lines import Lines, log_sums
from whosthere.arrays import Floats, Floats32, frozen
from whosthere.data.cells import region_and_epoch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from whosthere.adversary.components import Completion
    from whosthere.adversary.count_tables import CountTables
    from whosthere.adversary.rates import Rates
    from whosthere.arrays import Ints32, Ints64
    from whosthere.data.flows import Pairs

# Factors of places and of epochs are fitted in turn so often, or until none of an epoch moves more.
_TURNS, _STILL = 8, 1e-3
_ROUNDS, _SHAPED_ROUNDS = 12, 4
# Pairs that are not published are taken for this much rarer, on a logarithmic scale.
_MISSING = -20.0
_BINS = 400
# Cells that are looked at together.
_BLOCK = 2**21
# Spreads of levels that are tried, and levels that they are integrated over.
_SPREADS = np.exp(np.arange(np.log(0.1), np.log(3.0), 0.1))
_LEVELS = frozen(np.arange(-9.0, 4.0, 0.25), np.float64)
# Somebody's own pairs differ from what places let expect by more than most pairs do: with twice the
# spread that all pairs have, likelihood ratios were better in most tables (flows.md in the docs).
_WIDER = 2.0
_LINES_TO_FIT, _CELLS_TO_FIT, _FEWEST_LINES = 2048, 2**17, 128


@dataclass(frozen=True)
class Expected:
    """What a cell is expected to be published as, less what an empty one is, by its log rate."""

    first: float
    step: float
    table: Floats

    def __call__(self, log_rates: Floats) -> Floats:
        last = self.first + (self.table.size - 1) * self.step
        within = np.interp(
            log_rates, self.first + self.step * np.arange(self.table.size), self.table
        )
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
    n = len(pairs.places)
    absent = np.where(pairs.grid < 0, _MISSING, 0.0)
    columns = np.log(by_epoch / by_epoch.sum())
    for _ in range(_TURNS):
        # The sum over epochs of a pair, by the logarithm of its factor.
        first = expected.first - columns.max()
        size = int((np.log(by_origin.max()) + 3 - first) / expected.step) + 2
        levels = first + expected.step * np.arange(max(size, 2))
        summed = sum(expected(levels + one) for one in columns)
        fitting = np.asarray(summed), first, expected.step
        if len(pairs) == n * n:
            x, y = kernels.fit_rank_one(by_origin, by_destination, *fitting, _ROUNDS)
        else:
            x, y = kernels.fit_shaped(by_origin, by_destination, absent, *fitting, _SHAPED_ROUNDS)
        rows = x[pairs.origins] + y[pairs.destinations]
        times, edges = np.histogram(rows, bins=_BINS)
        middles, used = (edges[1:] + edges[:-1]) / 2, times > 0
        tried = np.arange(columns.min() - 3, columns.max() + 3, expected.step)
        reached = [times[used] @ expected(middles[used] + one) for one in tried]
        moved = np.interp(by_epoch, np.maximum.accumulate(reached), tried)
        longest, columns = float(np.abs(moved - columns).max()), moved
        if longest < _STILL or columns.size == 1:
            break
    return rows, columns


def with_components(
    pairs: Pairs, symbols: Ints32, base: tuple[Floats, Floats], completed: Completion, rounds: int
) -> Floats:
    """Return logarithms of rates by pair, with the components of origins by destinations.

    Hidden counts are completed by the rates found so far, in so many rounds.
    """
    rows, columns = base
    n = len(pairs.places)
    at = pairs.origins, pairs.destinations
    moved = np.zeros(rows.size, np.float32)
    for _ in range(rounds):
        excess, squared, variance = _by_pair(symbols, rows, columns, moved, completed)
        deviation = np.sqrt(squared)
        residuals, varies = np.zeros((n, n), np.float32), np.zeros((n, n))
        residuals[at], varies[at] = excess / deviation, variance / squared
        by_row, by_column = varies.sum(axis=1), varies.sum(axis=0)
        left, right = leading(residuals, edge_of(by_row, by_column), by_row.sum() / n**2)
        if not left.shape[1]:
            break
        extra = (left @ right.T)[at]
        moved = log_share(extra, deviation / np.exp(rows + log_sums(columns[None])))
    return np.asarray(rows + moved)


def _by_pair(
    symbols: Ints32, rows: Floats, columns: Floats, moved: Floats32, completed: Completion
) -> tuple[Floats, Floats, Floats]:
    """Return sums over epochs, by pair: counts beyond the rates, squared deviations, variances."""
    found = np.empty((3, rows.size))
    size = max(_BLOCK // columns.size, 1)
    for begin in range(0, rows.size, size):
        part = slice(begin, begin + size)
        base = rows[part, None] + columns
        assumed = np.repeat(moved[part, None], columns.size, axis=1)
        flat = np.zeros((1, 1))
        of_cells = completed.residuals(symbols[part], (rows[part], columns, flat), assumed)[0]
        deviations = completed.deviations(base)
        squared = deviations**2
        place = (base - completed.tables.first) / completed.tables.step
        weight = np.interp(place, np.arange(completed.weight.size), completed.weight)
        found[:, part] = [
            one.sum(axis=1) for one in (of_cells * deviations, squared, weight * squared)
        ]
    return found[0], found[1], found[2]


@dataclass(frozen=True, eq=False)
class FlowLines(Lines):
    """Lines of a table of flows: trips between two places in both directions, over all epochs.

    `there` and `back` are the pairs of each line, -1 where there is none, and `line` and `side`
    the line of each pair and which of the two it is. Levels are relative to the fitted rates.
    """

    there: Ints32
    back: Ints32
    line: Ints32
    side: Ints32

    @classmethod
    def of_pairs(
        cls, pairs: Pairs, symbols: Ints32, rates: Rates, tables: CountTables
    ) -> FlowLines:
        """Fit the law of lines to published symbols, shape (n_pairs, n_epochs)."""
        low = np.minimum(pairs.origins, pairs.destinations).astype(np.int64)
        high = np.maximum(pairs.origins, pairs.destinations)
        side = (pairs.origins > pairs.destinations).astype(np.int32)
        keys, line = np.unique(low * len(pairs.places) + high, return_inverse=True)
        ends = np.full((2, keys.size), -1, np.int32)
        ends[side, line] = np.arange(len(pairs))
        there, back = ends
        made = cls(symbols, rates, tables, 0, 0.0, 1.0, there, back, line.astype(np.int32), side)
        n_cells = 2 * symbols.shape[1]
        n_used = min(keys.size, _LINES_TO_FIT, max(_CELLS_TO_FIT // n_cells, _FEWEST_LINES))
        used = np.linspace(0, keys.size - 1, n_used).astype(np.int64)
        levels = np.repeat(_LEVELS[None], n_used, axis=0)
        log_chance = kernels.sum_log_chances(
            made._symbols_of(used), made._log_rates_of(used), levels, *tables.of_chances
        )
        spread = _WIDER * max(_SPREADS, key=_evidence(log_chance))
        return replace(made, centre=-(spread**2) / 2, spread=spread)

    def place(self, cells: NDArray[np.integer]) -> tuple[Ints64, Ints64]:
        n_epochs = self.symbols.shape[1]
        pair, epoch = region_and_epoch(np.asarray(cells, np.int64), n_epochs)
        return self.line[pair].astype(np.int64), self.side[pair] * n_epochs + epoch

    def _symbols_of(self, lines: Ints64) -> Ints32:
        sides = [
            np.where(pair[:, None] < 0, -1, self.symbols[pair])
            for pair in (self.there[lines], self.back[lines])
        ]
        return np.ascontiguousarray(np.hstack(sides), np.int32)

    def _log_rates_of(self, lines: Ints64) -> Floats:
        sides = (self.there[lines].astype(np.int64), self.back[lines].astype(np.int64))
        return np.hstack([self.rates.log_rates_of_lines(pair, 0) for pair in sides])

    def _fitted(self, lines: Ints64) -> Floats:
        return np.zeros(lines.size)


def _evidence(log_chance: Floats) -> Callable[[float], float]:
    """Return how likely counts are by the spread of levels whose mean is 1, as a logarithm."""

    def of(spread: float) -> float:
        law = -(((_LEVELS + spread**2 / 2) / spread) ** 2) / 2
        return float(log_sums(log_chance + law - log_sums(law[None])).sum())

    return of
