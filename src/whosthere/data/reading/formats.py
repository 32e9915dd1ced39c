"""Tables that others read: NDJSON and Parquet by polars, workbooks by fastexcel; and GeoJSON.

And frames in memory. Points are well-known binary (WKB), as GeoParquet and PostGIS write it.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from whosthere.data.frames import FRAME, Frame, as_lazy
from whosthere.data.reading.source import (
    FrameSource,
    Stored,
    distinct_names,
    empty,
    naming,
    readable,
)
from whosthere.data.reading.workbooks import refuse_stray_cells
from whosthere.errors import EmptyError, InputError, RecordsError, optional, quote, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def open_ndjson(stored: Stored) -> FrameSource:
    """Open a table of JSON objects, one a line."""
    try:
        frame = pl.scan_ndjson(stored.for_polars, infer_schema_length=10_000)
        schema = frame.collect_schema()
    except pl.exceptions.ComputeError as error:
        raise RecordsError(
            "is not a table of JSON objects, one a line",
            where=_first_bad_line(stored),
            fix="Correct the line",
        ) from error
    return FrameSource(path=stored.path, schema=schema, row_word="line", frame=frame)


def _first_bad_line(stored: Stored) -> str:
    with stored.open() as lines:
        for number, line in enumerate(lines, start=1):
            with suppress(ValueError, RecursionError):
                if not line.strip() or isinstance(json.loads(line), dict):
                    continue
            return f"{stored.path}, line {number:,}"
    return str(stored.path)


def open_parquet(stored: Stored) -> FrameSource:
    """Open a Parquet file."""
    path, origin = stored.path, stored.for_polars
    frame = pl.scan_parquet(origin, glob=False, hive_partitioning=False)
    schema = _schema(frame, path)
    rows = frame.select(pl.len()).collect().item()
    points = point_column(origin, path) if pl.Binary in schema.values() else None
    return FrameSource(path=path, schema=schema, rows=rows, frame=frame, points=points)


# Where this is set, polars does not panic at a time zone that it does not know.
_ANY_ZONE = "POLARS_IGNORE_TIMEZONE_PARSE_ERROR"


def _schema(frame: pl.LazyFrame, path: Path) -> pl.Schema:
    """Return the columns of a file, refusing datetimes in a time zone without a known name."""
    before = os.environ.get(_ANY_ZONE, "")
    os.environ[_ANY_ZONE] = "1"
    try:
        schema = frame.collect_schema()
    finally:
        os.environ[_ANY_ZONE] = before
    for name, kind in schema.items():
        try:
            pl.Series([], dtype=kind)
        except pl.exceptions.ComputeError as error:
            raise RecordsError(
                f"column {quote(name)} holds {kind}: no time zone is known by this name",
                where=path,
                fix="Write the times in UTC, or in a zone with a name such as Asia/Kolkata",
            ) from error
    return schema


def open_frame(frame: Frame) -> FrameSource:
    """Open a table in memory, whose rows are counted from 0.

    The points of a GeoDataFrame, and of what is made of one, become longitudes and latitudes.
    """
    given: Any = frame
    points, notes = None, []
    if hasattr(frame, "active_geometry_name"):
        points = given.active_geometry_name
        crs = None if points is None else given.crs
        if crs is not None and not crs.equals("EPSG:4326", ignore_axis_order=True):
            given = given.to_crs(4326)
            notes.append(f"the points of {FRAME} were converted from {crs.name} to WGS 84")
        frame = given.to_wkb()
    with readable(FRAME):
        lazy = as_lazy(frame)
    rows = frame.height if isinstance(frame, pl.DataFrame) else None
    return FrameSource(
        path=FRAME,
        schema=lazy.collect_schema(),
        rows=rows,
        first_row=0,
        notes=tuple(notes),
        points=points,
        frame=lazy,
    )


def open_workbook(stored: Stored, *, sheet: str | None = None, header_row: int = 1) -> FrameSource:
    """Read a sheet of a workbook, XLSX or ODS, the first by default, all its cells as text.

    Needs the `sheets` extra. The sheet is read whole. A row names the columns, and the rows above
    it are titles.
    """
    fastexcel = optional("fastexcel", "Reading workbooks", "sheets")
    path = stored.path
    try:
        written = stored.read()
        with naming(path):
            refuse_stray_cells(written)
        book = fastexcel.read_excel(written)
        names = book.sheet_names
        number = 0 if sheet is None else _sheet_number(sheet, names)
        cells = pl.DataFrame(
            book.load_sheet(
                number, header_row=None, skip_rows=0, dtypes="string", whitespace_as_null=True
            )
        )
    except (
        *(fastexcel.FastExcelError, pl.exceptions.PolarsError, OSError, ValueError),
        *(zipfile.BadZipFile, zlib.error, EOFError, RuntimeError),
    ) as error:
        if isinstance(error, InputError):
            raise
        raise RecordsError(
            "is no workbook that can be read", where=path, fix="Save the table as CSV"
        ) from error
    if not cells.width:
        raise empty(path)
    if cells.height < header_row:
        raise EmptyError(f"has fewer than {header_row} rows", where=path)
    # Dates are times at midnight, and times of day are those of a day before all others.
    cells = cells.with_columns(
        pl.all()
        .str.replace(r"^1899-12-3[01] (\d{2}:\d{2}:\d{2})", "$1")
        .str.replace(r"^(\d{4}-\d{2}-\d{2}) 00:00:00$", "$1")
    )
    header, table = cells.row(header_row - 1), cells.slice(header_row)
    used = [i for i, name in enumerate(header) if name or table[:, i].null_count() < table.height]
    named = distinct_names([header[i] or "" for i in used])
    table = table[:, used].rename(dict(zip(table[:, used].columns, named, strict=True)))
    several = len(names) > 1 and sheet is None
    return FrameSource(
        path=path,
        schema=table.schema,
        rows=table.height,
        first_row=header_row + 1,
        notes=(f"of {path.name} the first of {len(names)} sheets",) if several else (),
        frame=table.lazy(),
    )


def _sheet_number(sheet: str, names: list[str]) -> int:
    """Return which sheet is meant by its name, or by its number from 1."""
    if sheet in names:
        return names.index(sheet)
    if sheet.isdecimal() and 1 <= int(sheet) <= len(names):
        return int(sheet) - 1
    raise RecordsError(f"has no sheet {quote(sheet)}", fix=suggestion(sheet, names))


_SCALARS = (str, int, float, bool)


def open_geojson(stored: Stored) -> FrameSource:
    """Read a GeoJSON file of points; the format cannot be read in pieces, so all at once.

    The columns are the features' properties, or all that stands in a feature without any; the
    point is the geometry, or else the first Point among these, such as ``geomPoint.geom``.
    """
    path = stored.path
    features = enumerate(geojson_features(stored), start=1)
    rows = [_row(feature, f"{path}, feature {number:,}") for number, feature in features]
    names = dict.fromkeys(name for row in rows for name in row)
    table = pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)
    return FrameSource(
        path=path, schema=table.schema, rows=table.height, row_word="feature", frame=table.lazy()
    )


def geojson_features(stored: Stored) -> list[dict[str, Any]]:
    """Read the features of a GeoJSON FeatureCollection."""
    with readable(stored.path):
        written = stored.read()
    try:
        found = list(json.loads(written.decode("utf-8-sig"))["features"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordsError("is not a GeoJSON FeatureCollection", where=stored.path) from error
    if not found or not all(isinstance(feature, dict) for feature in found):
        raise EmptyError("has no features", where=stored.path)
    return found


def _row(feature: dict[str, Any], where: str) -> dict[str, Any]:
    properties = feature.get("properties")
    if not isinstance(properties, dict) or not properties:
        properties = {name: value for name, value in feature.items() if name != "type"}
    geometry = feature.get("geometry")
    if not isinstance(geometry, dict):
        geometry = next(_points_in(properties), None)
    row = {name: value for name, value in properties.items() if isinstance(value, _SCALARS)}
    for name, value in row.items():
        if isinstance(value, int) and value.bit_length() > 63:
            row[name] = str(value)
    return {**row, **_point(geometry, where)}


def _points_in(values: dict[str, Any], depth: int = 2) -> Iterator[dict[str, Any]]:
    for value in values.values():
        if isinstance(value, dict) and value.get("type") == "Point":
            yield value
        elif isinstance(value, dict) and depth:
            yield from _points_in(value, depth - 1)


def _point(geometry: dict[str, Any] | None, where: str) -> dict[str, float]:
    found = "missing geometry" if geometry is None else str(geometry.get("type"))[:40]
    if geometry is None or found != "Point":
        raise RecordsError(f"a {found} where a Point was expected", where=where)
    try:
        lon, lat = map(float, geometry["coordinates"][:2])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordsError(
            "a Point without longitude and latitude", where=where, fix="Write it like [9.19, 45.46]"
        ) from error
    return {"lon": lon, "lat": lat}


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
