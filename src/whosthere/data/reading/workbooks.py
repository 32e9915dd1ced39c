"""Tables in workbooks, XLSX and ODS; needs the `sheets` extra. For small tables."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import polars as pl

from whosthere.data.reading.source import FrameSource, empty
from whosthere.errors import MissingExtraError, RecordsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def open_workbook(path: Path, *, stored: Callable[[], IO[bytes]] | None = None) -> FrameSource:
    """Read the first sheet of a workbook, whose first row names the columns."""
    try:
        import fastexcel  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("Reading workbooks", "sheets") from error
    try:
        if stored is None:
            content = path.read_bytes()
        else:
            with stored() as file:
                content = file.read()
        book = fastexcel.read_excel(content)
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
    first = () if len(sheets) == 1 else (f"of {path.name} the first of {len(sheets)} sheets",)
    return FrameSource(
        path=path,
        schema=table.schema,
        rows=table.height,
        first_row=2,
        notes=first,
        frame=table.lazy(),
    )
