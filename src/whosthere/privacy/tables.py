"""Tables of counts by region and time that other programs made, as releases."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date as Date  # noqa: N812 - a field has that name
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.epochs import Epochs, from_micros, parse_length, zone
from whosthere.data.files import existing
from whosthere.data.frames import FRAME, place_of
from whosthere.data.reading.columns import THOUSANDS, Columns, whole_numbers_of
from whosthere.data.reading.published import open_published
from whosthere.data.reading.source import Source, naming
from whosthere.data.reading.tables import read_regions
from whosthere.data.reading.times import (
    SKIPPED,
    TWICE,
    UNIX,
    ClockChange,
    TimeReader,
    clock_change_of,
    time_form,
)
from whosthere.data.regions import Regions
from whosthere.data.traces import check_cell_space
from whosthere.errors import InputError, RecordsError, quote
from whosthere.privacy.catalogue import RAW
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.possible import (
    fitting,
    impossible,
    refuse_impossible,
    said,
    withholds,
)
from whosthere.privacy.release import Release
from whosthere.privacy.release_files import is_release
from whosthere.privacy.step import WITHHELD
from whosthere.privacy.table_doubts import empty_cells, refuse_cumulative, warnings_of
from whosthere.privacy.table_rows import RowReader, Rows, is_empty, left_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.arrays import Ints32
    from whosthere.data.frames import AnyPath, Frame

# What a table may write in place of a count that was withheld.
# A dash is none of these, for it often stands for 0.
USUAL_MARKERS = ("*", "NA", "N/A", "n/a", "NaN", "null", "suppressed", "redacted")
# Of tables that do not say how many people were counted: more than any count, and the fewest.
_ANY_SIZE, _FEWEST_PEOPLE = 10**8, 1000
_BELOW = re.compile(r"<\s*(\d+)")
_A_DAY, _CLOCK_CHANGE = timedelta(days=1), timedelta(hours=1)
_MICROSECOND = timedelta(microseconds=1)
_FEWER = re.compile(r"(?:<=|≤)\s*(\d+)")


@dataclass(frozen=True, eq=False)
class Imported:
    """A table that was read."""

    release: Release
    n_withheld: int
    """How many cells the table withholds."""
    notes: tuple[str, ...]
    """What was left out of it, in short sentences."""
    warnings: tuple[str, ...] = ()
    """What makes wrong whatever is found out from it, in sentences."""
    size_is_known: bool = True
    """Whether somebody said how many people were counted."""


@dataclass(frozen=True, kw_only=True)
class TableReader:
    """How a table of counts is to be read."""

    region_column: str | None = None
    """The name of the column of regions, where it is unusual."""
    time_column: str | None = None
    """That of times, or of times of day."""
    date_column: str | None = None
    """That of dates, where they are apart from the times of day."""
    count_column: str | None = None
    """That of counts."""
    wide: bool | None = None
    """Whether each epoch has a column of its own, not a row for each region and epoch.

    None to find out from the names of the columns.
    """
    epoch: str | timedelta | None = None
    """How long each epoch lasts, such as ``"1h"``; by default the smallest step between times."""
    timezone: str | None = None
    """IANA name of the local zone, needed where times carry none.

    By default the zone that a column of datetimes carries, else UTC.
    """
    time_format: str | None = None
    """``iso``, ``unix``, ``day-first``, ``month-first`` or a pattern; None to find out."""
    clock_change: ClockChange = "refuse"
    """What local times that exist twice are: the ``earlier`` or ``later`` moment, or refused."""
    regions: Regions | AnyPath | Frame | None = None
    """All regions that were published; by default those that the table names."""
    markers: str | Sequence[str] = ()
    """What stands for a withheld count, besides `USUAL_MARKERS`.

    An empty text stands for empty cells, which are 0 otherwise.
    """
    zeros: str | Sequence[str] = ()
    """What stands for a count of 0, such as a dash."""
    thousands: str | None = None
    """The mark between thousands, where a comma or point could also stand before decimals."""
    sheet: str | None = None
    """Which sheet of a workbook, by its name or its number from 1; by default the first."""
    header_row: int | None = None
    """The row that names the columns, where titles stand above it; by default the first."""
    date: str | Date | None = None
    """The day that the table is of, such as ``"2024-05-01"``, where it has times of day or none."""
    encoding: str | None = None
    """Encoding of a text file other than UTF-8, UTF-16 with a mark, and Latin-1."""

    def __post_init__(self) -> None:
        for name in ("markers", "zeros"):
            if isinstance(one := getattr(self, name), str):
                object.__setattr__(self, name, (one,))
        if clock_change_of(self.clock_change) == "drop":
            raise InputError("counts cannot be dropped", fix="Give `clock_change` earlier or later")
        if self.thousands not in {None, *THOUSANDS}:
            problem = f"{self.thousands!r} is no mark between thousands"
            raise InputError(problem, fix="Use , . ' or a space")
        if self.wide and (self.time_column or self.date_column or self.count_column):
            named = "`time_column`, `date_column` and `count_column`"
            raise InputError(f"{named} do nothing with `wide`", fix="Leave them out")

    def read(self, table: AnyPath | Frame, *, group_size: int, mechanism: Mechanism) -> Imported:
        """Read a table and what is public about it; missing rows and empty cells are 0.

        Counts and marks that the mechanism cannot have published are refused.
        """
        columns = Columns(
            region=self.region_column,
            time=self.time_column,
            date=self.date_column,
            count=self.count_column,
        )
        given = None if self.regions is None else read_regions(self.regions)
        with naming(place_of(table)):
            source = open_published(
                table, sheet=self.sheet, header_row=self.header_row, encoding=self.encoding
            )
            form = None if self.time_format is None else time_form(self.time_format)
            rows = RowReader(columns, self.wide, form, _day(self.date), given).read(source)
            local = self.timezone or getattr(rows.frame["time"].dtype, "time_zone", None) or "UTC"
            if self.timezone is not None:
                zone(self.timezone)
            cells, notes = self._cells(rows, source)
            refuse_cumulative(cells)
            epochs = self._epochs(cells["micros"], local, rows.span)
            regions = given or Regions(cells["region"].unique().sort().to_list())
            values = self._values(cells, regions, epochs)
            _check_mechanism(values, mechanism, group_size, cells, source)
            release = Release(values, Facts(regions, epochs, group_size, mechanism))
        n_withheld = 0 if release.withheld is None else int(release.withheld.sum())
        notes = (*source.notes, *rows.notes, *notes, *_taken_for_days(cells, epochs))
        notes = (*notes, *empty_cells(cells))
        n_missing = epochs.n - cells["micros"].n_unique()
        warnings = warnings_of(
            has_totals=rows.has_totals, mechanism=mechanism, n_missing=n_missing, n=epochs.n
        )
        return Imported(release, n_withheld, notes, tuple(warnings))

    def _cells(self, rows: Rows, source: Source) -> tuple[pl.DataFrame, tuple[str, ...]]:
        """Return a row for each published count: region, micros (UTC), count, withheld, row.

        And what was left out.
        """
        table = rows.frame.with_columns(self._micros(rows, source).alias("micros"))
        table = table.with_columns(self._withheld(table["count"]).alias("withheld"))
        table = table.with_columns(self._counts(table["count"], table["withheld"]).alias("number"))
        # Notes between the counts have neither a time nor a count; those below, none to be read.
        empty = is_empty(table["count"])
        unread = table["micros"].is_null() & (table["number"].is_null() | empty)
        below = unread.reverse().cast(pl.Int8).cum_min().reverse() == 1
        noted = unread & (empty | (below & (not unread.all())))
        notes = left_out(table.filter(noted))
        table = table.filter(~noted)
        micros, withheld, counts = table["micros"], table["withheld"], table["number"]
        for column, bad, problem in (
            ("region", table["region"].is_null(), "is no region"),
            ("time", micros.is_null(), "is not a time"),
            ("count", counts.is_null() | ((counts < 0) & ~withheld), "is not a count"),
        ):
            if bad.any():
                first = bad.arg_max() or 0
                value = table[column][first]
                found = quote(value) if isinstance(value, str) else value or "an empty cell"
                raise RecordsError(
                    f"{found} {problem}",
                    where=source.place(table["row"][first]),
                    fix=_FIXES[column],
                )
        cells = pl.DataFrame(
            {
                "region": table["region"],
                "micros": micros,
                "count": counts,
                "withheld": withheld,
                "row": table["row"],
                "marker": table["count"].cast(pl.String).fill_null(""),
            }
        )
        twice = cells.select("region", "micros").is_duplicated()
        if twice.any():
            first = twice.arg_max() or 0
            raise RecordsError(
                f"region {quote(table['region'][first])} has more than one count for "
                f"{table['time'][first]}",
                fix="Sum or remove the repeated rows",
            )
        return cells, notes

    def _micros(self, rows: Rows, source: Source) -> pl.Series:
        """Return when each count is of, null where that cannot be understood."""
        table = rows.frame
        reader = TimeReader(
            timezone=self.timezone,
            form=rows.form,
            clock_change=self.clock_change,
            any_age=self.time_format == UNIX,
        )
        moments = reader.read(table["time"])
        doubled = table.filter(moments.problems.get(TWICE, False)).group_by("region", "time").len()
        if not doubled.is_empty() and (doubled["len"] == 2).all():
            # The hour that the clock shows twice has two rows: the first is the earlier.
            second = pl.int_range(pl.len()).over("region", "time") == 1
            early, late = (
                replace(reader, clock_change=which).read(table["time"]).micros
                for which in ("earlier", "later")
            )
            both = early.zip_with(table.select(second).to_series().not_(), late)
            twice = moments.problems.pop(TWICE)
            moments = replace(moments, micros=moments.micros.zip_with(~twice, both))
        for problem, words in ((SKIPPED, "does not exist"), (TWICE, "exists twice")):
            if problem in moments.problems:
                first = moments.problems[problem].arg_max() or 0
                raise RecordsError(
                    f"{table['time'][first]} {words} in {self.timezone}: the clocks were changed",
                    where=source.place(table["row"][first]),
                    fix="Say how to read such hours (`clock_change`): earlier or later",
                )
        return moments.micros

    def _marks(self, text: pl.Series) -> list[str]:
        """Return what stands for a withheld count: what was named, and such as <10."""
        found = text.drop_nulls().unique().to_list()
        below = [one for one in found if _BELOW.fullmatch(one) or _FEWER.fullmatch(one)]
        return [*(one.strip() for one in self.markers), *below]

    def _withheld(self, column: pl.Series) -> pl.Series:
        text = column.cast(pl.String).str.strip_chars()
        # A mark such as <1 stands for 0 alone, and empty cells do unless they are named as marks.
        named = [one for one in self._marks(text) if _largest_behind(one) > 0]
        markers = [one for one in (*USUAL_MARKERS, *named) if one not in self.zeros]
        return text.is_in(markers).fill_null(value="" in markers)

    def _counts(self, column: pl.Series, withheld: pl.Series) -> pl.Series:
        if column.dtype.is_integer():
            return column.fill_null(0).cast(pl.Int64, strict=False)
        text = column.cast(pl.String).str.strip_chars()
        zeros = ["", *self._marks(text), *self.zeros]
        empty = withheld | text.is_in(zeros).fill_null(value=True)
        numbers = text.zip_with(~empty, pl.repeat("0", len(text), eager=True))
        return whole_numbers_of(numbers, self.thousands)

    def _values(self, cells: pl.DataFrame, regions: Regions, epochs: Epochs) -> Ints32:
        """Return published values, shape (n_regions, n_epochs), with `WITHHELD` among them."""
        row = cells["region"].replace_strict(regions.index, default=-1, return_dtype=pl.Int64)
        if (row < 0).any():
            unknown = cells["region"].filter(row < 0)[0]
            raise RecordsError(
                f"region {quote(unknown)} is not in the regions table", fix="Add it to the table"
            )
        column = epochs.index_of(cells["micros"].to_numpy())
        check_cell_space(len(regions), epochs.n)
        given = cells["count"].to_numpy()
        if np.abs(given).max() > np.iinfo(np.int32).max:
            raise RecordsError(
                f"a count of {np.abs(given).max()} is too large", fix="Correct the counts"
            )
        values = np.zeros((len(regions), epochs.n), dtype=np.int32)
        values[row.to_numpy(), column] = np.where(cells["withheld"].to_numpy(), WITHHELD, given)
        return values

    def _epochs(self, micros: pl.Series, timezone: str, span: timedelta | None) -> Epochs:
        times = micros.unique().sort()
        length = span if self.epoch is None else parse_length(self.epoch)
        if length is None:
            if len(times) < 2:
                raise RecordsError("has a single time", fix="Give the length of an epoch (`epoch`)")
            length = timedelta(microseconds=int(np.diff(times.to_numpy()).min()))
            days = (length + _A_DAY / 2) // _A_DAY * _A_DAY
            if days and abs(length - days) <= _CLOCK_CHANGE:
                length = days
        first, last = from_micros(times[0]), from_micros(times[-1]) + _MICROSECOND
        epochs = Epochs.between(first, last, length=length, timezone=timezone)
        moments = times.to_numpy()
        if epochs.in_days:
            # One time on each of the days, at whatever hour, stands for the day.
            epoch, step = epochs.index_of(moments), _A_DAY // _MICROSECOND
            on_steps = (moments - epochs.starts.astype(np.int64)[epoch] < step).all()
            on_steps &= np.unique(epoch).size == epoch.size
        else:
            on_steps = ((moments - moments[0]) % (length // _MICROSECOND) == 0).all()
        if not on_steps:
            raise RecordsError(
                f"its times do not fall on steps of {length}",
                fix="Give the length of an epoch (`epoch`)",
            )
        return epochs


_FIXES = {
    "region": "Fill the region in, or say which column holds it",
    "time": "Use ISO 8601 text or Unix seconds, say how times are written (`time_format`), or "
    "which column holds the time (`time_column`)",
    "count": "Use whole numbers, or say what stands for a withheld count (`markers`) or for 0 "
    "(`zeros`)",
}


def _day(given: str | Date | None) -> Date | None:
    try:
        return Date.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        raise InputError(f"`date` {given!r} is no day", fix="Write it like 2024-05-01") from None


def _taken_for_days(cells: pl.DataFrame, epochs: Epochs) -> Iterator[str]:
    """Say of times that are not midnight that they are read as their days."""
    times = np.setdiff1d(cells["micros"].to_numpy(), epochs.starts.astype(np.int64))
    if times.size:
        local = from_micros(int(times[0])).astimezone(zone(epochs.timezone))
        yield (
            f"each time is read as its day in {epochs.timezone}, such as {local:%Y-%m-%d %H:%M}; "
            "if days begin at midnight elsewhere, say where (`timezone`)"
        )


def _largest_behind(marker: str) -> int:
    """Return the largest true count that a marker may stand for: 14 for ``<15``, else 1."""
    if found := _FEWER.fullmatch(marker.strip()):
        return int(found[1])
    found = _BELOW.fullmatch(marker.strip())
    return 1 if found is None else int(found[1]) - 1


def as_release(
    table: Release | AnyPath | Frame,
    *,
    mechanism: Mechanism | str | None = None,
    group_size: int | None = None,
    reader: TableReader | None = None,
    people: int | None = None,
) -> Imported:
    """Read a release of ours, or another program's table of which that much is known.

    How many people were counted hardly matters where only the counts are asked about: by default
    it is taken for ten times the largest count. How they were protected must be said.
    """
    if not isinstance(table, Release):
        place = place_of(table)
        if place is not FRAME and is_release(existing(place)):
            table = Release.load(place)
    if isinstance(table, Release):
        release = table
        said_anew = mechanism is not None and Mechanism.parse(mechanism) != release.mechanism
        if said_anew or group_size not in {None, release.group_size}:
            problem = f"is a release of {release.group_size:,} people by {release.mechanism}"
            fix = "Leave out what it says itself (`mechanism`, `group_size`)"
            raise InputError(f"the table {problem}", fix=fix)
        refuse_impossible(release)
        return Imported(release, 0, ())
    used = Mechanism.parse(RAW if mechanism is None else mechanism)
    group_size = people if group_size is None else group_size
    size = _ANY_SIZE if group_size is None else group_size
    read = (reader or TableReader()).read(table, group_size=size, mechanism=used)
    release = read.release
    if mechanism is None:
        fits = ", ".join(fitting(release.values, size))
        problem = "does not say how its counts were protected"
        raise RecordsError(problem, where=place, fix=f"Say it (`mechanism`); these fit: {fits}")
    if group_size is None:
        assumed = max(10 * int(release.people.max()), _FEWEST_PEOPLE)
        release = Release(release.values, replace(release.facts, group_size=assumed))
        note = f"how many people were counted is not said: {assumed:,} are assumed (`group_size`)"
        read = replace(read, release=release, notes=(*read.notes, note), size_is_known=False)
    return read


def _check_mechanism(
    values: Ints32, mechanism: Mechanism, m: int, cells: pl.DataFrame, source: Source
) -> None:
    """Refuse counts, or withheld cells, that the claimed mechanism cannot have made."""
    marked = cells.filter("withheld")
    hidden = marked["marker"].unique(maintain_order=True).to_list()
    largest = max(map(_largest_behind, hidden), default=0)
    strange = [int(value) for value in impossible(values, mechanism, m)]

    def fix() -> str:
        fits = fitting(values, m, hidden=largest)
        return "Say which mechanism was really used (`mechanism`)" + (
            f"; these would fit: {', '.join(fits)}" if fits else ", or correct the counts"
        )

    numbers = [value for value in strange if value != WITHHELD]
    if numbers:
        bad = cells.filter(pl.col("count").is_in(numbers) & ~pl.col("withheld"))
        if bad.is_empty():
            problem = f"cells that are not in the table are read as 0, which {mechanism} withholds"
            raise RecordsError(problem, fix="Add their rows, or " + fix().lower())
        others = "" if bad.height == 1 else f"; {bad.height:,} counts cannot"
        raise RecordsError(
            f"{said(bad['count'][0])} cannot come from {mechanism}{others}",
            where=source.place(bad["row"][0]),
            fix=fix(),
        )
    if hidden and not withholds(mechanism, largest, m):
        marker = next(one for one in hidden if _largest_behind(one) == largest)
        would = "withholds nothing" if strange else f"would have published a count of {largest}"
        raise RecordsError(
            f"{quote(marker.strip())} stands for a withheld count, and {mechanism} {would}",
            where=source.place(marked.filter(pl.col("marker") == marker)["row"][0]),
            fix=fix(),
        )
