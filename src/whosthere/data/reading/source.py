"""What every origin of rows has in common: a file, part of an archive, or a query."""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from whosthere.errors import EmptyError, RecordsError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

BATCH_ROWS = 1_000_000
RAGGED = "whosthere ragged"
"""A column of text that a batch may have besides: what is wrong with a row as such, or null."""
CONTROL = "has a control character (NUL)"
"""What `RAGGED` says of a row that no program should have written."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(ABC):
    """Rows of one origin, not read yet.

    Attributes
    ----------
    path
        The file, as messages name it.
    schema
        The type of each column. All columns of a CSV file are text.
    rows
        How many rows there are, where that is known without reading them.
    about_rows
        A guess of the same, for estimates of time.
    row_word, first_row
        How a message counts rows: "line" 2 is the first record of a CSV file.
    notes
        What the user should know of how it is read.
    points
        The column that holds points, where the file itself says so.
    """

    path: Path
    schema: Mapping[str, pl.DataType]
    rows: int | None = None
    about_rows: int | None = None
    row_word: str = "row"
    first_row: int = 1
    notes: tuple[str, ...] = field(default=())
    points: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema)

    def place(self, index: int) -> str:
        """Name the row at an index, counted from 0, as the user would find it."""
        return f"{self.path}, {self.row_word} {index + self.first_row:,}"

    @abstractmethod
    def batches(self, chosen: Sequence[pl.Expr], rows: int = BATCH_ROWS) -> Iterator[pl.DataFrame]:
        """Read expressions over the columns, in order, about `rows` rows at a time.

        A batch may have the column `RAGGED` besides.
        """

    @abstractmethod
    def head(self, n: int) -> pl.DataFrame:
        """Read all columns of the first `n` rows."""

    @abstractmethod
    def whole(self) -> pl.DataFrame:
        """Read all columns of all rows."""

    @abstractmethod
    def count(self) -> int:
        """Count the rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FrameSource(Source):
    """Rows that polars reads by itself."""

    frame: pl.LazyFrame

    def batches(self, chosen: Sequence[pl.Expr], rows: int = BATCH_ROWS) -> Iterator[pl.DataFrame]:
        with readable(self.path):
            yield from self.frame.select(chosen).collect_batches(
                chunk_size=rows, maintain_order=True, engine="streaming"
            )

    def head(self, n: int) -> pl.DataFrame:
        with readable(self.path):
            return self.frame.head(n).collect()

    def whole(self) -> pl.DataFrame:
        with readable(self.path):
            return self.frame.collect()

    def count(self) -> int:
        if self.rows is not None:
            return self.rows
        with readable(self.path):
            return int(self.frame.select(pl.len()).collect(engine="streaming").item())


def column(name: str) -> pl.Expr:
    """Refer to a column by its name, also one that polars takes for a pattern."""
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        return pl.col(f"^{re.escape(name)}$")
    return pl.col(name)


def empty(path: Path) -> EmptyError:
    """Say that a file holds nothing."""
    return EmptyError("is empty", where=path, fix="Check that it is the right file, copied whole")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what polars says about a file it cannot read into a message for the user."""
    try:
        yield
    except pl.exceptions.NoDataError as error:
        raise empty(path) from error
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        EOFError,
        UnicodeError,
        csv.Error,
        zlib.error,
        zipfile.BadZipFile,
    ) as error:
        said = str(error).strip()
        reason = shown(said.splitlines()[0].rstrip(".")) if said else "damaged"
        raise RecordsError(
            f"cannot be read ({reason})", where=path, fix="Is the file whole and its ending right?"
        ) from error
