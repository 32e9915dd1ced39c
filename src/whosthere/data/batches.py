"""Rows of a table made into checked records: who, when and where, as arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.columns import Columns
from whosthere.data.geoparquet import points_of
from whosthere.data.layout import Arranger, Layout
from whosthere.data.numbers import degrees_of
from whosthere.data.partition import Places
from whosthere.data.source import RAGGED
from whosthere.data.time_forms import DAY_OR_MONTH, decided, shape_of
from whosthere.data.times import (
    IMPLAUSIBLE,
    ISO,
    PLAUSIBLE_YEARS,
    SKIPPED,
    TWICE,
    UNIX,
    ClockChange,
    Moments,
    TimeReader,
)
from whosthere.errors import InputError, RecordsError, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.data.source import Source

_OUTSIDE_THE_WORLD = "is not a place on Earth; are longitude and latitude swapped?"
_MISSING = ("", "n/a", "N/A", "#N/A", "NA", "nan", "NaN", "null", "NULL", "None", r"\N")
_LONGEST_MISSING = max(map(len, _MISSING))
_DROP_FIX = "Correct it, or ask for invalid rows to be dropped"
_CLOCK_FIX = "Say how to read hours of a clock change: earlier, later or drop"


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Checked records that follow one another in a file.

    Attributes
    ----------
    source
        Where they come from.
    users
        Who, as the file has it; nobody where users were left out.
    micros
        When, in microseconds since 1970 UTC.
    places
        Where: points or ids of regions.
    first_row
        Index in the file of the batch's first row.
    good
        Which rows of the file the records are, true for each; None for all of them.
    invalid
        How many rows were left out, by reason.
    resolved
        How many local times of a clock change were read, by problem.
    """

    source: Source
    users: pl.Series
    micros: NDArray[np.int64]
    places: Places
    first_row: int
    good: NDArray[np.bool_] | None
    invalid: Counter[str]
    resolved: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return self.micros.size

    @property
    def rows_read(self) -> int:
        """Rows that the batch was made from, invalid ones included."""
        return len(self) + self.invalid.total()

    def place(self, index: int) -> str:
        """Name the row of a record as the user would find it."""
        row = index if self.good is None else int(np.flatnonzero(self.good)[index])
        return self.source.place(self.first_row + row)


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """How the rows of any file become records.

    Parameters
    ----------
    columns
        Names of the columns, or guesses where None.
    use_points
        Whether places are longitudes and latitudes, not ids of regions.
    learns_regions
        Whether any id names a region; then one that stands for a missing value is none.
    timezone
        Zone of times that carry none.
    time_format
        How times are written, see `TimeReader`; None to find out.
    at_clock_change
        What becomes of local times that do not exist or exist twice.
    drop_invalid
        Leave out rows that cannot be used, instead of refusing the file.
    """

    columns: Columns = field(default_factory=Columns)
    use_points: bool = True
    learns_regions: bool = True
    timezone: str | None = None
    time_format: str | None = None
    at_clock_change: ClockChange = "refuse"
    drop_invalid: bool = False

    def tables(self, sources: Sequence[Source]) -> list[Table]:
        """Find out how each file is to be read, refusing one that cannot be."""
        roles = ("user", "point" if self.use_points else "region", "time")
        has_pattern = self.time_format is not None and "%" in self.time_format
        layouts = [
            Arranger(self.columns, source, rewrites_dates=not has_pattern).arrange(roles)
            for source in sources
        ]
        forms = find_forms(sources, layouts, self.time_format)
        return [
            Table(source, layout, self, self._times(form))
            for source, layout, form in zip(sources, layouts, forms, strict=True)
        ]

    def _times(self, form: str) -> TimeReader:
        return TimeReader(
            timezone=self.timezone,
            form=form,
            at_clock_change=self.at_clock_change,
            any_age=self.time_format == UNIX,
        )


