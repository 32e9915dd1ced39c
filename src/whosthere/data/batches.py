"""Rows of a table made into checked records: who, when and where, as arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.columns import Columns
from whosthere.data.partition import Places
from whosthere.data.times import to_utc_micros
from whosthere.errors import RecordsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from whosthere.data.sources import Source

_OUTSIDE_THE_WORLD = "is not a place on Earth; are longitude and latitude swapped?"


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Checked records that follow one another in a file.

    Attributes
    ----------
    users
        Who, as the file has it.
    micros
        When, in microseconds since 1970 UTC.
    places
        Where: points or ids of regions.
    first_row
        Index in the file of the batch's first row.
    invalid
        How many rows were left out, by reason.
    """

    source: Source
    users: pl.Series
    micros: NDArray[np.int64]
    places: Places
    first_row: int
    invalid: Counter[str]

    def __len__(self) -> int:
        return self.micros.size

    @property
    def rows_read(self) -> int:
        """Rows that the batch was made from, invalid ones included."""
        return len(self) + self.invalid.total()


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """How the rows of any file become records.

    Parameters
    ----------
    columns
        Names of the columns, or guesses where None.
    use_points
        Whether places are longitudes and latitudes, not ids of regions.
    timezone
        Zone of times that carry none.
    drop_invalid
        Leave out rows that cannot be used, instead of refusing the file.
    """

    columns: Columns = field(default_factory=Columns)
    use_points: bool = True
    timezone: str | None = None
    drop_invalid: bool = False

    def names(self, source: Source) -> dict[str, str]:
        """Find the columns of a file by role, refusing a file that lacks any."""
        roles = ("user", "time", "lon", "lat") if self.use_points else ("user", "time", "region")
        try:
            return self.columns.require(roles, source.columns)
        except RecordsError as error:
            raise RecordsError(error.problem, where=source.path, fix=error.fix) from error

    def batches(self, source: Source) -> Iterator[Batch]:
        """Read a file as batches of checked records."""
        names = self.names(source)
        first_row = 0
        for frame in source.batches(names):
            rejects = _Rejects(source, names, frame, first_row, drop=self.drop_invalid)
            yield self._check(frame, rejects)
            first_row += frame.height

    def _check(self, frame: pl.DataFrame, rejects: _Rejects) -> Batch:
        users = frame["user"]
        rejects.add("user", _blank(users), "without a user", "is empty")
        micros = rejects.explained(lambda: to_utc_micros(frame["time"], self.timezone))
        rejects.add("time", micros.is_null(), "without a valid time", "is not a time")
        places = self._places(frame, rejects)
        return rejects.apply(users, micros.fill_null(0).to_numpy(), places)

    def _places(self, frame: pl.DataFrame, rejects: _Rejects) -> Places:
        if not self.use_points:
            region = frame["region"]
            rejects.add("region", region.is_null(), "without a region", "is empty")
            return Places(region=region)
        lon, lat = (
            frame[axis].cast(pl.Float64, strict=False).to_numpy() for axis in ("lon", "lat")
        )
        if not (_within(lat, 90.0) and _within(lon, 180.0)):
            reason = "without valid coordinates"
            for axis, degrees in (("lon", lon), ("lat", lat)):
                strange = pl.Series(~np.isfinite(degrees))
                rejects.add(axis, strange, reason, "is not a number of degrees")
            rejects.add("lat", pl.Series(np.abs(lat) > 90.0), reason, _OUTSIDE_THE_WORLD)
            rejects.add("lon", pl.Series(np.abs(lon) > 180.0), reason, _OUTSIDE_THE_WORLD)
        return Places(lon, lat)


def _within(degrees: NDArray[np.float64], limit: float) -> bool:
    """Tell whether all are numbers up to a limit; smallest and largest are NaN where any is."""
    low, high = degrees.min(initial=0.0), degrees.max(initial=0.0)
    return bool(low >= -limit and high <= limit)


def _blank(users: pl.Series) -> pl.Series:
    if users.dtype != pl.String:
        return users.is_null()
    return (users if not users.null_count() else users.fill_null("")) == ""


class _Rejects:
    """The rows of one batch that cannot be used: refused at once, or collected to be dropped."""

    def __init__(
        self,
        source: Source,
        names: dict[str, str],
        frame: pl.DataFrame,
        first_row: int,
        *,
        drop: bool,
    ) -> None:
        self._source = source
        self._names = names
        self._frame = frame
        self._first_row = first_row
        self._drop = drop
        self._bad = np.zeros(frame.height, dtype=bool)
        self._reasons: Counter[str] = Counter()

    def add(self, role: str, marked: pl.Series, reason: str, problem: str) -> None:
        """Note the marked rows as bad; those that are bad already keep their first reason."""
        if not marked.any():
            return
        bad = marked.to_numpy()
        if not self._drop:
            index = int(np.argmax(bad))
            value = self._frame[role][index]
            found = "" if value is None else f"{value!r} "
            raise RecordsError(
                f"column {self._names[role]!r}: {found}{problem}",
                where=self._source.place(self._first_row + index),
                fix="Correct it, or ask for invalid rows to be dropped",
            )
        self._reasons[reason] += int((bad & ~self._bad).sum())
        self._bad |= bad

    def explained(self, read: Callable[[], pl.Series]) -> pl.Series:
        """Read a column, naming the file if it cannot be understood at all."""
        try:
            return read()
        except RecordsError as error:
            raise RecordsError(error.problem, where=self._source.path, fix=error.fix) from error

    def apply(self, users: pl.Series, micros: NDArray[np.int64], places: Places) -> Batch:
        """Make the batch of the rows that are left."""
        if self._bad.any():
            good = ~self._bad
            users, micros = users.filter(pl.Series(good)), micros[good]
            places = places.where(good)
        return Batch(self._source, users, micros, places, self._first_row, self._reasons)
