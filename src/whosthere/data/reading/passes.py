"""The passes over records: what is wrong with them, what range they have, and which are kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from whosthere.data.epochs import Epochs, from_micros, to_micros, zone
from whosthere.data.reading.batches import Batch, one_ahead
from whosthere.data.reading.extent import Extent, lon_lat
from whosthere.data.reading.gather import unknown_region
from whosthere.data.reading.partition import UNKNOWN, Partition
from whosthere.data.reading.source import skipping
from whosthere.errors import EmptyError, InputError, RecordsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime, timedelta

    from whosthere.arrays import Bools, Ints64
    from whosthere.data.reading.batches import RecordTable
    from whosthere.data.reading.partition import Locator
    from whosthere.data.reading.source import Source

Progress: TypeAlias = "Callable[[str, int, int | None], None]"
# More epochs than this, when no window was given, suggest stray timestamps.
_MOST_UNASKED_EPOCHS = 100_000
_ALL_HASHES = 1 << 64
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

    def holds(self, micros: Ints64) -> Bools:
        """Tell which moments lie inside."""
        inside = np.ones(micros.size, dtype=bool)
        if self.first is not None:
            inside &= micros >= self.first
        if self.end is not None:
            inside &= micros < self.end
        return inside


class Survey:
    """The range of the records in the time window, found in one pass.

    From `first` to `last`, microseconds since 1970 UTC, and their `extent`, which is empty where
    they name regions.
    """

    def __init__(self, window: Window) -> None:
        self.first, self.last = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        self.n_usable = 0
        self.invalid: Counter[str] = Counter()
        self.extent = Extent()
        self._window = window

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
        for places in batch.ends if "lon" in batch.records.columns else ():
            lon, lat = lon_lat(places)
            self.extent.add(lon[kept], lat[kept])


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which records and users to keep; `read_records` says what the fields mean."""

    start: datetime | None = None
    end: datetime | None = None
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


@dataclass(eq=False, repr=False)
class Passes:
    """Readings of tables, one after the other, each of which must find the same records."""

    progress: Progress
    found: dict[Source, int] = field(default_factory=dict)
    """The sum of a hash of each record: the same in any order, and whoever it is about."""

    def over(self, tables: Sequence[RecordTable], what: str) -> Iterator[Batch]:
        """Read all tables, telling how far it got."""
        sources = [table.layout.source for table in tables]
        known = [source.rows or source.about_rows for source in sources]
        total = None if None in known else sum(rows for rows in known if rows is not None)
        before = done = 0
        self.progress(what, done, total)
        for table, source in zip(tables, sources, strict=True):
            found = 0
            for batch in one_ahead(table.batches()):
                yield batch
                done = before + batch.first_row + batch.rows_read
                found += int(batch.records.drop("user", strict=False).hash_rows().sum())
                # The number of rows in a text file is a guess until all are read.
                self.progress(what, done, None if total is None else max(total, done))
            before = done
            if self.found.setdefault(source, found % _ALL_HASHES) != found % _ALL_HASHES:
                raise RecordsError(
                    "gave other records when it was read again",
                    where=source.path,
                    fix="Read a copy that nothing changes, or a query without chance",
                )


def sound_tables(
    tables: Sequence[RecordTable],
    known: Locator | None,
    window: Window,
    skipped: list[InputError],
    passes: Passes,
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
            for batch in passes.over([replace(table, noted=noted)], "Checking records"):
                rows += batch.rows_read
                invalid.update(batch.invalid)
                for places in batch.ends:
                    if known is None or "region" not in places.columns:
                        break
                    region = known.locate(places)
                    strange = np.flatnonzero((region == UNKNOWN) & window.holds(batch.micros))
                    if strange.size:
                        noted.setdefault(_STRANGE, unknown_region(batch, int(strange[0]), places))
                        invalid[_STRANGE] += strange.size
        skipped += [_with_number(error, invalid[reason]) for reason, error in noted.items()]
        skipped += found
        if not (noted or found or table.layout.lacks):
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


def first_look(
    tables: Sequence[RecordTable],
    partition: Partition,
    window: Window,
    passes: Passes,
) -> Survey:
    """Look over the records where regions or epochs depend on them."""
    look = Survey(window)
    if window.is_bounded and not partition.needs_box:
        return look
    # A row without a user is refused in the end, and need not be found now.
    light = [table if table.drop_invalid else table.without_users() for table in tables]
    for batch in passes.over(light, "Looking over records"):
        look.add(batch)
    if not look.n_usable:
        raise nothing_usable(tables, look.invalid)
    if look.first > look.last:
        raise EmptyError(
            "no record lies in the time window", fix="Check its start and end, and the time zone"
        )
    return look


def nothing_usable(tables: Sequence[RecordTable], invalid: Counter[str]) -> EmptyError:
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


def epochs_of(window: Window, look: Survey, length: timedelta, timezone: str) -> Epochs:
    """Return the epochs of the time window, or of the records where it is open."""
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
