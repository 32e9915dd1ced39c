"""Who was where, when: one binary trace per user over the cells (region, epoch).

Traces are nearly empty, so they are compressed rows: sorted 32-bit cell numbers, all users in one
array (`indptr`, `cells`). A visit takes 4 bytes, and counting a group is one pass over its visits.
The price is a limit of 2^31 - 1 cells. Ids are text and sorted, because files disagree on whether
an id is a number: so the rows, and whom a seed chooses, do not depend on the order of the records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from whosthere import kernels
from whosthere.arrays import frozen, own
from whosthere.data.cells import cell_at, epoch_of, region_and_epoch
from whosthere.data.epochs import Epochs
from whosthere.data.files import read_table, write_table
from whosthere.data.flows import Pairs, regions_from_json
from whosthere.data.frames import Frame, rows_of_cells, with_cells
from whosthere.data.ledger import Ledger
from whosthere.data.neighbours import Neighbours, as_graph
from whosthere.display import Shown
from whosthere.errors import FileError, GroupError, InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from whosthere.data.regions import Regions

KIND = "traces"
_MOST_CELLS = np.iinfo(np.int32).max
_DAMAGES = (KeyError, TypeError, AttributeError, ValueError, pl.exceptions.PolarsError)


@dataclass(frozen=True, eq=False, repr=False)
class Traces(Shown):
    """Binary traces of users over cells, as compressed rows.

    User u visited the cells ``cells[indptr[u]:indptr[u + 1]]``, sorted and distinct, numbered
    as `whosthere.data.cells` says. A value: arrays that are given are copied if anybody
    could still write to them (see `arrays.own` for those that nobody does).

    Parameters
    ----------
    users
        A distinct text id for each user; sorted, unless they were selected in another order.
    indptr
        Shape (n_users + 1,), int64.
    cells
        Shape (n_visits,), int32.
    regions, epochs
        What the cells mean.
    ledger
        How the traces came out of records, where they did.
    friends
        Who knows whom, where that is known: a graph over the rows.
    weights
        What each visit adds to the count of its cell, shape (n_visits,), int32; None where each
        adds 1, as all do over the regions and epochs of records.
    most_added
        What anybody can add to a cell at most.
    """

    users: tuple[str, ...]
    indptr: NDArray[np.int64]
    cells: NDArray[np.int32]
    regions: Regions
    epochs: Epochs
    ledger: Ledger | None = None
    friends: Neighbours | None = None
    weights: NDArray[np.int32] | None = None
    most_added: int = 1

    def __post_init__(self) -> None:
        check_cell_space(len(self.regions), self.epochs.n)
        object.__setattr__(self, "indptr", frozen(self.indptr, np.int64))
        object.__setattr__(self, "cells", frozen(self.cells, np.int32))
        if self.indptr.size != len(self.users) + 1 or self.indptr[-1] != self.cells.size:
            raise InputError("the traces' rows do not match their users and cells")
        if self.weights is not None:
            object.__setattr__(self, "weights", frozen(self.weights, np.int32))
            if self.weights.size != self.cells.size:
                raise InputError("the traces' weights do not match their cells")
        if self.friends is not None and len(self.friends) != len(self.users):
            raise InputError(
                f"a graph of friends among {len(self.friends)} people does not fit "
                f"{len(self.users)} users"
            )

    def _facts(self) -> dict[str, object]:
        return {
            "users": self.n_users,
            "visits": self.n_visits,
            **({} if self.friends is None else {"friendships": self.friends.n_edges}),
            "regions": len(self.regions),
            "epochs": str(self.epochs),
        }

    def about_json(self) -> dict[str, Any]:
        """Return how much the traces cover, as a JSON object that names nobody."""
        return {
            "people": self.n_users,
            "visits": self.n_visits,
            "regions": len(self.regions),
            "epochs": self.epochs.to_json(),
            **({"flows": True} if isinstance(self.regions, Pairs) else {}),
        }

    @property
    def n_users(self) -> int:
        """How many users there are, those without any visit included."""
        return len(self.users)

    @property
    def n_visits(self) -> int:
        """How many visits all users made together, each as often as it counts."""
        return int(self.cells.size if self.weights is None else self.weights.sum())

    @property
    def n_cells(self) -> int:
        """How many cells there are: regions times epochs."""
        return len(self.regions) * self.epochs.n

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a matrix of counts: (regions, epochs)."""
        return len(self.regions), self.epochs.n

    def visits_per_user(self) -> NDArray[np.int64]:
        """Return the number of visits of each user, each as often as it counts, (n_users,)."""
        if self.weights is None:
            return np.diff(self.indptr)
        return np.diff(np.append(0, np.cumsum(self.weights, dtype=np.int64))[self.indptr])

    def visits_per_period(self, period_of_epoch: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the visits of each user in each period, shape (n_users, n_periods).

        `period_of_epoch` numbers the periods from 0: `Epochs.days` or `Epochs.weeks`.
        """
        visits = np.zeros((self.n_users, int(period_of_epoch.max()) + 1), np.int64)
        kernels.count_periods(*self._each(), period_of_epoch, visits)
        return visits

    def trace(self, row: int) -> NDArray[np.int32]:
        """Return the cells that the user in a row visited, sorted."""
        at = int(self.checked(row))
        return self.cells[self.indptr[at] : self.indptr[at + 1]]

    def added(self, row: int) -> NDArray[np.int32] | int:
        """Return what the user in a row adds to the counts of the cells of `trace`."""
        ends = slice(self.indptr[row], self.indptr[row + 1])
        return 1 if self.weights is None else self.weights[ends]

    def counts(self, rows: ArrayLike | None = None) -> NDArray[np.int32]:
        """Count how many of the users in `rows` (default: all) visited each cell.

        Weights are added up where there are some. Shape (n_regions, n_epochs). A row given twice
        counts twice.
        """
        if rows is None:
            return self._visitors.copy()
        chosen = np.sort(self.checked(rows))
        if 2 * chosen.size > self.n_users and (chosen[1:] != chosen[:-1]).all():
            # The others are fewer.
            others = np.delete(np.arange(self.n_users), chosen)
            return self._visitors - self._counted(others)
        return self._counted(chosen)

    @cached_property
    def heaviest(self) -> int:
        """The most that somebody really adds to a cell."""
        return 1 if self.weights is None else int(self.weights.max(initial=1))

    @cached_property
    def by_weight(self) -> NDArray[np.int32]:
        """Where each visit stands among numbers by what is added, from 1 on, and by cell."""
        return (
            self.cells if self.weights is None else self.cells + (self.weights - 1) * self.n_cells
        )

    def sums(self, values: NDArray[np.float64], rows: ArrayLike) -> NDArray[np.float64]:
        """Add up values over the visits of each of the users in `rows`, shape (n_rows,).

        Values are given by what is added and by cell, shape (heaviest * n_cells,), and may be minus
        infinity.
        """
        chosen, is_chosen = self.checked(rows), np.zeros(self.n_users, np.bool_)
        is_chosen[chosen] = True
        # Visits are read several times as fast in the order of memory.
        ordered, by_row = np.flatnonzero(is_chosen), np.empty(self.n_users)
        by_row[ordered] = kernels.sum_cells(self.indptr, self.by_weight, ordered, values)
        return np.asarray(by_row[chosen])

    def select(self, rows: ArrayLike) -> Traces:
        """Return the traces of the users in `rows`, in that order, and who of them are friends."""
        chosen = self.checked(rows)
        indptr, cells = kernels.take_rows(self.indptr, self.cells, chosen)
        users = tuple([self.users[row] for row in chosen.tolist()])
        weights = self.weights
        if weights is not None:
            weights = own(kernels.take_rows(self.indptr, weights, chosen)[1], np.int32)
        return replace(
            self,
            users=users,
            indptr=own(indptr, np.int64),
            cells=own(cells, np.int32),
            weights=weights,
            friends=None if self.friends is None else self.friends.select(chosen),
        )

    def between(self, first_epoch: int, n_epochs: int) -> Traces:
        """Return the visits in `n_epochs` epochs from number `first_epoch` on.

        Regions and users stay the same; users without a visit in that time have an empty trace.
        """
        epochs = self.epochs.part(first_epoch, n_epochs)
        region, epoch = region_and_epoch(self.cells, self.epochs.n)
        keep = (epoch >= first_epoch) & (epoch < first_epoch + n_epochs)
        cells = cell_at(region, epoch - first_epoch, n_epochs).astype(np.int32, copy=False)
        return replace(self._marked(keep, cells), epochs=epochs)

    def bounded(
        self, max_visits: int, period: NDArray[np.int32], rng: np.random.Generator
    ) -> Traces:
        """Keep at most `max_visits` visits of each user in each period.

        `period` is that of each epoch, from 0, shape (n_epochs,). Which visits stay is uniformly
        random and depends only on the generator's next draw.
        """
        if max_visits < 1:
            raise InputError(f"the bound on visits must be at least 1, not {max_visits}")
        key = rng.integers(0, 2**64, dtype=np.uint64)
        keep = kernels.sample_within_periods(*self._each(), period, max_visits, key)
        if self.weights is None:
            return self.marked(keep)
        kept = np.bincount(np.repeat(np.arange(self.cells.size), self.weights)[keep],
                           minlength=self.cells.size)  # fmt: skip
        return replace(self, weights=own(kept, np.int32))._marked(kept > 0, self.cells)

    def _each(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the rows with each cell as often as it counts."""
        if self.weights is None:
            return self.indptr, self.cells
        ends = np.append(0, np.cumsum(self.weights, dtype=np.int64))
        return ends[self.indptr], np.repeat(self.cells, self.weights)

    def bounded_regions(
        self, max_regions: int, period: NDArray[np.int32], rng: np.random.Generator
    ) -> Traces:
        """Keep the visits to at most `max_regions` regions of each user in each period.

        Which regions stay is uniformly random.
        """
        region, epoch = region_and_epoch(self.cells.astype(np.int64), self.epochs.n)
        user = np.repeat(np.arange(self.n_users), np.diff(self.indptr))
        unit = user * (int(period.max(initial=0)) + 1) + period[epoch]
        pairs, place = np.unique(unit * len(self.regions) + region, return_inverse=True)
        of_unit = pairs // len(self.regions)
        order = np.lexsort((rng.random(pairs.size), of_unit))
        # How many pairs of the same unit come before, in a random order of them.
        rank = np.empty(pairs.size, np.int64)
        rank[order] = np.arange(pairs.size) - np.searchsorted(of_unit, of_unit)
        return self.marked(rank[place] < max_regions)

    def present(
        self, first: NDArray[np.int64], until: NDArray[np.int64], period: NDArray[np.integer]
    ) -> Traces:
        """Keep the visits of each user from the period `first` on, before the period `until`.

        Both have the shape (n_users,). `period` is that of each epoch, shape (n_epochs,).
        """
        user = np.repeat(np.arange(self.n_users), np.diff(self.indptr))
        at = period[epoch_of(self.cells, self.epochs.n)]
        return self.marked((first[user] <= at) & (at < until[user]))

    def marked(self, keep: NDArray[np.bool_]) -> Traces:
        """Return the visits that are marked, shape (n_visits,) in the order of the cells."""
        return self._marked(keep, self.cells)

    def _marked(self, keep: NDArray[np.bool_], cells: NDArray[np.int32]) -> Traces:
        """Return the visits that are marked, in the given cells."""
        indptr, kept = kernels.take_marked(self.indptr, cells, keep)
        weights = None if self.weights is None else own(self.weights[keep], np.int32)
        return replace(
            self, indptr=own(indptr, np.int64), cells=own(kept, np.int32), weights=weights
        )

    def checked(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Return rows as an array, or refuse those in which there is nobody."""
        chosen = np.asarray(rows)
        # Numpy would take a mask for the rows 0 and 1, and cut off what follows a point.
        if chosen.size and chosen.dtype.kind not in "iu":
            fix = "Of a mask, give `np.flatnonzero(mask)`; of an id, `traces.row_of(id)`"
            raise GroupError("user rows must be whole numbers", fix=fix)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.n_users:
            raise GroupError(f"user rows must lie in 0..{self.n_users - 1}")
        return chosen.astype(np.int64, copy=False)

    def row_of(self, user: str) -> int:
        """Return the row of a user by id."""
        try:
            return self.users.index(user)
        except ValueError:
            raise GroupError(
                "the named user is not in these traces", fix="Check the id's spelling"
            ) from None

    def to_frame(self) -> pl.DataFrame:
        """Return one row per visit: user, region and epoch_start (in the local zone).

        And its weight, where visits have some. A user without any visit has one row, in which all
        but the user is null.
        """
        columns = {"user": pl.Series(self.users), "cell": _lists(self.indptr, self.cells)}
        if self.weights is not None:
            columns["weight"] = _lists(self.indptr, self.weights)
        visits = pl.DataFrame(columns, schema_overrides={"user": pl.String})
        visits = visits.explode(list(columns)[1:], empty_as_null=True)
        places = rows_of_cells(visits["cell"], self.regions, self.epochs)
        return places.insert_column(0, visits["user"]).hstack(visits[:, 2:])

    @classmethod
    def from_frame(cls, frame: Frame, *, regions: Regions, epochs: Epochs) -> Self:
        """Make traces of the rows of `to_frame`, in any order; users are sorted by id.

        `whosthere.read_records` is for records of any other form. Friends are not in the rows.
        """
        rows = with_cells(frame, "user", regions, epochs)
        if rows["user"].dtype != pl.String or rows["user"].null_count():
            raise InputError("the column user does not hold a text in every row")
        if "weight" not in rows.columns:
            cells = pl.col("cell").drop_nulls().unique().sort()
            people = rows.group_by("user").agg(cells).sort("user")
            return cls(tuple(people["user"]), *_rows_of(people["cell"]), regions, epochs)
        rows = rows.group_by("user", "cell").agg(pl.col("weight").sum().cast(pl.Int32))
        both = pl.col("cell", "weight").sort_by("cell").filter(pl.col("cell").is_not_null())
        people = rows.group_by("user").agg(both).sort("user")
        (indptr, visited), (_, weights) = map(_rows_of, (people["cell"], people["weight"]))
        return cls(
            tuple(people["user"]),
            indptr,
            visited,
            regions,
            epochs,
            weights=weights,
            most_added=int(weights.max(initial=1)),
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write one Parquet file with a row per user: the id, and lists of cells and of friends.

        With a list of weights, where visits have some.

        Friends are row numbers, counted from 0; each pair stands in the row of the first of
        them. The column is missing where nothing is known about friends.
        """
        columns = {
            "user": pl.Series(self.users, dtype=pl.String),
            "cells": _lists(self.indptr, self.cells),
        }
        if self.weights is not None:
            columns["weights"] = _lists(self.indptr, self.weights)
        if self.friends is not None:
            first, second = self.friends.pairs().T
            columns["friends"] = _lists(
                np.searchsorted(first, np.arange(self.n_users + 1)), np.ascontiguousarray(second)
            )
        metadata = {
            "regions": self.regions.to_json(),
            "epochs": self.epochs.to_json(),
            "ledger": None if self.ledger is None else self.ledger.to_json(),
            **({} if self.most_added == 1 else {"most_added": self.most_added}),
        }
        write_table(pl.DataFrame(columns), Path(path), kind=KIND, metadata=metadata, force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote, and refuse what traces never are."""
        frame, head = read_table(Path(path), kind=KIND)
        try:
            if frame["user"].null_count():
                raise ValueError("a row without a user")
            ledger, most_added = head["ledger"], int(head.get("most_added", 1))
            traces = cls(
                tuple(frame["user"].to_list()),
                *_rows_of(frame["cells"]),
                regions_from_json(head["regions"]),
                Epochs.from_json(head["epochs"]),
                None if ledger is None else Ledger.from_json(ledger),
                _friends(frame["friends"]) if "friends" in frame.columns else None,
                _rows_of(frame["weights"])[1] if "weights" in frame.columns else None,
                most_added,
            )
        except FileError as error:
            raise FileError(error.problem, where=path, fix=error.fix) from error
        except _DAMAGES as error:
            raise FileError("is a damaged traces file", where=path, fix="Make it again") from error
        for problem in traces._broken():
            raise FileError(problem, where=path, fix="Make it again")
        return traces

    def _broken(self) -> Iterator[str]:
        """Say what the class promises and these traces do not keep."""
        if len(set(self.users)) < self.n_users:
            yield "has several users with the same id"
        if self.cells.size and not 0 <= self.cells.min() <= self.cells.max() < self.n_cells:
            yield "holds visits outside its regions and epochs"
        rises = np.diff(self.cells, prepend=-1) > 0
        rises[self.indptr[:-1][np.diff(self.indptr) > 0]] = True
        if not rises.all():
            yield "has a user with a cell twice, or with cells that are not in order"
        added = np.ones(1) if self.weights is None else self.weights
        if added.size and not 1 <= added.min() <= added.max() <= self.most_added:
            yield "has a visit that adds less or more to a count than any can"

    @cached_property
    def _visitors(self) -> NDArray[np.int32]:
        """How many of all users visited each cell, shape (n_regions, n_epochs)."""
        return own(self._counted(np.arange(self.n_users)), np.int32)

    def _counted(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Count the users in `rows` one by one, shape (n_regions, n_epochs)."""
        if self.weights is not None:
            some = self.select(rows)
            sums = np.bincount(some.cells, some.weights, self.n_cells)
            return sums.astype(np.int32).reshape(self.shape)
        counts = np.zeros(self.n_cells, dtype=np.int32)
        kernels.count_cells(self.indptr, self.cells, rows, counts)
        return counts.reshape(self.shape)


def check_cell_space(n_regions: int, n_epochs: int) -> None:
    """Refuse more cells than a 32-bit index can number."""
    if n_regions * n_epochs > _MOST_CELLS:
        raise InputError(
            f"{n_regions} regions x {n_epochs} epochs are more than {_MOST_CELLS} cells",
            fix="Use larger regions, longer epochs or a shorter time window",
        )


def _lists(indptr: NDArray[np.int64], values: NDArray[np.int32]) -> pl.Series:
    """Make a column of lists, row i of ``values[indptr[i]:indptr[i + 1]]``."""
    if indptr.size == 1:
        return pl.Series([], dtype=pl.List(pl.Int32))
    start, length = pl.Series(indptr[:-1]), pl.Series(np.diff(indptr))
    everything = pl.lit(pl.Series(values).implode())
    return pl.select(everything.list.slice(pl.lit(start), pl.lit(length))).to_series()


def _rows_of(lists: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return `indptr` and `values` of a column that `_lists` made, refusing any other."""
    if lists.dtype != pl.List(pl.Int32) or lists.null_count():
        raise ValueError(f"a column of {lists.dtype} with {lists.null_count()} nulls")
    lengths = lists.list.len().to_numpy()
    values = lists.explode(empty_as_null=False)
    if values.null_count():
        raise ValueError("a list with a null")
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return own(indptr, np.int64), own(values.to_numpy(), np.int32)


def _friends(lists: pl.Series) -> Neighbours:
    """Return the graph whose pairs stand in a column, each in the row of one of them."""
    indptr, friend = _rows_of(lists)
    n = lists.len()
    if friend.size and not 0 <= friend.min() <= friend.max() < n:
        raise ValueError("a friend who is not there")
    return as_graph(np.column_stack([np.repeat(np.arange(n), np.diff(indptr)), friend]), n)


@dataclass(frozen=True, eq=False)
class Group:
    """People chosen from traces, the given rows of everybody, in an order of their own.

    An audit draws groups by the thousand, of which mostly the counts are asked for. They are
    counted where they stand; ids and traces of their own are made for who asks. `keys` has the
    secret number of each, where several tables share them.
    """

    everybody: Traces
    rows: NDArray[np.int64]
    keys: NDArray[np.integer] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", frozen(self.everybody.checked(self.rows), np.int64))

    @classmethod
    def all_of(cls, everybody: Traces, keys: NDArray[np.integer] | None = None) -> Self:
        """Choose everybody, in the order of the traces."""
        return cls(everybody, own(np.arange(everybody.n_users), np.int64), keys)

    @property
    def n_users(self) -> int:
        """How many people are chosen."""
        return int(self.rows.size)

    @property
    def n_visits(self) -> int:
        """How many visits they made together, each as often as it counts."""
        return int(self.everybody.visits_per_user()[self.rows].sum())

    @cached_property
    def users(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple([self.everybody.users[row] for row in self.rows.tolist()])

    @cached_property
    def traces(self) -> Traces:
        """Their traces, as a copy."""
        return self.everybody.select(self.rows)

    def trace(self, i: int) -> NDArray[np.int32]:
        """Return the cells that person number i of the group visited, sorted."""
        return self.everybody.trace(int(self.rows[i]))

    def added(self, i: int) -> NDArray[np.int32] | int:
        """Return what person number i of the group adds to the counts of the cells of `trace`."""
        return self.everybody.added(int(self.rows[i]))

    def visits(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each visit stands among all cells, and how many visits each member made."""
        indptr = self.everybody.indptr
        starts, ends = indptr[self.rows], indptr[self.rows + 1]
        sizes = ends - starts
        so_far = np.cumsum(sizes)
        # Each visit stands where its member's visits end, less those of the group from there on.
        return np.repeat(ends - so_far, sizes) + np.arange(so_far[-1]), sizes

    def counts(self) -> NDArray[np.int32]:
        """Count how many of the group visited each cell, shape (n_regions, n_epochs)."""
        return self.everybody.counts(self.rows)

    def together(self, unit: NDArray[np.int64]) -> Traces:
        """Return what those of the same unit add together, a row for each unit.

        `unit` has the number of each member's, from 0 on without a gap.
        """
        (at, sizes), n_cells = self.visits(), self.everybody.n_cells
        of_visit = np.repeat(unit.astype(np.int64), sizes)
        keys, place = np.unique(of_visit * n_cells + self.everybody.cells[at], return_inverse=True)
        weights = None if self.everybody.weights is None else self.everybody.weights[at]
        starts = np.arange(int(unit.max()) + 2) * n_cells
        return replace(
            self.everybody,
            users=tuple(map(str, range(starts.size - 1))),
            indptr=own(np.searchsorted(keys, starts), np.int64),
            cells=own((keys % n_cells).astype(np.int32), np.int32),
            weights=own(np.bincount(place, weights, keys.size).astype(np.int32), np.int32),
            friends=None,
        )
