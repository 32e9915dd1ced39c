"""Background rates: how many others to expect in each cell, from the release alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from whosthere import kernels
from whosthere.adversary.count_tables import CountTables, count_tables
from whosthere.adversary.marginals import LEAST_MEAN, Marginals
from whosthere.data.arrays import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release

_ROUNDS = 4
# A row or column is never taken for emptier than this many people in all of its cells.
_LEAST_EXCESS = 0.05
# Sums that vary no more than noise does are still taken for different by this share of it.
_LEAST_SHARE = 0.01
FLAT = frozen(np.zeros((1, 1)), np.float64)


@dataclass(frozen=True, eq=False)
class Rates:
    """Rates exp(row + column + shape): people to expect in each cell.

    Attributes
    ----------
    rows, columns
        Logarithms, shapes (n_regions,) and (n_epochs,).
    shape
        Logarithms by cell, shape (n_regions, n_epochs), or (1, 1) where there are none.
    """

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    shape: NDArray[np.float64]

    def log_rates(self, cells: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the logarithm of the rate of each given cell."""
        region, epoch = np.divmod(cells, self.columns.size)
        rates = self.rows[region] + self.columns[epoch]
        return np.asarray(rates if self.shape.size == 1 else rates + self.shape[region, epoch])

    def dense(self) -> NDArray[np.float64]:
        """Return the rate of every cell, shape (n_regions, n_epochs)."""
        return np.asarray(np.exp(self.rows[:, None] + self.columns + self.shape))

    def total(self) -> float:
        """Return how many visits to expect in all."""
        if self.shape.size > 1:
            return float(self.dense().sum())
        return float(np.exp(self.rows).sum() * np.exp(self.columns).sum())

    def time_marginal(self) -> NDArray[np.float64]:
        """Return the probability that a visit is in each epoch, shape (n_epochs,)."""
        by_epoch = np.exp(self.columns) if self.shape.size == 1 else self.dense().sum(axis=0)
        return np.asarray(by_epoch / by_epoch.sum())


def fit_rates(release: Release, shape: NDArray[np.float64] = FLAT) -> Rates:
    """Fit rates to the row and column sums of a release, through its mechanism.

    A cell's rate is a factor of its region times one of its epoch (times `shape`, given as
    logarithms). The factors are those at which the mechanism is expected to publish the sums
    that it did publish. Where the sums are mostly noise they are drawn together first.
    """
    tables = count_tables(release.mechanism, release.group_size)
    counts = release.counts
    by_row, by_column = (
        _excess(counts.sum(axis=axis, dtype=np.int64), counts.shape[axis], tables)
        for axis in (1, 0)
    )
    rows, columns = kernels.fit_rank_one(
        by_row,
        # Both must add up to the same, or the fit would wander.
        by_column * (by_row.sum() / by_column.sum()),
        shape,
        tables.mean - tables.empty_mean,
        tables.first,
        tables.step,
        _ROUNDS,
    )
    return Rates(rows, columns, shape)


def _excess(sums: NDArray[np.int64], n_cells: int, tables: CountTables) -> NDArray[np.float64]:
    """Return sums less what empty cells give, as likely as they can be told from noise.

    The noise in a sum is known: that of empty cells, and about normal. What the sums vary by
    beyond it is taken for real. Each sum is then replaced by its mean given what was published,
    under a normal law of sums that are not negative.
    """
    excess = sums - n_cells * tables.empty_mean
    noise = n_cells * tables.empty_variance
    if noise > 0:
        real = max(float(excess.var()) - noise, _LEAST_SHARE * noise)
        kept = real / (real + noise)
        centre = max(float(excess.mean()), 0.0)
        likely = np.asarray(centre + kept * (excess - centre), dtype=np.float64)
        excess = _positive_mean(likely, float(np.sqrt(kept * noise)))
    return np.asarray(np.maximum(excess, _LEAST_EXCESS))


def _positive_mean(mean: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Return the mean of a normal law, given that it is not negative."""
    z = mean / deviation
    log_density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    return np.asarray(mean + deviation * np.exp(log_density - log_ndtr(z)))


def reference_shape(reference: Traces) -> NDArray[np.float64]:
    """Return how far cells differ from region times epoch among real people, as logarithms.

    A cell's own count is trusted as far as the counts vary beyond chance: it is drawn towards
    what its region and epoch let expect (the mean of a gamma law after a Poisson count).
    Shape (n_regions, n_epochs).
    """
    counts = reference.counts().astype(np.float64)
    total = max(counts.sum(), 1.0)
    expected = np.outer(counts.sum(axis=1) + 0.5, counts.sum(axis=0) + 0.5) / total
    beyond_chance = ((counts - expected) ** 2 - expected).sum()
    weight = float((expected**2).sum() / max(beyond_chance, 1e-9))
    return frozen(np.log((counts + weight) / (expected + weight)), np.float64)


def mechanism_marginals(release: Release) -> Marginals:
    """Estimate where, when and how often people are seen from rates fitted to a release."""
    rates = fit_rates(release)
    by_region = np.exp(rates.rows)
    return Marginals(
        by_region / by_region.sum(),
        rates.time_marginal(),
        max(rates.total() / release.group_size, LEAST_MEAN),
    )
