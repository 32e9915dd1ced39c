"""The rows of a table of counts as published: long or wide, without its totals and notes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from whosthere.data.reading.columns import (
    Columns,
    arrange,
    find_forms,
    joined_ids,
    letters,
    missing,
    parts_of,
)
from whosthere.data.reading.source import Source, name_in_file
from whosthere.data.reading.times import (
    DAY_OR_MONTH,
    SAMPLE_ROWS,
    clocks_of,
    decided,
    holds_dates,
    looks_like_clock,
    looks_like_time,
    shape_of,
    span_of,
)
from whosthere.display import counted
from whosthere.errors import EmptyError, InputError, RecordsError, listed, quote

if TYPE_CHECKING:
    from datetime import date

    from whosthere.data.regions import Regions

_TOTALS = ("total", "totals", "grandtotal", "sum", "subtotal", "all", "overall", "gesamt", "summe",
           "totale", "totaal", "insgesamt", "ensemble")  # fmt: skip
_MOST_QUOTED = 3
_DATE = "the date given"
_WRITTEN = ("region", "time", "count")


class Rows(NamedTuple):
    """Published counts as the table has them.

    The frame has the columns region (text), time and count as written, and row, its index in the
    file. The form says how times are written, see `TimeReader`; the notes, what was left out, and
    whether that was totals; the span, how long each count lasts, where the table says so.
    """

    frame: pl.DataFrame
    form: str
    notes: tuple[str, ...]
    span: timedelta | None
    has_totals: bool


@dataclass(frozen=True)
class RowReader:
    """How the rows of a table are found; see `TableReader` for what the fields mean."""

    columns: Columns
    wide: bool | None
    form: str | None
    date: date | None
    regions: Regions | None

    def read(self, source: Source) -> Rows:
        """Return the rows of a table that hold counts."""
        is_wide = self.wide
        if is_wide is None:
            named = self.columns.time is not None or self.columns.count is not None
            written = list(map(name_in_file, source.columns))
            is_wide = not named and any(
                sum(map(look, written)) >= 2 for look in (looks_like_time, looks_like_clock)
            )
        rows = self._wide(source) if is_wide else self._long(source)
        if not rows.frame.height:
            raise EmptyError("has no counts")
        return rows

    def _long(self, source: Source) -> Rows:
        columns = self.columns
        if self.date is not None:
            head = source.head(SAMPLE_ROWS)
            names = (columns.find(role, source.columns) for role in ("date", "time"))
            if any(name is not None and holds_dates(head[name]) for name in names):
                raise _useless_date()
            schema = {**source.schema, _DATE: pl.String()}
            source = replace(source, schema=schema, constants={_DATE: self.date.isoformat()})
            columns = replace(columns, date=_DATE)
        layout = arrange(source, columns, ("region", "count", "time"), time_format=self.form)
        *_, clock = parts_of(layout.names["time"], source.columns)
        [(_, form)] = find_forms([layout], self.form)
        whole = source.whole()
        table = whole.select(layout.chosen).with_row_index("row")
        region = pl.col("region").cast(pl.String)
        table = table.with_columns(pl.when(region.str.strip_chars() != "").then(region))
        nothing = table["region"].is_null() & is_empty(table["time"]) & is_empty(table["count"])
        table = table.filter(~nothing)
        total = _is_total(table["region"])
        if table["time"].dtype == pl.String:
            total |= _is_total(table["time"])
        # A table without any time is of all the day that is given.
        span = timedelta(days=1) if clock == _DATE else None
        if span is None and whole.schema[clock] == pl.String:
            span = span_of(whole[clock])
        n_totals = int(total.sum())
        return Rows(table.filter(~total), form, _totals(n_totals, "row"), span, n_totals > 0)

    def _wide(self, source: Source) -> Rows:
        found = source.columns
        is_time = looks_like_time if any(map(looks_like_time, found)) else looks_like_clock
        region = self.columns.find("region", found)
        region = region or next((name for name in found if not is_time(name)), found[0])
        others = [name for name in found if name not in parts_of(region, found)]
        totals = [name for name in others if letters(name) in _TOTALS]
        times, left = [name for name in others if name not in totals], []
        if self.form is None and any(map(is_time, times)):
            left = [name for name in times if not is_time(name)]
            times = [name for name in times if is_time(name)]
        repeated = Counter(name for name in map(name_in_file, others) if is_time(name))
        for name, times_named in repeated.items():
            if times_named > 1:
                problem = f"has several columns called {quote(name)}"
                raise RecordsError(problem, fix="Name them with their dates")
        if not times:
            raise missing("time", found, of_counts=True) if others else EmptyError("has no counts")
        moments, span = self._moments(pl.Series(times))
        table = source.whole()
        expr = joined_ids(parts_of(region, found), table.schema).cast(pl.String)
        ids = table.select(pl.when(expr.str.strip_chars() != "").then(expr).alias("region"))
        ids = ids.with_row_index("row")
        total = _is_total(ids["region"])
        noted = table.select(pl.all_horizontal(is_empty(table[time]) for time in times)).to_series()
        if self.regions is not None:
            noted &= ~ids["region"].is_in(self.regions.ids).fill_null(value=False)
        by_time = (
            ids.with_columns(
                pl.lit(moment).alias("time"), table[time].cast(pl.String).alias("count")
            ).filter(~total & ~noted)
            for time, moment in zip(times, moments, strict=True)
        )
        notes = (
            *_totals(int(total.sum()), "row"),
            *_totals(len(totals), "column"),
            *left_out(ids.filter(noted & ~total)),
            *([f"left out columns that are no times: {listed(left)}"] if left else ()),
        )
        form = self.form
        if form is None:
            form = shape_of(moments)
            if form == DAY_OR_MONTH:
                form = decided([moments])
        return Rows(pl.concat(by_time), form, notes, span, bool(totals) or total.any())

    def _moments(self, names: pl.Series) -> tuple[pl.Series, timedelta | None]:
        """Return the times that columns are named by, with the day where they are hours."""
        if not all(map(looks_like_clock, names)) or any(map(looks_like_time, names)):
            if self.date is not None:
                raise _useless_date()
            return names, None
        if self.date is None:
            raise RecordsError(
                f"its columns are times of day ({listed(names)})",
                fix="Say which day they are of (`date`), such as 2024-05-01",
            )
        return f"{self.date} " + clocks_of(names), span_of(names)


def _useless_date() -> InputError:
    return InputError("the table has dates of its own", fix="Leave out the date (`date`)")


def is_empty(column: pl.Series) -> pl.Series:
    """Tell which cells hold nothing."""
    return (column.cast(pl.String).str.strip_chars() == "").fill_null(value=True)


def left_out(table: pl.DataFrame) -> tuple[str, ...]:
    """Say which rows hold no count at all; blank ones need not be said."""
    written = [pl.col(name).cast(pl.String) for name in _WRITTEN if name in table.columns]
    left = table.select(pl.coalesce(written)).to_series().drop_nulls().to_list()
    if not left:
        return ()
    shown = ", ".join(map(quote, left[:_MOST_QUOTED])) + (", ..." if left[_MOST_QUOTED:] else "")
    return (f"left out {counted(len(left), 'row')} without any count, such as notes: {shown}",)


def _is_total(texts: pl.Series) -> pl.Series:
    names = texts.str.replace_all(r"[\W_]", "").str.to_lowercase()
    return names.is_in(_TOTALS).fill_null(value=False)


def _totals(n: int, what: str) -> tuple[str, ...]:
    return (f"left out {n} {what}{'s' if n > 1 else ''} of totals",) if n else ()
