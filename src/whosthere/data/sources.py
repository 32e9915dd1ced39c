"""Opening other programs' tables: CSV, NDJSON, GeoJSON points, Parquet, and folders of them."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.data.files import existing
from whosthere.errors import EmptyError, FileError, RecordsError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

BATCH_ROWS = 1_000_000
_SEPARATORS = ",;\t|"


@dataclass(frozen=True, eq=False)
class Source:
    """One file of rows, not read yet.

    Attributes
    ----------
    path
        The file.
    frame
        Its rows, lazily. All columns of a CSV file are text.
    rows
        How many there are, where that is known without reading them.
    columns
        The names of the columns.
    row_word, first_row
        How a message counts rows: "line" 2 is the first record of a CSV file.
    """

    path: Path
    frame: pl.LazyFrame
    rows: int | None
    columns: tuple[str, ...]
    row_word: str = "row"
    first_row: int = 1

    def place(self, index: int) -> str:
        """Name the row at an index, counted from 0, as the user would find it."""
        return f"{self.path}, {self.row_word} {index + self.first_row}"

    def batches(self, names: Mapping[str, str], rows: int = BATCH_ROWS) -> Iterator[pl.DataFrame]:
        """Read some columns, in order, a bounded number of rows at a time.

        `names` maps the name that each wanted column is to have to its name in the file.
        """
        chosen = self.frame.select(pl.col(name).alias(role) for role, name in names.items())
        with readable(self.path):
            yield from chosen.collect_batches(
                chunk_size=rows, maintain_order=True, engine="streaming"
            )


def open_sources(path: str | os.PathLike[str]) -> list[Source]:
    """Open a file, or every readable file of a folder and its subfolders in name order."""
    path = existing(Path(path))
    if not path.is_dir():
        return [_open(path)]
    files = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file() and _format(file) is not None and not file.name.startswith((".", "_"))
    ]
    if not files:
        raise FileError(
            "is a folder without files of records",
            where=path,
            fix=f"Expected endings: {', '.join(_OPENERS)}",
        )
    return [_open(file) for file in files]


def read_single(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a table that is one file, whole."""
    path = existing(Path(path))
    if path.is_dir():
        raise FileError("is a folder", where=path, fix="Name a file")
    source = _open(path)
    with readable(path):
        return source.frame.collect()


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what polars says about a file it cannot read into a message for the user."""
    try:
        yield
    except pl.exceptions.NoDataError as error:
        raise EmptyError("is empty", where=path) from error
    except (pl.exceptions.PolarsError, OSError, EOFError, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "damaged"
        raise RecordsError(
            f"cannot be read ({reason})", where=path, fix="Is the file whole and its ending right?"
        ) from error


def _format(path: Path) -> str | None:
    name = path.name.lower().removesuffix(".gz")
    return next((ending for ending in _OPENERS if name.endswith(ending)), None)


def _open(path: Path) -> Source:
    ending = _format(path)
    if ending is None:
        raise FileError(
            f"has an ending that is not known ({path.suffix or 'none'})",
            where=path,
            fix=f"Expected: {', '.join(_OPENERS)}",
        )
    with readable(path):
        if path.stat().st_size == 0:
            raise EmptyError("is empty", where=path)
        return _OPENERS[ending](path)


def _open_csv(path: Path) -> Source:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", errors="replace") as file:
        header = file.readline()
    separator = max(_SEPARATORS, key=header.count)
    frame = pl.scan_csv(path, separator=separator, infer_schema=False)
    return Source(path, frame, None, _names(frame), "line", 2)


def _open_ndjson(path: Path) -> Source:
    frame = pl.scan_ndjson(path, infer_schema_length=10_000)
    return Source(path, frame, None, _names(frame), "line")


def _open_parquet(path: Path) -> Source:
    frame = pl.scan_parquet(path)
    rows = frame.select(pl.len()).collect().item()
    return Source(path, frame, rows, _names(frame))


def _open_geojson(path: Path) -> Source:
    """Read a GeoJSON file of points; the format cannot be read in pieces, so all at once."""
    rows = [
        {**(feature.get("properties") or {}), **_point(feature, path, number)}
        for number, feature in enumerate(geojson_features(path), start=1)
    ]
    table = pl.from_dicts(rows, infer_schema_length=None)
    return Source(path, table.lazy(), table.height, tuple(table.columns), "feature")


def _point(feature: dict[str, Any], path: Path, number: int) -> dict[str, float]:
    geometry = feature.get("geometry") or {}
    if geometry.get("type") != "Point" or len(geometry.get("coordinates", ())) < 2:
        raise RecordsError(
            f"a {geometry.get('type', 'missing geometry')} where a Point was expected",
            where=f"{path}, feature {number}",
        )
    lon, lat = geometry["coordinates"][:2]
    return {"lon": lon, "lat": lat}


def geojson_features(path: Path) -> list[dict[str, Any]]:
    """Read the features of a GeoJSON FeatureCollection."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(existing(path), "rt", encoding="utf-8") as file:
            collection = json.load(file)
        features = collection["features"]
    except (ValueError, KeyError, TypeError) as error:
        raise RecordsError("is not a GeoJSON FeatureCollection", where=path) from error
    if not features or not all(isinstance(feature, dict) for feature in features):
        raise EmptyError("has no features", where=path)
    return list(features)


def _names(frame: pl.LazyFrame) -> tuple[str, ...]:
    return tuple(frame.collect_schema().names())


_OPENERS = {
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".ndjson": _open_ndjson,
    ".jsonl": _open_ndjson,
    ".geojson": _open_geojson,
    ".parquet": _open_parquet,
}
