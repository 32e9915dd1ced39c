"""What is known of a target, as a file: one visit or place per row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl

from whosthere.adversary.suspects import Guess, Known, Places, check_guess, visits_of_one
from whosthere.data.cells import cell_at, region_and_epoch
from whosthere.data.files import for_sheets, new_file
from whosthere.data.reading.columns import Columns, joined_ids, parts_of
from whosthere.data.reading.opening import read_single
from whosthere.data.reading.times import to_utc_micros
from whosthere.errors import FileError, InputError, RecordsError, quote

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import NDArray

    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions


def read_target(
    path: str | os.PathLike[str], regions: Regions, epochs: Epochs, *, guess: str = "greedy"
) -> Known:
    """Read what is known of a target, for a release over the given regions and epochs.

    Parameters
    ----------
    path
        A row holds a region and either a time (``timestamp`` and its usual names) or the number of
        an epoch, from 0 (``epoch``). Without a column of times only the regions are known, in the
        order of the rows.
    regions, epochs
        Those of the release.
    guess
        What is made of regions without times; see `Places`.
    """
    path = Path(path)
    check_guess(guess)
    table = read_single(path)
    try:
        if not table.height:
            raise InputError("has no rows", fix="Give at least one region or visit")
        _refuse_several_people(table)
        name = Columns().require("region", table.columns)
        region = joined_ids(parts_of(name, table.columns), table.schema)
        rows = _region_rows(table.select(region).to_series(), regions)
        epoch = _epochs(table, epochs)
        if epoch is None:
            return Places.of_one(list(dict.fromkeys(rows.tolist())), cast("Guess", guess))
        return visits_of_one(cell_at(rows, epoch, epochs.n), regions, epochs)
    except InputError as error:
        raise RecordsError(error.problem, where=path, fix=error.fix) from error


def write_target(
    knowledge: Known,
    path: str | os.PathLike[str],
    regions: Regions,
    epochs: Epochs,
    *,
    force: bool = False,
) -> None:
    """Write what is known of a target as CSV, for `read_target` to read.

    Parameters
    ----------
    knowledge
        What is known.
    path
        A file whose name ends in ``.csv``.
    regions, epochs
        Those of the release or the traces that it is about.
    force
        Whether to replace a file.
    """
    path = Path(path)
    if path.suffix != ".csv":
        raise FileError("has an unknown extension", where=path, fix="Use .csv")
    if isinstance(knowledge, Places):
        region, times = knowledge.regions, {}
    else:
        region, epoch = region_and_epoch(knowledge.cells, epochs.n)
        starts = pl.Series(epochs.starts[epoch]).dt.replace_time_zone("UTC")
        times = {"timestamp": starts.dt.convert_time_zone(epochs.timezone)}
    names = for_sheets(pl.Series([regions.ids[row] for row in region], dtype=pl.String))
    table = pl.DataFrame({"region": names, **times})
    with new_file(path, force=force) as temporary:
        table.write_csv(temporary, datetime_format="%Y-%m-%dT%H:%M:%S%:z")


def _refuse_several_people(table: pl.DataFrame) -> None:
    """Refuse records of many people, whose visits would pass for those of one."""
    try:
        name = Columns().find("user", table.columns)
    except RecordsError as error:
        fix = "Keep the rows of one person, and leave these columns out"
        raise InputError(error.problem, fix=fix) from error
    n = 0 if name is None else table[name].n_unique()
    if n > 1:
        raise InputError(
            f"holds visits of {n:,} people by its column {quote(str(name))}, and a target is one",
            fix="Keep the rows of one person, or remove the column if it does not name people",
        )


def _region_rows(column: pl.Series, regions: Regions) -> NDArray[np.int64]:
    rows = column.cast(pl.String).replace_strict(regions.index, default=None, return_dtype=pl.Int64)
    if rows.null_count():
        row = rows.is_null().arg_max() or 0
        raise InputError(
            f"row {row + 1}: region {column[row]!r} is not in the release",
            fix="Use the release's own region ids",
        )
    return rows.to_numpy()


def _epochs(table: pl.DataFrame, epochs: Epochs) -> NDArray[np.int64] | None:
    """Return the number of the epoch of each row, None where there is no column of times."""
    if "epoch" in table.columns:
        number = table["epoch"].cast(pl.Int64, strict=False)
        inside = number.is_between(0, epochs.n - 1).fill_null(value=False)
        found, index = table["epoch"], number.fill_null(0).to_numpy()
    else:
        name = Columns().find("time", table.columns)
        if name is None:
            return None
        micros = to_utc_micros(table[name], epochs.timezone)
        found, index = table[name], epochs.index_of(micros.fill_null(-1).to_numpy()).astype(int)
        inside = pl.Series(index >= 0) & micros.is_not_null()
    if not inside.all():
        row = (~inside).arg_max() or 0
        raise InputError(
            f"row {row + 1}: {found[row]!r} lies in none of the {epochs}",
            fix="Leave out visits outside the release's time",
        )
    return index
