"""GeoJSON: points as rows, and the features of any map."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.data.reading.source import FrameSource, Stored
from whosthere.errors import EmptyError, RecordsError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    table = pl.DataFrame(
        {name: _column([row.get(name) for row in rows]) for name in names}, strict=False
    )
    return FrameSource(
        path=path, schema=table.schema, rows=table.height, row_word="feature", frame=table.lazy()
    )


def geojson_features(stored: Stored) -> list[dict[str, Any]]:
    """Read the features of a GeoJSON FeatureCollection."""
    try:
        found = list(json.loads(stored.read().decode("utf-8-sig"))["features"])
    except (
        *(ValueError, KeyError, TypeError, EOFError, RecursionError, OSError, zlib.error),
    ) as error:
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
    return {**row, **_point(geometry, where)}


def _points_in(values: dict[str, Any], depth: int = 2) -> Iterator[dict[str, Any]]:
    for value in values.values():
        if isinstance(value, dict) and value.get("type") == "Point":
            yield value
        elif isinstance(value, dict) and depth:
            yield from _points_in(value, depth - 1)


def _point(geometry: dict[str, Any] | None, where: str) -> dict[str, float]:
    if geometry is None:
        raise RecordsError("a missing geometry where a Point was expected", where=where)
    if geometry.get("type") != "Point":
        found = str(geometry.get("type"))
        raise RecordsError(f"a {found[:40]} where a Point was expected", where=where)
    coordinates = geometry.get("coordinates")
    if (
        not isinstance(coordinates, list)
        or len(coordinates) < 2
        or not all(isinstance(degrees, int | float) for degrees in coordinates[:2])
    ):
        raise RecordsError(
            "a Point without longitude and latitude", where=where, fix="Write it like [9.19, 45.46]"
        )
    return {"lon": float(coordinates[0]), "lat": float(coordinates[1])}


def _column(values: list[Any]) -> pl.Series:
    """Return values as a column of one type: as text where they differ in type."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool} or kinds <= {str} or kinds <= {int, float}:
        try:
            return pl.Series(values, strict=True) if kinds != {int, float} else pl.Series(
                values, dtype=pl.Float64, strict=False
            )  # fmt: skip
        except (pl.exceptions.PolarsError, OverflowError, TypeError):
            pass
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)
