"""What a publisher does: which tables of the same people are published, and how.

A layout says which cells a table has, and which of them each visit counts in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from whosthere import kernels
from whosthere.arrays import own
from whosthere.data.cells import cell_at, region_and_epoch
from whosthere.data.epochs import format_length
from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism


WEEK = timedelta(weeks=1)


@dataclass(frozen=True)
class Layout:
    """The cells of a table: the regions and epochs of the traces, or larger ones.

    A table that is published again and again is one long table, over all that is published so far.
    """

    regions: tuple[int, ...] | None = None
    """The new number of each region, from 0 without gaps; None leaves the regions as they are."""
    epochs: int = 1
    """How many epochs become one."""
    counts: Literal["people", "visits"] = "people"
    """A person is counted once in a cell, or once for every visit, so that totals add up.

    Trips are always added up: a person who made one again counts again.
    """
    times: int | None = None
    """How often it is published, from the first epoch on; None if it covers all epochs at once."""
    every: timedelta = WEEK
    """How much time each of these covers."""

    def __call__(self, traces: Traces) -> Traces:
        """Return the same people over the cells of the table.

        What the table counts are these traces: whoever counts, bounds or attacks it needs to know
        nothing else.
        """
        traces = self.covered(traces)
        if self._is_finest:
            return traces
        epochs = traces.epochs.joined(self.epochs)
        region, epoch = region_and_epoch(traces.cells, traces.epochs.n)
        regions, merged = traces.regions, 1
        if self.regions is not None:
            regions = regions.merged(self.regions)
            merged = int(np.bincount(self.regions).max())
            region = np.array(self.regions, dtype=np.int32)[region]
        cells = cell_at(region, epoch // self.epochs, epochs.n).astype(np.int32, copy=False)
        person = np.repeat(np.arange(traces.n_users, dtype=np.int32), np.diff(traces.indptr))
        made = replace(traces, regions=regions, epochs=epochs)
        if self.counts == "people" and traces.weights is None:
            indptr, distinct = kernels.group_by_row(person, cells, traces.n_users)
            return replace(made, indptr=own(indptr, np.int64), cells=own(distinct, np.int32))
        key = person.astype(np.int64) * made.n_cells + cells
        visited, place = np.unique(key, return_inverse=True)
        visits = np.bincount(place, traces.weights)
        # What trips are added up to is not limited by the number of cells.
        most = self.epochs * merged if traces.weights is None else int(visits.max(initial=1))
        starts = np.searchsorted(visited, np.arange(traces.n_users + 1) * np.int64(made.n_cells))
        return replace(
            made,
            indptr=own(starts, np.int64),
            cells=own(visited % made.n_cells, np.int32),
            weights=own(visits, np.int32),
            most_added=most,
        )

    @cached_property
    def _is_finest(self) -> bool:
        return self.regions is None and self.epochs == 1

    def covered(self, traces: Traces) -> Traces:
        """Return the traces within the time that is published, over their own cells."""
        if self.times is None:
            return traces
        n, rest = divmod(self.times * self.every, traces.epochs.length)
        if rest or self.every % traces.epochs.length or not 1 <= n <= traces.epochs.n:
            problem = f"{traces.epochs} do not hold {self.in_time} from the first on"
            raise InputError(problem, fix="Ask for less time, or give more data")
        return traces if n == traces.epochs.n else traces.between(0, n)

    @property
    def in_time(self) -> str:
        """How much time is published, in words; empty if that is all of it at once."""
        if self.times is None:
            return ""
        if self.every == WEEK:
            return f"{self.times} week{'s' if self.times > 1 else ''}"
        return f"{self.times} x {format_length(self.every)}"

    def spread(self, counts: NDArray[np.int32], n_epochs: int) -> NDArray[np.float64]:
        """Return counts of the table spread evenly over the traces' own regions and epochs.

        So a table is compared with the truth in all its detail, however coarse the table is.
        `n_epochs` are those of the traces within the time that is published.
        """
        region = np.arange(len(counts)) if self.regions is None else np.array(self.regions)
        epoch = np.arange(n_epochs) // self.epochs
        parts = np.outer(np.bincount(region)[region], np.bincount(epoch)[epoch])
        return np.asarray(counts[np.ix_(region, epoch)] / parts)

    def __str__(self) -> str:
        merged = "" if self.regions is None else f"{max(self.regions) + 1} merged regions"
        joined = f"{self.epochs} epochs joined" if self.epochs > 1 else ""
        visits = "visits counted" if self.counts == "visits" else ""
        return ", ".join(filter(None, (merged, joined, visits, self.in_time)))


ORDINARY = Layout()
"""The regions and epochs of the traces."""


@dataclass(frozen=True)
class TableScheme:
    """How one table is made: what is done to its counts, and which cells it has."""

    mechanism: Mechanism
    layout: Layout = ORDINARY

    @property
    def in_words(self) -> str:
        """What is done to the counts, and over which cells, in one short public sentence."""
        return self.mechanism.in_words + ("" if self.layout == ORDINARY else f", {self.layout}")

    def __str__(self) -> str:
        return f"{self.mechanism}" + ("" if self.layout == ORDINARY else f" over {self.layout}")


@dataclass(frozen=True)
class Scheme:
    """What is published: one or several tables of the same people, `group_size` of them."""

    tables: tuple[TableScheme, ...]
    group_size: int

    @classmethod
    def of(cls, mechanism: Mechanism, group_size: int) -> Self:
        """Return the ordinary case: one table over the regions and epochs of the traces."""
        return cls((TableScheme(mechanism),), group_size)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What is done to the counts of each table."""
        return tuple(table.mechanism for table in self.tables)

    @property
    def has_law(self) -> bool:
        """Whether the chances of all published counts are known."""
        return all(mechanism.has_law for mechanism in self.mechanisms)

    @property
    def key(self) -> tuple[str | int, ...]:
        """What random numbers belong to: what is done, however it is written, and to how many.

        Not the layout: the same random numbers meet the same people in coarser tables.
        """
        return *(mechanism.content for mechanism in self.mechanisms), self.group_size

    @property
    def how(self) -> str:
        """How the tables are made, without the number of people."""
        return " + ".join(map(str, self.tables))

    @property
    def in_words(self) -> str:
        """What is done to the counts, in one short public sentence."""
        return " and ".join(table.in_words for table in self.tables)

    def __str__(self) -> str:
        return f"{self.how}, m={self.group_size}"
