"""What a mechanism makes of cells whose true counts are random with a known rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, softmax

from whosthere.data.arrays import own
from whosthere.privacy.probability import log_probability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.privacy.mechanism import Mechanism

# Rates are tabulated on a logarithmic grid. Above the largest, a published count is as good as
# normal; below the smallest, all that matters is proportional to the rate.
_LEAST_RATE, _MOST_RATE = 1e-4, 256.0
# Where a map moves counts by more than so small a part of that rate, the grid reaches further:
# far above the threshold of a suppression hardly anything is suppressed.
_FAR_ABOVE, _FURTHEST_RATE = 3.0, 2048.0
_POINTS_PER_E_FOLD = 16
_LARGEST_RATIO = 40.0
# Published values are put together where the noise is so wide that neighbours hardly differ.
_BINS_PER_SCALE = 64
# Bins are put together, in laws without the person, where all of those further out are rarer
# than this, or where their log ratios are the same, relative to the largest.
_RARE = 1e-9
_SAME = 1e-5


@dataclass(frozen=True, eq=False)
class CountTables:
    """Tables of one mechanism, by the rate of the others in a cell.

    Attributes
    ----------
    first, step
        Logarithm of the first rate, and the distance of the logarithms.
    mean, variance
        Of the published count, shape (n_rates,).
    empty_mean, empty_variance
        The same of a cell with nobody in it.
    information
        Of a published count about the rate (Fisher's), shape (n_rates,): for counts that are
        published as they are, one by the rate.
    bin_of_value
        Bin of each published value from 0; the last bin holds all further ones.
    log_ratio
        Log of how much likelier a value of a bin is with one person more, shape
        (n_rates, n_bins); minus infinity where that person cannot be there.
    without
        Chance of a bin where nobody more is there, with tails of bins that have the same log ratio
        put into one, shape (n_rates, n_bins).
    likely
        First bin that has a chance then, and the one after the last, shape (2, n_rates); neither
        falls as the rate grows.
    """

    first: float
    step: float
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    empty_mean: float
    empty_variance: float
    information: NDArray[np.float64]
    bin_of_value: NDArray[np.int32]
    log_ratio: NDArray[np.float64]
    without: NDArray[np.float32]
    likely: NDArray[np.int32]

    def log_ratio_of(
        self, values: NDArray[np.integer], log_rates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the log ratio of published values in cells of the given rates, same shape."""
        low, part = self._between(log_rates)
        column = self.bin_of_value[np.minimum(values, self.bin_of_value.size - 1)]
        inside = self._interpolated(low, part, column)
        large = log_rates > self._last
        if not large.any():
            return inside
        return np.where(large, self._normal_log_ratio(values, log_rates), inside)

    def null_ratios(
        self, log_rates: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the laws of the log ratios in cells of the given rates where nobody more is there.

        As atoms of all cells in one: the cell of each, ascending, its log ratio and its chance,
        shapes (n_atoms,).
        """
        low, part = self._between(log_rates)
        large = log_rates > self._last
        start, stop = self.likely[0, low], np.where(large, 0, self.likely[1, low + 1])
        sizes = np.maximum(stop - start, 0)
        cell = np.repeat(np.arange(log_rates.size), sizes)
        column = np.arange(cell.size) + np.repeat(start - (np.cumsum(sizes) - sizes), sizes)
        row, along = low[cell], part[cell]
        chance = (1 - along) * self.without[row, column] + along * self.without[row + 1, column]
        there = chance > 0
        if not there.all():
            cell, column, row, along, chance = (
                values[there] for values in (cell, column, row, along, chance)
            )
        ratio = self._interpolated(row, along, column)
        if not large.any():
            return cell, ratio, chance
        beyond = np.flatnonzero(large)
        deviation = 1 / np.sqrt(self._normal_variance(log_rates[beyond]))
        z, weight = _normal_atoms()
        # Of two normal laws one person apart and of variance v, the log ratio has mean
        # -1 / (2 v) and variance 1 / v.
        normal = deviation[:, None] * (z - deviation[:, None] / 2)
        cell = np.concatenate([cell, np.repeat(beyond, z.size)])
        ratio = np.concatenate([ratio, normal.reshape(-1)])
        chance = np.concatenate([chance, np.tile(weight, beyond.size)])
        order = np.argsort(cell, kind="stable")
        return cell[order], ratio[order], chance[order]

    def _interpolated(
        self, low: NDArray[np.int64], part: NDArray[np.float64], column: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return log ratios between two rates in the tables."""
        below, above = self.log_ratio[low, column], self.log_ratio[low + 1, column]
        with np.errstate(invalid="ignore"):
            between = np.where(np.isfinite(below), below + part * (above - below), below)
        return np.asarray(between)

    @property
    def _last(self) -> float:
        """Logarithm of the largest rate in the tables."""
        return self.first + (self.mean.size - 1) * self.step

    @property
    def rates(self) -> NDArray[np.float64]:
        """Rates in the tables, shape (n_rates,)."""
        return np.asarray(np.exp(self.first + self.step * np.arange(self.mean.size)))

    @property
    def noise(self) -> float:
        """Variance that the mechanism adds to counts beyond the tables."""
        return max(float(self.variance[-1]) - math.exp(self._last), 0.0)

    @property
    def shift(self) -> float:
        """What the mechanism adds to counts beyond the tables on average."""
        return float(self.mean[-1]) - math.exp(self._last)

    def _between(
        self, log_rates: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the rate in the tables below each given one, and how far it is to the next."""
        last = self.mean.size - 1
        place = np.clip((log_rates - self.first) / self.step, 0, last)
        low = np.minimum(place.astype(np.int64), last - 1)
        return low, place - low

    def _normal_variance(self, log_rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variance of published counts beyond the tables: the noise stays, people add theirs."""
        return np.asarray(np.exp(log_rates) + self.noise)

    def _normal_log_ratio(
        self, values: NDArray[np.integer], log_rates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the log ratio of two normal densities, one person apart."""
        mean = np.exp(log_rates) + self.shift
        return np.asarray((values - mean - 0.5) / self._normal_variance(log_rates))


@lru_cache(maxsize=32)
def count_tables(mechanism: Mechanism, m: int) -> CountTables:
    """Make the tables of a mechanism for groups of m people, once.

    The others in a cell are Poisson with the cell's rate.
    """
    rates = _LEAST_RATE * np.exp(
        np.arange(math.ceil(math.log(_most_rate(mechanism) / _LEAST_RATE) * _POINTS_PER_E_FOLD) + 1)
        / _POINTS_PER_E_FOLD
    )
    n = np.arange(min(m, math.ceil(rates[-1] + 12 * math.sqrt(rates[-1]) + 20)) + 1)
    edges = _bin_edges(mechanism, int(n[-1]), m)
    chances = np.exp(
        log_probability(mechanism.steps, n.astype(np.int32)[:, None], edges[:-1], edges[1:] - 1, m)
    )
    middles = (edges[:-1] + edges[1:] - 1) / 2
    means = chances @ middles
    squares = chances @ middles**2
    others = _poisson(n[:-1], rates)
    mean = others @ means[:-1]
    without, within = others @ chances[:-1], others @ chances[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(within) - np.log(without)
    # Values too far from a rate for either chance to be a number say: more people than that.
    ratio = np.where(np.isnan(ratio), _LARGEST_RATIO, ratio)
    ratio = np.where(np.isneginf(ratio), ratio, np.clip(ratio, -_LARGEST_RATIO, _LARGEST_RATIO))
    out, likely = _without_tails(without, within, ratio)
    return CountTables(
        first=float(np.log(rates[0])),
        step=1.0 / _POINTS_PER_E_FOLD,
        mean=own(mean, np.float64),
        variance=own(others @ squares[:-1] - mean**2, np.float64),
        empty_mean=float(means[0]),
        empty_variance=float(squares[0] - means[0] ** 2),
        information=own(_information(without, within), np.float64),
        bin_of_value=own(np.repeat(np.arange(edges.size - 1), np.diff(edges)), np.int32),
        log_ratio=own(ratio, np.float64),
        without=own(out, np.float32),
        likely=own(likely, np.int32),
    )


def _most_rate(mechanism: Mechanism) -> float:
    """Return the largest rate in the tables of a mechanism."""
    moved = max((-step.window[0] for step in mechanism.steps if not step.is_random), default=0)
    return min(max(_MOST_RATE, _FAR_ABOVE * moved), _FURTHEST_RATE)


def _information(without: NDArray[np.float64], within: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the information on the rate, shape (n_rates,).

    One person more is a step of a Poisson law: the derivative of the chances by the rate is what
    that person adds to them.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(without > 0, (within - without) ** 2 / without, 0.0)
    return np.asarray(parts.sum(axis=1))


def _without_tails(
    without: NDArray[np.float64], within: NDArray[np.float64], ratio: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Put all bins of a tail into one where their log ratios are the same or they hardly occur.

    Returns the chances without the person, and between which bins they lie for each rate, shapes
    (n_rates, n_bins) and (2, n_rates).
    """
    rows, bins = np.arange(len(ratio)), np.arange(ratio.shape[1])
    chances = np.maximum(without, within)
    first = (chances.cumsum(axis=1) < _RARE).sum(axis=1)
    last = bins.size - 1 - (chances[:, ::-1].cumsum(axis=1) < _RARE).sum(axis=1)
    likely = (bins >= first[:, None]) & (bins <= last[:, None])
    size = np.abs(np.where(likely & np.isfinite(ratio), ratio, 0.0)).max(axis=1)
    ends = []
    for edge, order in ((first, 1), (last, -1)):
        with np.errstate(invalid="ignore"):
            differs = np.abs(ratio - ratio[rows, edge][:, None]) > _SAME * size[:, None]
        differs &= likely
        inwards = np.argmax(differs[:, ::order], axis=1)
        reached = inwards if order > 0 else bins.size - 1 - inwards
        ends.append(np.where(differs.any(axis=1), reached - order, last))
    first, last = ends
    kept = np.where((bins >= first[:, None]) & (bins <= last[:, None]), without, 0.0)
    kept[rows, first] += np.where(bins < first[:, None], without, 0.0).sum(axis=1)
    kept[rows, last] += np.where(bins > last[:, None], without, 0.0).sum(axis=1)
    # Between two rates, the bins of both are looked at.
    first = np.minimum.accumulate(first[::-1])[::-1]
    return kept, np.stack([first, np.maximum.accumulate(last) + 1])


@lru_cache(maxsize=1)
def _normal_atoms() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a normal law as many atoms."""
    z = np.linspace(-8, 8, 257)
    return z, np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()


def _bin_edges(mechanism: Mechanism, most: int, m: int) -> NDArray[np.int64]:
    """Edges of bins of published values: single ones where noise is narrow, always 0 alone."""
    reach = sum(step.window[1] for step in mechanism.steps)
    widest = max((step.scale for step in mechanism.steps), default=0.0)
    width = max(1, int(widest / _BINS_PER_SCALE))
    end = min(m, most + reach) + 1
    return np.append(np.append(0, np.arange(1, end, width)), end)


def _poisson(n: NDArray[np.int64], rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chance of n people in a cell, all that there can be, shape (n_rates, n.size)."""
    log_chance = n * np.log(rates)[:, None] - gammaln(n + 1.0)
    return np.asarray(softmax(log_chance, axis=1))
