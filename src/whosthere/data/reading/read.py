"""Reading records: who was where, when, from files in any common form, as Traces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere import kernels
from whosthere.arrays import own
from whosthere.data.epochs import DAYS_A_WEEK, Epochs, from_micros, to_micros, zone
from whosthere.data.ledger import Entry, Ledger
from whosthere.data.reading import friendships
from whosthere.data.reading.ahead import one_ahead
from whosthere.data.reading.batches import Batch, RowReader, Table
from whosthere.data.reading.columns import Columns
from whosthere.data.reading.gather import Fate, Gathering
from whosthere.data.reading.labels import (
    Labels,
    n_differing_by_spaces,
    n_with_controls,
    sorted_order,
)
from whosthere.data.reading.opening import Opened, open_sources
from whosthere.data.reading.partition.base import NOWHERE, UNKNOWN, WORLD, Box, Locator, Partition
from whosthere.data.reading.queries import Query
from whosthere.data.reading.survey import Survey, Window, survey
from whosthere.data.reading.times import SKIPPED, TWICE, ClockChange, time_form
from whosthere.data.traces import Traces, check_cell_space
from whosthere.errors import EmptyError, InputError, RecordsError, quote

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Progress = Callable[[str, int, int | None], None]

# More epochs than this, when no window was given, suggest stray timestamps.
_MOST_UNASKED_EPOCHS = 100_000
# So many users with one record each are no chance.
_FEW_USERS = 20


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which records and users to keep.

    Parameters
    ----------
    start, end
        The time window, `end` not included; without a zone they are local times. Where one is
        missing, the records' own range is taken.
    box_quantile
        Keep the middle box that holds this share of the records along each axis.
    min_visits
        Drop users with fewer visits in all.
    min_weekly_visits
        Drop users with fewer visits in any whole week (in sevens of days from the first).
    mostly_inside
        Drop users with half or more of their records outside the box or the regions.
    """

    start: datetime | None = None
    end: datetime | None = None
    box_quantile: float | None = None
    min_visits: int = 1
    min_weekly_visits: int = 0
    mostly_inside: bool = False

    def window(self, timezone: str) -> Window:
        """Return the time window in UTC."""
        edges = [
            None if edge is None else to_micros(_aware(edge, timezone))
            for edge in (self.start, self.end)
        ]
        return Window(*edges)


