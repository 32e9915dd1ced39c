"""Rows of a table made into checked records: who, when and where, as arrays."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import polars as pl

from whosthere.data.reading.geoparquet import points_of
from whosthere.data.reading.numbers import degrees_of
from whosthere.data.reading.partition.base import Places
from whosthere.data.reading.rejects import Rejects
from whosthere.data.reading.source import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from whosthere.data.reading.layout import Layout
    from whosthere.data.reading.source import Source
    from whosthere.data.reading.times import TimeReader

_Item = TypeVar("_Item")

_OUTSIDE_THE_WORLD = "is not a place on Earth; are longitude and latitude swapped?"
_MISSING = ("", "n/a", "N/A", "#N/A", "NA", "nan", "NaN", "null", "NULL", "None", r"\N")
_LONGEST_MISSING = max(map(len, _MISSING))


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Checked records that follow one another in a file.

    Attributes
    ----------
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


@dataclass(frozen=True, eq=False)
class Table:
    """A file with all that is known of how it is read.

    Parameters
    ----------
    layout
        What its columns hold.
    times
        How its times are read.
    learns_regions
        Whether any id names a region; then one that stands for a missing value is none.
    drop_invalid
        Leave out rows that cannot be used, instead of refusing the file.
    """

    layout: Layout
    times: TimeReader
    learns_regions: bool
    drop_invalid: bool

    def without_users(self) -> Table:
        """Return the same file, read for its times and places alone."""
        exprs = {role: expr for role, expr in self.layout.exprs.items() if role != "user"}
        return replace(self, layout=replace(self.layout, exprs=exprs))

    def batches(self) -> Iterator[Batch]:
        """Read the file as batches of checked records."""
        first_row = 0
        for frame in self.layout.source.batches(self.layout.chosen):
            yield self._check(frame, first_row)
            first_row += frame.height

    def _check(self, frame: pl.DataFrame, first_row: int) -> Batch:
        source = self.layout.source
        rejects = Rejects(self.layout, frame, first_row, drop=self.drop_invalid)
        rejects.add_ragged()
        users = pl.Series(dtype=pl.String)
        if "user" in frame.columns:
            users = frame["user"]
            rejects.add("user", _blank(users), "without a user", "is no user")
        with naming(source.path):
            moments = self.times.read(frame["time"])
        rejects.add_times(moments, self.times)
        places = self._places(frame, rejects)
        micros, good = moments.micros.fill_null(0).to_numpy(), rejects.good
        if good is not None:
            users = users.filter(pl.Series(good)) if users.len() else users
            micros, places = micros[good], places.where(good)
        resolved = Counter({name: int(mask.sum()) for name, mask in moments.resolved.items()})
        return Batch(source, users, micros, places, first_row, good, rejects.reasons, resolved)

    def _places(self, frame: pl.DataFrame, rejects: Rejects) -> Places:
        if "region" in frame.columns:
            region = frame["region"]
            bad = _blank(region) if self.learns_regions else region.is_null()
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


def one_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield the items, the next of which is made by another thread meanwhile.

    What goes wrong in making an item is raised where it would have been yielded.
    """
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = maker.submit(next, items, None)
            yield item


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
