"""What the columns of a table hold: found by their names and a look at the first rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from whosthere.data.reading.columns import TOGETHER, Columns, guess, missing, parts_of
from whosthere.data.reading.source import column
from whosthere.data.reading.time_forms import (
    DAY_OR_MONTH,
    SAMPLE_ROWS,
    decided,
    holds_clocks,
    holds_dates,
    shape_of,
)
from whosthere.data.reading.times import ISO
from whosthere.errors import RecordsError, listed, quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.data.reading.source import Source


@dataclass(frozen=True, eq=False)
class Layout:
    """How each role is read from the columns of one table.

    Attributes
    ----------
    names
        The columns of each role as messages name them, several joined by ``+``.
    exprs
        Expressions over the columns of the table, each under the name of its role.
    times
        The first times of the table, where these were asked for and are no datetimes.
    """

    names: dict[str, str] = field(default_factory=dict)
    exprs: dict[str, pl.Expr] = field(default_factory=dict)
    times: pl.Series | None = None

    @property
    def chosen(self) -> list[pl.Expr]:
        """The expressions, under the names of their roles."""
        return [expr.alias(role) for role, expr in self.exprs.items()]


class Arranger:
    """Finds the columns of one table, role by role.

    Parameters
    ----------
    columns
        Names of the columns, or guesses where None.
    source
        The table.
    rewrites_dates
        Whether a date in digits that goes with a time of day is written with dashes; not where
        a pattern says how the two are written.
    """

    def __init__(self, columns: Columns, source: Source, *, rewrites_dates: bool = True) -> None:
        self._columns = columns
        self._source = source
        self._rewrites_dates = rewrites_dates
        self._found = source.columns
        self._layout = Layout()

    def arrange(self, roles: Sequence[str]) -> Layout:
        """Return the layout for some of user, time, region, point and count.

        A table that lacks one of them is refused.
        """
        try:
            for role in roles:
                if role == "time":
                    self._time()
                elif role == "point":
                    self._point()
                else:
                    self._plain(role)
        except RecordsError as error:
            where = self._source.path if error.where is None else error.where
            raise RecordsError(error.problem, where=where, fix=error.fix) from error
        expr = self._layout.exprs.get("time")
        if expr is None or isinstance(self._time_kind(), pl.Datetime | pl.Date):
            return self._layout
        return replace(self._layout, times=self._sample.select(expr.alias("time")).to_series())

    def _time_kind(self) -> pl.DataType | None:
        return self._source.schema.get(self._layout.names["time"])

    def _plain(self, role: str) -> None:
        name = self._columns.require((role,), self._found)[role]
        self._add(role, name, joined_ids(parts_of(name, self._found), self._source.schema))

    def _point(self) -> None:
        lon, lat = (self._columns.find(axis, self._found) for axis in ("lon", "lat"))
        if lon is not None and lat is not None:
            self._add("lon", lon, single(lon, self._source.schema))
            self._add("lat", lat, single(lat, self._source.schema))
            return
        name = self._source.points or guess("geometry", self._found)
        if name is None or self._source.schema[name] != pl.Binary:
            raise missing("lat" if lon is not None else "lon", self._found)
        self._add("point", name, single(name, self._source.schema))

    def _time(self) -> None:
        """Find one column of times, or a column of dates and one of times of day."""
        find = self._columns.find
        # Looked for by its usual names only where it is needed.
        date = None if self._columns.date is None else find("date", self._found)
        name = find("time", self._found) or date or find("date", self._found)
        if name is None:
            raise missing("time", self._found)
        if self._holds_clocks(name):
            date = date or find("date", self._found)
        else:
            clock = self._clock_beside(name, date)
            if clock is None:
                if date not in {None, name}:
                    raise RecordsError(
                        f"no column holds times of day to go with the date {date!r}",
                        fix="Say which column holds the time (`columns.time`)",
                    )
                self._add("time", name, single(name, self._source.schema))
                return
            date, name = name, clock
        if date is None or date == name:
            raise RecordsError(
                f"column {quote(name)} holds times of day without a date "
                f"(found {listed(self._found)})",
                fix="Say which column holds the date (`columns.date`)",
            )
        self._add("time", f"{date}{TOGETHER}{name}", self._date_and_clock(date, name))

    def _clock_beside(self, name: str, date: str | None) -> str | None:
        """Return the column of times of day that goes with a column of dates, None without one."""
        is_whole = isinstance(self._source.schema[name], pl.Datetime)
        if is_whole or self._columns.time is not None or not holds_dates(self._sample[name]):
            return None
        clock = guess("clock", [other for other in self._found if other not in {name, date}])
        return clock if clock is not None and self._holds_clocks(clock) else None

    def _date_and_clock(self, date: str, clock: str) -> pl.Expr:
        if not holds_dates(self._sample[date]):
            raise RecordsError(
                f"column {date!r} holds no dates to go with the times of day in {clock!r}",
                fix="Say which column holds the date (`columns.date`)",
            )
        kind = self._source.schema[clock]
        text = single(clock, self._source.schema).cast(pl.String).str.strip_chars()
        if kind == pl.Time:
            text = single(clock, self._source.schema).dt.to_string("%H:%M:%S%.6f")
        hour_only = text.str.contains(r"^\d{1,2}$")
        clocks = pl.when(hour_only).then(text + pl.lit(":00")).otherwise(text)
        dates = single(date, self._source.schema).cast(pl.String).str.strip_chars()
        if self._rewrites_dates:
            # A date in digits is no longer in doubt once a time of day follows it.
            dates = dates.str.replace(r"^(\d{4})(\d{2})(\d{2})$", "$1-$2-$3")
        return pl.concat_str([dates, clocks], separator=" ")

    def _holds_clocks(self, name: str) -> bool:
        if isinstance(self._source.schema[name], pl.Datetime):
            return False
        return holds_clocks(self._sample[name])

    @cached_property
    def _sample(self) -> pl.DataFrame:
        return self._source.head(SAMPLE_ROWS)

    def _add(self, role: str, name: str, expr: pl.Expr) -> None:
        self._layout.names[role] = name
        self._layout.exprs[role] = expr


def joined_ids(names: Sequence[str], schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Return ids as an expression: one column, raw bytes in hexadecimal, or several joined by -."""
    parts = [
        single(name, schema).bin.encode("hex")
        if schema[name] == pl.Binary
        else single(name, schema)
        for name in names
    ]
    if len(parts) == 1:
        return parts[0]
    return pl.concat_str([part.cast(pl.String) for part in parts], separator="-")


def single(name: str, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Refer to a column of single values; one of lists or records is refused."""
    kind = schema[name]
    if kind.is_nested() or kind == pl.Object:
        raise RecordsError(
            f"column {quote(name)} holds {kind}, not single values", fix="Name another column"
        )
    return column(name)


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
