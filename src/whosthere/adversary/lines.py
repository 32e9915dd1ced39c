"""How well a release shows the level of its regions: rates with a law, and not only a value.

A region's counts over all epochs tell how busy it is. If there are few epochs or few visits they
tell little, and a single count nothing at all about the others that it consists of: a rate fitted
to it would explain it away. So the level of a line, which is a region, or an epoch where regions
are fewer than epochs, has a law. Before its counts are seen it is that of all lines: their
logarithms are taken for normal, with the mean and spread that make the release most likely. Its
counts then narrow it down, as far as they can through the mechanism.

People are found where people go: somebody visits a line with a chance in proportion to its level.
Among the lines that somebody visited large levels are therefore overrepresented. The law of a
normal logarithm that is weighted by its level is the same law, with the squared spread added to its
mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere import kernels
from whosthere.data.cells import region_and_epoch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.count_tables import CountTables
    from whosthere.adversary.rates import Rates
    from whosthere.arrays import Floats, Ints32, Ints64


# Levels of a line are integrated over by so many nodes, from so many deviations below its mean to
# as many above it: first a look at where they lie, then the integral.
_NODES, _FAR, _NEAR = 11, 6.0, 4.0
# The second look is at least this much of the first one's deviation wide.
_NARROWEST = 0.4
# The law of all lines is fitted to so many lines at most, or so many cells if these are enough
# lines, on a grid of this step.
_LINES_TO_FIT, _CELLS_TO_FIT, _FEWEST_LINES = 1024, 2**15, 128
_STEP, _GRID_BELOW, _GRID_ABOVE = 0.25, 12.0, 1.0
_LEAST_SPREAD, _MOST_SPREAD = 0.25, 3.0
_ROUNDS, _TOLERANCE = 200, 1e-3
# Cells of the lines whose levels are found together.
_MOST_CELLS = 2**18


class Levels(NamedTuple):
    """Levels of some lines, shape (n_lines, n_nodes): nodes, and log chances, which add up to 1.

    Nodes are what is added to the logarithms of the fitted rates of a line.
    """

    nodes: Floats
    log_weight: Floats


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a release, with the law of their levels.

    `symbols` has a row for each line, which is a region (axis 0) or an epoch (1). The logarithm of
    a level has the mean `centre` and the deviation `spread`, over all lines.
    """

    symbols: Ints32
    rates: Rates
    tables: CountTables
    axis: int
    centre: float
    spread: float

    @classmethod
    def of(
        cls, symbols: Ints32, rates: Rates, tables: CountTables, axis: int | None = None
    ) -> Lines:
        """Fit the law of lines to published symbols, shape (n_regions, n_epochs).

        Lines are regions or epochs, whichever are more, unless `axis` says which.
        """
        if axis is None:
            axis = 0 if symbols.shape[0] >= symbols.shape[1] else 1
        by_line = symbols if axis == 0 else symbols.T
        n_lines, n_cells = by_line.shape
        n_used = min(n_lines, _LINES_TO_FIT, max(_CELLS_TO_FIT // n_cells, _FEWEST_LINES))
        used = np.linspace(0, n_lines - 1, n_used).astype(np.int64)
        fitted = rates.factors(axis)[used]
        top = float(rates.factors(axis).max())
        grid = np.arange(top - _GRID_BELOW, top + _GRID_ABOVE, _STEP)
        log_chance = kernels.sum_log_chances(
            np.ascontiguousarray(by_line[used]),
            rates.log_rates_of_lines(used, axis),
            grid - fitted[:, None],
            *tables.of_chances,
        )
        return cls(by_line, rates, tables, axis, *_normal_law(log_chance, grid))

    def place(self, cells: NDArray[np.integer]) -> tuple[Ints64, Ints64]:
        """Return the line of each cell, and where it is within the line, shapes (n_cells,)."""
        n_epochs = self.symbols.shape[1 - self.axis]
        region, epoch = region_and_epoch(np.asarray(cells, np.int64), n_epochs)
        return (region, epoch) if self.axis == 0 else (epoch, region)

    def levels(self, lines: Ints64, hidden: tuple[Ints64, ...] | None = None) -> Levels:
        """Return the levels of lines that somebody visited, given their published counts.

        Counts of `hidden` cells are not looked at: which of the lines each is in, and where.
        """
        symbols = self._symbols_of(lines)
        if hidden is not None:
            symbols[hidden] = -1
        log_rates = self._log_rates_of(lines)
        expected = self.centre + self.spread**2 - self._fitted(lines)
        return posterior(symbols, log_rates, expected, self.spread, self.tables)

    def _symbols_of(self, lines: Ints64) -> Ints32:
        """Return the symbols of lines, -1 where there is no cell, shape (n_lines, n_cells)."""
        return np.array(self.symbols[lines], np.int32, order="C")

    def _log_rates_of(self, lines: Ints64) -> Floats:
        """Return the logarithms of fitted rates, same shape."""
        return self.rates.log_rates_of_lines(lines, self.axis)

    def _fitted(self, lines: Ints64) -> Floats:
        """Return the fitted levels of lines, by which the law of levels is told."""
        return self.rates.factors(self.axis)[lines]


class KnownLevels:
    """Levels of lines that are asked for again and again; each is found once."""

    def __init__(self, lines: Lines) -> None:
        n_lines = lines.symbols.shape[0]
        self._lines, self._is_known = lines, np.zeros(n_lines, np.bool_)
        self._levels = Levels(np.empty((n_lines, _NODES)), np.empty((n_lines, _NODES)))

    def __call__(self, lines: Ints64) -> Levels:
        """Return the levels of lines that somebody visited, given their published counts."""
        new = np.unique(lines[~self._is_known[lines]])
        # Some at a time: what is computed by cell on the way takes many times their memory.
        size = max(_MOST_CELLS // self._lines.symbols.shape[1], 1)
        for first in range(0, new.size, size):
            some = new[first : first + size]
            for known, found in zip(self._levels, self._lines.levels(some), strict=True):
                known[some] = found
        self._is_known[new] = True
        return Levels(*(known[lines] for known in self._levels))


def posterior(
    symbols: Ints32, log_rates: Floats, expected: Floats, spread: float, tables: CountTables
) -> Levels:
    """Return the law of levels given published symbols, which have a row for each line.

    Before these are seen, the logarithm of a level is normal, with an expectation for each line.
    """
    known = tables.information_on_levels(symbols, log_rates)
    deviation = 1 / np.sqrt(known + spread**-2)
    middle = expected * (deviation / spread) ** 2
    for width in (_FAR, _NEAR):
        nodes = middle[:, None] + deviation[:, None] * np.linspace(-width, width, _NODES)
        log_weight = kernels.sum_log_chances(symbols, log_rates, nodes, *tables.of_chances)
        log_weight -= ((nodes - expected[:, None]) / spread) ** 2 / 2
        log_weight -= log_sums(log_weight)[:, None]
        weight = np.exp(log_weight)
        middle = (weight * nodes).sum(axis=1)
        seen = np.sqrt((weight * (nodes - middle[:, None]) ** 2).sum(axis=1))
        deviation = np.maximum(seen, _NARROWEST * deviation)
    return Levels(nodes, log_weight)


def log_sums(logs: Floats) -> Floats:
    """Return the logarithm of the sum of each row of numbers that are given as logarithms.

    It is `scipy.special.logsumexp` to the last bit, which takes several times as long to find out
    what it was given.
    """
    top = logs.max(axis=1, keepdims=True)
    is_top = logs == top
    n_top = is_top.sum(axis=1, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        rest = np.exp(np.where(is_top, -np.inf, logs) - top).sum(axis=1)
        found = np.log1p(rest / n_top) + np.log(n_top) + top[:, 0]
    return np.asarray(np.where(np.isfinite(found), found, top[:, 0]))


def _normal_law(log_chance: Floats, grid: Floats) -> tuple[float, float]:
    """Return the mean and deviation of normal levels that make counts most likely.

    Their chances are given for each line at each level of a grid, shape (n_lines, n_levels).
    """
    chance = np.exp(log_chance - log_chance.max(axis=1, keepdims=True))
    likeliest = grid[np.argmax(log_chance, axis=1)]
    centre, spread = float(np.median(likeliest)), 1.0
    for _ in range(_ROUNDS):
        law = np.exp(-(((grid - centre) / spread) ** 2) / 2) + 1e-300
        # What all lines together say about where levels lie, given the law of the round before.
        found = law * (chance.T @ (1 / (chance @ law)))
        found /= found.sum()
        mean = float(found @ grid)
        deviation = math.sqrt(float(found @ (grid - mean) ** 2))
        moved = abs(mean - centre) + abs(deviation - spread)
        centre, spread = mean, min(max(deviation, _LEAST_SPREAD), _MOST_SPREAD)
        if moved < _TOLERANCE:
            break
    return centre, spread
