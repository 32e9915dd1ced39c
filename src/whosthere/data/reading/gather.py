"""What became of records and users, and their visits, gathered from a stream."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels
from whosthere.data.reading.visits import Visits

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Fate(IntEnum):
    """How far a record got, in the order of the checks."""

    OUT_OF_WINDOW = 0
    OUT_OF_BOX = 1
    OUT_OF_REGIONS = 2
    KEPT = 3


# By fate: a record of the time window counts for its user being inside, or against it.
_LEAN = np.array([0, -1, -1, 1], dtype=np.int64)


class Gathering:
    """Visits, and what became of every record and user, while records stream by."""

    def __init__(self) -> None:
        self.records: NDArray[np.int64] = np.zeros(len(Fate), dtype=np.int64)
        self._furthest = np.zeros(0, dtype=np.int8)
        self._balance = np.zeros(0, dtype=np.int64)
        self._visits = Visits()

    @property
    def n_users(self) -> int:
        """How many users were seen, kept or not."""
        return self._furthest.size

    def add(
        self,
        users: NDArray[np.int32],
        fates: NDArray[np.int8],
        cells: NDArray[np.int32],
        *,
        n_users: int,
    ) -> None:
        """Take a batch in: the user and fate of every record, the cells of those kept.

        `n_users` is how many users were seen so far.
        """
        self._furthest = _grown(self._furthest, n_users)
        self._balance = _grown(self._balance, n_users)
        kernels.count_fates(users, fates, _LEAN, self._furthest, self._balance, self.records)
        self._visits.add(users if cells.size == users.size else users[fates == Fate.KEPT], cells)

    def visits(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return each user's distinct cells as compressed rows, once all records are in."""
        return self._visits.rows(self.n_users)

    def users_lost_to(self, fate: Fate) -> int:
        """Count the users none of whose records got further than this."""
        return int(np.count_nonzero(self._furthest == fate))

    def mostly_inside(self) -> NDArray[np.bool_]:
        """Tell who made more than half of the records of the time window inside the regions."""
        return self._balance > 0


def _grown(array: NDArray[np.signedinteger], size: int) -> NDArray[np.signedinteger]:
    return array if size == array.size else np.pad(array, (0, size - array.size))
