"""Tables that are read by other packages: NDJSON and Parquet by polars, workbooks by fastexcel."""

from __future__ import annotations

import json

import polars as pl

from whosthere.data.reading.geoparquet import point_column
from whosthere.data.reading.source import FrameSource, Stored, empty
from whosthere.errors import MissingExtraError, RecordsError


def open_ndjson(stored: Stored) -> FrameSource:
    """Open a table of JSON objects, one a line."""
    try:
        frame = pl.scan_ndjson(stored.for_polars, infer_schema_length=10_000)
        schema = frame.collect_schema()
    except pl.exceptions.ComputeError as error:
        raise RecordsError(
            "is not a table of JSON objects, one a line",
            where=_first_bad_line(stored),
            fix="Correct the line",
        ) from error
    return FrameSource(path=stored.path, schema=schema, row_word="line", frame=frame)


def _first_bad_line(stored: Stored) -> str:
    with stored.open() as lines:
        for number, line in enumerate(lines, start=1):
            try:
                good = not line.strip() or isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                good = False
            if not good:
                return f"{stored.path}, line {number:,}"
    return str(stored.path)


def open_parquet(stored: Stored) -> FrameSource:
    """Open a Parquet file."""
    path, origin = stored.path, stored.for_polars
    frame = pl.scan_parquet(origin, glob=False, hive_partitioning=False)
    rows = frame.select(pl.len()).collect().item()
    schema = frame.collect_schema()
    points = point_column(origin, path) if pl.Binary in schema.values() else None
    return FrameSource(path=path, schema=schema, rows=rows, frame=frame, points=points)


def open_workbook(stored: Stored) -> FrameSource:
    """Read the first sheet of a workbook, XLSX or ODS, whose first row names the columns.

    Needs the `sheets` extra. The sheet is read whole.
    """
    try:
        import fastexcel  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("Reading workbooks", "sheets") from error
    path = stored.path
    try:
        book = fastexcel.read_excel(stored.read())
        sheets = book.sheet_names
        table = pl.DataFrame(book.load_sheet(0))
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise RecordsError(
            "is no workbook that can be read", where=path, fix="Save the table as CSV"
        ) from error
    if not table.width:
        raise empty(path)
    # Sheets know numbers only as floats; ids among them would end in .0.
    whole = [
        name
        for name, kind in table.schema.items()
        if kind.is_float() and (table[name].drop_nulls() % 1 == 0).all()
    ]
    table = table.with_columns(pl.col(whole).cast(pl.Int64, strict=False))
    return FrameSource(
        path=path,
        schema=table.schema,
        rows=table.height,
        first_row=2,
        notes=() if len(sheets) == 1 else (f"of {path.name} the first of {len(sheets)} sheets",),
        frame=table.lazy(),
    )
