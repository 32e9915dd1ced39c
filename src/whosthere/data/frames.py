"""Tables in memory: of polars, and of every library that hands its columns over as Arrow does."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import polars as pl

from whosthere.errors import InputError, MissingExtraError, RecordsError, quote

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions

FRAME = Path("the frame")
"""What messages call a table in memory."""


class ArrowFrame(Protocol):
    """A table of pandas, GeoPandas, pyarrow, DuckDB or others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand over the columns."""


Frame: TypeAlias = pl.DataFrame | pl.LazyFrame | ArrowFrame
AnyPath: TypeAlias = str | PathLike[str]
_CODED = (pl.Categorical, pl.Enum)
_ROWS = "Give rows as `to_frame` returns them"


def is_frame(what: object) -> TypeIs[Frame]:
    """Tell whether something is a table in memory."""
    return isinstance(what, pl.LazyFrame) or hasattr(what, "__arrow_c_stream__")


def path_of(given: AnyPath | Frame) -> Path:
    """Return where a file is, or refuse a frame in its place."""
    if is_frame(given):
        fix = "Give one frame alone: join several into one, as with `polars.concat`"
        raise InputError("a frame is given where a file is meant", fix=fix)
    return place_of(given)


def place_of(table: AnyPath | Frame) -> Path:
    """Return what messages call a table: its file, or `FRAME`; refuse what is neither."""
    try:
        return FRAME if is_frame(table) else Path(table)
    except TypeError:
        problem = f"a {type(table).__name__} is no table"
        raise InputError(problem, fix="Give a path, or a frame of polars or pandas") from None


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
                fix="Leave it out, or give it a name of its own, values of one type such as text, "
                "and datetimes a zone with a name, such as Asia/Kolkata",
            ) from None
    coded = [name for name, kind in lazy.collect_schema().items() if isinstance(kind, _CODED)]
    return lazy.with_columns(pl.col(coded).cast(pl.String)) if coded else lazy


def rows_of_cells(cells: pl.Series, regions: Regions, epochs: Epochs) -> pl.DataFrame:
    """Return the region and epoch_start (in the local zone) of cells, null where there is none."""
    starts = pl.Series(epochs.starts).dt.replace_time_zone("UTC")
    local = starts.dt.convert_time_zone(epochs.timezone)
    ids = pl.Series(regions.ids, dtype=pl.String)
    epoch = (cells % epochs.n).cast(pl.Int64)
    return pl.DataFrame(
        {"region": ids.gather(cells // epochs.n), "epoch_start": local.gather(epoch)}
    )


def with_cells(frame: Frame, about: str, regions: Regions, epochs: Epochs) -> pl.DataFrame:
    """Return rows and, in the column cell, the cell of which `rows_of_cells` made their places.

    There must be a column of what they are `about`. A place that is not known is refused.
    """
    rows = as_lazy(frame).collect()
    for name in (about, "region", "epoch_start"):
        if name not in rows.columns:
            raise InputError(f"there is no column {name}", fix=_ROWS)
    times = rows["epoch_start"]
    if not isinstance(times.dtype, pl.Datetime) or times.dtype.time_zone is None:
        raise InputError("epoch_start does not hold datetimes with a zone", fix=_ROWS)
    known = pl.Series(epochs.starts).dt.replace_time_zone("UTC").dt.timestamp("us")
    order = pl.int_range(epochs.n, dtype=pl.Int32, eager=True)
    epoch = times.dt.timestamp("us").replace_strict(known, order, default=None)
    numbers = pl.int_range(len(regions), dtype=pl.Int32, eager=True)
    ids = pl.Series(regions.ids, dtype=pl.String)
    region = rows["region"].cast(pl.String).replace_strict(ids, numbers, default=None)
    cells = region * epochs.n + epoch
    strange = cells.is_null() & ~(rows["region"].is_null() & times.is_null())
    if strange.any():
        raise InputError(f"row {strange.arg_max()} is of none of the regions and epochs")
    return rows.with_columns(cell=cells)
