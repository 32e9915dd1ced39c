"""Text tables: CSV and its kin, in any usual encoding, compressed or not, and not always whole.

polars reads a sound file by itself. What it refuses (another encoding, a member of an archive, a
row with too many fields, a stray quote) is read here in blocks of text, and only a block that
polars refuses is taken apart row by row.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import IO, TYPE_CHECKING

import polars as pl

from whosthere.data.reading.source import (
    BATCH_ROWS,
    CONTROL,
    GZIP,
    RAGGED,
    ZSTD,
    FrameSource,
    Source,
    Stored,
    distinct_names,
    empty,
    readable,
)
from whosthere.errors import EmptyError, InputError, RecordsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SEPARATORS = ",;\t|"
_HEAD_BYTES, _LONGEST_LINE = 1 << 16, 1 << 24
_BLOCK_CHARS = 1 << 24
_BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_CONTROLS = frozenset(range(1, 32)) - {9, 10, 12, 13, 26}
# Every other byte of UTF-16 is NUL where the text is Latin; fewer are damage to single rows.
_FEW_NULS = 0.1
_ENCODING_NAMES = {"latin-1": "Latin-1", "utf-16": "UTF-16"}
_WHOLE_FIX = "Is the file whole and its extension right?"
_ENCODING_FIX = "Name its encoding (`encoding`), such as latin-1 or utf-16-le"
# A quoted field may go over a few lines; more are a quote that was never closed.
_MOST_LINES_A_ROW = 20


def rows_of(lines: Iterable[str], separator: str | None = None) -> Iterator[tuple[int, str]]:
    """Put lines together that a quoted field goes over; yield each row and its line, from 1.

    A line whose quote is never closed, or only within another field, is a row by itself. The
    separator of fields is needed to notice the latter.
    """
    waiting = deque[tuple[int, str]]()
    coming = enumerate(lines, start=1)
    while True:
        while len(waiting) < _MOST_LINES_A_ROW and (line := next(coming, None)) is not None:
            waiting.append(line)
        if not waiting:
            return
        number, row = waiting.popleft()
        quotes = row.count('"')
        if quotes % 2:
            n_more = 0
            for _, text in waiting:
                n_more += 1
                quotes += text.count('"')
                if not quotes % 2:
                    break
            joined = row + "".join(text for _, text in islice(waiting, n_more))
            if not quotes % 2 and (separator is None or fields_of(joined, separator) is not None):
                row = joined
                for _ in range(n_more):
                    waiting.popleft()
        yield number, row


def fields_of(row: str, separator: str) -> list[str] | None:
    """Split a row; None where a quoted field is not closed, or goes on after its end."""
    lines = io.StringIO(row.rstrip("\r\n"), newline="\n")
    try:
        return next(csv.reader(lines, delimiter=separator, strict=True), [])
    except csv.Error:
        return None


def cut(text: str) -> tuple[str, str]:
    """Cut after the last line end that no quoted field holds."""
    end = text.rfind("\n") + 1
    for _ in range(_MOST_LINES_A_ROW):
        if not text.count('"', 0, end) % 2:
            break
        end = text.rfind("\n", 0, max(end - 1, 0)) + 1
    else:
        end = text.rfind("\n") + 1
    return text[:end], text[end:]


@dataclass(frozen=True, eq=False, kw_only=True)
class DelimitedSource(Source):
    """A text table with a header; its encoding is None where it is still to be found out."""

    stored: Stored
    separator: str
    encoding: str | None
    by_polars: bool
    n_titles: int = 0

    def batches(self, chosen: Sequence[pl.Expr]) -> Iterator[pl.DataFrame]:
        done = 0
        if self.by_polars:
            with readable(self.path), suppress(pl.exceptions.ComputeError):
                # With all columns: polars overlooks surplus fields where it reads only some.
                whole = pl.QueryOptFlags(projection_pushdown=False)
                wanted = self._scan().select(chosen)
                for frame in wanted.collect_batches(
                    chunk_size=BATCH_ROWS,
                    maintain_order=True,
                    engine="streaming",
                    optimizations=whole,
                ):
                    done += frame.height
                    yield frame
                return
        for frame in self._careful_frames():
            if done >= frame.height:
                done -= frame.height
                continue
            yield frame.slice(done).select(*chosen, pl.col(RAGGED))
            done = 0

    def head(self, n: int) -> pl.DataFrame:
        if self.by_polars:
            with readable(self.path), suppress(pl.exceptions.ComputeError):
                return self._scan().head(n).collect()
        nothing = pl.DataFrame(schema={**self.schema, RAGGED: pl.String()})
        return next(self._careful_frames(), nothing).drop(RAGGED).head(n)

    def place(self, index: int) -> str:
        with suppress(InputError), readable(self.path), self._open_text() as stream:
            _skip(stream, self.n_titles)
            # The first row is the header.
            row = next(islice(rows_of(stream, self.separator), index + 1, None), None)
            if row is not None:
                return f"{self.path}, line {row[0] + self.n_titles:,}"
        return super().place(index)

    def _scan(self) -> pl.LazyFrame:
        names = [name for name in self.schema if name not in self.constants]
        frame = pl.scan_csv(
            self.path, separator=self.separator, infer_schema=False, glob=False, new_columns=names
        )
        return frame.with_columns(self.literals)

    def _careful_frames(self) -> Iterator[pl.DataFrame]:
        """Read in blocks, all columns as text and `RAGGED`."""
        with readable(self.path):
            for block in self._blocks():
                yield self._parsed(block).with_columns(self.literals)

    def _parsed(self, block: str) -> pl.DataFrame:
        own = {name: kind for name, kind in self.schema.items() if name not in self.constants}
        if "\0" not in block:
            with suppress(pl.exceptions.PolarsError):
                return pl.read_csv(
                    io.BytesIO(block.encode("utf-8", "surrogatepass")),
                    has_header=False,
                    schema=own,
                    separator=self.separator,
                ).with_columns(pl.lit(None, pl.String).alias(RAGGED))
        n, rows = len(own), []
        for _, line in rows_of(io.StringIO(block, newline="\n"), self.separator):
            fields, wrong = fields_of(line, self.separator), None
            if "\0" in line:
                wrong = CONTROL
            elif fields is None:
                wrong = "has a quoted field that does not end, or not where it should"
            elif len(fields) > n:
                wrong = f"has {len(fields)} fields where the header has {n}"
            kept = [] if fields is None or wrong else [text or None for text in fields]
            rows.append([*kept, *[None] * (n - len(kept)), wrong])
        return pl.DataFrame(rows, schema={**own, RAGGED: pl.String()}, orient="row")

    def _blocks(self) -> Iterator[str]:
        """Yield the text after the header, cut where a row ends."""
        with self._open_text() as stream:
            _skip(stream, self.first_row - 1)
            rest = ""
            while text := stream.read(_BLOCK_CHARS):
                block, rest = cut(rest + text)
                if block:
                    yield block
            if rest:
                yield rest

    def _open_text(self) -> io.TextIOWrapper:
        encoding = self.encoding or self._find_encoding()
        if encoding == "utf-8":
            encoding = "utf-8-sig"
        return io.TextIOWrapper(self._open(), encoding=encoding, newline="\n")

    def _find_encoding(self) -> str:
        """Tell UTF-8 from Latin-1 by the first bytes that are not ASCII."""
        with self._open() as file:
            while block := file.read(1 << 20):
                if not block.isascii():
                    return "utf-8" if _is_utf8(block, is_cut=True) else "latin-1"
        return "utf-8"

    def _open(self) -> IO[bytes]:
        if self.stored.magic == ZSTD:
            raise RecordsError(
                "is compressed by zstd and has rows that cannot be read",
                where=self.path,
                fix="Decompress it, to see which rows these are",
            )
        return self.stored.open()


def _skip(stream: IO[str], n_lines: int) -> None:
    for _ in range(n_lines):
        stream.readline()


def open_delimited(
    stored: Stored, *, encoding: str | None = None, n_titles: int = 0
) -> DelimitedSource:
    """Open a text table; UTF-8, UTF-16 with a mark and Latin-1 are told without `encoding`.

    Its header stands below so many lines of titles.
    """
    path = stored.path
    head = _head(stored)
    bom = next((name for mark, name in _BOMS.items() if head.startswith(mark)), None)
    is_cut = len(head) >= _HEAD_BYTES
    found = encoding or bom or ("utf-8" if _is_utf8(head, is_cut=is_cut) else "latin-1")
    if not head.strip():
        raise empty(path)
    try:
        text = head.decode(found, "ignore").lstrip("\ufeff")
    except LookupError as error:
        raise InputError(f"there is no encoding {encoding!r}", fix=_ENCODING_FIX) from error
    _refuse_binary(text, stored)
    lines_of_head = io.StringIO(text, newline="\n")
    _skip(lines_of_head, n_titles)
    _, header = next(rows_of(lines_of_head), (0, ""))
    unquoted = "".join(header.split('"')[::2])
    separator = max(_SEPARATORS, key=unquoted.count)
    fields = fields_of(header, separator)
    if not header.strip() or not fields:
        raise EmptyError(
            "has no row of names that can be read",
            where=path,
            fix="Add a first line with the names, such as user,time,region",
        )
    if "\0" in header:
        raise RecordsError(CONTROL, where=f"{path}, line 1", fix="Correct the line")
    is_utf8 = found in {"utf-8", "utf-8-sig"}
    lines = text.count("\n")
    known_size = stored.member is None and not stored.magic.startswith((GZIP, ZSTD))
    return DelimitedSource(
        path=path,
        schema=dict.fromkeys(distinct_names(fields), pl.String()),
        about_rows=path.stat().st_size * lines // len(head) if known_size and lines else None,
        row_word="line",
        first_row=n_titles + max(header.count("\n"), 1) + 1,
        n_titles=n_titles,
        stored=stored,
        separator=separator,
        encoding=None if is_utf8 and encoding is None else found,
        by_polars=(
            stored.member is None
            and is_utf8
            and not n_titles
            and "\0" not in text
            and _n_columns_by_polars(header, separator) == len(fields)
        ),
        notes=() if is_utf8 else (f"{path.name} was read as {_ENCODING_NAMES.get(found, found)}",),
    )


# The lines before the records of a GeoLife or OziExplorer track.
_PLT_HEADER_LINES = 6


def open_plt(stored: Stored) -> FrameSource:
    """Open a GeoLife track: latitude, longitude, and the date and time of day in GMT."""
    names = ("lat", "lon", "flag", "altitude", "days", "date", "clock")
    frame = pl.scan_csv(
        stored.for_polars, has_header=False, skip_lines=_PLT_HEADER_LINES,
        schema=dict.fromkeys(names, pl.String()), encoding="utf8-lossy", glob=False,
    )  # fmt: skip
    time = pl.concat_str("date", pl.lit("T"), "clock", pl.lit("Z"))
    return FrameSource(
        path=stored.path,
        schema=dict.fromkeys(("lat", "lon", "time"), pl.String()),
        row_word="line",
        first_row=_PLT_HEADER_LINES + 1,
        frame=frame.select("lat", "lon", time=time),
    )


def _n_columns_by_polars(header: str, separator: str) -> int:
    try:
        line = header.rstrip("\r\n").encode("utf-8", "surrogatepass") + b"\n"
        return pl.read_csv(line, separator=separator, infer_schema=False).width
    except pl.exceptions.PolarsError:
        return 0


def _refuse_binary(text: str, stored: Stored) -> None:
    """Refuse what is no text, or text in an encoding that was not found out."""
    path = stored.path
    has_nuls = text.count("\0") > _FEW_NULS * len(text)
    if not has_nuls and sum(ord(char) in _CONTROLS for char in text) <= len(text) / 50:
        return
    problem, fix = "is no table of text", _ENCODING_FIX if has_nuls else _WHOLE_FIX
    packing = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())
    if packing is not None and not stored.magic.startswith((GZIP, ZSTD)):
        fix = _WHOLE_FIX
        problem = f"is not compressed by {packing}, as its extension says, and is no table of text"
    raise RecordsError(problem, where=path, fix=fix)


def _head(stored: Stored) -> bytes:
    """Return the first lines; those that zstd packed can be read by polars alone."""
    if stored.magic != ZSTD:
        with stored.open() as file:
            # The line that goes over their end is read whole: it may be the header.
            return file.read(_HEAD_BYTES) + file.readline(_LONGEST_LINE)
    with readable(stored.path):
        lines = (
            pl.scan_csv(
                stored.path, has_header=False, separator="\x1f", quote_char=None,
                infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy", glob=False,
            )
            .head(20)
            .collect()
            .to_series()
        )  # fmt: skip
    return "\n".join(lines.fill_null("").to_list()).encode()


def _is_utf8(head: bytes, *, is_cut: bool) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The last character may be cut in two.
        return is_cut and error.start >= len(head) - 3 and error.reason == "unexpected end of data"
    return True
