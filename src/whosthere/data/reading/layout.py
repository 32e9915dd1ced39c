"""What the columns of a table hold: found by their names and a look at the first rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from whosthere.data.reading.columns import TOGETHER, Columns, guess, missing, parts_of
from whosthere.data.reading.source import column, naming
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
    source
        The table.
    names
        The columns of each role as messages name them, several joined by ``+``.
    exprs
        Expressions over the columns of the table, each under the name of its role.
    times
        The first times of the table, where these were asked for and are no datetimes.
    """

    source: Source
    names: dict[str, str]
    exprs: dict[str, pl.Expr]
    times: pl.Series | None

    @property
    def chosen(self) -> list[pl.Expr]:
        """The expressions, under the names of their roles."""
        return [expr.alias(role) for role, expr in self.exprs.items()]

    def kind(self, role: str) -> pl.DataType:
        """Return the type of the column of a role: text where it is made of several."""
        return self.source.schema.get(self.names[role], pl.String())


def arrange(
    source: Source, columns: Columns, roles: Sequence[str], *, time_format: str | None = None
) -> Layout:
    """Find the columns for some of user, time, region, point and count.

    A table that lacks one of them is refused.

    Parameters
    ----------
    source
        The table.
    columns
        Names of the columns, or guesses where None.
    roles
        What is to be found.
    time_format
        How times are written, see `TimeReader`; None where that is to be found out.
    """
    finder = _Finder(source, columns, has_pattern=time_format is not None and "%" in time_format)
    found: dict[str, tuple[str, pl.Expr]] = {}
    with naming(source.path):
        for role in roles:
            found |= finder.find(role)
    names = {role: name for role, (name, _) in found.items()}
    exprs = {role: expr for role, (_, expr) in found.items()}
    layout = Layout(source, names, exprs, None)
    if "time" not in exprs or isinstance(layout.kind("time"), pl.Datetime | pl.Date):
        return layout
    return Layout(source, names, exprs, finder.sample.select(exprs["time"]).to_series())


@dataclass(frozen=True)
class _Finder:
    """Finds the columns of one table, role by role: names for messages, and expressions."""

    source: Source
    columns: Columns
    has_pattern: bool

    @cached_property
    def sample(self) -> pl.DataFrame:
        return self.source.head(SAMPLE_ROWS)

    def find(self, role: str) -> dict[str, tuple[str, pl.Expr]]:
        if role == "time":
            return {"time": self._time()}
        if role == "point":
            return self._point()
        found = self.source.columns
        name = self.columns.require(role, found)
        return {role: (name, joined_ids(parts_of(name, found), self.source.schema))}

    def _name(self, role: str) -> str | None:
        return self.columns.find(role, self.source.columns)

    def _single(self, name: str) -> pl.Expr:
        return single_values(name, self.source.schema)

    def _point(self) -> dict[str, tuple[str, pl.Expr]]:
        found = self.source.columns
        lon, lat = self._name("lon"), self._name("lat")
        if lon is not None and lat is not None:
            return {"lon": (lon, self._single(lon)), "lat": (lat, self._single(lat))}
        name = self.source.points or guess("geometry", found)
        if name is None or self.source.schema[name] != pl.Binary:
            raise missing("lat" if lon is not None else "lon", found)
        return {"point": (name, self._single(name))}

    def _time(self) -> tuple[str, pl.Expr]:
        """Find one column of times, or a column of dates and one of times of day."""
        found = self.source.columns
        # Looked for by its usual names only where it is needed.
        date = None if self.columns.date is None else self._name("date")
        name = self._name("time") or date or self._name("date")
        if name is None:
            raise missing("time", found)
        if self._holds_clocks(name):
            date = date or self._name("date")
        else:
            clock = self._clock_beside(name, date)
            if clock is None:
                if date not in {None, name}:
                    raise RecordsError(
                        f"no column holds times of day to go with the date {date!r}",
                        fix="Say which column holds the time (`columns.time`)",
                    )
                return name, self._single(name)
            date, name = name, clock
        if date is None or date == name:
            raise RecordsError(
                f"column {quote(name)} holds times of day without a date (found {listed(found)})",
                fix="Say which column holds the date (`columns.date`)",
            )
        return f"{date}{TOGETHER}{name}", self._date_and_clock(date, name)

    def _clock_beside(self, name: str, date: str | None) -> str | None:
        """Return the column of times of day that goes with a column of dates, None without one."""
        is_whole = isinstance(self.source.schema[name], pl.Datetime)
        if is_whole or self.columns.time is not None or not holds_dates(self.sample[name]):
            return None
        clock = guess(
            "clock", [other for other in self.source.columns if other not in {name, date}]
        )
        return clock if clock is not None and self._holds_clocks(clock) else None

    def _date_and_clock(self, date: str, clock: str) -> pl.Expr:
        if not holds_dates(self.sample[date]):
            raise RecordsError(
                f"column {date!r} holds no dates to go with the times of day in {clock!r}",
                fix="Say which column holds the date (`columns.date`)",
            )
        if self.source.schema[clock] == pl.Time:
            text = self._single(clock).dt.to_string("%H:%M:%S%.6f")
        else:
            text = self._single(clock).cast(pl.String).str.strip_chars()
        hour_only = text.str.contains(r"^\d{1,2}$")
        clocks = pl.when(hour_only).then(text + pl.lit(":00")).otherwise(text)
        dates = self._single(date).cast(pl.String).str.strip_chars()
        if not self.has_pattern:
            # A date in digits is no longer in doubt once a time of day follows it.
            dates = dates.str.replace(r"^(\d{4})(\d{2})(\d{2})$", "$1-$2-$3")
        return pl.concat_str([dates, clocks], separator=" ")

    def _holds_clocks(self, name: str) -> bool:
        if isinstance(self.source.schema[name], pl.Datetime):
            return False
        return holds_clocks(self.sample[name])


def joined_ids(names: Sequence[str], schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Return ids as an expression: one column, raw bytes in hexadecimal, or several joined by -."""
    parts = [
        single_values(name, schema).bin.encode("hex")
        if schema[name] == pl.Binary
        else single_values(name, schema)
        for name in names
    ]
    if len(parts) == 1:
        return parts[0]
    return pl.concat_str([part.cast(pl.String) for part in parts], separator="-")


def single_values(name: str, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Refer to a column of single values; one of lists or records is refused."""
    kind = schema[name]
    if kind.is_nested() or kind == pl.Object:
        raise RecordsError(
            f"column {quote(name)} holds {kind}, not single values", fix="Name another column"
        )
    return column(name)


def find_forms(layouts: Sequence[Layout], given: str | None) -> list[str]:
    """Return how the times of each table are written: as given, or as its first rows show.

    Whether the day or the month comes first is decided by all tables together.
    """
    if given is not None:
        return [given] * len(layouts)
    forms = []
    for layout in layouts:
        with naming(f"{layout.source.path}, column {layout.names['time']!r}"):
            forms.append(ISO if layout.times is None else shape_of(layout.times))
    unclear = [layout for layout, form in zip(layouts, forms, strict=True) if form == DAY_OR_MONTH]
    if not unclear:
        return forms
    with naming(unclear[0].source.path):
        order = decided(
            frame["time"]
            for layout in unclear
            for frame in layout.source.batches([layout.exprs["time"].alias("time")])
        )
    return [order if form == DAY_OR_MONTH else form for form in forms]
