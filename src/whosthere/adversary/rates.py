"""Background rates: how many others to expect in each cell, from the release alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.adversary.published import PublishedCounts, published_counts
from whosthere.data.arrays import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.privacy.release import Release

_ROUNDS = 4
# A row or column is never taken for emptier than this many people in all of its cells.
_LEAST_EXCESS = 0.05
_FLAT = frozen(np.zeros((1, 1)), np.float64)


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


def fit_rates(release: Release, shape: NDArray[np.float64] = _FLAT) -> Rates:
    """Fit rates to the row and column sums of a release, through its mechanism.

    A cell's rate is a factor of its region times one of its epoch (times `shape`, given as
    logarithms). The factors are those at which the mechanism is expected to publish the sums
    that it did publish. Where the sums are mostly noise they are drawn together first.
    """
    from whosthere.kernels.rank_one import fit_rank_one  # noqa: PLC0415 - slow import

    tables = published_counts(release.mechanism, release.group_size)
    counts = release.counts
    excess = [
        _excess(counts.sum(axis=axis, dtype=np.int64), counts.shape[axis], tables)
        for axis in (1, 0)
    ]
    # Both must add up to the same, or the fit would wander.
    excess[1] *= excess[0].sum() / excess[1].sum()
    rows, columns = fit_rank_one(
        *excess,
        shape,
        tables.mean - tables.empty_mean,
        tables.first,
        tables.step,
        _ROUNDS,
    )
    return Rates(rows, columns, shape)


def _excess(sums: NDArray[np.int64], n_cells: int, tables: PublishedCounts) -> NDArray[np.float64]:
    """Return sums less what empty cells give, drawn towards their mean as far as they are noise.

    The noise in a sum is known: it is at least that of empty cells. What the sums vary by
    beyond it is taken for real (James-Stein).
    """
    excess = sums - n_cells * tables.empty_mean
    noise = n_cells * tables.empty_variance
    mean = max(float(excess.mean()), _LEAST_EXCESS)
    if noise > 0:
        spread = float(excess.var())
        kept = max(spread - noise, 0.0) / max(spread, 1e-300)
        excess = mean + kept * (excess - mean)
    return np.asarray(np.maximum(excess, _LEAST_EXCESS))
