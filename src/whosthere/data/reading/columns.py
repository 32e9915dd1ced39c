"""What the columns of a table hold: as given, or by usual names and a look at the first rows.

And numbers as people write them in these: with decimal commas, and marks between thousands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from whosthere.data.files import from_sheets
from whosthere.data.reading.source import column, name_in_file, naming, skipping
from whosthere.data.reading.times import (
    DAY_OR_MONTH,
    ISO,
    SAMPLE_ROWS,
    clock_text,
    decided,
    holds_clocks,
    holds_dates,
    looks_like_time,
    shape_of,
)
from whosthere.display import told
from whosthere.errors import InputError, RecordsError, listed, quote, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.data.reading.source import Source

USUAL_NAMES: dict[str, list[str]] = told("whosthere.data.reading", "usual_names")
TOGETHER = "+"
"""Between the names of columns that make one id together, as in LAC+CI."""

# Between thousands; the last two are a narrow and an ordinary space that breaks no line.
_SURE_MARKS = r"[ '\u2019\u202f\u00a0]"
THOUSANDS = (",", ".", " ", "'")
# Floats are exact up to 2^53; hashes in hexadecimal may have an e, but neither a point nor a plus.
_EXACT_IN_32_BITS = 1 << 24
_WHOLE_WITH_DECIMALS = r"^(\s*[+-]?(?:\d{1,15}|[1-8]\d{15}))[.,]0*(\s*)$"
ROUNDED = (
    r"(?:^|-)\s*[+-]?(?:\d+(?:[.,]\d*)?[eE]\+\d{1,3}|\d+[.,]\d*[eE]-?\d{1,3}"
    r"|(?:\d{17,}|[09]\d{15})[.,]0*)\s*(?:-|$)"
)
"""Ids that a program wrote as numbers with too few digits, also as a part of an id of several
columns: many people would be one."""
# A column called id may number the rows, so that beside one of these it is in doubt.
_OF_PEOPLE = ("user", "subscriber", "msisdn", "imsi", "imei", "caller", "device", "member",
              "person", "customer", "client", "phone")  # fmt: skip
# What is said to be missing, or there several times, where the role is part of another.
_ROLE_IN_WORDS = {
    "clock": "time", "area code": "region", "cell in area": "region", "start region": "origin",
    "end region": "destination", "start time": "time", "end time": "arrival", "start lon": "lon",
    "start lat": "lat", "end lon": "end_lon", "end lat": "end_lat", "start user": "user",
    "place": "region",
}  # fmt: skip
_ENDS = ("start", "end")
_BELOW_TITLES = ", or which row names the columns (`header_row`)"
_OTHERWISE = {"region": ", or make regions from points: a grid, antennas, polygons or hexagons"}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns for `user`, `time`, `date`, `lon`, `lat`, `region` and `count`.

    None asks for a guess from `USUAL_NAMES`.

    A user or region may be several columns together, as in ``LAC+CI``. Of a table of trips, they
    are those of one `end`: ``start`` or ``end``.
    """

    user: str | None = None
    time: str | None = None
    date: str | None = None
    lon: str | None = None
    lat: str | None = None
    region: str | None = None
    count: str | None = None
    end: str = ""

    def find(self, role: str, found: Sequence[str]) -> str | None:
        """Return the name of the column for a role, None where none fits.

        A column that was named but is not among those found is refused.
        """
        named: str | None = getattr(self, role, None)
        if named is not None:
            for part in parts_of(named, found):
                if part not in found:
                    refuse_data_as_names(found)
                    raise RecordsError(
                        f"has no column {part!r}", fix=suggestion(part, showable(found))
                    )
            return named
        of_end = f"{self.end} {role}"
        name = guess(of_end, found) if of_end in USUAL_NAMES else None
        if name is None and self.end != "end":
            name = guess(role, found)
        if role != "region" or name is not None or self.end == "end":
            return name
        # Two columns may number areas, and cells within them.
        area, cell = guess("area code", found), guess("cell in area", found)
        return cell if cell is None or area is None else f"{area}{TOGETHER}{cell}"

    def require(self, role: str, found: Sequence[str], *, of_counts: bool = False) -> str:
        """Return the name of the column for a role, refusing a table that lacks one."""
        name = self.find(role, found)
        if name is None:
            raise missing(f"{self.end} {role}".strip(), found, of_counts=of_counts)
        return name