def find_forms(
    sources: Sequence[Source], layouts: Sequence[Layout], given: str | None
) -> list[str]:
    """Return how the times of each table are written: as given, or as its first rows show.

    Whether the day or the month comes first is decided by all tables together.
    """
    if given is not None:
        return [given] * len(sources)
    forms = [_shape(source, layout) for source, layout in zip(sources, layouts, strict=True)]
    unclear = [i for i, form in enumerate(forms) if form == DAY_OR_MONTH]
    if not unclear:
        return forms
    parts = (
        frame["time"]
        for i in unclear
        for frame in sources[i].batches([layouts[i].exprs["time"].alias("time")])
    )
    try:
        order = decided(parts)
    except RecordsError as error:
        where = sources[unclear[0]].path
        raise RecordsError(error.problem, where=where, fix=error.fix) from error
    return [order if form == DAY_OR_MONTH else form for form in forms]


def _shape(source: Source, layout: Layout) -> str:
    if layout.times is None:
        return ISO
    try:
        return shape_of(layout.times)
    except RecordsError as error:
        where = f"{source.path}, column {layout.names['time']!r}"
        raise RecordsError(error.problem, where=where, fix=error.fix) from error


@dataclass(frozen=True, eq=False)
class Table:
    """A file with all that is known of how it is read."""

    source: Source
    layout: Layout
    reader: RowReader
    times: TimeReader

    def kind(self, role: str) -> pl.DataType | None:
        """Return the type of the column of a role; None where it is made of several."""
        return self.source.schema.get(self.layout.names[role])

    def without_users(self) -> Table:
        """Return the same file, read for its times and places alone."""
        exprs = {role: expr for role, expr in self.layout.exprs.items() if role != "user"}
        return replace(self, layout=replace(self.layout, exprs=exprs))

    def batches(self) -> Iterator[Batch]:
        """Read the file as batches of checked records."""
        first_row = 0
        for frame in self.source.batches(self.layout.chosen):
            yield self._check(frame, first_row)
            first_row += frame.height

    def _check(self, frame: pl.DataFrame, first_row: int) -> Batch:
        rejects = _Rejects(self, frame, first_row)
        rejects.add_ragged()
        users = pl.Series(dtype=pl.String)
        if "user" in frame.columns:
            users = frame["user"]
            rejects.add("user", _blank(users), "without a user", "is no user")
        moments = rejects.explained(lambda: self.times.read(frame["time"]))
        for problem, marked in moments.problems.items():
            rejects.add_time(problem, marked, self.times)
        rejects.add(
            "time",
            moments.micros.is_null(),
            "without a valid time",
            "is not a time",
            fix="Correct it, say how times are written, or ask for invalid rows to be dropped",
        )
        places = self._places(frame, rejects)
        micros = moments.micros.fill_null(0).to_numpy()
        return rejects.apply(users, micros, places, moments.resolved)

    def _places(self, frame: pl.DataFrame, rejects: _Rejects) -> Places:
        if not self.reader.use_points:
            region = frame["region"]
            bad = _blank(region) if self.reader.learns_regions else region.is_null()
            rejects.add("region", bad, "without a region", "is no region")
            return Places(region=region)
        if "point" in frame.columns:
            lon, lat = points_of(frame["point"])
            roles = ("point", "point")
        else:
            lon, lat = (degrees_of(frame[axis]).to_numpy() for axis in ("lon", "lat"))
            roles = ("lon", "lat")
        if not (_within(lat, 90.0) and _within(lon, 180.0)):
            reason = "without valid coordinates"
            for role, degrees in zip(roles, (lon, lat), strict=True):
                strange = pl.Series(~np.isfinite(degrees))
                rejects.add(role, strange, reason, "is not a number of degrees")
            rejects.add(roles[1], pl.Series(np.abs(lat) > 90.0), reason, _OUTSIDE_THE_WORLD)
            rejects.add(roles[0], pl.Series(np.abs(lon) > 180.0), reason, _OUTSIDE_THE_WORLD)
        return Places(lon, lat)


def _within(degrees: NDArray[np.float64], limit: float) -> bool:
    """Tell whether all are numbers up to a limit; smallest and largest are NaN where any is."""
    low, high = degrees.min(initial=0.0), degrees.max(initial=0.0)
    return bool(low >= -limit and high <= limit)


def _blank(ids: pl.Series) -> pl.Series:
    """Tell which ids are missing, or stand for a missing one."""
    if ids.dtype != pl.String:
        return ids.is_null() | ids.is_nan() if ids.dtype.is_float() else ids.is_null()
    short = (ids.str.len_bytes() <= _LONGEST_MISSING).fill_null(value=True)
    if not short.any():
        return short
    return short & ids.fill_null("").str.strip_chars().is_in(_MISSING)


