"""Weeks are alike: how much busier a region is at an hour of the week than its rates say.

Where two weeks or more are published, each region was counted several times at the same hour. What
these counts have in common is a factor of their rates: first for each hour of a working day and of
a day off, then for each hour of the week. Before the counts are seen its logarithm is normal, its
mean is 1, and its spread is the one that makes all counts most likely. The counts of an hour then
narrow it down, as far as they can through the mechanism.

A person with a habit raises the factor of a place and hour, which would then hide that person. So
the factors at a target's visits come from all counts but those at the target's visits. As in
`lines`, people are found where people go: the squared spread is added to the expected logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels
from whosthere.adversary.lines import posterior
from whosthere.data.cells import region_and_epoch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.count_tables import CountTables
    from whosthere.arrays import Floats, Ints32, Ints64
    from whosthere.data.epochs import Epochs

_DAY, _WEEK = timedelta(days=1), timedelta(weeks=1)
_FEWEST_WEEKS, _WORKING_DAYS = 2, 5
# Spreads of logarithms that are tried, on so many cells and a grid of logarithms.
_SPREADS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.4)
_ABOUT_AS_WELL = 2.0
_CELLS_TO_FIT = 2**16
_GRID = np.arange(-5.0, 4.0, 0.125)


@dataclass(frozen=True, eq=False)
class Alike:
    """Factors of regions at times that are alike, such as an hour of the week.

    Attributes
    ----------
    time, place
        Which of the times each epoch is, and its number among the epochs of that time, shape
        (n_epochs,).
    symbols, log_rates
        Of the cells of each region and time, shape (n_regions, n_times, most epochs of a time). A
        symbol is -1 where a time has fewer epochs than others.
    spread
        Of the logarithms of all factors.
    log_factors
        Logarithms of the factors, shape (n_regions, n_times).
    """

    time: Ints64
    place: Ints64
    symbols: Ints32
    log_rates: Floats
    tables: CountTables
    spread: float
    log_factors: Floats

    @classmethod
    def of(cls, symbols: Ints32, log_rates: Floats, tables: CountTables, time: Ints64) -> Alike:
        """Fit factors to published symbols, given the rates so far, shape (n_regions, n_epochs)."""
        _, found = np.unique(time, return_inverse=True)
        time, sizes = found.astype(np.int64), np.bincount(found)
        place = np.empty_like(time)
        order = np.argsort(time, kind="stable")
        place[order] = np.arange(time.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        shape = len(symbols), sizes.size, int(sizes.max())
        by_time, rates = np.full(shape, -1, np.int32), np.zeros(shape)
        by_time[:, time, place], rates[:, time, place] = symbols, log_rates
        lines = by_time.reshape(-1, shape[2]), rates.reshape(-1, shape[2])
        n_used = min(max(_CELLS_TO_FIT // shape[2], 1), len(lines[0]))
        used = np.linspace(0, len(lines[0]) - 1, n_used).astype(np.int64)
        spread = _likeliest_spread(lines[0][used], lines[1][used], tables)
        factors = _means(*lines, -(spread**2) / 2, spread, tables).reshape(shape[:2])
        return cls(time, place, by_time, rates, tables, spread, factors)

    def log_factors_for(self, cells: NDArray[np.integer], person: Ints64 | int = 0) -> Floats:
        """Return logarithms of the factors of a person's cells, whose counts are not looked at.

        Shape (n_cells,); `person` says whose each cell is, numbered from 0.
        """
        region, epoch = region_and_epoch(np.asarray(cells, np.int64), self.time.size)
        n_lines, n_cells = self.log_factors.size, self.symbols.shape[2]
        line = region * self.symbols.shape[1] + self.time[epoch]
        key, which = np.unique(person * n_lines + line, return_inverse=True)
        known = key % n_lines
        symbols = self.symbols.reshape(-1, n_cells)[known]
        symbols[which, self.place[epoch]] = -1
        rates = self.log_rates.reshape(-1, n_cells)[known]
        found = _means(symbols, rates, self.spread**2 / 2, self.spread, self.tables)
        return np.asarray(found[which])


def fit_weekly(
    symbols: Ints32, log_rates: Floats, tables: CountTables, epochs: Epochs
) -> tuple[Alike, ...]:
    """Fit factors by the hour of the week; none where less than two weeks are published."""
    if epochs.n_whole(_WEEK) < _FEWEST_WEEKS or epochs.length >= _WEEK:
        return ()
    starts = epochs.local_starts
    weekday = np.array([start.weekday() for start in starts])
    into_day = np.array([start.hour * 3600 + start.minute * 60 + start.second for start in starts])
    slot = into_day // min(int(epochs.length.total_seconds()), int(_DAY.total_seconds()))
    of_day = slot + (weekday >= _WORKING_DAYS) * (slot.max() + 1)
    by_kind = Alike.of(symbols, log_rates, tables, of_day)
    log_rates = log_rates + by_kind.log_factors[:, by_kind.time]
    return by_kind, Alike.of(symbols, log_rates, tables, weekday * (slot.max() + 1) + slot)


def _likeliest_spread(symbols: Ints32, log_rates: Floats, tables: CountTables) -> float:
    """Return the smallest spread of logarithms that explains symbols about as well as any."""
    grid = np.tile(_GRID, (len(symbols), 1))
    log_chance = kernels.sum_log_chances(symbols, log_rates, grid, *tables.of_chances)
    log_chance -= log_chance.max(axis=1, keepdims=True)
    chance = np.exp(log_chance)
    evidence = []
    for spread in _SPREADS:
        law = np.exp(-(((_GRID + spread**2 / 2) / spread) ** 2) / 2)
        evidence.append(np.log(chance @ (law / law.sum())).sum())
    return _SPREADS[int(np.argmax(np.array(evidence) >= max(evidence) - _ABOUT_AS_WELL))]


def _means(
    symbols: Ints32, log_rates: Floats, centre: float, spread: float, tables: CountTables
) -> Floats:
    """Return the mean logarithm of factors given published symbols, shape (n_lines,)."""
    expected = np.full(len(symbols), centre)
    nodes, log_weight = posterior(symbols, log_rates, expected, spread, tables)
    return np.asarray((np.exp(log_weight) * nodes).sum(axis=1))
