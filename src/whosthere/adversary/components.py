"""Structure of a release beyond region times epoch: as many components as stand out of its noise.

Published counts are made whole first: what a count was before anything of it was hidden, on
average. One person more in a cell is a small step of the cell's rate: the derivative of the chance
of a published value by the rate is what one person more adds to that chance. So the likelihood
ratio of one person, less 1, is the slope of the log-likelihood by the rate. A count is completed by
one step of scoring from the rate that is assumed so far,

    rate + width * (f_1 / f_0 - 1),

where the width is one by the information of a published count, as for noise, but no more than the
variance that the count would have if nothing were hidden. Counts that are published as they are
stay so. A suppressed or withheld count becomes the mean number of people given that it was. A noisy
count moves only as far as its noise allows.

Completed counts less base rates, in deviations, are a matrix whose entries vary independently, each
with a variance of at most 1. Its largest singular value is then hardly above

    edge = sqrt(largest sum of variances in a row) + sqrt(largest sum in a column)

(Bandeira and van Handel, 2016). What is larger is structure. Noise makes singular values too large;
they are shrunk by the rule that is optimal for independent noise of equal variance (Gavish and
Donoho, 2017).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.linalg import eigh

from whosthere import kernels
from whosthere.adversary.count_tables import CountTables, count_tables
from whosthere.arrays import Floats, Floats32, Ints32, own

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.kernels.lines import Scales
    from whosthere.privacy.mechanism import Mechanism

    Components: TypeAlias = tuple[Floats32, Floats32]

# One person is not taken for more than one standard deviation, however empty a cell is.
_ONE_PERSON = 1.0
# A count is not completed to more people than it shows and so many deviations of noise.
_FAR = 6.0
# Deviations by which a singular value must be above the edge: the largest one of noise varies by
# less than one, but where nearly all counts are alike single visits stand out of the others.
_BEYOND = 2.0
_LEAST_VARIANCE = 1e-9
# Components beyond a base rate leave at least this share of it.
_LEAST_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class Completion:
    """Tables of one mechanism, by the rate that is assumed for a cell."""

    tables: CountTables
    completed: Floats32
    """What counts are completed to, shape (n_rates, n_bins)."""
    precision: Floats
    """One by the deviation that completed counts are measured by, shape (n_rates,). Beyond the
    tables the squared deviation is the rate and the `noise` of `scales`."""
    weight: Floats
    """Variance of completed counts that were measured by it, at most 1, shape (n_rates,). It is
    nearly 0 where next to nothing is published."""
    scales: Scales
    """How kernels read the tables. Symbols without a bin are taken as they are, less `shift`."""

    def relative_deviations(self, base: Floats) -> Floats:
        """Return the deviation of cells over their base rates, given as logarithms, same shape."""
        return kernels.relative_deviations(base, self.precision, self.scales)

    def residuals(
        self, symbols: Ints32, base: Floats, moved: Floats32
    ) -> tuple[Floats32, Floats, Floats]:
        """Return by how many deviations completed counts lie above base rates.

        With their variances at the base rates, if there is nothing but chance, added up by row and
        by column. `base` are logarithms by cell. `moved` says how many times larger the rates
        assumed so far are, as logarithms, same shape, or (1, 1) where they are the base rates.
        """
        tables = self.completed, self.precision, self.weight, self.scales
        return kernels.standardised_residuals(symbols, base, moved, *tables)


@lru_cache(maxsize=64)
def completion(mechanism: Mechanism, m: int) -> Completion:
    """Make the tables of a mechanism for groups of m people, once."""
    tables = count_tables(mechanism, m)
    rates, noise = tables.rates, tables.noise
    width = np.minimum(1 / np.maximum(tables.information, 1e-12), rates + noise)
    bins = tables.bin_of_symbol
    # The last value of each bin. The last bin holds all further values, which are left alone.
    last = np.searchsorted(bins, np.arange(tables.log_ratio.shape[1]), "right") - 1
    largest = tables.per_person * (last + tables.alphabet.base)
    if mechanism.withheld is not None:
        largest[0] = tables.per_person * mechanism.withheld.highest
    with np.errstate(over="ignore"):
        completed = rates[:, None] + width[:, None] * np.expm1(tables.log_ratio)
    most = np.maximum(rates[:, None], largest - min(tables.shift, 0.0) + _FAR * np.sqrt(noise) + 1)
    squared = width + _ONE_PERSON
    return Completion(
        tables=tables,
        completed=own(np.minimum(completed, most), np.float32),
        precision=own(1 / np.sqrt(squared), np.float64),
        weight=own(np.minimum(width**2 * tables.information / squared, 1.0), np.float64),
        scales=tables.scales._replace(
            bin_of_symbol=own(bins[bins < bins[-1]], np.int32), noise=noise + _ONE_PERSON
        ),
    )


def find_components(
    symbols: Ints32, base: Floats, completion: Completion, rounds: int
) -> Floats32 | None:
    """Return what the logarithms of rates differ by from base rates; None where nothing stands out.

    `base` are their logarithms by cell. Hidden counts are completed by the rates found so far, in
    so many rounds. Shape (n_regions, n_epochs).
    """
    moved, relative = np.zeros((1, 1), np.float32), None
    for _ in range(rounds):
        residuals, by_row, by_column = completion.residuals(symbols, base, moved)
        variance = max(float(by_row.sum()) / symbols.size, _LEAST_VARIANCE)
        left, right = leading(residuals, edge_of(by_row, by_column), variance)
        if not left.shape[1]:
            return None
        if relative is None:
            relative = own(completion.relative_deviations(base), np.float32)
        moved = log_share(left @ right.T, relative)
    return moved


def edge_of(by_row: Floats, by_column: Floats) -> float:
    """Return what singular values of noise stay below, given sums of variances."""
    return math.sqrt(by_row.max()) + math.sqrt(by_column.max()) + _BEYOND


def log_share(extra: Floats32, relative: NDArray[np.floating]) -> Floats32:
    """Return the logarithm of how many times larger rates are with components than without.

    `extra` is what the components add, in deviations, and `relative` deviations over base rates.
    """
    share = extra * relative
    share += 1
    return np.asarray(np.log(np.maximum(share, _LEAST_SHARE, out=share), out=share))


def leading(matrix: Floats32, edge: float, variance: float) -> Components:
    """Return the part of a matrix that stands out of noise, as two factors.

    The singular values are roots of the eigenvalues of the matrix times itself. Single precision
    tells apart all that is not smaller than the largest by a factor of a thousand.
    """
    flat = matrix.shape[0] > matrix.shape[1]
    wide = matrix.T if flat else matrix
    squares, vectors = eigh(
        wide @ wide.T, subset_by_value=(edge**2, np.inf), check_finite=False, overwrite_a=True
    )
    n, p = wide.shape
    scaled = squares / variance
    kept = np.sqrt(np.maximum((scaled - n - p) ** 2 - 4 * n * p, 0)) / scaled
    left, right = own(vectors, np.float32), own(wide.T @ (vectors * kept), np.float32)
    return (right, left) if flat else (left, right)