def read_records(
    path: str | os.PathLike[str] | Query,
    *,
    partition: Partition,
    epoch_length: timedelta = timedelta(hours=1),
    timezone: str | None = None,
    columns: Columns | None = None,
    filters: Filters | None = None,
    time_format: str | None = None,
    at_clock_change: ClockChange = "refuse",
    encoding: str | None = None,
    drop_invalid: bool = False,
    friends: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Traces:
    """Read records of who was where, when, and make Traces of them.

    Parameters
    ----------
    path
        A file, or a folder of files: CSV, NDJSON, GeoJSON points, Parquet, workbooks, or zip files
        of these. Or a `Query` of a database.
    partition
        How places become regions.
    epoch_length
        How long each epoch lasts.
    timezone
        IANA name of the local zone: where times without a zone were recorded, and whose days
        count. By default the zone that a column of datetimes carries, else UTC; times without
        a zone are refused then.
    columns
        Names of the columns where they are unusual.
    filters
        Which records and users to keep.
    time_format
        How times are written: ``iso``, ``unix``, ``day-first``, ``month-first`` or a pattern such
        as ``%Y%m%d%H%M``. By default found out from the times, and refused where they can be read
        in two ways.
    at_clock_change
        What becomes of local times that a change of the clock skipped or repeated: ``refuse``,
        ``drop``, or read as the ``earlier`` or ``later`` of the two possible moments.
    encoding
        Encoding of text files other than UTF-8, UTF-16 with a mark, and Latin-1.
    drop_invalid
        Leave out rows that cannot be used, instead of refusing the file.
    friends
        A table of pairs of users who know one another: columns user and friend, or the first
        two. Friendships between users who are in the traces are kept.
    progress
        Called with what is being done, the rows read so far, and their number where known.

    Returns
    -------
    Traces, users sorted by id, with a ledger of what was dropped and why.
    """
    filters = filters or Filters()
    if timezone is not None:
        zone(timezone)
    time_format = None if time_format is None else time_form(time_format)
    # Before the records, which can take long, so that a bad table is refused at once.
    pairs = None if friends is None else friendships.read_pairs(friends)
    early = None if partition.needs_box else partition.locator()
    opened = path.open() if isinstance(path, Query) else open_sources(path, encoding=encoding)
    rows = RowReader(
        columns=columns or Columns(),
        use_points=partition.uses_points,
        learns_regions=partition.is_open,
        timezone=timezone,
        time_format=time_format,
        at_clock_change=at_clock_change,
        drop_invalid=drop_invalid,
    )
    reading = _Reading(opened, rows.tables(opened.sources), progress or (lambda *_: None))
    local = timezone or reading.zone_of_times() or "UTC"
    window = filters.window(local)
    look = reading.survey_if_needed(partition, window, filters.box_quantile)
    epochs = _epochs(window, look, epoch_length, local)
    box = WORLD if look is None or filters.box_quantile is None else look.box
    locator = early or partition.locator(WORLD if look is None else look.box)
    gathered = reading.gather(locator, drop=drop_invalid, epochs=epochs, window=window, box=box)
    traces = _assemble(gathered, partition, locator, epochs, filters)
    return traces if pairs is None else _with_friends(traces, pairs)


@dataclass(frozen=True, eq=False)
class _Gathered:
    users: Labels
    gathering: Gathering
    invalid: Counter[str]
    unknown: int
    notes: tuple[str, ...]
    not_read: tuple[str, ...]
    columns: dict[str, str]


@dataclass(frozen=True, eq=False)
class _Reading:
    """Passes over the same files."""

    opened: Opened
    tables: list[Table]
    progress: Progress = field(repr=False)

    def batches(self, what: str) -> Iterator[Batch]:
        known = [source.rows or source.about_rows for source in self.opened.sources]
        total = None if None in known else sum(rows for rows in known if rows is not None)
        done = 0
        self.progress(what, done, total)
        for table in self.tables:
            for batch in one_ahead(table.batches()):
                yield batch
                done += batch.rows_read
                # The number of rows in a text file is a guess until all are read.
                self.progress(what, done, None if total is None else max(total, done))

    def survey_if_needed(
        self, partition: Partition, window: Window, box_quantile: float | None
    ) -> Survey | None:
        if box_quantile is not None and not partition.uses_points:
            raise InputError("a quantile box needs longitudes and latitudes, not region ids")
        bounded = window.first is not None and window.end is not None
        if bounded and not partition.needs_box and box_quantile is None:
            return None
        looking = self
        if not any(table.reader.drop_invalid for table in self.tables):
            # A row without a user is refused in the end, and need not be found now.
            looking = replace(self, tables=[table.without_users() for table in self.tables])
        seen: Counter[str] = Counter()
        batches = _counted(looking.batches("Looking over records"), seen)
        try:
            return survey(batches, window=window, box_quantile=box_quantile)
        except EmptyError:
            if seen[_USABLE]:
                raise
            raise self._nothing_usable(seen) from None

    def gather(
        self,
        locator: Locator,
        *,
        drop: bool,
        epochs: Epochs,
        window: Window,
        box: Box,
    ) -> _Gathered:
        users = Labels(self._user_dtype())
        gathering = Gathering()
        invalid: Counter[str] = Counter()
        resolved: Counter[str] = Counter()
        n_unknown = 0
        for batch in self.batches("Reading records"):
            invalid.update(batch.invalid)
            resolved.update(batch.resolved)
            numbers = users.encode(batch.users)
            epoch = epochs.index_of(batch.micros)
            fates = np.full(len(batch), Fate.KEPT, dtype=np.int8)
            if box is not WORLD:
                fates[~box.holds(*batch.places.points)] = Fate.OUT_OF_BOX
            fates[(epoch < 0) | ~window.holds(batch.micros)] = Fate.OUT_OF_WINDOW

            places, kept = batch.places, fates == Fate.KEPT
            if not kept.all():
                places, epoch = places.where(kept), epoch[kept]
            region = locator.locate(places)
            lost = region < 0
            if lost.any():
                at = np.flatnonzero(kept)[lost]
                unknown = region[lost] == UNKNOWN
                if unknown.any() and not drop:
                    raise _unknown_region(batch, int(at[np.argmax(unknown)]))
                n_unknown += int(unknown.sum())
                fates[at] = Fate.OUT_OF_REGIONS
                region, epoch = region[~lost], epoch[~lost]
            check_cell_space(int(region.max(initial=0)) + 1, epochs.n)
            cells = region * np.int32(epochs.n) + epoch
            gathering.add(numbers, fates, cells, n_users=len(users))
        if not len(users):
            raise self._nothing_usable(invalid)
        notes = [note for source in self.opened.sources for note in source.notes]
        notes += self._notes_on_times(resolved)
        columns = self._columns()
        notes += _notes_on_users(len(users), int(gathering.records.sum()), columns["user"])
        return _Gathered(
            users, gathering, invalid, n_unknown, tuple(notes), self.opened.not_read, columns
        )

    def _columns(self) -> dict[str, str]:
        """Return which column was read for each role; tables may differ in it."""
        names: dict[str, list[str]] = {}
        for table in self.tables:
            for role, name in table.layout.names.items():
                names.setdefault(role, []).append(name)
        return {role: " or ".join(dict.fromkeys(found)) for role, found in names.items()}

    def _nothing_usable(self, seen: Counter[str]) -> EmptyError:
        """Say that no row is left, with the reasons, and name the file if there is only one."""
        where = self.tables[0].source.path if len(self.tables) == 1 else None
        if not seen.total():
            problem = "the files hold no rows" if where is None else "holds no rows"
            return EmptyError(problem, where=where, fix="Check that these are the right files")
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in seen.items() if n)
        return EmptyError(
            f"no row can be used ({reasons})",
            where=where,
            fix="Check the columns and how their values are written",
        )

    def _notes_on_times(self, resolved: Counter[str]) -> Iterator[str]:
        times = self.tables[0].times
        for problem, words in ((SKIPPED, "do not exist"), (TWICE, "exist twice")):
            if resolved[problem]:
                yield (
                    f"{resolved[problem]:,} local times that {words} in {times.timezone} were read "
                    f"as the {times.at_clock_change} moment"
                )

    def zone_of_times(self) -> str | None:
        """Return the time zone of the columns of datetimes, where they agree on one."""
        zones = {getattr(kind, "time_zone", None) for kind in self._dtypes("time")}
        return zones.pop() if len(zones) == 1 else None

    def _user_dtype(self) -> type[pl.Int64 | pl.String]:
        """Return how user ids are kept while reading: as numbers only where they all fit."""
        fits = all(d.is_integer() and d != pl.UInt64 for d in self._dtypes("user"))
        return pl.Int64 if fits else pl.String

    def _dtypes(self, role: str) -> list[pl.DataType]:
        """Return what the column of a role holds in each file; text where it is made of several."""
        return [table.kind(role) or pl.String() for table in self.tables]


