"""What every origin of rows has in common: a file, part of an archive, or a query."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, TYPE_CHECKING

import polars as pl

from whosthere.data.frames import FRAME
from whosthere.errors import EmptyError, InputError, RecordsError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

BATCH_ROWS = 1_000_000
RAGGED = "whosthere ragged"
"""A column of text that a batch may have besides: what is wrong with a row as such, or null."""
CONTROL = "has a control character (NUL)"
"""What `RAGGED` says of a row that no program should have written."""
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Stored:
    """The bytes of a table: of the file at `path`, or of the member of an archive there."""

    path: Path
    member: Callable[[], IO[bytes]] | None = None

    def open(self) -> IO[bytes]:
        """Open the bytes, those that gzip packed unpacked."""
        if self.magic.startswith(GZIP):
            packed = self.path if self.member is None else self.member()
            return gzip.open(packed, "rb")  # type: ignore[return-value]
        return self._packed()

    def read(self) -> bytes:
        """Read all bytes, unpacked."""
        with self.open() as file:
            return file.read()

    @cached_property
    def magic(self) -> bytes:
        """The first bytes as they are stored, which tell how they are packed."""
        with self._packed() as file:
            return file.read(4)

    @property
    def for_polars(self) -> Path | io.BytesIO:
        """The file, or the member of an archive in memory."""
        return self.path if self.member is None else io.BytesIO(self.read())

    @property
    def has_open_end(self) -> bool:
        """Whether the last line of a text has no line end, if that can be told without reading."""
        if self.member is not None or self.magic.startswith((GZIP, ZSTD)):
            return False
        with self._packed() as file:
            # Two bytes: each character of UTF-16 has as many.
            file.seek(-min(2, self.path.stat().st_size), io.SEEK_END)
            return not set(file.read()) & set(b"\r\n")

    def _packed(self) -> IO[bytes]:
        return self.path.open("rb") if self.member is None else self.member()


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(ABC):
    """Rows of one origin, not read yet."""

    path: Path
    """The file, as messages name it."""
    schema: Mapping[str, pl.DataType]
    rows: int | None = None
    about_rows: int | None = None
    """How many rows there are, or a guess, as far as that is known without reading them."""
    row_word: str = "row"
    first_row: int = 1
    """How a message counts rows: "line" 2 is the first record of a CSV file."""
    notes: tuple[str, ...] = ()
    """What the user should know of how it is read."""
    points: str | None = None
    """The column that holds points, where the file itself says so."""
    constants: Mapping[str, str | None] = field(default_factory=dict)
    """Columns that the file itself does not have, each with its one value."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema)

    @property
    def literals(self) -> list[pl.Expr]:
        """The constants, as columns to add."""
        return [pl.lit(value, pl.String).alias(name) for name, value in self.constants.items()]

    def place(self, index: int) -> str:
        """Name the row at an index, counted from 0, as the user would find it."""
        return f"{self.path}, {self.row_word} {index + self.first_row:,}"

    @abstractmethod
    def batches(self, chosen: Sequence[pl.Expr]) -> Iterator[pl.DataFrame]:
        """Read expressions over the columns, in order, about `BATCH_ROWS` rows at a time.

        A batch may have the column `RAGGED` besides.
        """

    @abstractmethod
    def head(self, n: int) -> pl.DataFrame:
        """Read all columns of the first `n` rows."""

    def whole(self) -> pl.DataFrame:
        """Read all columns of all rows, refusing rows that could not be split into fields."""
        done, frames = 0, [pl.DataFrame(schema=dict(self.schema))]
        for frame in self.batches([column(name) for name in self.columns]):
            if RAGGED in frame.columns and frame[RAGGED].null_count() < frame.height:
                index = frame[RAGGED].is_not_null().arg_max() or 0
                raise RecordsError(
                    frame[RAGGED][index], where=self.place(done + index), fix="Correct the line"
                )
            frames.append(frame.select(column(name) for name in self.columns))
            done += frame.height
        return pl.concat(frames)

    def count(self) -> int:
        """Count the rows."""
        if self.rows is not None:
            return self.rows
        return sum(frame.height for frame in self.batches([column(self.columns[0])]))


@dataclass(frozen=True, eq=False, kw_only=True)
class FrameSource(Source):
    """Rows that polars reads by itself."""

    frame: pl.LazyFrame

    def batches(self, chosen: Sequence[pl.Expr]) -> Iterator[pl.DataFrame]:
        with readable(self.path):
            yield from (
                self.frame.with_columns(self.literals)
                .select(chosen)
                .collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming")
            )

    def head(self, n: int) -> pl.DataFrame:
        with readable(self.path):
            return self.frame.with_columns(self.literals).head(n).collect()


def column(name: str) -> pl.Expr:
    """Refer to a column by its name, also one that polars takes for a pattern."""
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        return pl.col(f"^{re.escape(name)}$")
    return pl.col(name)


def distinct_names(header: Sequence[str]) -> list[str]:
    """Return the names of a header; those that stand there several times, with their place."""
    times = Counter(header)
    return [
        f"{name} (column {place})" if times[name] > 1 else name
        for place, name in enumerate(header, start=1)
    ]


def name_in_file(name: str) -> str:
    """Return what the file itself calls a column that `distinct_names` named."""
    return re.sub(r" \(column \d+\)$", "", name)


def empty(path: Path) -> EmptyError:
    """Say that a file holds nothing."""
    return EmptyError("is empty", where=path, fix="Check that it is the right file, copied whole")


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Name the file or column in messages about it that name none."""
    try:
        yield
    except InputError as error:
        if error.where is not None:
            raise
        raise RecordsError(error.problem, where=where, fix=error.fix) from error


@contextmanager
def skipping(skipped: list[InputError] | None) -> Iterator[None]:
    """Note what is wrong with a file and go on without it, if there is a list to note it in."""
    try:
        yield
    except InputError as error:
        if skipped is None:
            raise
        skipped.append(error)


_UNREADABLE = (
    *(pl.exceptions.PolarsError, OSError, EOFError, ValueError, RuntimeError),
    *(zlib.error, zipfile.BadZipFile),
)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what polars says about a file it cannot read into a message for the user."""
    try:
        yield
    except InputError:
        raise
    except pl.exceptions.NoDataError as error:
        raise empty(path) from error
    except BaseException as error:
        # Each library in Rust has a panic of its own, which is no Exception.
        if not (isinstance(error, _UNREADABLE) or type(error).__name__ == "PanicException"):
            raise
        if path == FRAME:
            # What polars says of a query in the user's own code may quote somebody's id.
            problem = f"its query failed ({type(error).__name__})"
            raise RecordsError(problem, where=path, fix="Collect it first") from None
        said = str(error).strip() if isinstance(error, Exception) else ""
        reason = shown(said.splitlines()[0].rstrip(".")) if said else "damaged"
        raise RecordsError(
            f"cannot be read ({reason})",
            where=path,
            fix="Is the file whole and its extension right?",
        ) from error
