"""Distinct visits out of a stream of them, in memory that grows with the distinct ones alone."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Visits are sorted this many at a time: the more, the fewer passes of merging.
_BLOCK = 1 << 24


@dataclass(frozen=True, eq=False)
class _Run:
    """Distinct visits as compressed rows, of users up to the last who made one of them."""

    indptr: NDArray[np.int64]
    cells: NDArray[np.int32]

    @classmethod
    def of(cls, keys: NDArray[np.int64]) -> _Run:
        """Make a run of keys ``user << 32 | cell``, which are sorted in place."""
        keys.sort()
        cells = np.empty(keys.size, np.int32)
        return cls(*_cut(kernels.split_keys(keys, cells), cells))

    def merged(self, other: _Run) -> _Run:
        cells = np.empty(self.cells.size + other.cells.size, np.int32)
        indptr = kernels.merge_rows(self.indptr, self.cells, other.indptr, other.cells, cells)
        return _Run(*_cut(indptr, cells))


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
        run = self._runs.pop()
        beyond = np.full(n_users + 1 - run.indptr.size, run.cells.size)
        return np.concatenate([run.indptr, beyond]), run.cells

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
        self._runs.append(_Run.of(keys))
        while len(self._runs) > 1 and self._runs[-2].cells.size < 2 * self._runs[-1].cells.size:
            self._merge_last()

    def _merge_last(self) -> None:
        newer, older = self._runs.pop(), self._runs.pop()
        self._runs.append(older.merged(newer))


def _cut(
    indptr: NDArray[np.int64], cells: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Give back the room at the end of `cells` that was not needed, in place."""
    cells.resize(int(indptr[-1]), refcheck=False)
    return indptr, cells