def _notes_on_users(n_users: int, n_records: int, column: str) -> Iterator[str]:
    if n_users == n_records > _FEW_USERS:
        yield (
            f"each of the {n_users:,} users has one record only, as if {quote(column)} numbered "
            "the rows. If it does, say which column holds the user (`columns.user`)"
        )


def _notes_on_ids(role: str, ids: Sequence[str]) -> Iterator[str]:
    n = n_differing_by_spaces(ids)
    if n:
        yield (
            f"{n:,} {role} ids differ from one another only by spaces around them, and count as "
            f"different {role}s. If they are not, remove the spaces"
        )
    n = n_with_controls(ids)
    if n:
        yield f"{n:,} {role} ids hold control characters, such as line ends or NUL"


def _counted(batches: Iterator[Batch], seen: Counter[str]) -> Iterator[Batch]:
    for batch in batches:
        seen[_USABLE] += len(batch)
        seen.update(batch.invalid)
        yield batch


_USABLE = "usable"


def _epochs(window: Window, look: Survey | None, length: timedelta, timezone: str) -> Epochs:
    if window.first is not None and window.end is not None:
        start, end = from_micros(window.first), from_micros(window.end)
        return Epochs.between(start, end, length=length, timezone=timezone)
    if look is None:
        raise InputError("an open time window needs a first look over the records")
    local = zone(timezone)
    first = from_micros(look.first if window.first is None else window.first).astimezone(local)
    last = from_micros(look.last).astimezone(local)
    if window.first is not None:
        just_after = last + timedelta(microseconds=1)
        epochs = Epochs.between(first, just_after, length=length, timezone=timezone)
    else:
        epochs = Epochs.covering(first, last, length=length, timezone=timezone)
    if epochs.n > _MOST_UNASKED_EPOCHS:
        raise RecordsError(
            f"the records reach from {first:%Y-%m-%d} to {last:%Y-%m-%d} {timezone}, "
            f"{epochs.n:,} epochs",
            fix="Give the start (`start`) and end (`end`) of the time window",
        )
    return epochs


