"""What a publisher does: which tables of the same people are published, and how.

A layout says which cells a table has, and which of them each visit counts in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

import numpy as np

from whosthere import kernels
from whosthere.arrays import own
from whosthere.data.cells import cell_at, region_and_epoch
from whosthere.data.epochs import format_length
from whosthere.display import counted
from whosthere.errors import InputError
from whosthere.seeds import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.epochs import Epochs
    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.mechanism import Mechanism


Counts: TypeAlias = Literal["people", "visits"]
WEEK = timedelta(weeks=1)
FINEST = "finest"
"""What users call the regions and epochs of the traces."""
PERIODS = {"1w": "week", "1d": "day", "1h": "hour"}
"""The names of the usual lengths of time."""


@dataclass(frozen=True)
class Layout:
    """The cells of a table: the regions and epochs of the traces, or larger ones.

    A table that is published again and again is one long table, over all that is published so far.
    """

    regions: tuple[int, ...] | None = None
    """The new number of each region, from 0 without gaps; None leaves the regions as they are."""
    epochs: int = 1
    """How many epochs become one."""
    counts: Counts = "people"
    """A person is counted once in a cell, or once for every visit, so that totals add up.

    Trips are always added up: a person who made one again counts again.
    """
    times: int | None = None
    """How often it is published, from the first epoch on; None if it covers all epochs at once."""
    every: timedelta = WEEK
    """How much time each of these covers."""
    names: tuple[str, ...] | None = None
    """Ids of the new regions; by default those of their parts, joined."""
    words: str = field(default="", compare=False)
    """How a user writes regions, epochs and what is counted."""

    def __call__(self, traces: Traces) -> Traces:
        """Return the same people over the cells of the table.

        What the table counts are these traces: whoever counts, bounds or attacks it needs to know
        nothing else.
        """
        traces = self.covered(traces)
        if self.is_finest:
            return traces
        epochs = traces.epochs.joined(self.epochs)
        region, epoch = region_and_epoch(traces.cells, traces.epochs.n)
        regions, merged = traces.regions, 1
        if self.regions is not None:
            regions = regions.merged(self.regions, self.names)
            merged = int(np.bincount(self.regions).max())
            region = np.array(self.regions, dtype=np.int32)[region]
        epoch = traces.epochs.slots(epochs.length)[epoch]
        cells = cell_at(region, epoch, epochs.n).astype(np.int32, copy=False)
        person = np.repeat(np.arange(traces.n_users, dtype=np.int32), np.diff(traces.indptr))
        made = replace(traces, regions=regions, epochs=epochs)
        if self.counts == "people" and traces.weights is None:
            indptr, distinct = kernels.group_by_row(person, cells, traces.n_users)
            return replace(made, indptr=own(indptr, np.int64), cells=own(distinct, np.int32))
        key = person.astype(np.int64) * made.n_cells + cells
        visited, place = np.unique(key, return_inverse=True)
        visits = np.bincount(place, traces.weights, visited.size)
        # What trips add up to is not limited by the number of cells.
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
    def is_finest(self) -> bool:
        """Whether it has the regions and epochs of the traces."""
        return self.regions is None and self.epochs == 1

    def covered(self, traces: Traces) -> Traces:
        """Return the traces within the time that is published, over their own cells."""
        n = self.n_covered(traces.epochs)
        return traces if n == traces.epochs.n else traces.between(0, n)

    def n_covered(self, epochs: Epochs) -> int:
        """Return how many epochs are within the time that is published."""
        if self.times is None:
            return epochs.n
        most = self.most_times(epochs)
        if self.times > most:
            covered = replace(self, times=most).in_time
            problem = f"the data cover {covered}, less than the {self.in_time} asked for (`weeks`)"
            fix = f"Ask for {most} or less" if most else "Give a shorter time (`every`)"
            raise InputError(problem, fix=fix)
        n = int((epochs.begun_in(self.every) < self.times).sum())
        epochs.part(0, n).slots(self.every, "tables of {} (`every`)")
        return n

    def most_times(self, epochs: Epochs) -> int:
        """Return how often a table can be published within some epochs, from the first on."""
        return epochs.n_whole(self.every)

    @property
    def in_finest_cells(self) -> Layout:
        """The same time over the regions and epochs of the traces."""
        return Layout(times=self.times, every=self.every)

    @property
    def all_at_once(self) -> Layout:
        """The same cells of traces that are cut to the time already."""
        return replace(self, times=None, every=WEEK)

    @property
    def in_time(self) -> str:
        """How much time is published, in words; empty if that is all of it at once."""
        if self.times is None:
            return ""
        name = PERIODS.get(length := format_length(self.every))
        of = "" if name else f" of {length}"
        return f"{counted(self.times, name or 'period')}{of}"

    def spread(self, counts: NDArray[np.int32], epochs: Epochs) -> NDArray[np.float64]:
        """Return counts of the table spread evenly over the traces' own regions and epochs.

        So a table is compared with the truth in all its detail, however coarse the table is.
        `epochs` are those of the traces within the time that is published.
        """
        region = np.arange(len(counts)) if self.regions is None else np.array(self.regions)
        epoch = epochs.slots(self.epochs * epochs.length)
        parts = np.outer(np.bincount(region)[region], np.bincount(epoch)[epoch])
        return np.asarray(counts[np.ix_(region, epoch)] / parts)

    @classmethod
    def between(cls, finest: Facts, facts: Facts) -> Layout | None:
        """Return the layout of a table over the cells of a finer one, None if it is not that.

        Both have the same regions: which of them were merged, no table says.
        """
        joined, rest = divmod(facts.epochs.length, finest.epochs.length)
        if rest or not joined or facts.regions.ids != finest.regions.ids:
            return None
        adds_up = facts.most_added > finest.most_added
        layout = cls(epochs=joined, counts="visits" if adds_up else "people")
        return layout if layout.makes(facts, finest) else None

    def makes(self, facts: Facts, finest: Facts) -> bool:
        """Tell whether it leads from the cells of one table to those of another."""
        regions = finest.regions
        if self.regions is not None:
            regions = regions.merged(self.regions, self.names)
        same = finest.epochs.joined(self.epochs) == facts.epochs
        return same and regions.ids == facts.regions.ids

    @property
    def fingerprint(self) -> str | None:
        """What stands for the regions that are merged, if any are."""
        return None if self.regions is None else digest(np.array(self.regions))

    @property
    def written(self) -> str:
        """Which cells it has, as users write it."""
        return self._cells or FINEST

    @property
    def _cells(self) -> str:
        merged = "" if self.regions is None else f"{max(self.regions) + 1} merged regions"
        joined = f"{self.epochs} epochs joined" if self.epochs > 1 else ""
        visits = "visits counted" if self.counts == "visits" else ""
        return self.words or ", ".join(filter(None, (merged, joined, visits)))

    def __str__(self) -> str:
        return ", ".join(filter(None, (self._cells, self.in_time)))


ORDINARY = Layout()
"""The regions and epochs of the traces."""


@dataclass(frozen=True)
class TableScheme:
    """How one table is made: what is done to its counts, and which cells it has."""

    mechanism: Mechanism
    layout: Layout = ORDINARY

    def __post_init__(self) -> None:
        if self.layout.times is not None:
            within = self.mechanism.within(self.layout.every)
            object.__setattr__(self, "mechanism", within)

    @property
    def in_words(self) -> str:
        """What is done to the counts, and over which cells, in one short public sentence."""
        over = "" if self.layout == ORDINARY else f", over {self.layout}"
        return self.mechanism.in_words + over

    @property
    def written(self) -> str:
        """The table as users write it."""
        return f"{self.layout.written}: {self.mechanism}"

    def check(self, epochs: Epochs, most_added: int) -> None:
        """Refuse a unit of privacy that the table cannot express, and epochs that are cut off.

        The table is made of these epochs, and a person adds so much to a cell at most.
        """
        joined = epochs.joined(self.layout.epochs)
        epochs.slots(joined.length)
        if self.layout.times is not None and joined.end > epochs.end:
            raise InputError(
                f"epochs of {format_length(joined.length)} (`tables`) do not end with the "
                f"{self.layout.in_time} asked for (`weeks`)",
                fix="Use shorter epochs that end with each table, or another time (`every`)",
            )
        for unit in self.mechanism.units:
            unit.period(joined)
        for step in self.mechanism.steps:
            given = step.guarantee
            if most_added > 1 and given and given.delta and given.unit.bounds_visits:
                raise InputError(
                    f"the noise of {step} is for visits to different cells, and here a cell takes "
                    "several of one person (`tables`)",
                    fix="Use Laplace noise, or unit=event, or count people",
                )

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
    def finest(self) -> int | None:
        """The place of the first table over the regions and epochs of the traces, if any is."""
        return next((i for i, one in enumerate(self.tables) if one.layout.is_finest), None)

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

    def published(self, times: int) -> Self:
        """Return the same, published as often as that."""
        layouts = (replace(one.layout, times=times) for one in self.tables)
        tables = (
            replace(one, layout=cells) for one, cells in zip(self.tables, layouts, strict=True)
        )
        return replace(self, tables=tuple(tables))

    @property
    def how(self) -> str:
        """How the tables are made, without the number of people."""
        if len(self.tables) == 1:
            return str(self.tables[0])
        if len(set(self.mechanisms)) == 1:
            cells = " + ".join(one.layout.written for one in self.tables)
            made = f"{self.mechanisms[0]} over {cells}"
        else:
            made = " + ".join(one.written for one in self.tables)
        in_time = self.tables[0].layout.in_time
        return f"{made} over {in_time}" if in_time else made

    @property
    def in_words(self) -> str:
        """What is done to the counts, in one short public sentence."""
        if len(self.tables) == 1:
            return self.tables[0].in_words
        words = ((one.layout.written, one.mechanism.in_words) for one in self.tables)
        said = "; ".join(f"{cells}: {done}" for cells, done in words)
        if len(set(self.mechanisms)) == 1:
            cells = "; ".join(one.layout.written for one in self.tables)
            said = f"{self.mechanisms[0].in_words}, in {len(self.tables)} tables: {cells}"
        in_time = self.tables[0].layout.in_time
        return f"{said}, {in_time}" if in_time else said

    def __str__(self) -> str:
        return f"{self.how}, m={self.group_size}"
