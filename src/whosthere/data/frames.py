"""Tables in memory: of polars, and of every library that hands its columns over as Arrow does."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import polars as pl

from whosthere.errors import MissingExtraError, RecordsError, quote

if TYPE_CHECKING:
    from typing_extensions import TypeIs

FRAME = Path("the frame")
"""What messages call a table in memory."""


class ArrowFrame(Protocol):
    """A table of pandas, GeoPandas, pyarrow, DuckDB or others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand over the columns."""


Frame: TypeAlias = pl.DataFrame | pl.LazyFrame | ArrowFrame
AnyPath: TypeAlias = str | PathLike[str]
_CODED = (pl.Categorical, pl.Enum)


def is_frame(what: object) -> TypeIs[Frame]:
    """Tell whether something is a table in memory."""
    return isinstance(what, pl.LazyFrame) or hasattr(what, "__arrow_c_stream__")


def place_of(table: AnyPath | Frame) -> Path:
    """Return what messages call a table: its file, or `FRAME`."""
    return FRAME if is_frame(table) else Path(table)


def as_lazy(frame: Frame) -> pl.LazyFrame:
    """Return a table as polars has it, with categories as text.

    The named levels of an index of pandas are columns, too.
    """
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        lazy = frame.lazy()
    else:
        try:
            lazy = pl.Series(frame).struct.unnest().lazy()
        except ImportError as error:
            raise MissingExtraError("Reading a frame of pandas", "pandas") from error
        except (TypeError, ValueError, NotImplementedError, pl.exceptions.PolarsError) as error:
            # Nothing else of what was said is shown: it may quote somebody's id.
            found = re.search(r"for column (.+) with type", str(error))
            column = "a column" if found is None else f"column {quote(found[1])}"
            raise RecordsError(
                f"{column} cannot be read",
                where=FRAME,
                fix="Give each column a name of its own and values of one type, such as text, and "
                "datetimes a zone with a name, such as Asia/Kolkata",
            ) from None
    coded = [name for name, kind in lazy.collect_schema().items() if isinstance(kind, _CODED)]
    return lazy.with_columns(pl.col(coded).cast(pl.String)) if coded else lazy
