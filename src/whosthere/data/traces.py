"""Who was where, when: one binary trace per user over the cells (region, epoch)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from whosthere.data.arrays import frozen
from whosthere.data.epochs import Epochs
from whosthere.data.files import read_table, write_table
from whosthere.data.ledger import Ledger
from whosthere.data.regions import Regions
from whosthere.errors import FileError, GroupError, InputError

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, NDArray

KIND = "traces"
_MOST_CELLS = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Traces:
    """Binary traces of users over cells, as compressed rows.

    User u visited the cells ``cells[indptr[u]:indptr[u + 1]]``, sorted and distinct, where
    ``cell = region * n_epochs + epoch``. A value: no array is ever written to again.

    Parameters
    ----------
    users
        A distinct text id for each user, sorted.
    indptr
        Shape (n_users + 1,), int64.
    cells
        Shape (n_visits,), int32.
    regions, epochs
        What the cells mean.
    ledger
        How the traces came out of records, where they did.
    """

    users: tuple[str, ...]
    indptr: NDArray[np.int64]
    cells: NDArray[np.int32]
    regions: Regions
    epochs: Epochs
    ledger: Ledger | None = None

    def __post_init__(self) -> None:
        check_cell_space(len(self.regions), self.epochs.n)
        object.__setattr__(self, "indptr", frozen(self.indptr, np.int64))
        object.__setattr__(self, "cells", frozen(self.cells, np.int32))
        if self.indptr.size != len(self.users) + 1 or self.indptr[-1] != self.cells.size:
            raise InputError("the traces' rows do not match their users and cells")

    @property
    def n_users(self) -> int:
        """How many users there are, those without any visit included."""
        return len(self.users)

    @property
    def n_visits(self) -> int:
        """How many visits all users made together."""
        return int(self.cells.size)

    @property
    def n_cells(self) -> int:
        """How many cells there are: regions times epochs."""
        return len(self.regions) * self.epochs.n

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a matrix of counts: (regions, epochs)."""
        return len(self.regions), self.epochs.n

    def visits_per_user(self) -> NDArray[np.int64]:
        """Return the number of visits of each user, shape (n_users,)."""
        return np.diff(self.indptr)

    def visits_per_period(self, period_of_epoch: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the visits of each user in each period, shape (n_users, n_periods).

        `period_of_epoch` numbers the periods from 0: `Epochs.days` or `Epochs.weeks`.
        """
        n_periods = int(period_of_epoch.max()) + 1
        row_of_visit = np.repeat(np.arange(self.n_users), self.visits_per_user())
        period_of_visit = period_of_epoch[self.cells % self.epochs.n]
        flat = np.bincount(
            row_of_visit * n_periods + period_of_visit, minlength=self.n_users * n_periods
        )
        return flat.reshape(self.n_users, n_periods)

    def trace(self, row: int) -> NDArray[np.int32]:
        """Return the cells that the user in a row visited, sorted."""
        return self.cells[self.indptr[row] : self.indptr[row + 1]]

    def counts(self, rows: ArrayLike | None = None) -> NDArray[np.int32]:
        """Count how many of the users in `rows` (default: all) visited each cell.

        Shape (n_regions, n_epochs). A row given twice counts twice.
        """
        from whosthere.kernels.rows import count_cells  # noqa: PLC0415 - compiled code, slow import

        chosen = np.arange(self.n_users) if rows is None else self._rows(rows)
        counts = np.zeros(self.n_cells, dtype=np.int32)
        count_cells(self.indptr, self.cells, chosen, counts)
        return counts.reshape(self.shape)

    def select(self, rows: ArrayLike) -> Traces:
        """Return the traces of the users in `rows`, in that order."""
        from whosthere.kernels.rows import take_rows  # noqa: PLC0415 - compiled code, slow import

        chosen = self._rows(rows)
        indptr, cells = take_rows(self.indptr, self.cells, chosen)
        users = tuple(map(self.users.__getitem__, chosen.tolist()))
        return replace(self, users=users, indptr=indptr, cells=cells)

    def bounded(self, max_visits: int, *, per_day: bool, rng: np.random.Generator) -> Traces:
        """Keep at most `max_visits` visits of each user, or of each user and local day.

        Which ones stay is uniformly random and depends only on the generator's next draw.
        """
        from whosthere.kernels.rows import sample_within_periods  # noqa: PLC0415 - slow import

        if max_visits < 1:
            raise InputError(f"the bound on visits must be at least 1, not {max_visits}")
        period = self.epochs.days if per_day else np.zeros(self.epochs.n, dtype=np.int32)
        key = rng.integers(0, 2**64, dtype=np.uint64)
        keep = sample_within_periods(self.indptr, self.cells, period, max_visits, key)
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        return replace(self, indptr=kept_before[self.indptr], cells=self.cells[keep])

    def row_of(self, user: str) -> int:
        """Return the row of a user by id."""
        try:
            return self.users.index(user)
        except ValueError:
            raise GroupError(
                "the named user is not in these traces", fix="Check the id's spelling"
            ) from None

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write one Parquet file with a row per user: the id and the list of cells."""
        lists = pa.LargeListArray.from_arrays(pa.array(self.indptr), pa.array(self.cells))
        table = pa.table({"user": pa.array(self.users, pa.string()), "cells": lists})
        metadata = {
            "regions": self.regions.to_json(),
            "epochs": self.epochs.to_json(),
            "ledger": None if self.ledger is None else self.ledger.to_json(),
        }
        write_table(table, Path(path), kind=KIND, metadata=metadata, force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        table, head = read_table(Path(path), kind=KIND)
        try:
            lists = table.column("cells").combine_chunks()
            ledger = head["ledger"]
            traces = cls(
                tuple(table.column("user").to_pylist()),
                lists.offsets.to_numpy(),
                lists.values.to_numpy(),
                Regions.from_json(head["regions"]),
                Epochs.from_json(head["epochs"]),
                None if ledger is None else Ledger.from_json(ledger),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(
                "is a damaged traces file", where=path, fix="Make it again with whosthere ingest"
            ) from error
        if traces.n_visits and not 0 <= traces.cells.min() <= traces.cells.max() < traces.n_cells:
            raise FileError("holds visits outside its regions and epochs", where=path)
        return traces

    def _rows(self, rows: ArrayLike) -> NDArray[np.int64]:
        chosen = np.asarray(rows, dtype=np.int64)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.n_users:
            raise GroupError(f"user rows must lie in 0..{self.n_users - 1}")
        return chosen


def check_cell_space(n_regions: int, n_epochs: int) -> None:
    """Refuse more cells than a 32-bit index can number."""
    if n_regions * n_epochs > _MOST_CELLS:
        raise InputError(
            f"{n_regions} regions x {n_epochs} epochs are more than {_MOST_CELLS} cells",
            fix="Use larger regions, longer epochs or a shorter time window",
        )
