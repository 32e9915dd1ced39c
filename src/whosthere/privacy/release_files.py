"""Files of a release: a row for each cell, and a description of what they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.data.files import (
    for_sheets,
    from_sheets,
    new_file,
    read_metadata,
    read_table,
    write_table,
)
from whosthere.data.reading.times import to_utc_micros
from whosthere.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

KIND = "release"
AGAIN = "Write or copy it again"
"""What helps where a file is damaged."""
_ENDINGS = "Use .parquet or .csv"


def write_counts(table: pl.DataFrame, about: dict[str, Any], path: Path, *, force: bool) -> None:
    """Write rows and their description, as Parquet or CSV by the path's ending."""
    if path.suffix == ".parquet":
        write_table(table, path, kind=KIND, metadata=about, force=force, public=True)
    elif path.suffix == ".csv":
        head = json.dumps({"kind": KIND, **about}, indent=1, allow_nan=False)
        # Both are whole before either takes its place: they belong together.
        with (
            new_file(path, force=force, public=True) as new_counts,
            new_file(description_path(path), force=force, public=True) as new_description,
        ):
            new_description.write_text(head, encoding="utf-8")
            table = table.with_columns(for_sheets(table["region"]))
            table.write_csv(new_counts, datetime_format="%Y-%m-%dT%H:%M:%S%:z")
    else:
        raise FileError("has an unknown extension", where=path, fix=_ENDINGS)


def read_counts(path: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Read what `write_counts` wrote."""
    if path.suffix == ".parquet":
        return read_table(path, kind=KIND)
    if path.suffix == ".csv":
        head = _read_description(path)
        return _read_csv(path), head
    raise FileError("has an unknown extension", where=path, fix=_ENDINGS)


def is_release(path: Path) -> bool:
    """Tell whether a file is a release of ours, and not another program's table."""
    if path.suffix == ".parquet":
        return (read_metadata(path) or {}).get("kind") == KIND
    return path.is_file() and description_path(path).exists()


def description_path(path: Path) -> Path:
    """Return where the description of a release as CSV is kept."""
    return path.with_name(f"{path.name}-metadata.json")


def _read_description(path: Path) -> dict[str, Any]:
    described = description_path(path)
    if not described.exists():
        raise FileError(
            f"has no description beside it ({described.name})",
            where=path,
            fix="Read other programs' tables with `whosthere import`",
        )
    try:
        head: dict[str, Any] = json.loads(described.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError("is not readable JSON", where=described, fix=AGAIN) from error
    if not isinstance(head, dict):
        raise FileError("does not describe a release", where=described, fix=AGAIN)
    return head


def _read_csv(path: Path) -> pl.DataFrame:
    schema = {"region": pl.String, "epoch_start": pl.String, "count": pl.Int32}
    try:
        table = pl.read_csv(path, schema_overrides={**schema, "withheld": pl.Boolean})
        kept = [*schema, *(["withheld"] if "withheld" in table.columns else [])]
        times = to_utc_micros(table["epoch_start"], None).cast(pl.Datetime("us", "UTC"))
        regions = from_sheets(table["region"])
        return table.select(kept).with_columns(regions, times.alias("epoch_start"))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileError("cannot be read as a release", where=path, fix=AGAIN) from error
