"""Trips between regions, out of records of trips or out of where people were one after the other.

A trip counts in the epoch in which it begins.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from whosthere import specs
from whosthere.arrays import Bools, Ints32, Ints64, own
from whosthere.data.cells import cell_at
from whosthere.data.epochs import format_length, parse_length
from whosthere.data.flows import Pairs
from whosthere.data.ledger import Entry
from whosthere.data.reading.batches import TO, Batch, RecordTable, Rejects
from whosthere.data.reading.columns import READ_BOTH, Columns, Layout, arrange, both_ends
from whosthere.data.reading.gather import (
    REASONS,
    Fate,
    Gathering,
    nothing_left,
    unknown_region,
)
from whosthere.data.reading.partition import UNKNOWN
from whosthere.data.reading.tables import read_pairs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces, check_cell_space
from whosthere.display import counted
from whosthere.errors import InputError, RecordsError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import polars as pl

    from whosthere.data.frames import AnyPath, Frame

# More pairs than this would have to be listed.
_MOST_PAIRS = 10_000_000
_EARLY = "lies before the departure"
# The last of the checks whose trips speak against a user being inside.
_LAST_OUTSIDE = 1
_LENGTH = specs.Text("a length of time such as 20min", parse_length, format_length)
_MICROSECOND = timedelta(microseconds=1)
_ENDS = ("origin", "destination")


class Trips(NamedTuple):
    """Trips, each a user, two regions (negative where in none) and two moments, shape (n,)."""

    user: Ints32
    origin: Ints32
    departed: Ints64
    destination: Ints32
    arrived: Ints64

    def at(self, rows: Ints64 | Bools) -> Trips:
        """Return the trips of some rows, in their order."""
        ends = self.destination[rows], self.arrived[rows]
        return Trips(self.user[rows], self.origin[rows], self.departed[rows], *ends)


@dataclass(frozen=True)
class Flows:
    """What a trip is.

    Parameters
    ----------
    max_gap
        The longest time from departure to arrival; None for any.
    within
        Whether trips count that end in the region in which they began.
    counts
        Whether a person who makes the same trip again in an epoch counts again (trips) or once
        (people).
    """

    max_gap: timedelta | None = specs.parameter(
        _LENGTH, "longest time from departure to arrival", default=None
    )
    within: bool = specs.parameter(
        specs.YES_NO, "whether trips within one region count", default=True
    )
    counts: str = specs.parameter(
        specs.OneOf(("trips", "people")), "what is counted in a cell", default="trips"
    )

    name: ClassVar[str]
    of_rows: ClassVar[bool] = False
    """Whether a record is a whole trip, with two places."""

    def trips(self, records: Trips) -> Trips:
        """Return the trips in records, of which only origins matter unless they are trips."""
        return records


@dataclass(frozen=True)
class RecordedTrips(Flows):
    """Each record is a trip."""

    name: ClassVar[str] = "trips"
    example: ClassVar[str] = "trips(max_gap=3h)"
    summary: ClassVar[str] = "each record is a trip, with two places"
    of_rows = True


@dataclass(frozen=True)
class Ends(Flows):
    """Every two records of a user, one after the other, are the ends of a trip."""

    name: ClassVar[str] = "ends"
    example: ClassVar[str] = "ends(max_gap=3h)"
    summary: ClassVar[str] = "every two records of a user are the ends of a trip"

    def trips(self, records: Trips) -> Trips:
        records = _in_order(records)
        number = np.arange(records.user.size) - _firsts(records.user)
        begins = np.flatnonzero(number[:-1] % 2 == 0)
        return _between(records, records, begins[records.user[begins] == records.user[begins + 1]])


@dataclass(frozen=True)
class Moves(Flows):
    """Each move of a user from one region to the next is a trip.

    Records that follow one another in one region are a visit, which lasts from the first to the
    last of them. Visits shorter than `min_stay` are passed through. A trip begins at the last
    record of a visit, and ends at the first of the next one.
    """

    max_gap: timedelta | None = specs.parameter(
        _LENGTH, "longest time between two visits", default=timedelta(days=1)
    )
    min_stay: timedelta | None = specs.parameter(
        _LENGTH, "shortest visit that a trip begins or ends at", default=None
    )

    name: ClassVar[str] = "visits"
    example: ClassVar[str] = "visits(min_stay=20min, max_gap=4h)"
    summary: ClassVar[str] = "each move from one visit to the next is a trip"

    def trips(self, records: Trips) -> Trips:
        records = _in_order(records)
        starts, ends = _runs(records)
        first, last = records.at(starts), records.at(ends)
        if self.min_stay is not None:
            stayed = last.departed - first.departed >= self.min_stay // _MICROSECOND
            first, last = first.at(stayed), last.at(stayed)
            # Two visits to a region with nothing between them that counts are one.
            starts, ends = _runs(first)
            first, last = first.at(starts), last.at(ends)
        return _between(last, first, np.flatnonzero(first.user[1:] == first.user[:-1]))


FLOWS = specs.Catalogue.of("kind of flows", RecordedTrips, Ends, Moves)


def flows_of(spec: str) -> Flows:
    """Return what a trip is, by its spec."""
    made: Flows = FLOWS.parse(spec)
    return made


def _in_order(records: Trips) -> Trips:
    """Return records by user and time; those of one moment stay as they are."""
    return records.at(np.lexsort((records.departed, records.user)))


def _firsts(user: Ints32) -> Ints64:
    """Return where the first record of each record's user stands."""
    return np.searchsorted(user, user)


