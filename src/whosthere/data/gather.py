"""Visits gathered from a stream of records, in memory that grows with the visits alone."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Repeated records are merged whenever this many new ones have come in, or as many as there
# are visits already, so that merging costs no more than a fixed number of passes.
_MERGE_AFTER = 1 << 24


class Fate(IntEnum):
    """How far a record got, in the order of the checks."""

    OUT_OF_WINDOW = 0
    OUT_OF_BOX = 1
    OUT_OF_REGIONS = 2
    KEPT = 3


class Gathering:
    """Visits, and what became of every record and user, while records stream by."""

    def __init__(self) -> None:
        self.records: NDArray[np.int64] = np.zeros(len(Fate), dtype=np.int64)
        self._furthest = np.zeros(0, dtype=np.int8)
        self._local = np.zeros(0, dtype=np.int64)
        self._pending: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        self._n_pending = 0
        self._n_merged = 0

    @property
    def n_users(self) -> int:
        """How many users were seen, kept or not."""
        return self._furthest.size

    def add(
        self, users: NDArray[np.int32], fates: NDArray[np.int8], cells: NDArray[np.int32]
    ) -> None:
        """Take a batch in: the user number and fate of every record, the cells of those kept."""
        self.records += np.bincount(fates, minlength=len(Fate))
        grown = max(self.n_users, int(users.max(initial=-1)) + 1)
        self._furthest = _grown(self._furthest, grown)
        np.maximum.at(self._furthest, users, fates)
        # Records of the time window, one more for each that was made inside the regions and one
        # less for each outside: positive for users who were mostly inside.
        self._local = _grown(self._local, grown)
        lean = np.where(fates == Fate.KEPT, 1, np.where(fates == Fate.OUT_OF_WINDOW, 0, -1))
        self._local += np.bincount(users, weights=lean, minlength=grown).astype(np.int64)

        kept = fates == Fate.KEPT
        self._pending.append((users[kept], cells))
        self._n_pending += cells.size
        if self._n_pending - self._n_merged > max(_MERGE_AFTER, self._n_merged):
            self._merge()

    def visits(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return each user's distinct cells as compressed rows."""
        users, cells = self._take_pending()
        return kernels.group_by_row(users, cells, self.n_users)

    def users_lost_to(self, fate: Fate) -> int:
        """Count the users none of whose records got further than this."""
        return int(np.count_nonzero(self._furthest == fate))

    def mostly_inside(self) -> NDArray[np.bool_]:
        """Tell who made more than half of the records of the time window inside the regions."""
        return self._local > 0

    def _merge(self) -> None:
        indptr, cells = self.visits()
        users = np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(indptr))
        self._pending = [(users, cells)]
        self._n_pending = self._n_merged = cells.size

    def _take_pending(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        users = np.concatenate([part[0] for part in self._pending] or [np.zeros(0, np.int32)])
        cells = np.concatenate([part[1] for part in self._pending] or [np.zeros(0, np.int32)])
        self._pending, self._n_pending = [], 0
        return users, cells


def _grown(array: NDArray[np.signedinteger], size: int) -> NDArray[np.signedinteger]:
    return np.pad(array, (0, size - array.size))