def guess(role: str, found: Sequence[str]) -> str | None:
    """Return the column whose name is the most usual one for a role, None where none is.

    Several columns that would serve equally well are refused.
    """
    by_letters: dict[str, list[str]] = {}
    for name in found:
        by_letters.setdefault(letters(name_in_file(name)), []).append(name)
    usual = next((one for one in map(letters, USUAL_NAMES[role]) if one in by_letters), None)
    if usual is None:
        return None
    fitting = by_letters[usual]
    if role == "user" and usual == "id":
        fitting += [name for name in found if any(one in letters(name) for one in _OF_PEOPLE)]
    if len(fitting) > 1:
        words = _ROLE_IN_WORDS.get(role, role)
        raise RecordsError(
            f"has several columns that may hold the {words}: {listed(fitting)}",
            fix=f"Say which column holds the {words} (`{words}_column`), or rename the others",
        )
    return fitting[0]


def parts_of(name: str, found: Sequence[str]) -> list[str]:
    """Return the columns that a name stands for: one, or those of ``A+B``."""
    return [name] if name in found else name.split(TOGETHER)


def missing(role: str, found: Sequence[str], *, of_counts: bool = False) -> RecordsError:
    """Say that a table has no column for a role, or no names of columns at all."""
    refuse_data_as_names(found)
    if not of_counts and (ends := both_ends(role, found)):
        raise RecordsError(
            f"looks like trips: they begin at {quote(ends[0])} and end at {quote(ends[1])}",
            fix=f"{READ_BOTH}, or say which place counts (`{role}_column`)",
        )
    otherwise = _BELOW_TITLES if of_counts else _OTHERWISE.get(role, "")
    role = _ROLE_IN_WORDS.get(role, role)
    return RecordsError(
        f"has no column for the {role} (found {listed(showable(found))})",
        fix=f"Say which column holds the {role} (`{role}_column`){otherwise}",
    )


READ_BOTH = "Count people at both ends (`both_ends`), or trips between them (`flows`)"


