"""Loops over matrices of counts in which groups may come in pairs that hardly differ.

Counts are kept cell by cell, in all groups side by side. A column of `base` stands for one group,
or for two: the first with some of its counts changed, the second as it is. The changes of column b
are ``changes[bounds[b] : bounds[b + 1]]`` in the cells `changed`; there are none where groups are
single.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from whosthere.kernels.compiling import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Floats, Floats32, Ints32, Ints64

# The sum of squares of so many bytes fits into 32 bits.
_MOST_BYTES = (2**32 - 1) // 255**2


class CountMatrix(NamedTuple):
    """The matrix, `base` of shape (n_cells, n_groups / copies), in a small unsigned type.

    `copies` is 2 where groups come in pairs, else 1.
    """

    base: NDArray[np.unsignedinteger]
    copies: int
    bounds: Ints64
    changed: Ints32
    changes: Ints32

    @classmethod
    def single(cls, by_cell: NDArray[np.unsignedinteger]) -> Self:
        """Wrap counts of single groups, shape (n_cells, n_groups), without a copy."""
        none = np.empty(0, np.int32)
        return cls(by_cell, 1, np.zeros(by_cell.shape[1] + 1, np.int64), none, none)

    @property
    def shape(self) -> tuple[int, int]:
        """How many groups and cells there are."""
        p, n = self.base.shape
        return n * self.copies, p

    def dense(self) -> NDArray[np.unsignedinteger]:
        """Return all counts, shape (n_groups, n_cells); without a copy where none are paired."""
        if self.copies == 1:
            return self.base.T
        most = int(self.base.max(initial=0)) + int(self.changes.max(initial=0))
        by_group = np.repeat(self.base.T.astype(np.min_scalar_type(most)), self.copies, axis=0)
        pair = np.repeat(np.arange(self.base.shape[1]), np.diff(self.bounds))
        # Unsigned sums that wrap around twice are right in the end.
        by_group[pair * self.copies, self.changed] += self.changes.astype(by_group.dtype)
        return by_group


@kernel()
def cell_sums(counts: CountMatrix) -> tuple[Floats, Floats]:
    """Return the sum and the sum of squares of each cell, exactly for counts."""
    base = counts.base
    p, n = base.shape
    total, squares = np.zeros(p), np.zeros(p)
    # Sums of bytes fit into 32 bits, in which they are several times faster.
    as_bytes = base.itemsize == 1 and n <= _MOST_BYTES
    for cell in range(p):
        row = base[cell]
        if as_bytes:
            small, small_squares = np.uint32(0), np.uint32(0)
            for b in range(n):
                value = np.uint32(row[b])
                small += value
                small_squares += value * value
            total[cell], squares[cell] = small, small_squares
        else:
            large, large_squares = np.uint64(0), np.uint64(0)
            for b in range(n):
                large += np.uint64(row[b])
                large_squares += np.uint64(row[b]) * np.uint64(row[b])
            total[cell], squares[cell] = large, large_squares
    total *= counts.copies
    squares *= counts.copies
    for b in range(n):
        for i in range(counts.bounds[b], counts.bounds[b + 1]):
            cell, change = counts.changed[i], np.float64(counts.changes[i])
            total[cell] += change
            squares[cell] += change * (2.0 * base[cell, b] + change)
    return total, squares


@kernel(fastmath=True)
def standardised_sums(
    counts: CountMatrix, weights: Floats, mean: Floats32, scale: Floats32
) -> Floats32:
    """Return the weighted sums of counts less their cell's mean, over its scale; (n_cells,)."""
    base, copies = counts.base, counts.copies
    p, n = base.shape
    total = np.zeros(p, np.float32)
    shared = np.empty(n, np.float32)
    for b in range(n):
        weight = 0.0
        for i in range(b * copies, (b + 1) * copies):
            weight += weights[i]
        shared[b] = weight
    for b in range(n):
        own = np.float32(weights[b * copies])
        for i in range(counts.bounds[b], counts.bounds[b + 1]):
            total[counts.changed[i]] += own * np.float32(counts.changes[i])
    all_weights = np.float32(weights.sum())
    in_fours = p - p % 4
    for cell in range(0, in_fours, 4):
        # Four at a time, so that weights are fetched less often.
        r0, r1, r2, r3 = base[cell], base[cell + 1], base[cell + 2], base[cell + 3]
        s0, s1, s2, s3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        for b in range(n):
            weight = shared[b]
            s0 += weight * np.float32(r0[b])
            s1 += weight * np.float32(r1[b])
            s2 += weight * np.float32(r2[b])
            s3 += weight * np.float32(r3[b])
        total[cell] += s0
        total[cell + 1] += s1
        total[cell + 2] += s2
        total[cell + 3] += s3
    for cell in range(in_fours, p):
        row, added = base[cell], np.float32(0)
        for b in range(n):
            added += shared[b] * np.float32(row[b])
        total[cell] += added
    for cell in range(p):
        total[cell] = (total[cell] - all_weights * mean[cell]) / scale[cell]
    return total


@kernel()
def standardised_cells(
    counts: CountMatrix, cells: Ints64, mean: Floats, scale: Floats, rows: NDArray[np.floating]
) -> None:
    """Fill in the counts of some cells less their means, over their scales: (n_cells, n_groups)."""
    base, copies = counts.base, counts.copies
    p, n = base.shape
    place = np.full(p, -1, np.int32)
    for k in range(cells.size):
        cell = cells[k]
        place[cell] = k
        for b in range(n):
            value = (base[cell, b] - mean[cell]) / scale[cell]
            for i in range(b * copies, (b + 1) * copies):
                rows[k, i] = value
    for b in range(n):
        for i in range(counts.bounds[b], counts.bounds[b + 1]):
            k = place[counts.changed[i]]
            if k >= 0:
                rows[k, b * copies] += counts.changes[i] / scale[cells[k]]