def _complaint(value: object, problem: str) -> str:
    if value is None:
        return "is empty"
    if isinstance(value, bytes):
        return f"a value {problem}"
    return f"{quote(value)} {problem}" if isinstance(value, str) else f"{value} {problem}"


class _Rejects:
    """The rows of one batch that cannot be used: refused at once, or collected to be dropped."""

    def __init__(self, table: Table, frame: pl.DataFrame, first_row: int) -> None:
        self._table = table
        self._frame = frame
        self._first_row = first_row
        self._bad = np.zeros(frame.height, dtype=bool)
        self._reasons: Counter[str] = Counter()

    def add(
        self,
        role: str,
        marked: pl.Series,
        reason: str,
        problem: str,
        *,
        fix: str = _DROP_FIX,
        drop: bool = False,
    ) -> None:
        """Note the marked rows as bad; those that are bad already keep their first reason."""
        if not marked.any():
            return
        bad = marked.fill_null(value=True).to_numpy() & ~self._bad
        if not bad.any():
            return
        if not (drop or self._table.reader.drop_invalid):
            index = int(np.argmax(bad))
            value = self._frame[role][index]
            raise RecordsError(
                f"column {self._table.layout.names[role]!r}: {_complaint(value, problem)}",
                where=self._table.source.place(self._first_row + index),
                fix=fix,
            )
        self._reasons[reason] += int(bad.sum())
        self._bad |= bad

    def add_ragged(self) -> None:
        """Note rows that hold nothing, and rows that could not be split into fields."""
        if RAGGED in self._frame.columns:
            ragged = self._frame[RAGGED]
            broken = ragged.is_not_null()
            if broken.any() and not self._table.reader.drop_invalid:
                index = broken.arg_max() or 0
                raise RecordsError(
                    ragged[index],
                    where=self._table.source.place(self._first_row + index),
                    fix=_DROP_FIX,
                )
            self._drop(broken, "with too many fields or an open quote")
        if self._table.source.row_word != "line":
            return
        roles = list(self._table.layout.exprs)
        if all(self._frame[role].null_count() for role in roles):
            empty = self._frame.select(pl.all_horizontal(pl.col(roles).is_null())).to_series()
            self._drop(empty, "empty lines")

    def add_time(self, problem: str, marked: pl.Series, times: TimeReader) -> None:
        """Note times that could be understood, but not used."""
        zone = times.timezone
        if problem == IMPLAUSIBLE:
            words = f"is a Unix time outside {PLAUSIBLE_YEARS}"
            self.add("time", marked, "at an implausible time", words)
            return
        reason, words = {
            SKIPPED: ("at a local time that does not exist", f"does not exist in {zone}: clocks "
                      "were put forward"),
            TWICE: ("at a local time that exists twice", f"exists twice in {zone}: clocks were "
                    "put back"),
        }[problem]  # fmt: skip
        dropped = times.at_clock_change == "drop"
        self.add("time", marked, reason, words, fix=_CLOCK_FIX, drop=dropped)

    def explained(self, read: Callable[[], Moments]) -> Moments:
        """Read a column, naming the file if it cannot be understood at all."""
        try:
            return read()
        except InputError as error:
            where = self._table.source.path
            raise RecordsError(error.problem, where=where, fix=error.fix) from error

    def apply(
        self,
        users: pl.Series,
        micros: NDArray[np.int64],
        places: Places,
        resolved: Counter[str],
    ) -> Batch:
        """Make the batch of the rows that are left."""
        good = None
        if self._bad.any():
            good = ~self._bad
            users = users.filter(pl.Series(good)) if users.len() else users
            micros, places = micros[good], places.where(good)
        source, first = self._table.source, self._first_row
        return Batch(source, users, micros, places, first, good, self._reasons, resolved)

    def _drop(self, marked: pl.Series, reason: str) -> None:
        bad = marked.to_numpy() & ~self._bad
        if bad.any():
            self._reasons[reason] += int(bad.sum())
            self._bad |= bad
