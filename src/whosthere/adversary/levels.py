"""Cells that share a level which nobody knows, and what was published tells of it.

A line is a list of such cells: those of a region, of an epoch where regions are fewer, or trips
between two places both ways. So are the same hours of all weeks. A region's counts over all epochs
tell how busy it is. If these are few they tell little, and a single count nothing at all about the
others that it consists of: a rate fitted to it would explain it away. So the level of a line has a
law. Before counts are seen its logarithm is normal, with the mean and spread that make the release
most likely; the counts of its cells then narrow it down, as far as they can through the mechanism.

People are found where people go: somebody visits a line with a chance in proportion to its level.
Among the lines that somebody visited large levels are therefore overrepresented. The law of a
normal logarithm that is weighted by its level is the same law, with the squared spread added to its
mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from whosthere import kernels
from whosthere.data.flows import Pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from whosthere.adversary.count_tables import CountTables
    from whosthere.arrays import Floats, Ints32, Ints64
    from whosthere.data.regions import Regions

N_NODES = 11
"""Levels of a line are integrated over by so many nodes."""
# They lie from so many deviations below the mean to as many above it: first a look at where they
# lie, then the integral. The second look is at least this much of the first one's deviation wide.
_FAR, _NEAR, _NARROWEST = 6.0, 4.0, 0.4
# The law of all lines is fitted to so many lines at most, or so many cells if these are enough
# lines, on a grid of this step.
_LINES_TO_FIT, _CELLS_TO_FIT, _FEWEST_LINES = 1024, 2**15, 128
_STEP, _BELOW, _ABOVE = 0.25, 12.0, 1.0
_LEAST_SPREAD, _MOST_SPREAD = 0.25, 3.0
_ROUNDS, _STILL = 200, 1e-3
# Levels around 1 that evidence is added up over, and spreads of pairs of places that are tried.
_AROUND_ONE = np.arange(-9.0, 4.0, 0.125)
_SPREADS_OF_PAIRS = np.exp(np.arange(np.log(0.1), np.log(3.0), 0.1))
# Somebody's own pairs differ from what places let expect by more than most pairs do: with twice the
# spread that all pairs have, likelihood ratios were better in most tables (flows.md in the docs).
_WIDER = 2.0


class Lines(NamedTuple):
    """Which cells share a level, shape (n_lines, n_cells), -1 where a line has fewer."""

    cells: Ints64
    are_relative: bool = False
    """Whether levels lie around fitted rates (mean 1), or have a law of their own."""

    @classmethod
    def of(cls, regions: Regions, shape: tuple[int, int], *, by_region: bool = False) -> Self:
        """Return the lines of a table: trips both ways, or the more of regions and epochs.

        `by_region` wants regions in any case.
        """
        n_regions, n_epochs = shape
        cells = np.arange(n_regions * n_epochs).reshape(shape)
        if isinstance(regions, Pairs) and not by_region:
            ends = np.sort([regions.origins, regions.destinations], axis=0).astype(np.int64)
            _, line = np.unique(ends[0] * len(regions.places) + ends[1], return_inverse=True)
            both = np.full((int(line.max()) + 1, 2, n_epochs), -1)
            both[line, (regions.origins > regions.destinations).astype(np.int64)] = cells
            return cls(both.reshape(len(both), -1), are_relative=True)
        return cls(cells if by_region or n_regions >= n_epochs else cells.T)

    def take(self, values: NDArray[Any], missing: float = 0) -> NDArray[Any]:
        """Return values by cell in the order of lines, shape (n_lines, n_cells)."""
        found = values.reshape(-1)[self.cells]
        found[self.cells < 0] = missing
        return np.ascontiguousarray(found)

    def put(self, values: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
        """Return values in the order of lines by cell, shape (n_regions, n_epochs)."""
        return np.asarray(values.reshape(-1)[self.places()].reshape(shape))

    def places(self) -> Ints64:
        """Return where each cell stands in the order of lines, shape (n_cells,)."""
        flat = self.cells.reshape(-1)
        there = np.flatnonzero(flat >= 0)
        places = np.empty(there.size, np.int64)
        places[flat[there]] = there
        return places


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of lines, shape (n_lines, n_nodes): nodes, and log chances, which add up to 1.

    Nodes are what is added to the logarithms of the fitted rates of a line.
    """

    nodes: Floats
    log_weight: Floats

    @classmethod
    def of(
        cls, symbols: Ints32, log_rates: Floats, tables: CountTables, *, relative: bool
    ) -> Levels:
        """Return the levels of lines that somebody visited, given published symbols by line.

        Symbols (negative where a line has no cell) and rates have the shape (n_lines, n_cells).
        `relative` levels have the mean 1.
        """
        expected, spread = expected_levels(symbols, log_rates, tables, relative=relative)
        return posterior(symbols, log_rates, expected, spread, tables)

    def means_without_each(self, symbols: Ints32, log_rates: Floats, tables: CountTables) -> Floats:
        """Return the mean logarithm of the level at each cell, whose count is not looked at.

        Shape (n_lines, n_cells), as that of symbols and rates.
        """
        given = symbols, log_rates, self.nodes, self.log_weight
        return kernels.means_without_each(*given, *tables.of_chances)


