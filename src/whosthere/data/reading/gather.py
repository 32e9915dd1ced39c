"""What became of records and users, and their visits, gathered from a stream."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere import kernels
from whosthere.data.cells import cell_at
from whosthere.data.reading.labels import Labels
from whosthere.data.reading.partition.base import UNKNOWN, WORLD, Box, Locator, lon_lat
from whosthere.data.reading.visits import Visits
from whosthere.data.traces import check_cell_space
from whosthere.errors import RecordsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.epochs import Epochs
    from whosthere.data.reading.batches import Batch
    from whosthere.data.reading.survey import Window


class Fate(IntEnum):
    """How far a record got, in the order of the checks."""

    OUT_OF_WINDOW = 0
    OUT_OF_BOX = 1
    OUT_OF_REGIONS = 2
    KEPT = 3


# By fate: a record of the time window counts for its user being inside, or against it.
_LEAN = np.array([0, -1, -1, 1], dtype=np.int64)


class Gathering:
    """Visits, and what became of every record and user, while records stream by.

    Parameters
    ----------
    locator
        Finds the region of a place.
    epochs, window
        The epochs, of which the last may reach past the time window.
    box
        Records outside it are dropped.
    user_dtype
        Int64 for users that are all whole numbers, else String.
    drop
        Leave out records in a region that is not known, instead of refusing them.

    Attributes
    ----------
    locator, epochs
        As given.
    users
        Everybody who was seen, kept or not.
    records
        How many records had each `Fate`.
    invalid, resolved
        Rows that were not valid, and local times of a clock change that were read, by reason.
    n_unknown
        How many records lie in a region that is not known.
    """

    def __init__(
        self,
        *,
        locator: Locator,
        epochs: Epochs,
        window: Window,
        box: Box,
        user_dtype: type[pl.Int64 | pl.String],
        drop: bool,
    ) -> None:
        self.locator, self.epochs = locator, epochs
        self._window, self._box = window, box
        self.users = Labels(user_dtype)
        self.records: NDArray[np.int64] = np.zeros(len(Fate), dtype=np.int64)
        self.invalid: Counter[str] = Counter()
        self.resolved: Counter[str] = Counter()
        self.n_unknown = 0
        self._drop = drop
        self._furthest = np.zeros(0, dtype=np.int8)
        self._balance = np.zeros(0, dtype=np.int64)
        self._visits = Visits()

    @property
    def records_read(self) -> int:
        """All rows, invalid ones included."""
        return int(self.records.sum()) + self.invalid.total()

    def add(self, batch: Batch) -> None:
        """Take a batch in."""
        self.invalid.update(batch.invalid)
        self.resolved.update(batch.resolved)
        users = self.users.encode(batch.records["user"])
        fates, cells = self._located(batch)
        self._furthest = _grown(self._furthest, len(self.users))
        self._balance = _grown(self._balance, len(self.users))
        kernels.count_fates(users, fates, _LEAN, self._furthest, self._balance, self.records)
        self._visits.add(users if cells.size == users.size else users[fates == Fate.KEPT], cells)

    def _located(self, batch: Batch) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
        """Return the fate of every record, and the cells of those kept."""
        epoch = self.epochs.index_of(batch.micros)
        fates = np.full(len(batch), Fate.KEPT, dtype=np.int8)
        if self._box is not WORLD:
            fates[~self._box.holds(*lon_lat(batch.records))] = Fate.OUT_OF_BOX
        fates[(epoch < 0) | ~self._window.holds(batch.micros)] = Fate.OUT_OF_WINDOW
        places, kept = batch.records, fates == Fate.KEPT
        if not kept.all():
            places, epoch = places.filter(pl.Series(kept)), epoch[kept]
        region = self.locator.locate(places)
        lost = region < 0
        if lost.any():
            at = np.flatnonzero(kept)[lost]
            unknown = region[lost] == UNKNOWN
            if unknown.any() and not self._drop:
                raise _unknown_region(batch, int(at[np.argmax(unknown)]))
            self.n_unknown += int(unknown.sum())
            fates[at] = Fate.OUT_OF_REGIONS
            region, epoch = region[~lost], epoch[~lost]
        check_cell_space(int(region.max(initial=0)) + 1, self.epochs.n)
        return fates, cell_at(region, epoch, self.epochs.n)

    def visits(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return each user's distinct cells as compressed rows, once all records are in."""
        return self._visits.rows(len(self.users))

    def users_lost_to(self, fate: Fate) -> int:
        """Count the users none of whose records got further than this."""
        return int(np.count_nonzero(self._furthest == fate))

    def mostly_inside(self) -> NDArray[np.bool_]:
        """Tell who made more than half of the records of the time window inside the regions."""
        return self._balance > 0


def _grown(array: NDArray[np.signedinteger], size: int) -> NDArray[np.signedinteger]:
    return array if size == array.size else np.pad(array, (0, size - array.size))


def _unknown_region(batch: Batch, index: int) -> RecordsError:
    return RecordsError(
        f"region {batch.records['region'][index]!r} is not in the regions table",
        where=batch.place(index),
        fix="Add it to the table, or have invalid rows dropped (`drop_invalid`)",
    )
