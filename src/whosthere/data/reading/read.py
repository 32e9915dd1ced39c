"""Reading records: who was where, when, from files in any common form, as Traces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.epochs import Epochs, from_micros, to_micros, zone
from whosthere.data.reading.batches import Batch, RecordTable, one_ahead
from whosthere.data.reading.columns import Columns, Layout, arrange, find_forms
from whosthere.data.reading.distinct import Labels
from whosthere.data.reading.extent import WORLD, Box, Extent, lon_lat
from whosthere.data.reading.gather import Gathering, assembled, unknown_region
from whosthere.data.reading.opening import USER_FROM_PATH, open_sources
from whosthere.data.reading.partition import UNKNOWN, Partition
from whosthere.data.reading.queries import ZONE, Query, QuerySource
from whosthere.data.reading.source import skipping
from whosthere.data.reading.tables import add_friends, read_pairs
from whosthere.data.reading.times import (
    DAY_FIRST,
    MONTH_FIRST,
    SKIPPED,
    TWICE,
    UNIX,
    ClockChange,
    TimeReader,
    time_form,
)
from whosthere.display import counted
from whosthere.errors import EmptyError, InputError, RecordsError, listed, quote

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from whosthere.data.reading.batches import Batch
    from whosthere.data.reading.partition import Locator
    from whosthere.data.reading.source import Source
    from whosthere.data.traces import Traces

    Progress = Callable[[str, int, int | None], None]

# More epochs than this, when no window was given, suggest stray timestamps.
_MOST_UNASKED_EPOCHS = 100_000
# So many users with one record each are no chance.
_FEW_USERS = 20
# More notes than these, each on its own file, are put together.
_MOST_ALIKE = 5
_STRANGE = "in a region that is not in the table"


@dataclass(frozen=True)
class Window:
    """A span of time, microseconds since 1970 UTC, from `first` up to but without `end`."""

    first: int | None = None
    end: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are given."""
        return self.first is not None and self.end is not None

    def holds(self, micros: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which moments lie inside."""
        inside = np.ones(micros.size, dtype=bool)
        if self.first is not None:
            inside &= micros >= self.first
        if self.end is not None:
            inside &= micros < self.end
        return inside


class Survey:
    """The range of the records in the time window, found in one pass and bounded memory.

    From `first` to `last`, microseconds since 1970 UTC, and a box that holds the share
    `box_quantile` of the records along each axis, around the middle; None for all of them.
    """

    def __init__(self, window: Window, box_quantile: float | None) -> None:
        if box_quantile is not None and not 0 < box_quantile <= 1:
            raise InputError(
                f"the box cannot hold a share of {box_quantile:g}", fix="Give a share such as 0.99"
            )
        self.first, self.last = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        self.n_usable = 0
        self.invalid: Counter[str] = Counter()
        self._window = window
        self._box_quantile = box_quantile
        self._extent = Extent()

    def add(self, batch: Batch) -> None:
        """Take a batch in."""
        self.invalid.update(batch.invalid)
        self.n_usable += len(batch)
        inside = self._window.holds(batch.micros)
        if not inside.any():
            return
        kept = slice(None) if inside.all() else inside
        micros = batch.micros[kept]
        self.first = min(self.first, int(micros.min()))
        self.last = max(self.last, int(micros.max()))
        if "lon" in batch.records.columns:
            lon, lat = lon_lat(batch.records)
            self._extent.add(lon[kept], lat[kept])

    @property
    def box(self) -> Box:
        """The box that holds the records; the world where they name regions."""
        return self._extent.box(self._box_quantile)

    @property
    def strays(self) -> str | None:
        """What is to be said of points far away from all others, unless a box leaves them out."""
        if self._box_quantile is not None:
            return None
        return self._extent.about_strays("records", can_be_left_out=True)


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

        def micros(edge: datetime | None) -> int | None:
            if edge is not None and edge.tzinfo is None:
                edge = edge.replace(tzinfo=zone(timezone))
            return None if edge is None else to_micros(edge)

        return Window(micros(self.start), micros(self.end))


def read_records(
    path: str | os.PathLike[str] | Sequence[Path] | Query,
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
    user_from_path: bool = False,
    skipped: list[InputError] | None = None,
    friends: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Traces:
    """Read records of who was where, when, and make Traces of them.

    Parameters
    ----------
    path
        A file, a folder of files, or several: CSV, NDJSON, GeoJSON points, Parquet, workbooks, or
        zip files of these. Or a `Query` of a database.
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
    user_from_path
        The user is the first folder below `path`, or the name of a file there.
    skipped
        A list to which everything is added that is wrong with the files; those that cannot be used
        are then left out. All files are read once more for this. By default, the first problem is
        raised.
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
    pairs = None if friends is None else read_pairs(friends)
    early = None if partition.needs_box else partition.locator()
    sources, not_read = (
        path.open()
        if isinstance(path, Query)
        else open_sources(path, encoding=encoding, user_from_path=user_from_path, skipped=skipped)
    )
    roles = ("user", "point" if partition.uses_points else "region", "time")
    columns = columns or Columns()
    if user_from_path:
        columns = replace(columns, user=USER_FROM_PATH)
    layouts = []
    for source in sources:
        with skipping(skipped):
            layout = arrange(source, columns, roles, time_format=time_format)
            if time_format is None:
                layout.time_shape()
            layouts.append(layout)
    times = TimeReader(
        timezone=timezone, at_clock_change=at_clock_change, any_age=time_format == UNIX
    )
    tables = [
        RecordTable(layout, replace(times, form=form), partition.is_open, drop_invalid)
        for layout, form in find_forms(layouts, time_format, skipped)
    ]
    layouts = [table.layout for table in tables]
    progress = progress or (lambda *_: None)
    local = timezone or _zone_of_times(layouts) or "UTC"
    window = filters.window(local)
    if skipped is not None:
        # Points may lie in no region, but none is unknown.
        none_known = partition.uses_points or partition.is_open or drop_invalid
        known = None if none_known else early
        tables = _sound(tables, known, window, skipped, progress)
        layouts = [table.layout for table in tables]
    look = _first_look(tables, partition, window, filters.box_quantile, progress)
    gathering = Gathering(
        locator=early or partition.locator(look.box),
        epochs=_epochs(window, look, epoch_length, local),
        window=window,
        box=WORLD if filters.box_quantile is None else look.box,
        users=Labels(_user_dtype(layouts)),
        drop=drop_invalid,
    )
    rows: Counter[Path] = Counter()
    for batch in _batches(tables, "Reading records", progress):
        gathering.add(batch)
        rows[batch.source.path] += batch.rows_read
    if not len(gathering.users):
        raise _nothing_usable(tables, gathering.invalid)
    names = _names_of_columns(layouts)
    traces = assembled(
        gathering,
        filters,
        only_visited=partition.is_open,
        columns=names,
        not_read=tuple(not_read),
        bad_files=tuple(map(str, skipped or ())),
        notes=(
            *_notes_of_sources([layout.source for layout in layouts]),
            *_notes_on_files(layouts, rows),
            *(() if time_format is not None else _notes_on_forms(tables)),
            *_notes_on_times(gathering.resolved, times),
            *_notes_on_zone(layouts, timezone),
            *_notes_on_users(gathering, names["user"]),
            *_notes_on_places(partition, look, gathering),
        ),
    )
    return traces if pairs is None else add_friends(traces, pairs)


def _sound(
    tables: Sequence[RecordTable],
    known: Locator | None,
    window: Window,
    skipped: list[InputError],
    progress: Progress,
) -> list[RecordTable]:
    """Return the tables of which no row would be refused; what is wrong with others is `skipped`.

    `known` locates the only regions that records may name.
    """
    sound, n_rows = [], 0
    for table in tables:
        noted: dict[str, RecordsError] = {}
        invalid: Counter[str] = Counter()
        found: list[InputError] = []
        rows = 0
        with skipping(found):
            for batch in _batches([replace(table, noted=noted)], "Checking records", progress):
                rows += batch.rows_read
                invalid.update(batch.invalid)
                if known is not None:
                    region = known.locate(batch.records)
                    strange = np.flatnonzero((region == UNKNOWN) & window.holds(batch.micros))
                    if strange.size:
                        noted.setdefault(_STRANGE, unknown_region(batch, int(strange[0])))
                        invalid[_STRANGE] += strange.size
        skipped += [_with_number(error, invalid[reason]) for reason, error in noted.items()]
        skipped += found
        if not (noted or found):
            sound.append(table)
            n_rows += rows
    if skipped and not n_rows:
        raise EmptyError(
            "no file can be read", fix="List what is wrong with them (`check`), and correct it"
        )
    return sound


def _with_number(error: InputError, n: int) -> InputError:
    """Say in how many rows a problem was found."""
    more = f", and so in {n - 1:,} more rows" if n > 1 else ""
    return RecordsError(f"{error.problem}{more}", where=error.where, fix=error.fix)


def _batches(tables: Sequence[RecordTable], what: str, progress: Progress) -> Iterator[Batch]:
    """Read all tables, telling how far it got."""
    sources = [table.layout.source for table in tables]
    known = [source.rows or source.about_rows for source in sources]
    total = None if None in known else sum(rows for rows in known if rows is not None)
    done = 0
    progress(what, done, total)
    for table in tables:
        for batch in one_ahead(table.batches()):
            yield batch
            done += batch.rows_read
            # The number of rows in a text file is a guess until all are read.
            progress(what, done, None if total is None else max(total, done))


def _first_look(
    tables: Sequence[RecordTable],
    partition: Partition,
    window: Window,
    box_quantile: float | None,
    progress: Progress,
) -> Survey:
    """Look over the records where regions or epochs depend on them."""
    if box_quantile is not None and not partition.uses_points:
        raise InputError("a quantile box needs longitudes and latitudes, not region ids")
    look = Survey(window, box_quantile)
    if window.is_bounded and not partition.needs_box and box_quantile is None:
        return look
    # A row without a user is refused in the end, and need not be found now.
    light = [table if table.drop_invalid else table.without_users() for table in tables]
    for batch in _batches(light, "Looking over records", progress):
        look.add(batch)
    if not look.n_usable:
        raise _nothing_usable(tables, look.invalid)
    if look.first > look.last:
        raise EmptyError(
            "no record lies in the time window", fix="Check its start and end, and the time zone"
        )
    return look


def _nothing_usable(tables: Sequence[RecordTable], invalid: Counter[str]) -> EmptyError:
    """Say that no row is left, with the reasons, and name the file if there is only one."""
    where = tables[0].layout.source.path if len(tables) == 1 else None
    if not invalid.total():
        problem = "the files hold no rows" if where is None else "holds no rows"
        return EmptyError(problem, where=where, fix="Check that these are the right files")
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in invalid.items() if n)
    return EmptyError(
        f"no row can be used ({reasons})",
        where=where,
        fix="Check the columns and how their values are written",
    )


