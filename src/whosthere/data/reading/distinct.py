"""Distinct labels and visits of a stream, in memory that grows with the distinct ones alone."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    # Distinct visits as compressed rows, of users up to the last who made one of them.
    _Run = tuple[NDArray[np.int64], NDArray[np.int32]]


class Labels:
    """Numbers labels from 0, in order of first appearance.

    A text is known by two hashes of 64 bits. Among a billion texts two have the same with a
    chance of 1e-21; comparing the texts themselves takes several times as long. Whole numbers
    are compared exactly.

    The type is Int64 for labels that are all whole numbers, else String. `texts` has the labels
    as text, in the order of their numbers.
    """

    def __init__(self, dtype: type[pl.Int64 | pl.String]) -> None:
        self._dtype = dtype
        self._table = kernels.empty_key_table()
        self.texts: list[str] = []

    def __len__(self) -> int:
        return len(self.texts)

    def encode(self, column: pl.Series) -> NDArray[np.int32]:
        """Return the number of each label, shape (n,); the column must hold no nulls."""
        labels = column.cast(self._dtype)
        first, second = self._keys(labels)
        numbers: NDArray[np.int32] = kernels.look_up_keys(self._table, first, second)
        unknown = np.flatnonzero(numbers < 0)
        if unknown.size:
            self._table, numbers[unknown], new = kernels.number_keys(
                self._table, len(self), first[unknown], second[unknown]
            )
            # As a list: a series would keep the whole batch that its texts are parts of.
            self.texts += labels.gather(unknown[new]).cast(pl.String).to_list()
        return numbers

    def _keys(self, labels: pl.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        if self._dtype == pl.String:
            both = labels.to_frame("label").select(
                pl.col("label").hash(0).alias("first"), pl.col("label").hash(1).alias("second")
            )
            return both["first"].to_numpy(), both["second"].to_numpy()
        return labels.to_numpy().view(np.uint64), np.zeros(labels.len(), np.uint64)


def sorted_order(texts: list[str]) -> NDArray[np.int64]:
    """Return the order that sorts texts, so that numbering does not depend on who came first."""
    return pl.Series(texts, dtype=pl.String).arg_sort().to_numpy().astype(np.int64)


# Visits are sorted this many at a time: the more, the fewer passes of merging.
_BLOCK = 1 << 24


class Visits:
    """A growing set of visits.

    Visits are sorted in blocks, by a thread of their own while others come in. A sorted block is
    a run; two runs are merged as soon as the older is not twice as large, so that each visit
    takes part in few merges, and all runs together hold no more than twice the distinct visits
    and a block.
    """

    def __init__(self) -> None:
        self._block = np.empty(_BLOCK, np.int64)
        self._n = 0
        self._runs: list[_Run] = []
        self._sorter = ThreadPoolExecutor(1)
        self._sorting: Future[None] | None = None

    def add(self, users: NDArray[np.int32], cells: NDArray[np.int32]) -> None:
        """Take visits in, each a user and a cell."""
        begin = 0
        while begin < users.size:
            n = min(users.size - begin, self._block.size - self._n)
            keys = self._block[self._n : self._n + n]
            keys[:] = users[begin : begin + n]
            keys <<= 32
            keys |= cells[begin : begin + n]
            self._n += n
            begin += n
            if self._n == self._block.size:
                self._finish_block()

    def rows(self, n_users: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the distinct visits as compressed rows of users 0 to `n_users` - 1.

        No more can be added then.
        """
        self._finish_block()
        self._wait()
        self._sorter.shutdown()
        while len(self._runs) > 1:
            self._merge_last()
        indptr, cells = self._runs.pop()
        beyond = np.full(n_users + 1 - indptr.size, cells.size)
        return np.concatenate([indptr, beyond]), cells

    def _finish_block(self) -> None:
        """Have the block sorted, and begin another."""
        # One block at a time waits for its turn, so that memory stays bounded.
        self._wait()
        self._sorting = self._sorter.submit(self._add_run, self._block[: self._n])
        self._block, self._n = np.empty(_BLOCK, np.int64), 0

    def _wait(self) -> None:
        if self._sorting is not None:
            self._sorting.result()

    def _add_run(self, keys: NDArray[np.int64]) -> None:
        keys.sort()
        cells = np.empty(keys.size, np.int32)
        self._runs.append(_cut(kernels.split_keys(keys, cells), cells))
        while len(self._runs) > 1 and self._runs[-2][1].size < 2 * self._runs[-1][1].size:
            self._merge_last()

    def _merge_last(self) -> None:
        newer, older = self._runs.pop(), self._runs.pop()
        cells = np.empty(older[1].size + newer[1].size, np.int32)
        self._runs.append(_cut(kernels.merge_rows(*older, *newer, cells), cells))


def _cut(indptr: NDArray[np.int64], cells: NDArray[np.int32]) -> _Run:
    """Give back the room at the end of `cells` that was not needed, in place."""
    cells.resize(int(indptr[-1]), refcheck=False)
    return indptr, cells
