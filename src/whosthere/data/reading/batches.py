"""Rows of a table made into checked records: who, when and where.

Rows that cannot be used are refused with their place, or dropped and counted by reason.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from whosthere.data.reading.columns import ROUNDED, degrees_of
from whosthere.data.reading.formats import points_of
from whosthere.data.reading.source import CONTROL, RAGGED, naming
from whosthere.data.reading.times import (
    IMPLAUSIBLE,
    PLAUSIBLE_YEARS,
    SKIPPED,
    TWICE,
    Moments,
    datable,
)
from whosthere.data.regions import MOST_DEGREES, PROJECTED_FIX
from whosthere.errors import RecordsError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from whosthere.data.reading.columns import Layout
    from whosthere.data.reading.source import Source
    from whosthere.data.reading.times import TimeReader

_Item = TypeVar("_Item")

TO = "to "
"""Before the names of columns that say where and when a trip ends."""
_OUTSIDE_THE_WORLD = "is not a place on Earth; are longitude and latitude swapped?"
_PROJECTED = "is not in degrees: the coordinates look projected, in metres or such"
_MISSING = ("", "n/a", "N/A", "#N/A", "NA", "nan", "NaN", "null", "NULL", "None", r"\N")
_LONGEST_MISSING = max(map(len, _MISSING))
_DROP_FIX = "Correct it, or have invalid rows dropped (`drop_invalid`)"
_ROUNDED = "an id was rounded to a number like 1.5E+10, so that many would pass for one"
_ID_FIX = (
    "Export the ids again as text, with all digits, or have invalid rows dropped (`drop_invalid`)"
)
_TIME_FIX = (
    "Correct it, say how times are written (`time_format`), or have invalid rows dropped "
    "(`drop_invalid`)"
)
_CLOCK_FIX = "Say how to read hours of a clock change (`clock_change`): earlier, later or drop"
# Times that could be understood, but not used: why a row is dropped, and what is wrong with one.
_TIMES = {
    IMPLAUSIBLE: ("at an implausible time", f"is a Unix time outside {PLAUSIBLE_YEARS}"),
    SKIPPED: (
        "at a local time that does not exist",
        "does not exist in {zone}: clocks were put forward",
    ),
    TWICE: ("at a local time that exists twice", "exists twice in {zone}: clocks were put back"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Rejects:
    """The rows of one batch that cannot be used: refused at once or, if `drops`, counted.

    `frame` is the batch, whose first row has the index `first_row` in the table. What would be
    refused is `noted` by its reason instead, the first of each, and counted, if that is given.
    """

    layout: Layout
    frame: pl.DataFrame
    first_row: int
    drops: bool
    bad: NDArray[np.bool_]
    """Which rows are to be dropped."""
    noted: dict[str, RecordsError] | None = None
    reasons: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        role: str,
        marked: pl.Series,
        reason: str,
        problem: str = "",
        *,
        fix: str = _DROP_FIX,
        drop: bool = False,
    ) -> None:
        """Note the marked rows as bad; those that are bad already keep their first reason."""
        if not marked.any() and not marked.null_count():
            return
        bad = marked.fill_null(value=True).to_numpy() & ~self.bad
        if bad.any() and not (drop or self.drops or reason in (self.noted or ())):
            index = int(np.argmax(bad))
            said = _value(self.frame[role], index)
            if role != RAGGED:
                said = f"column {self.layout.names[role]!r}: {_complaint(said, problem)}"
            where = self.layout.source.place(self.first_row + index)
            error = RecordsError(said, where=where, fix=fix)
            if self.noted is None:
                raise error
            self.noted[reason] = error
        self.reasons[reason] += int(bad.sum())
        np.logical_or(self.bad, bad, out=self.bad)

    def add_ragged(self) -> None:
        """Note rows that hold nothing, and rows that could not be split into fields."""
        if RAGGED in self.frame.columns:
            ragged = self.frame[RAGGED]
            self.add(RAGGED, ragged.eq_missing(CONTROL), "with a control character")
            self.add(RAGGED, ragged.is_not_null(), "with too many fields or an open quote")
        roles = list(self.layout.exprs)
        lines = self.layout.source.row_word == "line"
        if lines and roles and all(self.frame[role].null_count() for role in roles):
            empty = self.frame.select(pl.all_horizontal(pl.col(roles).is_null())).to_series()
            self.add(RAGGED, empty, "empty lines", drop=True)

    def add_rounded(self, role: str, ids: pl.Series) -> None:
        """Note ids that a program wrote as numbers, and that have lost digits in this way."""
        if ids.dtype == pl.String:
            reason = f"with a {role} id that was rounded"
            rounded = ids.str.contains(ROUNDED).fill_null(value=False)
            self.add(role, rounded, reason, _ROUNDED, fix=_ID_FIX)

    def add_times(self, moments: Moments, times: TimeReader) -> None:
        """Note times that could not be understood, or not be used."""
        for problem, marked in moments.problems.items():
            reason, words = _TIMES[problem]
            fix = _DROP_FIX if problem == IMPLAUSIBLE else _CLOCK_FIX
            drop = problem != IMPLAUSIBLE and times.clock_change == "drop"
            self.add("time", marked, reason, words.format(zone=times.timezone), fix=fix, drop=drop)
        missing = moments.micros.is_null()
        self.add("time", missing, "without a valid time", "is not a time", fix=_TIME_FIX)


def _value(column: pl.Series, index: int) -> Any:  # noqa: ANN401 - whatever it holds
    """Return a value of a column, in words where Python has no other for it."""
    is_far = column.dtype.is_temporal() and not datable(column[index : index + 1])[0]
    return "beyond the years 1 to 9999" if is_far else column[index]


def _complaint(value: object, problem: str) -> str:
    if problem == _ROUNDED:
        return problem
    if value is None:
        return "is empty"
    if isinstance(value, bytes):
        value = "a value"
    elif isinstance(value, str):
        value = quote(value)
    return f"{value} {problem}"


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Checked records that follow one another in a file."""

    source: Source
    records: pl.DataFrame
    """Columns user (who, as the file has it; missing where users were left out), micros (when, in
    microseconds since 1970 UTC), and lon and lat (degrees) or region (where)."""
    first_row: int
    """Index in the file of the batch's first row."""
    bad: NDArray[np.bool_]
    invalid: Counter[str]
    """Which rows of the file were left out, and how many by reason."""
    resolved: Counter[str]
    """How many local times of a clock change were read, by problem."""

    def __len__(self) -> int:
        return self.records.height

    @property
    def micros(self) -> NDArray[np.int64]:
        """When, in microseconds since 1970 UTC."""
        return self.records["micros"].to_numpy()

    @property
    def rows_read(self) -> int:
        """Rows that the batch was made from, invalid ones included."""
        return self.bad.size

    @property
    def ends(self) -> list[pl.DataFrame]:
        """The records; and, where they are trips, where and when these end, under the same names.

        Of the latter, only `records` says who it was.
        """
        names = {name: name.removeprefix(TO) for name in self.records.columns if name[:3] == TO}
        return [self.records, *([self.records.select(list(names)).rename(names)] if names else [])]

    def place(self, index: int) -> str:
        """Name the row of a record as the user would find it."""
        return self.source.place(self.first_row + int(np.flatnonzero(~self.bad)[index]))