def expected_levels(
    symbols: Ints32, log_rates: Floats, tables: CountTables, *, relative: bool
) -> tuple[Floats, float]:
    """Return what levels of lines that somebody visited are without their counts, and the spread.

    Parameters are as those of `Levels.of`; expectations have the shape (n_lines,).
    """
    n_lines, n_cells = symbols.shape
    used = some(n_lines, max(_CELLS_TO_FIT // n_cells, _FEWEST_LINES), _LINES_TO_FIT)
    if relative:
        at = symbols[used], log_rates[used], tables
        spread = _WIDER * likeliest_spread(*at, _SPREADS_OF_PAIRS)
        return np.full(n_lines, spread**2 / 2), spread
    centre, spread = likeliest_law(symbols[used], log_rates[used], tables)
    return centre + spread**2 - fitted_levels(log_rates), spread


def posterior(
    symbols: Ints32, log_rates: Floats, expected: Floats, spread: float, tables: CountTables
) -> Levels:
    """Return the law of levels given published symbols, which have a row for each line.

    Before these are seen, the logarithm of a level is normal, with an expectation for each line.
    """
    looks = np.array([_FAR, _NEAR]), _NARROWEST, N_NODES
    given = symbols, log_rates, expected, spread, *looks, tables.information
    return Levels(*kernels.find_levels(*given, *tables.of_chances))


def levels_given(
    log_chances: Callable[[Floats], Floats], known: Floats, expected: Floats, spread: float
) -> Levels:
    """Return the law of levels given log chances of what was published, by line and node.

    `known` is about how much that tells of the logarithm of each level, which is normal otherwise.
    """
    deviation = 1 / np.sqrt(known + spread**-2)
    middle = expected * (deviation / spread) ** 2
    for width in (_FAR, _NEAR):
        nodes = middle[:, None] + deviation[:, None] * np.linspace(-width, width, N_NODES)
        log_weight = log_chances(nodes) - ((nodes - expected[:, None]) / spread) ** 2 / 2
        log_weight -= np.logaddexp.reduce(log_weight, axis=1)[:, None]
        weight = np.exp(log_weight)
        middle = (weight * nodes).sum(axis=1)
        seen = np.sqrt((weight * (nodes - middle[:, None]) ** 2).sum(axis=1))
        deviation = np.maximum(seen, _NARROWEST * deviation)
    return Levels(nodes, log_weight)


def likeliest_spread(
    symbols: Ints32, log_rates: Floats, tables: CountTables, spreads: Floats, slack: float = 0.0
) -> float:
    """Return the smallest spread of levels of mean 1 that explains symbols about as well as any.

    That is, by a log likelihood that is less than the best one's by the `slack` at most.
    """
    grid = np.tile(_AROUND_ONE, (len(symbols), 1))
    log_chance = kernels.sum_log_chances(symbols, log_rates, grid, *tables.of_chances)
    chance = np.exp(log_chance - log_chance.max(axis=1, keepdims=True))
    evidence = np.empty(len(spreads))
    for i, spread in enumerate(spreads):
        law = np.exp(-(((_AROUND_ONE + spread**2 / 2) / spread) ** 2) / 2)
        evidence[i] = np.log(chance @ (law / law.sum()) + 1e-300).sum()
    return float(spreads[int(np.argmax(evidence >= evidence.max() - slack))])


def some(n: int, *most: int) -> Ints64:
    """Return the numbers of some of n lines, evenly spread: as many as all of `most` allow."""
    return np.linspace(0, n - 1, min(n, *most)).astype(np.int64)


def fitted_levels(log_rates: Floats) -> Floats:
    """Return how busy lines are in all by their fitted rates, as logarithms."""
    return np.asarray(np.log(np.exp(log_rates).sum(axis=1)))


def likeliest_law(symbols: Ints32, log_rates: Floats, tables: CountTables) -> tuple[float, float]:
    """Return the mean and deviation of normal levels that make published symbols most likely.

    Levels are absolute here: how busy a line is in all.
    """
    fitted = fitted_levels(log_rates)
    grid = np.arange(fitted.max() - _BELOW, fitted.max() + _ABOVE, _STEP)
    away = grid - fitted[:, None]
    log_chance = kernels.sum_log_chances(symbols, log_rates, away, *tables.of_chances)
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
        if moved < _STILL:
            break
    return centre, spread
