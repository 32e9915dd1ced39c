"""Published symbols of many groups, where the two of a pair are kept as one and its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from whosthere import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.kernels.count_matrix import Counts

_Float = TypeVar("_Float", bound=np.floating)


@dataclass(frozen=True, eq=False, repr=False)
class CountMatrix:
    """The symbols of all cells in each group, of which pairs take the memory of one.

    Groups may come in pairs that differ in a few cells. Then only the second of each is kept, in
    the smallest unsigned type that will do, together with the changes that lead to the first.

    Attributes
    ----------
    counts
        The matrix as the kernels take it.
    """

    counts: Counts

    @classmethod
    def single(cls, by_group: NDArray[np.unsignedinteger]) -> Self:
        """Take counts of shape (n_groups, n_cells)."""
        return cls.single_by_cell(np.ascontiguousarray(by_group.T))

    @classmethod
    def single_by_cell(cls, by_cell: NDArray[np.unsignedinteger]) -> Self:
        """Wrap counts of shape (n_cells, n_groups), without a copy."""
        none = np.empty(0, np.int32)
        bounds = np.zeros(by_cell.shape[1] + 1, np.int64)
        return cls(kernels.Counts(by_cell, 1, bounds, none, none))

    @property
    def shape(self) -> tuple[int, int]:
        """How many groups and cells there are."""
        p, n = self.counts.base.shape
        return n * self.counts.copies, p

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sum and the sum of squares of each cell, exactly, shape (n_cells,) each."""
        total, squares = kernels.cell_sums(self.counts)
        return total, squares

    def standardised_sums(
        self,
        weights: NDArray[np.float64],
        mean: NDArray[np.float32],
        scale: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Return the weighted sum over groups of (count - mean) / scale of each cell, (n_cells,).

        In single precision: all that is needed to compare cells.
        """
        return np.asarray(kernels.standardised_sums(self.counts, weights, mean, scale))

    def standardised(
        self,
        cells: NDArray[np.int64],
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
        dtype: type[_Float],
    ) -> NDArray[_Float]:
        """Return (count - mean) / scale of some cells, shape (n_chosen, n_groups).

        Means and scales are those of all cells.
        """
        rows = np.empty((cells.size, self.shape[0]), dtype)
        kernels.standardised_cells(self.counts, cells, mean, scale, rows)
        return rows

    def dense(self) -> NDArray[np.unsignedinteger]:
        """Return all counts, shape (n_groups, n_cells); without a copy where none are paired."""
        counts = self.counts
        if counts.copies == 1:
            return counts.base.T
        most = int(counts.base.max(initial=0)) + int(counts.changes.max(initial=0))
        by_group = np.repeat(counts.base.T.astype(np.min_scalar_type(most)), counts.copies, axis=0)
        pair = np.repeat(np.arange(counts.base.shape[1]), np.diff(counts.bounds))
        # Unsigned sums that wrap around twice are right in the end.
        by_group[pair * counts.copies, counts.changed] += counts.changes.astype(by_group.dtype)
        return by_group


class Features(NamedTuple):
    """What a classifier sees of a group: its symbols, which are counts as long as none is withheld.

    Where counts may be withheld, there are two features for each cell: the count, 0 if withheld,
    and after those of all cells whether it is withheld.
    """

    n_cells: int
    withholds: bool

    def matrix(self, symbols: CountMatrix) -> CountMatrix:
        """Return all features of groups, given the symbols of all cells."""
        if not self.withholds:
            return symbols
        base, copies, bounds, changed, changes = symbols.counts
        pair = np.repeat(np.arange(base.shape[1]), np.diff(bounds))
        before = base[changed, pair].astype(np.int32)
        # Counts and then marks of all changed cells, in the order of their pairs again.
        after = _both(before + changes) - _both(before)
        order = np.argsort(np.tile(pair, 2), kind="stable")
        twice = np.concatenate([changed, changed + self.n_cells]).astype(np.int32)
        return CountMatrix(
            kernels.Counts(_both(base), copies, 2 * bounds, twice[order], after[order])
        )

    def cells(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cells that some features are of, in ascending order."""
        return np.unique(chosen % self.n_cells) if self.withholds else chosen

    def of(self, symbols: NDArray[np.integer], chosen: NDArray[np.int64]) -> NDArray[np.integer]:
        """Return some features, shape (n, k), given the symbols of their `cells`."""
        if not self.withholds:
            return symbols
        place = np.searchsorted(self.cells(chosen), chosen % self.n_cells)
        both = np.stack([_counts(symbols), symbols == 0], axis=-1)
        return both[:, place, chosen // self.n_cells]


def _counts(symbols: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return counts above the lowest, 0 where withheld, given symbols that may be withheld."""
    return np.asarray(symbols - (symbols > 0).astype(symbols.dtype))


def _both(symbols: NDArray[np.integer]) -> NDArray[Any]:
    """Return counts, and whether each is withheld, one after the other along the first axis."""
    return np.concatenate([_counts(symbols), (symbols == 0).astype(symbols.dtype)])