def _runs(records: Trips) -> tuple[Ints64, Ints64]:
    """Return where records of one user in one region begin and end."""
    changes = (np.diff(records.user) != 0) | (np.diff(records.origin) != 0)
    ends = np.flatnonzero(np.append(changes, np.ones(min(records.user.size, 1), bool)))
    return np.append(0, ends[:-1] + 1)[: ends.size], ends


def _between(departures: Trips, arrivals: Trips, at: Ints64) -> Trips:
    """Return trips from the given departures to the arrivals that follow."""
    ends = arrivals.origin[at + 1], arrivals.departed[at + 1]
    return Trips(departures.user[at], departures.origin[at], departures.departed[at], *ends)


@dataclass(frozen=True, eq=False)
class TripTable(RecordTable):
    """A file whose rows are trips: the columns of `layout` are of departures."""

    needs_arrival: ClassVar[bool] = False
    """Whether a trip must say when it ends."""

    arrivals: Layout = field(kw_only=True)

    @classmethod
    def of(
        cls, table: RecordTable, columns: Columns, place: str, skipped: list[InputError] | None
    ) -> TripTable:
        """Add the columns of arrivals, given or found; departures and arrivals must differ.

        They hold the `place`: a region or a point.
        """
        departures = table.layout
        found = departures.source.columns
        has_time = cls.needs_arrival or columns.find("time", found) is not None
        roles = (place, *(["time"] if has_time else []))
        arrivals = arrange(departures.source, columns, roles, skipped=skipped)
        for role, name in arrivals.names.items():
            if name == departures.names.get(role):
                raise RecordsError(
                    f"column {name!r} is taken for both ends of a trip",
                    where=departures.source.path,
                    fix="Say which columns hold the origin (`origin_column`, or `lon_column` and "
                    "`lat_column`), the destination (`destination_column`, or `end_lon_column` "
                    "and `end_lat_column`) and the arrival (`arrival_column`)",
                )
        if not has_time and "time" in departures.names:
            arrivals = replace(
                arrivals,
                names=arrivals.names | {"time": departures.names["time"]},
                exprs=arrivals.exprs | {"time": departures.exprs["time"]},
            )
        departures = replace(departures, lacks=departures.lacks or arrivals.lacks)
        return cls(**{**vars(table), "layout": departures, "arrivals": arrivals})

    @property
    def _chosen(self) -> list[pl.Expr]:
        return [*self.layout.chosen, *(one.alias(TO + role) for role, one in self._exprs)]

    @property
    def _exprs(self) -> Iterable[tuple[str, pl.Expr]]:
        return self.arrivals.exprs.items()

    def _read(self, rejects: Rejects) -> tuple[pl.DataFrame, Counter[str]]:
        departures, resolved = super()._read(rejects)
        roles = {TO + role: role for role, _ in self._exprs}
        there = replace(
            rejects, layout=self.arrivals, frame=rejects.frame.select(list(roles)).rename(roles)
        )
        arrivals, also = super()._read(there)
        early = arrivals["micros"] < departures["micros"]
        there.add("time", early.fill_null(value=False), "that end before they begin", _EARLY)
        arrivals = arrivals.rename({name: TO + name for name in arrivals.columns})
        return departures.hstack(arrivals), resolved + also


