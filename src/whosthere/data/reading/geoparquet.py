"""Points in Parquet files: well-known binary (WKB), as GeoParquet and PostGIS write it."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.errors import RecordsError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_POINT = 1
_HAS_SRID, _FLAGS = 0x20000000, 0xE0000000
_WGS84 = {("EPSG", "4326"), ("OGC", "CRS84"), ("OGC", "CRS84h"), ("EPSG", "4979")}


def point_column(origin: Path | IO[bytes], path: Path) -> str | None:
    """Return the column of a Parquet file that its own description calls the geometry.

    Coordinates of another system than WGS 84 are refused.
    """
    try:
        described = json.loads(pl.read_parquet_metadata(origin)["geo"])
        name = str(described["primary_column"])
        crs = described["columns"][name].get("crs")
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    if crs is None:
        return name
    known = crs.get("id", {}) if isinstance(crs, dict) else {}
    if (known.get("authority"), str(known.get("code"))) not in _WGS84:
        found = crs.get("name", "not named") if isinstance(crs, dict) else crs
        raise RecordsError(
            f"the coordinates of column {name!r} are not longitudes and latitudes ({found})",
            where=path,
            fix="Convert them to WGS 84 (EPSG:4326)",
        )
    return name


def points_of(column: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitudes and latitudes of points in WKB; NaN where there is none.

    Points may have heights and the number of a system, which are left out.
    """
    lon = np.full(len(column), np.nan)
    lat = np.full(len(column), np.nan)
    sizes = column.bin.size().fill_null(0).to_numpy()
    for size in np.unique(sizes):
        if size < 21:
            continue
        rows = np.flatnonzero(sizes == size)
        raw = np.frombuffer(b"".join(column.gather(rows).to_list()), np.uint8)
        table = raw.reshape(rows.size, int(size))
        for order, dtype in ((1, "<"), (0, ">")):
            ours = table[:, 0] == order
            if ours.any():
                lon[rows[ours]], lat[rows[ours]] = _coordinates(table[ours], dtype)
    return lon, lat


def _coordinates(
    table: NDArray[np.uint8], order: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    kind = np.ascontiguousarray(table[:, 1:5]).view(f"{order}u4")[:, 0]
    lon, lat = np.full(kind.size, np.nan), np.full(kind.size, np.nan)
    has_srid = (kind & _HAS_SRID) != 0
    # ISO adds 1000, 2000 or 3000 for heights and measures; PostGIS sets flags.
    is_point = (kind & ~np.uint32(_FLAGS)) % 1000 == _POINT
    for srid in (False, True):
        begin = 9 if srid else 5
        rows = np.flatnonzero(is_point & (has_srid == srid))
        if rows.size and table.shape[1] >= begin + 16:
            both = np.ascontiguousarray(table[rows, begin : begin + 16]).view(f"{order}f8")
            lon[rows], lat[rows] = both[:, 0], both[:, 1]
    return lon, lat
