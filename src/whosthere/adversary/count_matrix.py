"""Counts of many groups, where the two of a pair are kept as one and its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from whosthere import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.kernels.count_matrix import Rows


@dataclass(frozen=True, eq=False, repr=False)
class CountMatrix:
    """A row of counts for each group, of which pairs take the memory of one.

    Rows may come in pairs that differ in a few cells. Then only the second of each is kept, in the
    smallest unsigned type that will do, together with the changes that lead to the first.

    Attributes
    ----------
    rows
        The matrix as the kernels take it.
    """

    rows: Rows

    @classmethod
    def single(cls, counts: NDArray[np.unsignedinteger]) -> Self:
        """Wrap counts of shape (n_groups, n_cells), without a copy."""
        none = np.empty(0, np.int32)
        return cls(kernels.Rows(counts, 1, np.zeros(len(counts) + 1, np.int64), none, none))

    @property
    def shape(self) -> tuple[int, int]:
        """How many groups and cells there are."""
        n, p = self.rows.base.shape
        return n * self.rows.copies, p

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sum and the sum of squares of each cell, exactly, shape (n_cells,) each."""
        total, squares = kernels.column_sums(self.rows)
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
        return np.asarray(kernels.standardised_sums(self.rows, weights, mean, scale))

    def standardised(
        self, cells: NDArray[np.int64], mean: NDArray[np.float64], scale: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return (count - mean) / scale of some cells, shape (n_chosen, n_groups).

        Means and scales are those of all cells.
        """
        return np.asarray(kernels.standardised_columns(self.rows, cells, mean, scale))

    def dense(self) -> NDArray[np.unsignedinteger]:
        """Return all counts, shape (n_groups, n_cells); without a copy where none are paired."""
        rows = self.rows
        if rows.copies == 1:
            return rows.base
        most = int(rows.base.max(initial=0)) + int(rows.changes.max(initial=0))
        counts = np.repeat(rows.base.astype(np.min_scalar_type(most)), rows.copies, axis=0)
        pair = np.repeat(np.arange(len(rows.base)), np.diff(rows.bounds))
        # Unsigned sums that wrap around twice are right in the end.
        counts[pair * rows.copies, rows.changed] += rows.changes.astype(counts.dtype)
        return counts
