"""What a publisher does: which tables of the same people are published, and how.

A layout says which cells a table has, and which of them each visit counts in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from whosthere import kernels
from whosthere.arrays import own
from whosthere.data.cells import cell_at, region_and_epoch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism


@dataclass(frozen=True)
class Layout:
    """The cells of a table: the regions and epochs of the traces, or larger ones.

    A person is counted once in a cell, however many visits fall into it.
    """

    regions: tuple[int, ...] | None = None
    """The new number of each region, from 0 without gaps; None leaves the regions as they are."""
    epochs: int = 1
    """How many epochs become one."""

    def __call__(self, traces: Traces) -> Traces:
        """Return the same people over the cells of the table.

        What the table counts are these traces: whoever counts, bounds or attacks it needs to know
        nothing else.
        """
        if self == ORDINARY:
            return traces
        epochs = traces.epochs.joined(self.epochs)
        region, epoch = region_and_epoch(traces.cells, traces.epochs.n)
        regions = traces.regions
        if self.regions is not None:
            regions = regions.merged(self.regions)
            region = np.array(self.regions, dtype=np.int32)[region]
        cells = cell_at(region, epoch // self.epochs, epochs.n).astype(np.int32, copy=False)
        person = np.repeat(np.arange(traces.n_users, dtype=np.int32), traces.visits_per_user())
        indptr, distinct = kernels.group_by_row(person, cells, traces.n_users)
        return replace(
            traces,
            indptr=own(indptr, np.int64),
            cells=own(distinct, np.int32),
            regions=regions,
            epochs=epochs,
        )

    def spread(self, counts: NDArray[np.int32], n_epochs: int) -> NDArray[np.float64]:
        """Return counts of the table spread evenly over the traces' own regions and epochs.

        So a table is compared with the truth in all its detail, however coarse the table is.
        """
        region = np.arange(len(counts)) if self.regions is None else np.array(self.regions)
        epoch = np.arange(n_epochs) // self.epochs
        parts = np.outer(np.bincount(region)[region], np.bincount(epoch)[epoch])
        return np.asarray(counts[np.ix_(region, epoch)] / parts)

    def __str__(self) -> str:
        merged = [] if self.regions is None else [f"{max(self.regions) + 1} merged regions"]
        joined = [f"{self.epochs} epochs joined"] if self.epochs > 1 else []
        return ", ".join(merged + joined)


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
