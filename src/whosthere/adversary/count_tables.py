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
_POINTS_PER_E_FOLD = 16
_LARGEST_RATIO = 40.0
# Published values are put together where the noise is so wide that neighbours hardly differ.
_BINS_PER_SCALE = 64


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
    bin_of_value
        Bin of each published value from 0; the last bin holds all further ones.
    log_ratio
        Log of how much likelier a value of a bin is with one person more, shape
        (n_rates, n_bins); minus infinity where that person cannot be there.
    possible
        Chance that a value does not rule that person out though nobody more is there, shape
        (n_rates,).
    ratio_mean, ratio_variance
        Of the log ratio where nobody more is there and the value does not rule that out.
    """

    first: float
    step: float
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    empty_mean: float
    empty_variance: float
    bin_of_value: NDArray[np.int32]
    log_ratio: NDArray[np.float64]
    possible: NDArray[np.float64]
    ratio_mean: NDArray[np.float64]
    ratio_variance: NDArray[np.float64]

    def log_ratio_of(
        self, values: NDArray[np.integer], log_rates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the log ratio of published values in cells of the given rates, same shape."""
        low, part = self._between(log_rates)
        column = self.bin_of_value[np.minimum(values, self.bin_of_value.size - 1)]
        below, above = self.log_ratio[low, column], self.log_ratio[low + 1, column]
        with np.errstate(invalid="ignore"):
            inside = np.where(np.isfinite(below), below + part * (above - below), below)
        large = log_rates > self._last
        if not large.any():
            return np.asarray(inside)
        return np.where(large, self._normal_log_ratio(values, log_rates), inside)

    def null_law(self, log_rates: NDArray[np.float64]) -> tuple[float, float, float]:
        """Describe the sum of log ratios over cells where nobody more is there.

        Returns the chance that no value rules the person out and, if none does, the mean and
        the variance of the sum.
        """
        low, part = self._between(log_rates)
        possible, mean, variance = (
            table[low] + part * (table[low + 1] - table[low])
            for table in (self.possible, self.ratio_mean, self.ratio_variance)
        )
        # Of two normal laws one person apart and of variance v, the log ratio has mean
        # -1 / (2 v) and variance 1 / v.
        normal = self._normal_variance(log_rates)
        large = log_rates > self._last
        mean, variance = np.where(large, -0.5 / normal, mean), np.where(large, 1 / normal, variance)
        return float(np.prod(possible)), float(mean.sum()), float(variance.sum())

    @property
    def _last(self) -> float:
        """Logarithm of the largest rate in the tables."""
        return self.first + (self.mean.size - 1) * self.step

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
        return np.asarray(np.exp(log_rates) + (self.variance[-1] - np.exp(self._last)))

    def _normal_log_ratio(
        self, values: NDArray[np.integer], log_rates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the log ratio of two normal densities, one person apart."""
        mean = np.exp(log_rates) + (self.mean[-1] - np.exp(self._last))
        return np.asarray((values - mean - 0.5) / self._normal_variance(log_rates))


@lru_cache(maxsize=32)
def count_tables(mechanism: Mechanism, m: int) -> CountTables:
    """Make the tables of a mechanism for groups of m people, once.

    The others in a cell are Poisson with the cell's rate.
    """
    rates = _LEAST_RATE * np.exp(
        np.arange(math.ceil(math.log(_MOST_RATE / _LEAST_RATE) * _POINTS_PER_E_FOLD) + 1)
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
    finite = np.where(np.isneginf(ratio), 0.0, ratio)
    weight = np.where(np.isneginf(ratio), 0.0, without)
    possible = weight.sum(axis=1)
    ratio_mean = (weight * finite).sum(axis=1) / possible
    ratio_variance = (weight * finite**2).sum(axis=1) / possible - ratio_mean**2
    return CountTables(
        first=float(np.log(rates[0])),
        step=1.0 / _POINTS_PER_E_FOLD,
        mean=own(mean, np.float64),
        variance=own(others @ squares[:-1] - mean**2, np.float64),
        empty_mean=float(means[0]),
        empty_variance=float(squares[0] - means[0] ** 2),
        bin_of_value=own(np.repeat(np.arange(edges.size - 1), np.diff(edges)), np.int32),
        log_ratio=own(ratio, np.float64),
        possible=own(np.minimum(possible, 1.0), np.float64),
        ratio_mean=own(ratio_mean, np.float64),
        ratio_variance=own(np.maximum(ratio_variance, 0.0), np.float64),
    )


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