def both_ends(role: str, found: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns that say where trips begin and end, None in a table of other records."""
    names = [guess(f"{end} {role}", found) for end in _ENDS if f"{end} {role}" in USUAL_NAMES]
    begin, end = names or (None, None)
    return None if begin is None or end is None else (begin, end)


def refuse_data_as_names(
    found: Sequence[str], *, where: object = None, header: str = "user,time,region"
) -> None:
    """Refuse a table whose header is missing, so that its first record stands for the names.

    No name is shown: together they would say where somebody was.
    """
    if _look_like_data(found):
        raise RecordsError(
            "line 1 looks like data: the header with the names of the columns is missing",
            where=where,
            fix=f"Add a first line with the names, such as {header}",
        )


def _look_like_data(found: Sequence[str]) -> bool:
    """Tell whether a name is a number or a time, and none is a usual one.

    Counts may have a column for each time: then nearly all names are times.
    """
    n_times = sum(map(looks_like_time, found))
    if n_times >= max(2, len(found) - 1) or any(letters(name) in _SURE_NAMES for name in found):
        return False
    return n_times > 0 or any(_DATUM.search(name) for name in found)


def showable(found: Sequence[str]) -> list[str]:
    """Return names of columns for a message; one that may hold data instead is not shown.

    Such are names that were not decoded rightly, or that have as many digits as an id.
    """
    return ["(unreadable)" if _DOUBTFUL.search(name) else name for name in found]


def letters(name: str) -> str:
    """Return a name as it is compared: its letters and digits, without case."""
    return re.sub(r"[\W_]", "", name).lower()


# Shorter ones may be ids: a region can be called x.
_SURE_NAMES = {letters(name) for names in USUAL_NAMES.values() for name in names if len(name) > 2}
_DOUBTFUL = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]|\d{5}|\d.*[^\x00-\x7f]|[^\x00-\x7f].*\d", re.DOTALL
)
# A number, or a time of day anywhere.
_DATUM = re.compile(r"^\s*[+-]?\d+(?:[.,]\d+)?\s*$|\d:\d\d")


@dataclass(frozen=True, eq=False)
class Layout:
    """How each role is read from the columns of one table."""

    source: Source
    names: dict[str, str]
    """The columns of each role as messages name them, several joined by ``+``."""
    exprs: dict[str, pl.Expr]
    """Expressions over the columns of the table, each under the name of its role."""
    times: pl.Series | None = None
    """The first times of the table, where these were asked for and are no datetimes."""
    lacks: bool = False
    """Whether a role that was asked for has no column, so that the table cannot be used."""

    @property
    def chosen(self) -> list[pl.Expr]:
        """The expressions, under the names of their roles."""
        return [expr.alias(role) for role, expr in self.exprs.items()]

    def time_shape(self) -> str:
        """Return how most times are written; what can be read in two ways is refused."""
        if self.times is None:
            return ISO
        with naming(f"{self.source.path}, column {self.names['time']!r}"):
            return shape_of(self.times)

    def kind(self, role: str) -> pl.DataType:
        """Return the type of the column of a role: text where it is made of several."""
        return self.source.schema.get(self.names[role], pl.String())


def arrange(
    source: Source,
    columns: Columns,
    roles: Sequence[str],
    *,
    time_format: str | None = None,
    skipped: list[InputError] | None = None,
) -> Layout:
    """Find the columns for some of user, time, region, point and count.

    A table that lacks one of them is refused; where `skipped` is a list, all that is wrong is added
    to it, and the other columns are returned. `time_format` says how times are written, see
    `TimeReader`; None where that is to be found out.
    """
    has_pattern = time_format is not None and "%" in time_format
    finder = _Finder(source, columns, has_pattern, of_counts="count" in roles)
    found: dict[str, tuple[str, pl.Expr]] = {}
    wrong: list[InputError] | None = None if skipped is None else []
    for role in roles:
        with skipping(wrong), naming(source.path):
            found |= finder.find(role)
    if wrong and skipped is not None:
        # What is wrong with a header is found for each role.
        skipped += {str(error): error for error in wrong}.values()
    names = {role: name for role, (name, _) in found.items()}
    exprs = {role: expr for role, (_, expr) in found.items()}
    layout = Layout(source, names, exprs, lacks=bool(wrong))
    if "time" not in exprs or isinstance(layout.kind("time"), pl.Datetime | pl.Date):
        return layout
    return replace(layout, times=finder.sample.select(exprs["time"]).to_series())


# A point as well-known text, such as POINT (9.19 45.46), maybe with a system and a height.
_WKT = r"(?i)^\s*(?:SRID=4326;)?\s*POINT\s*(?:Z|M|ZM)?\s*\(\s*(\S+)\s+([^\s)]+)[^()]*\)\s*$"
_AXES = ("lon", "lat")


@dataclass(frozen=True)
class _Finder:
    """Finds the columns of one table, role by role: names for messages, and expressions."""

    source: Source
    columns: Columns
    has_pattern: bool
    of_counts: bool

    @cached_property
    def sample(self) -> pl.DataFrame:
        return self.source.head(SAMPLE_ROWS)

    def find(self, role: str) -> dict[str, tuple[str, pl.Expr]]:
        if role == "time":
            return {"time": self._time()}
        if role == "point":
            return self._point()
        found = self.source.columns
        name = self.columns.require(role, found, of_counts=self.of_counts)
        if role == "count":
            return {role: (name, self._single(name))}
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
        kind = None if name is None else self.source.schema[name]
        if name is not None and kind == pl.String:
            texts = self._single(name)
            return {axis: (name, texts.str.extract(_WKT, i)) for i, axis in enumerate(_AXES, 1)}
        if name is None or kind != pl.Binary:
            lacking = "lat" if lon is not None else "lon"
            raise missing(f"{self.columns.end} {lacking}".strip(), found)
        return {"point": (name, self._single(name))}

    def _time(self) -> tuple[str, pl.Expr]:
        """Find one column of times, or a column of dates and one of times of day."""
        found = self.source.columns
        # Looked for by its usual names only where it is needed.
        date = None if self.columns.date is None else self._name("date")
        name = self._name("time") or date or self._name("date")
        if name is None:
            role = f"{self.columns.end} time".strip()
            raise missing(role, found, of_counts=self.of_counts)
        is_whole = isinstance(self.source.schema[name], pl.Datetime)
        if not is_whole and holds_clocks(self.sample[name]):
            date = date or self._name("date")
        else:
            clock = None if is_whole else self._clock_beside(name, date)
            if clock is None:
                if date not in {None, name}:
                    raise RecordsError(
                        f"no column holds times of day to go with the date {date!r}",
                        fix="Say which column holds the time (`time_column`)",
                    )
                return name, self._single(name)
            date, name = name, clock
        if date is None or date == name:
            raise RecordsError(
                f"column {quote(name)} holds times of day without a date "
                f"(found {listed(showable(found))})",
                fix="Say which column holds the date (`date_column`)"
                + (", or which day it is (`date`)" if self.of_counts else ""),
            )
        return f"{date}{TOGETHER}{name}", self._date_and_clock(date, name)

    def _clock_beside(self, name: str, date: str | None) -> str | None:
        """Return the column of times of day that goes with a column of dates, None without one."""
        if self.columns.time is not None or not holds_dates(self.sample[name]):
            return None
        others = [other for other in self.source.columns if other not in {name, date}]
        clock = guess("clock", others)
        return clock if clock is not None and holds_clocks(self.sample[clock]) else None

    def _date_and_clock(self, date: str, clock: str) -> pl.Expr:
        if not holds_dates(self.sample[date]):
            raise RecordsError(
                f"column {date!r} holds no dates to go with the times of day in {clock!r}",
                fix="Say which column holds the date (`date_column`)",
            )
        if self.source.schema[clock] == pl.Time:
            text = self._single(clock).dt.to_string("%H:%M:%S%.6f")
        else:
            text = self._single(clock).cast(pl.String)
        clocks = clock_text(text)
        dates = self._single(date).cast(pl.String).str.strip_chars()
        if not self.has_pattern:
            # A date in digits is no longer in doubt once a time of day follows it.
            dates = dates.str.replace(r"^(\d{4})(\d{2})(\d{2})$", "$1-$2-$3")
        return pl.concat_str([dates, clocks], separator=" ")


def joined_ids(names: Sequence[str], schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Return ids as an expression: one column, or several joined by -.

    Raw bytes become hexadecimal, and numbers are written as `plain_ids` does.
    """
    parts = []
    for name in names:
        kind, values = schema[name], single_values(name, schema)
        if kind == pl.Binary:
            values = values.bin.encode("hex")
        elif not kind.is_integer():
            values = values.map_batches(plain_ids, return_dtype=pl.String(), is_elementwise=True)
        parts.append(values)
    if len(parts) == 1:
        return parts[0]
    return pl.concat_str([part.cast(pl.String) for part in parts], separator="-")


def plain_ids(ids: pl.Series) -> pl.Series:
    """Return ids as text in which the same one is always written alike.

    Whole numbers lose decimals (``7.0`` is ``7``), and `for_sheets` is undone.
    """
    # Named anew: polars would take some names for patterns.
    texts = ids.cast(pl.String).alias("ids")
    if ids.dtype == pl.Float32:
        are_exact = (ids.abs() <= _EXACT_IN_32_BITS).fill_null(value=True)
        texts = texts.zip_with(are_exact, texts + "E+0")
    if not texts.str.contains(r"[.,']").any():
        return texts
    return from_sheets(texts.str.replace(_WHOLE_WITH_DECIMALS, "$1$2"))


def single_values(name: str, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Refer to a column of single values; one of lists or records is refused."""
    kind = schema[name]
    if kind.is_nested() or kind == pl.Object:
        raise RecordsError(
            f"column {quote(name)} holds {kind}, not single values", fix="Name another column"
        )
    return column(name)


def find_forms(
    layouts: Sequence[Layout], given: str | None, skipped: list[InputError] | None = None
) -> list[tuple[Layout, str]]:
    """Return tables with how their times are written: as given, or as the first rows show.

    Whether the day or the month comes first is decided by all tables together. Those of which it
    cannot be told are left out and `skipped` where that is a list.
    """
    if given is not None:
        return [(layout, given) for layout in layouts]
    forms = []
    for layout in layouts:
        with skipping(skipped):
            forms.append((layout, layout.time_shape()))
    unclear = [layout for layout, form in forms if form == DAY_OR_MONTH]
    if not unclear:
        return forms
    try:
        order = decided(
            frame["time"]
            for layout in unclear
            for frame in layout.source.batches([layout.exprs["time"].alias("time")])
        )
    except InputError as error:
        at_fault = [
            one for one in unclear if str(error.where or "").startswith(str(one.source.path))
        ]
        for layout in at_fault or unclear:
            with skipping(skipped), naming(layout.source.path):
                raise error from None
        sound = [one for one, _ in forms if one not in (at_fault or unclear)]
        return find_forms(sound, given, skipped)
    return [(layout, order if form == DAY_OR_MONTH else form) for layout, form in forms]


def degrees_of(column: pl.Series) -> pl.Series:
    """Read degrees, with a decimal point or comma; null where there is no number."""
    degrees = column.cast(pl.Float64, strict=False)
    if column.dtype == pl.String and degrees.null_count() > column.null_count():
        text = column.str.strip_chars().str.replace(",", ".", literal=True)
        degrees = text.cast(pl.Float64, strict=False)
    return degrees


def whole_numbers_of(text: pl.Series, thousands: str | None) -> pl.Series:
    """Read whole numbers, Int64; null where there is none.

    A comma or point between thousands can also be one before decimals: ``1,234``. It is taken for
    the former where `thousands` says so, or where a number with two of them proves it, and refused
    otherwise.
    """
    spaced = text.str.replace_all(_SURE_MARKS, "")
    for mark in (",", "."):
        group = rf"^-?\d{{1,3}}(?:\{mark}\d{{3}})+$"
        grouped = spaced.str.contains(group).fill_null(value=False)
        if not grouped.any() or (mark == "." and thousands == ","):
            continue
        twice = spaced.str.contains(rf"^-?\d{{1,3}}(?:\{mark}\d{{3}}){{2,}}$")
        if thousands != mark and not twice.any():
            raise RecordsError(
                f"{text.filter(grouped)[0]!r} can be a whole number with a mark between thousands, "
                "or one with decimals",
                fix="Say that it stands between thousands (`thousands`), or use whole numbers",
            )
        without = spaced.str.replace_all(mark, "", literal=True)
        spaced = without.zip_with(grouped, spaced)
    numbers = spaced.cast(pl.Float64, strict=False)
    whole = pl.select(pl.when(numbers == numbers.round()).then(numbers)).to_series()
    return whole.cast(pl.Int64, strict=False)