def _zone_of_times(layouts: Sequence[Layout]) -> str | None:
    """Return the time zone of the columns of datetimes, where they agree on one."""
    zones = {getattr(layout.kind("time"), "time_zone", None) for layout in layouts}
    return zones.pop() if len(zones) == 1 else None


def _user_dtype(layouts: Sequence[Layout]) -> type[pl.Int64 | pl.String]:
    """Return how user ids are kept while reading: as numbers only where they all fit."""
    kinds = [layout.kind("user") for layout in layouts]
    fits = all(kind.is_integer() and kind != pl.UInt64 for kind in kinds)
    return pl.Int64 if fits else pl.String


def _names_of_columns(layouts: Sequence[Layout]) -> dict[str, str]:
    """Return which column was read for each role; tables may differ in it."""
    names: dict[str, dict[str, None]] = {}
    for layout in layouts:
        for role, name in layout.names.items():
            names.setdefault(role, {})[name] = None
    return {role: " or ".join(found) for role, found in names.items()}


def _notes_of_sources(sources: Sequence[Source]) -> Iterator[str]:
    """Yield what there is to know of each; of many files alike, it is said of the first."""
    alike: dict[str, list[str]] = {}
    for source in sources:
        for note in source.notes:
            alike.setdefault(note.replace(source.path.name, ""), []).append(note)
    for notes in alike.values():
        if len(notes) <= _MOST_ALIKE:
            yield from notes
        else:
            yield f"{notes[0]}. This is so for {len(notes) - 1:,} more files"


