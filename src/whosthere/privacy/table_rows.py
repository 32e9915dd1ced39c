"""The rows of a table of counts: one for each region and time, or a column for each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from whosthere.data.reading.columns import (
    arrange,
    find_forms,
    joined_ids,
    letters,
    missing,
    parts_of,
)
from whosthere.data.reading.times import DAY_OR_MONTH, decided, looks_like_time, shape_of
from whosthere.errors import EmptyError, listed

if TYPE_CHECKING:
    from whosthere.data.reading.columns import Columns
    from whosthere.data.reading.source import Source

_TOTALS = ("total", "totals", "grandtotal", "sum", "subtotal", "all", "overall", "gesamt", "summe",
           "totale", "totaal", "insgesamt", "ensemble")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Rows:
    """Published counts as the table has them.

    Attributes
    ----------
    frame
        Columns region (text), time and count as written, and row, its index in the file.
    form
        How times are written, see `TimeReader`.
    notes
        What was left out, in short sentences.
    """

    frame: pl.DataFrame
    form: str
    notes: tuple[str, ...]


def rows_of(
    source: Source, columns: Columns, *, wide: bool | None, time_format: str | None
) -> Rows:
    """Read a table of counts.

    Parameters
    ----------
    source
        The table.
    columns
        Names of the columns where they are unusual.
    wide
        Whether each epoch has a column of its own; None to find out from their names.
    time_format
        How times are written; None to find out.
    """
    if wide is None:
        wide = _is_wide(source, columns)
    rows = _wide(source, columns, time_format) if wide else _long(source, columns, time_format)
    if not rows.frame.height:
        raise EmptyError("has no counts")
    return rows


def _is_wide(source: Source, columns: Columns) -> bool:
    if columns.time is not None or columns.count is not None:
        return False
    return sum(looks_like_time(name) for name in source.columns) >= 2


def _long(source: Source, columns: Columns, time_format: str | None) -> Rows:
    layout = arrange(source, columns, ("region", "count", "time"), time_format=time_format)
    [form] = find_forms([layout], time_format)
    table = source.whole().select(layout.chosen).with_row_index("row")
    table = table.with_columns(pl.col("region").cast(pl.String))
    nothing = pl.all_horizontal(pl.col("region", "time", "count").is_null())
    table = table.filter(~nothing)
    total = _is_total(table["region"])
    if table["time"].dtype == pl.String:
        total |= _is_total(table["time"])
    notes = _said(int(total.sum()), "row")
    return Rows(table.filter(~total), form, notes)


def _wide(source: Source, columns: Columns, time_format: str | None) -> Rows:
    found = source.columns
    named = columns.find("region", found)
    region = named or next((name for name in found if not looks_like_time(name)), found[0])
    others = [name for name in found if name not in parts_of(region, found)]
    totals = [name for name in others if letters(name) in _TOTALS]
    times = [name for name in others if name not in totals]
    if time_format is None and any(map(looks_like_time, times)):
        left = [name for name in times if not looks_like_time(name)]
        times = [name for name in times if looks_like_time(name)]
    else:
        left = []
    if not times:
        raise missing("time", found) if others else EmptyError("has no counts")
    table = source.whole()
    expr = joined_ids(parts_of(region, found), table.schema).cast(pl.String)
    ids = table.select(expr.alias("region")).to_series()
    total = _is_total(ids)
    columns_of_counts = (
        pl.DataFrame({"region": ids, "count": table[time].cast(pl.String)})
        .with_row_index("row")
        .with_columns(pl.lit(time).alias("time"))
        .filter(~total)
        for time in times
    )
    notes = (*_said(int(total.sum()), "row"), *_said(len(totals), "column"))
    if left:
        notes = (*notes, f"left out columns that are no times: {listed(left)}")
    return Rows(pl.concat(columns_of_counts), _form_of_names(times, time_format), notes)


def _form_of_names(names: list[str], time_format: str | None) -> str:
    if time_format is not None:
        return time_format
    series = pl.Series(names)
    form = shape_of(series)
    return decided([series]) if form == DAY_OR_MONTH else form


def _is_total(texts: pl.Series) -> pl.Series:
    names = texts.str.replace_all(r"[\W_]", "").str.to_lowercase()
    return names.is_in(_TOTALS).fill_null(value=False)


def _said(n: int, what: str) -> tuple[str, ...]:
    return (f"left out {n} {what}{'s' if n > 1 else ''} of totals",) if n else ()