def _assemble(
    gathered: _Gathered, partition: Partition, locator: Locator, epochs: Epochs, filters: Filters
) -> Traces:
    gathering = gathered.gathering
    ids = gathered.users.texts()
    indptr, cells = gathering.visits()
    steps = [Entry(reason, count, 0) for reason, count in sorted(gathered.invalid.items())]
    steps += _dropped_records(gathering, gathered.unknown)
    steps.append(
        Entry("repeats of a visit", int(gathering.records[Fate.KEPT]) - int(cells.size), 0)
    )
    if not cells.size:
        raise _nothing_left(gathered, steps)
    regions = locator.regions()
    notes = [*_notes_on_ids("user", ids), *_notes_on_ids("region", regions.ids)]
    rows = Traces(tuple(ids), own(indptr, np.int64), own(cells, np.int32), regions, epochs)
    if partition.is_open:
        rows = _only_visited_regions(rows)

    by_id = sorted_order(ids)
    kept = rows.visits_per_user() > 0
    for reason, keeps in _user_filters(rows, gathering, filters):
        lost = kept & ~keeps
        steps.append(Entry(reason, int(rows.visits_per_user()[lost].sum()), int(lost.sum())))
        kept &= keeps
    if not kept.any():
        raise _nothing_left(gathered, steps)
    chosen = rows.select(by_id[kept[by_id]])
    ledger = Ledger(
        records_read=int(gathering.records.sum()) + gathered.invalid.total(),
        users_read=len(ids),
        entries=tuple(step for step in steps if step.records or step.users),
        visits=chosen.n_visits,
        users=chosen.n_users,
        notes=(*gathered.notes, *notes),
        not_read=gathered.not_read,
        columns=gathered.columns,
    )
    return replace(chosen, ledger=ledger)


def _dropped_records(gathering: Gathering, unknown: int) -> Iterator[Entry]:
    for fate, reason in _REASONS.items():
        records, users = int(gathering.records[fate]), gathering.users_lost_to(fate)
        if fate == Fate.OUT_OF_REGIONS and unknown:
            # A user may have had both; they are listed under the last.
            both = records > unknown
            yield Entry("in a region that is not in the table", unknown, 0 if both else users)
            records, users = records - unknown, users if both else 0
        yield Entry(reason, records, users)


def _with_friends(traces: Traces, pairs: pl.DataFrame) -> Traces:
    graph, entry = friendships.among(pairs, traces.users)
    ledger = None if traces.ledger is None else replace(traces.ledger, friends=entry)
    return replace(traces, friends=graph, ledger=ledger)


_REASONS = {
    Fate.OUT_OF_WINDOW: "outside the time window",
    Fate.OUT_OF_BOX: "outside the quantile box",
    Fate.OUT_OF_REGIONS: "in no region",
}


def _user_filters(
    rows: Traces, gathering: Gathering, filters: Filters
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield, for each filter of users that is on, the reason it gives and the users it keeps."""
    if filters.mostly_inside:
        yield "of users mostly outside", gathering.mostly_inside()
    if filters.min_visits > 1:
        few = f"of users with fewer than {filters.min_visits} visits"
        yield few, rows.visits_per_user() >= filters.min_visits
    if filters.min_weekly_visits > 0:
        weekly = rows.visits_per_period(rows.epochs.weeks)
        whole_weeks = max(1, rows.epochs.n_days // DAYS_A_WEEK)
        few = f"of users with fewer than {filters.min_weekly_visits} visits in some week"
        yield few, weekly[:, :whole_weeks].min(axis=1) >= filters.min_weekly_visits


def _only_visited_regions(rows: Traces) -> Traces:
    """Renumber the visited regions in the order of their ids, and leave the others out."""
    seen = np.zeros(len(rows.regions), dtype=bool)
    seen[rows.cells // np.int32(rows.epochs.n)] = True
    visited = np.flatnonzero(seen)
    order = visited[sorted_order([rows.regions.ids[i] for i in visited])]
    number = np.full(len(rows.regions), NOWHERE, dtype=np.int32)
    number[order] = np.arange(order.size)
    cells = kernels.renumber_regions(rows.indptr, rows.cells, rows.epochs.n, number)
    return replace(rows, cells=own(cells, np.int32), regions=rows.regions.select(order))


def _unknown_region(batch: Batch, index: int) -> RecordsError:
    return RecordsError(
        f"region {batch.places.ids[index]!r} is not in the regions table",
        where=batch.place(index),
        fix="Add it to the table, or have invalid rows dropped (`drop_invalid`)",
    )


def _nothing_left(gathered: _Gathered, steps: list[Entry]) -> EmptyError:
    read = int(gathered.gathering.records.sum()) + gathered.invalid.total()
    drops = "; ".join(f"{step.records} {step.reason}" for step in steps if step.records)
    return EmptyError(
        f"no visit is left of {read} records ({drops})",
        fix="Loosen the filters, or check the time zone and that lon and lat are not swapped",
    )


def _aware(moment: datetime, timezone: str) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone(timezone))
