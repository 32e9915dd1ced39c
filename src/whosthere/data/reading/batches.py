"""Rows of a table made into checked records: who, when and where, as arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.reading.columns import Columns
from whosthere.data.reading.geoparquet import points_of
from whosthere.data.reading.numbers import degrees_of
from whosthere.data.reading.partition.base import Places
from whosthere.data.reading.rejects import Rejects
from whosthere.data.reading.table_columns import Arranger, Layout, find_forms
from whosthere.data.reading.times import UNIX, ClockChange, TimeReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.data.reading.source import Source

_OUTSIDE_THE_WORLD = "is not a place on Earth; are longitude and latitude swapped?"
_MISSING = ("", "n/a", "N/A", "#N/A", "NA", "nan", "NaN", "null", "NULL", "None", r"\N")
_LONGEST_MISSING = max(map(len, _MISSING))


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
        drop = self.reader.drop_invalid
        rejects = Rejects(self.source, self.layout, frame, first_row, drop=drop)
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
            fix="Correct it, say how times are written (`time_format`), or have invalid rows "
            "dropped (`drop_invalid`)",
        )
        places = self._places(frame, rejects)
        micros, good = moments.micros.fill_null(0).to_numpy(), rejects.good
        if good is not None:
            users = users.filter(pl.Series(good)) if users.len() else users
            micros, places = micros[good], places.where(good)
        return Batch(
            self.source, users, micros, places, first_row, good, rejects.reasons, moments.resolved
        )

    def _places(self, frame: pl.DataFrame, rejects: Rejects) -> Places:
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