def _notes_on_files(layouts: Sequence[Layout], rows: Counter[Path]) -> Iterator[str]:
    empty = [layout.source.path.name for layout in layouts if not rows[layout.source.path]]
    if empty:
        yield f"{len(empty):,} of {len(layouts):,} files have no rows: {listed(empty)}"


def _notes_on_forms(tables: Sequence[RecordTable]) -> Iterator[str]:
    found = {table.times.form for table in tables}
    for form, words in ((DAY_FIRST, "the day first"), (MONTH_FIRST, "the month first")):
        if form in found:
            yield f"dates such as 01/02/2024 were read with {words}, as other dates show"


def _notes_on_times(resolved: Counter[str], times: TimeReader) -> Iterator[str]:
    for problem, words in ((SKIPPED, "do not exist"), (TWICE, "exist twice")):
        if resolved[problem]:
            yield (
                f"{resolved[problem]:,} local times that {words} in {times.timezone} were read "
                f"as the {times.at_clock_change} moment"
            )


def _notes_on_zone(layouts: Sequence[Layout], timezone: str | None) -> Iterator[str]:
    by_query = any(isinstance(layout.source, QuerySource) for layout in layouts)
    if timezone is None and by_query and _zone_of_times(layouts) is not None:
        yield (
            f"a database does not keep the time zone of its times, so days begin at midnight "
            f"{ZONE}. Say which zone is local (`timezone`)"
        )


