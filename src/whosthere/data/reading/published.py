"""Tables as they are published: a sheet of a workbook, or text, with titles above the header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.data.files import existing
from whosthere.data.frames import is_frame, place_of
from whosthere.data.reading.delimited import open_delimited
from whosthere.data.reading.formats import open_frame, open_workbook
from whosthere.data.reading.opening import only_table, open_sources
from whosthere.data.reading.source import Stored, name_in_file, readable
from whosthere.errors import InputError, RecordsError

if TYPE_CHECKING:
    from whosthere.data.frames import AnyPath, Frame
    from whosthere.data.reading.source import Source

_WORKBOOKS = (".xlsx", ".ods")
_TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ROWS_LOOKED_AT = 30


def open_published(
    table: AnyPath | Frame,
    *,
    sheet: str | None = None,
    header_row: int | None = None,
    encoding: str | None = None,
) -> Source:
    """Open a table; `header_row` is the row that names its columns, counted from 1."""
    path = place_of(table)
    is_book = path.name.lower().endswith(_WORKBOOKS)
    if sheet is not None and not is_book:
        raise InputError("only workbooks have sheets", where=path, fix="Leave out `sheet`")
    if is_book:
        with readable(existing(path)):
            source: Source = open_workbook(Stored(path), sheet=sheet, header_row=header_row or 1)
    elif is_frame(table):
        source = open_frame(table)
    elif header_row in {None, 1}:
        source = only_table(open_sources(path, encoding=encoding)[0], path)
    elif path.name.lower().endswith(_TEXTS):
        n_titles = (header_row or 1) - 1
        with readable(existing(path)):
            source = open_delimited(Stored(path), encoding=encoding, n_titles=n_titles)
    else:
        raise InputError("its columns have names already", where=path, fix="Leave out `header_row`")
    if header_row is None:
        _refuse_titles(source)
    return source


def _refuse_titles(source: Source) -> None:
    """Refuse a table whose first row fills far fewer columns than rows below it."""
    head = source.head(_ROWS_LOOKED_AT)
    named = sum(bool(name_in_file(name).strip()) for name in source.columns)
    filled = [sum(cell is not None for cell in row) for row in head.rows()]
    most = max(filled, default=0)
    if 2 * named > most:
        return
    row = filled.index(most) + source.first_row
    raise RecordsError(
        f"{source.row_word} 1 names {named} of {most} columns: is it a title?",
        where=source.path,
        fix=f"Say which {source.row_word} holds the names of the columns (`header_row`), such as "
        f"{row}",
    )