@dataclass(frozen=True, eq=False)
class RecordTable:
    """A file with all that is known of how it is read.

    `learns_regions` where any id names a region; then one that stands for a missing value is none.
    What would be refused is `noted` if that is given, see `Rejects`.
    """

    layout: Layout
    times: TimeReader
    learns_regions: bool
    drop_invalid: bool
    noted: dict[str, RecordsError] | None = None

    def without_users(self) -> RecordTable:
        """Return the same file, read for its times and places alone."""
        exprs = {role: expr for role, expr in self.layout.exprs.items() if role != "user"}
        return replace(self, layout=replace(self.layout, exprs=exprs))

    def batches(self) -> Iterator[Batch]:
        """Read the file as batches of checked records."""
        first_row = 0
        for frame in self.layout.source.batches(self._chosen):
            yield self._check(frame, first_row)
            first_row += frame.height

    @property
    def _chosen(self) -> list[pl.Expr]:
        """What is read of each row."""
        return self.layout.chosen

    def _check(self, frame: pl.DataFrame, first_row: int) -> Batch:
        source, none_bad = self.layout.source, np.zeros(frame.height, dtype=bool)
        rejects = Rejects(self.layout, frame, first_row, self.drop_invalid, none_bad, self.noted)
        rejects.add_ragged()
        records, resolved = self._read(rejects)
        if rejects.bad.any():
            records = records.filter(pl.Series(~rejects.bad))
        return Batch(source, records, first_row, rejects.bad, rejects.reasons, resolved)

    def _read(self, rejects: Rejects) -> tuple[pl.DataFrame, Counter[str]]:
        """Return the records of all rows, bad ones noted, and local times that were resolved."""
        frame = rejects.frame
        users = [frame["user"]] if "user" in frame.columns else []
        for column in users:
            rejects.add("user", _blank(column), "without a user", "is no user")
            rejects.add_rounded("user", column)
        moments = self._moments(rejects)
        places = self._places(frame, rejects)
        resolved = Counter({name: int(mask.sum()) for name, mask in moments.resolved.items()})
        return pl.DataFrame([*places, moments.micros.alias("micros"), *users]), resolved

    def _moments(self, rejects: Rejects) -> Moments:
        """Read the times; all are missing where there are none, or what is wrong is noted."""
        unread = Moments(pl.repeat(None, rejects.bad.size, dtype=pl.Int64, eager=True))
        if "time" not in rejects.frame.columns:
            return unread
        try:
            with naming(self.layout.source.path):
                moments = self.times.read(rejects.frame["time"])
        except RecordsError as error:
            if self.noted is None:
                raise
            self.noted.setdefault("times", error)
            return unread
        rejects.add_times(moments, self.times)
        return moments

    def _places(self, frame: pl.DataFrame, rejects: Rejects) -> pl.DataFrame:
        if "region" in frame.columns:
            region = frame["region"]
            bad = _blank(region) if self.learns_regions else region.is_null()
            rejects.add("region", bad, "without a region", "is no region")
            rejects.add_rounded("region", region)
            return region.to_frame()
        if not {"point", "lon"} & set(frame.columns):
            return pl.DataFrame()
        if "point" in frame.columns:
            places, roles = points_of(frame["point"]), ("point", "point")
        else:
            places = pl.DataFrame([degrees_of(frame["lon"]), degrees_of(frame["lat"])])
            roles = ("lon", "lat")
        reason = "without valid coordinates"
        for role, axis in zip(roles, places, strict=True):
            problem = "is no point" if role == "point" else "is not a number of degrees"
            rejects.add(role, ~axis.is_finite(), reason, problem)
        projected = (places["lon"].abs() > MOST_DEGREES) | (places["lat"].abs() > MOST_DEGREES)
        rejects.add(roles[0], projected, reason, _PROJECTED, fix=PROJECTED_FIX)
        rejects.add(roles[1], places["lat"].abs() > 90.0, reason, _OUTSIDE_THE_WORLD)
        rejects.add(roles[0], places["lon"].abs() > 180.0, reason, _OUTSIDE_THE_WORLD)
        return places


def one_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield the items, the next of which is made by another thread meanwhile.

    What goes wrong in making an item is raised where it would have been yielded.
    """
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = maker.submit(next, items, None)
            yield item


def _blank(ids: pl.Series) -> pl.Series:
    """Tell which ids are missing, or stand for a missing one."""
    if ids.dtype != pl.String:
        return ids.is_null() | ids.is_nan() if ids.dtype.is_float() else ids.is_null()
    short = (ids.str.len_bytes() <= _LONGEST_MISSING).fill_null(value=True)
    if not short.any():
        return short
    return short & ids.fill_null("").str.strip_chars().is_in(_MISSING)