def _notes_on_users(gathering: Gathering, column: str) -> Iterator[str]:
    n_users = len(gathering.users)
    if n_users == gathering.records.sum() and n_users > _FEW_USERS:
        yield (
            f"each of the {n_users:,} users has one record only, as if {quote(column)} numbered "
            "the rows. If it does, say which column holds the user (`columns.user`)"
        )


def _notes_on_places(partition: Partition, look: Survey, gathering: Gathering) -> Iterator[str]:
    if partition.needs_box and look.strays is not None:
        yield look.strays
    if gathering.at_zero:
        yield (
            "at longitude 0 and latitude 0 exactly, which often stands for a missing position: "
            f"{counted(gathering.at_zero, 'record')}"
        )
    yield from gathering.locator.notes()


def _epochs(window: Window, look: Survey, length: timedelta, timezone: str) -> Epochs:
    first = from_micros(look.first if window.first is None else window.first)
    if window.first is None:
        last = from_micros(look.last)
        epochs = Epochs.covering(first, last, length=length, timezone=timezone)
    else:
        end = from_micros(look.last + 1 if window.end is None else window.end)
        epochs = Epochs.between(first, end, length=length, timezone=timezone)
    if epochs.n > _MOST_UNASKED_EPOCHS and not window.is_bounded:
        local = zone(timezone)
        first, last = (t.astimezone(local) for t in (first, from_micros(look.last)))
        raise RecordsError(
            f"the records reach from {first:%Y-%m-%d} to {last:%Y-%m-%d} {timezone}, "
            f"{epochs.n:,} epochs",
            fix="Give the start (`start`) and end (`end`) of the time window",
        )
    return epochs
