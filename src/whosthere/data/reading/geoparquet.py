"""Points in Parquet files: well-known binary (WKB), as GeoParquet and PostGIS write it."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from whosthere.errors import RecordsError

if TYPE_CHECKING:
    from pathlib import Path


_POINT = 1
_HAS_SRID, _NO_FLAGS = (pl.lit(bits, pl.UInt32) for bits in (0x20000000, 0x1FFFFFFF))
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


def points_of(column: pl.Series) -> pl.DataFrame:
    """Return longitudes and latitudes (lon, lat) of points in WKB; NaN where there is none.

    Points may have heights and the number of a system, which are left out.
    """
    wkb = pl.col("wkb").bin
    orders: tuple[tuple[bytes, Literal["little", "big"]], ...] = ((b"\1", "little"), (b"\0", "big"))
    either = []
    for mark, order in orders:
        kind = wkb.slice(1, 4).bin.reinterpret(dtype=pl.UInt32, endianness=order)
        # ISO adds 1000, 2000 or 3000 for heights and measures; PostGIS sets flags.
        is_point = (wkb.slice(0, 1) == mark) & ((kind & _NO_FLAGS) % 1000 == _POINT)
        begin = 5 + 4 * (kind & _HAS_SRID != 0).cast(pl.Int64)
        axes = [wkb.slice(begin + 8 * axis, 8) for axis in (0, 1)]
        either.append(
            [
                pl.when(is_point).then(axis.bin.reinterpret(dtype=pl.Float64, endianness=order))
                for axis in axes
            ]
        )
    lon, lat = (pl.coalesce(axis).fill_null(np.nan) for axis in zip(*either, strict=True))
    return column.to_frame("wkb").select(lon=lon, lat=lat)