class BothEnds(TripTable):
    """A file whose rows are trips, each of which is two records: where and when it begins, ends."""

    needs_arrival = True

    def batches(self) -> Iterator[Batch]:
        for batch in super().batches():
            departures, arrivals = batch.ends
            users = [departures[name] for name in departures.columns if name == "user"]
            yield replace(batch, records=departures.select(*arrivals.columns, *users))
            yield replace(batch, records=arrivals.with_columns(*users), resolved=Counter())


def about_ends(tables: Iterable[RecordTable]) -> Iterator[str]:
    """Say which end of a trip was not read, or that both were."""
    if any(isinstance(table, BothEnds) for table in tables):
        yield "each trip is two records: where and when it began, and where and when it ended"
    not_read = set()
    for layout in (table.layout for table in tables if not isinstance(table, TripTable)):
        for role in layout.names.keys() & {"region", "lon"}:
            with suppress(RecordsError):
                ends = set(both_ends(role, layout.source.columns) or ())
                not_read |= ends - {layout.names[role]} if layout.names[role] in ends else set()
    if not_read:
        yield f"not read, though other ends of trips: {listed(sorted(not_read))}. {READ_BOTH}"


@dataclass(eq=False, repr=False, kw_only=True)
class FlowGathering(Gathering):
    """Trips, while records stream by; all records are kept until they can be put in order.

    Trips between `pairs` count, or all where there is no table of these.
    """

    what = "trip"

    flows: Flows
    pairs: pl.DataFrame | None
    parts: list[Trips] = field(default_factory=list)
    n_within: int = 0

    def add(self, batch: Batch) -> None:
        self.invalid.update(batch.invalid)
        self.resolved.update(batch.resolved)
        self.records[Fate.KEPT] += len(batch)
        users, ends = self.users.encode(batch.records["user"]), []
        for places in batch.ends:
            ends += [self._located_at(places, batch), places["micros"].to_numpy()]
        self.parts.append(Trips(users, *ends, *ends[: 4 - len(ends)]))

    def _located_at(self, places: pl.DataFrame, batch: Batch) -> Ints32:
        """Return the regions of records, negative where in none."""
        region = self.locator.locate(places)
        unknown = (region == UNKNOWN) & self.window.holds(batch.micros)
        if unknown.any() and not self.drop:
            raise unknown_region(batch, int(np.argmax(unknown)), places)
        if "lon" in places.columns:
            self.at_zero += int(((places["lon"] == 0) & (places["lat"] == 0)).sum())
        return region

    def rows(self, *, only_visited: bool) -> tuple[Traces, list[Entry]]:
        trips = self.flows.trips(Trips(*map(np.concatenate, zip(*self.parts, strict=True))))
        self.parts.clear()
        epoch = self.epochs.index_of(trips.departed)
        lost = self._lost(trips, epoch)
        anywhere = ~np.logical_or.reduce(list(lost.values()))
        regions, number = self._public(trips, anywhere, only_visited=only_visited)
        pair = np.full(trips.user.size, -1, np.int64)
        pair[anywhere] = number(trips.origin[anywhere], trips.destination[anywhere])
        lost["between regions that are no listed pair"] = pair < 0
        # Each trip is lost to the first reason, and each user is listed under the last of theirs.
        fate = np.full(trips.user.size, len(lost))
        for i, marked in reversed(list(enumerate(lost.values()))):
            fate[marked] = i
        n_users, kept = len(self.users), fate == len(lost)
        furthest = np.full(n_users, -1)
        np.maximum.at(furthest, trips.user, fate)
        leaning = np.where(fate == 0, 0, np.where(fate <= _LAST_OUTSIDE, -1, 1))
        self.balance = np.bincount(trips.user, leaning, n_users).astype(np.int64)
        n_others = int(self.records.sum()) - trips.user.size
        steps = [*self.unusable()]
        steps.append(Entry("that begin no trip", n_others, int((furthest < 0).sum())))
        for i, reason in enumerate(lost):
            steps.append(Entry(reason, int((fate == i).sum()), int((furthest == i).sum())))
        if not kept.any():
            raise nothing_left(self, steps)
        self.n_within = int((trips.origin == trips.destination)[kept].sum())
        cells = cell_at(pair[kept], epoch[kept].astype(np.int64), self.epochs.n)
        made = self._traces(trips.user[kept], cells, regions)
        if self.flows.counts == "people":
            steps.append(Entry("repeats of a trip", made.n_visits - made.cells.size, 0))
            made = replace(made, weights=None, most_added=1)
        return made, steps

    def notes(self) -> Iterator[str]:
        if self.n_within:
            yield (
                f"{counted(self.n_within, 'trip')} within one region counted as well. To leave "
                "such trips out, add within=no to what a trip is (`flows`)"
            )

    def _lost(self, trips: Trips, epoch: Ints32) -> dict[str, Bools]:
        """Return which trips do not count, by reason, in the order of the checks."""
        in_window = (epoch >= 0) & self.window.holds(trips.departed)
        lost = {
            REASONS[Fate.OUT_OF_WINDOW]: ~in_window,
            REASONS[Fate.OUT_OF_REGIONS]: np.minimum(trips.origin, trips.destination) < 0,
        }
        if self.flows.max_gap is not None:
            longest = self.flows.max_gap // _MICROSECOND
            reason = f"that last longer than {format_length(self.flows.max_gap)}"
            lost[reason] = trips.arrived - trips.departed > longest
        if not self.flows.within:
            lost["within one region"] = trips.origin == trips.destination
        return lost

    def _public(
        self, trips: Trips, counts: Bools, *, only_visited: bool
    ) -> tuple[Pairs, Callable[[Ints32, Ints32], Ints64]]:
        """Return the public pairs, and what numbers them; -1 for a pair that is not among them."""
        places = self.locator.regions()
        if self.pairs is not None:
            ids = self.pairs["origin"].append(self.pairs["destination"]).unique().sort().to_list()
            strange = [] if only_visited else [one for one in ids if one not in places.index]
            if strange:
                raise RecordsError(
                    f"the table of pairs names {strange[0]!r}, which is no region",
                    fix="Correct the table of pairs (`pairs`)",
                )
            chosen = Regions(ids) if only_visited else places
        elif only_visited:
            ends = trips.origin[counts], trips.destination[counts]
            seen = np.unique(np.concatenate(ends))
            # Where no trip is left, that is said later.
            names = [places.ids[i] for i in (seen if seen.size else range(1))]
            chosen = places.select([places.index[one] for one in sorted(names)])
        else:
            chosen = places
        n = len(chosen)
        new = np.array([chosen.index.get(one, -1) for one in places.ids], np.int64)
        if self.pairs is None:
            if n * n > _MOST_PAIRS:
                raise InputError(
                    f"{n:,} regions make {n * n:,} pairs",
                    fix="Use larger regions, or list the pairs to publish (`pairs`)",
                )
            return Pairs(chosen), lambda a, b: new[a] * n + new[b]
        rows = [self.pairs[end].replace_strict(chosen.index).to_numpy() for end in _ENDS]
        listed = np.unique(rows[0] * n + rows[1])

        def number(origin: Ints32, destination: Ints32) -> Ints64:
            wanted = new[origin] * n + new[destination]
            at = np.minimum(np.searchsorted(listed, wanted), listed.size - 1)
            known = (new[origin] >= 0) & (new[destination] >= 0) & (listed[at] == wanted)
            return np.where(known, at, -1)

        return Pairs(chosen, *np.divmod(listed, n)), number

    def _traces(self, user: Ints32, cells: Ints64, regions: Pairs) -> Traces:
        """Return traces of trips, in which a cell counts as often as it stands with a user."""
        check_cell_space(len(regions), self.epochs.n)
        n_cells, ids = len(regions) * self.epochs.n, self.users.texts
        visited, weights = np.unique(user.astype(np.int64) * n_cells + cells, return_counts=True)
        row, cell = np.divmod(visited, n_cells)
        return Traces(
            tuple(ids),
            own(np.searchsorted(row, np.arange(len(ids) + 1)), np.int64),
            own(cell, np.int32),
            regions,
            self.epochs,
            weights=own(weights, np.int32),
            most_added=int(weights.max(initial=1)),
        )


def read_listed(table: AnyPath | Frame) -> pl.DataFrame:
    """Read the pairs of regions that are published: columns origin and destination."""
    return read_pairs(table, _ENDS).drop_nulls()


def ends_of(tables: Iterable[RecordTable]) -> list[Layout]:
    """Return the columns of arrivals of those tables that have some."""
    return [table.arrivals for table in tables if isinstance(table, TripTable)]
