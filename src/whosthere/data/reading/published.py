"""Tables as they are published: a sheet of a workbook, or text, with titles above the header."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from whosthere.data.files import existing
from whosthere.data.reading.delimited import open_delimited
from whosthere.data.reading.formats import open_workbook
from whosthere.data.reading.opening import only_table, open_sources
from whosthere.data.reading.source import ZSTD, FrameSource, Stored, name_in_file, readable
from whosthere.errors import EmptyError, InputError, RecordsError

if TYPE_CHECKING:
    import os

    from whosthere.data.reading.source import Source

_WORKBOOKS = (".xlsx", ".ods")
_TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ROWS_LOOKED_AT = 30


def open_published(
    path: str | os.PathLike[str],
    *,
    sheet: str | None = None,
    header_row: int | None = None,
    encoding: str | None = None,
) -> Source:
    """Open a table; `header_row` is the row that names its columns, counted from 1."""
    path = Path(path)
    is_book = path.name.lower().endswith(_WORKBOOKS)
    if sheet is not None and not is_book:
        raise InputError("only workbooks have sheets", where=path, fix="Leave out `sheet`")
    if is_book:
        with readable(existing(path)):
            source: Source = open_workbook(Stored(path), sheet=sheet, header_row=header_row or 1)
    elif header_row in {None, 1}:
        source = only_table(open_sources(path, encoding=encoding)[0], path)
    elif path.name.lower().endswith(_TEXTS):
        with readable(existing(path)):
            return _below_titles(Stored(path), header_row or 1, encoding)
    else:
        raise InputError("its columns have names already", where=path, fix="Leave out `header_row`")
    if header_row is None:
        _refuse_titles(source)
    return source


def _below_titles(stored: Stored, header_row: int, encoding: str | None) -> Source:
    """Read a text table without the lines above its header."""
    if stored.magic == ZSTD:
        raise RecordsError("is compressed by zstd", where=stored.path, fix="Decompress it first")
    raw = stored.read()
    is_utf16 = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = raw.decode(encoding or ("utf-16" if is_utf16 else "utf-8-sig"))
        notes: tuple[str, ...] = ()
    except (UnicodeDecodeError, LookupError) as error:
        if encoding is not None:
            raise InputError(
                f"cannot be read as {encoding!r}", where=stored.path, fix="Correct `encoding`"
            ) from error
        text, notes = raw.decode("latin-1"), (f"{stored.path.name} was read as Latin-1",)
    lines = io.StringIO(text, newline="\n").readlines()[header_row - 1 :]
    if not lines:
        raise EmptyError(f"has fewer than {header_row} lines", where=stored.path)
    rest = "".join(lines).encode("utf-8", "surrogatepass")
    source = open_delimited(Stored(stored.path, lambda: io.BytesIO(rest)), encoding="utf-8")
    return FrameSource(
        path=source.path,
        schema=source.schema,
        row_word="line",
        first_row=header_row + 1,
        notes=notes,
        frame=source.whole().lazy(),
    )


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
