"""Published counts made whole: what a count was before anything of it was hidden, on average.

One person more in a cell is a small step of the cell's rate: the derivative of the chance of a
published value by the rate is what one person more adds to that chance. So the likelihood ratio of
one person, less 1, is the slope of the log-likelihood by the rate. A count is completed by one step
of scoring from the rate that is assumed so far,

    rate + width * (f_1 / f_0 - 1),

where the width is one by the information of a published count, as for noise, but no more than the
variance that the count would have if nothing were hidden. Counts that are published as they are
stay so. A suppressed or withheld count becomes the mean number of people given that it was. A noisy
count moves only as far as its noise allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere import kernels
from whosthere.adversary.count_tables import CountTables, count_tables
from whosthere.arrays import own

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.kernels.lines import Scales
    from whosthere.privacy.mechanism import Mechanism

# One person is not taken for more than one standard deviation, however empty a cell is.
_LEAST_VARIANCE = 1.0
# A count is not completed to more people than it shows and so many deviations of noise.
_FAR = 6.0


class Residuals(NamedTuple):
    """By how many deviations completed counts lie above base rates.

    `values` has the shape (n_regions, n_epochs). Their variances at the base rates, if there is
    nothing but chance, are added up in `by_row` and `by_column`.
    """

    values: NDArray[np.float32]
    by_row: NDArray[np.float64]
    by_column: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Completion:
    """Tables of one mechanism, by the rate that is assumed for a cell.

    Attributes
    ----------
    tables
        What the mechanism makes of cells, by the same rates.
    completed
        What counts are completed to, by rate and bin of the published symbol, shape
        (n_rates, n_bins).
    precision
        One by the deviation that completed counts are measured by, shape (n_rates,). Beyond the
        tables the squared deviation is the rate and the `noise` of `scales`.
    weight
        Variance of completed counts that were measured by it, at most 1, shape (n_rates,). It is
        nearly 0 where next to nothing is published.
    scales
        How kernels read the tables. Symbols without a bin are taken as they are, less `shift`.
    """

    tables: CountTables
    completed: NDArray[np.float32]
    precision: NDArray[np.float64]
    weight: NDArray[np.float64]
    scales: Scales

    def deviations(self, log_rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the deviation of cells of the given rates, same shape."""
        place = (log_rates - self.tables.first) / self.tables.step
        within = 1 / np.interp(place, np.arange(self.precision.size), self.precision)
        beyond = place > self.precision.size - 1
        if not beyond.any():
            return np.asarray(within)
        return np.where(beyond, np.sqrt(np.exp(log_rates) + self.scales.noise), within)

    def residuals(
        self,
        symbols: NDArray[np.int32],
        base: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
        moved: NDArray[np.float32],
    ) -> Residuals:
        """Return by how many deviations completed counts lie above base rates.

        Parameters
        ----------
        symbols
            Published, shape (n_regions, n_epochs).
        base
            Logarithms of rates by row, by column and by cell, as in `rates.Rates`.
        moved
            How many times larger than the base the rates assumed so far are, as logarithms, shape
            (n_regions, n_epochs), or (1, 1) where they are the base rates.
        """
        made = kernels.standardised_residuals(
            symbols,
            *base,
            moved,
            self.completed,
            self.precision,
            self.weight,
            self.scales,
        )
        return Residuals(*made)

    def relative_deviations(
        self, base: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
    ) -> NDArray[np.float32]:
        """Return the deviation of each cell over its base rate, shape (n_regions, n_epochs)."""
        return np.asarray(kernels.relative_deviations(*base, self.precision, self.scales))


@lru_cache(maxsize=32)
def completion(mechanism: Mechanism, m: int) -> Completion:
    """Make the tables of a mechanism for groups of m people, once."""
    tables = count_tables(mechanism, m)
    rates, noise = tables.rates, tables.noise
    width = np.minimum(1 / np.maximum(tables.information, 1e-12), rates + noise)
    bins = tables.bin_of_symbol
    # The last value of each bin. The last bin holds all further values, which are left alone.
    largest = np.searchsorted(bins, np.arange(tables.log_ratio.shape[1]), "right") - 1
    largest += tables.alphabet.base
    if mechanism.withheld is not None:
        largest[0] = mechanism.withheld.highest
    with np.errstate(over="ignore"):
        completed = rates[:, None] + width[:, None] * np.expm1(tables.log_ratio)
    most = np.maximum(rates[:, None], largest - min(tables.shift, 0.0) + _FAR * np.sqrt(noise) + 1)
    squared = width + _LEAST_VARIANCE
    return Completion(
        tables=tables,
        completed=own(np.minimum(completed, most), np.float32),
        precision=own(1 / np.sqrt(squared), np.float64),
        weight=own(np.minimum(width**2 * tables.information / squared, 1.0), np.float64),
        scales=tables.scales._replace(
            bin_of_symbol=own(bins[bins < bins[-1]], np.int32), noise=noise + _LEAST_VARIANCE
        ),
    )
