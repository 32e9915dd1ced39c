"""Areas as regions: GeoJSON and GeoParquet, repaired where they cross themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from whosthere.data.files import existing
from whosthere.data.frames import is_frame, place_of
from whosthere.data.reading.extent import WORLD, Box, lon_lat
from whosthere.data.reading.formats import geojson_features, open_frame, open_parquet
from whosthere.data.reading.partition import NOWHERE, Locator, Partition
from whosthere.data.reading.source import Stored, naming, readable
from whosthere.data.regions import MOST_OUTLINES, Regions, refuse_position
from whosthere.errors import EmptyError, RecordsError, listed, optional

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.data.frames import AnyPath, Frame
    from whosthere.data.reading.source import Source

# What shapely makes of a geometry that is none.
_DAMAGES = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
_AREAS = {"Polygon", "MultiPolygon"}
_USUAL_IDS = ("region", "id", "name")
# The outlines are kept to this share of the whole map, which no picture of it shows.
_DETAIL = 1e-3


class _Feature(NamedTuple):
    """One area as a file has it: what describes it, its shape, and its place for messages."""

    properties: dict[str | None, Any]
    shape: Any
    where: str


@dataclass(frozen=True)
class Polygons(Partition):
    """Areas of GeoJSON, GeoParquet or a GeoDataFrame; where they overlap, the first one counts.

    Needs the `geo` extra.
    """

    areas: AnyPath | Frame
    """A FeatureCollection of Polygons and MultiPolygons, or a Parquet file or frame with a column
    of them."""
    id_property: str | None = None
    """The property or column that holds a region's id; by default the feature's own id, a property
    called region, id or name, or else its number in the file."""

    def locator(self, _box: Box = WORLD, /) -> Locator:
        shapely = optional("shapely", "Reading polygons", "geo")
        path = place_of(self.areas)
        with np.errstate(invalid="ignore"):
            features = list(_features(shapely, self.areas))
        if not features:
            raise EmptyError("has no areas", where=path)
        ids = [self._id(feature, number) for number, feature in enumerate(features, start=1)]
        shapes = [_sound(shapely, feature) for feature in features]
        repaired = [i for i, feature, shape in zip(ids, features, shapes, strict=True)
                    if shape is not feature.shape]  # fmt: skip
        tree = shapely.STRtree(shapes)
        at = shapely.get_coordinates(shapely.point_on_surface(shapes))
        with naming(path):
            regions = Regions(ids, at[:, 0], at[:, 1], _outlines(shapely, shapes, at))
        in_several = np.zeros(1, np.int64)

        def locate(places: pl.DataFrame) -> NDArray[np.int32]:
            lon, lat = lon_lat(places)
            point, shape = tree.query(shapely.points(lon, lat), predicate="intersects")
            in_several[0] += (np.bincount(point) > 1).sum()
            found = np.full(lon.size, len(regions), dtype=np.int32)
            np.minimum.at(found, point, shape.astype(np.int32))
            return np.where(found < len(regions), found, np.int32(NOWHERE))

        def notes() -> Iterator[str]:
            if repaired:
                yield (
                    f"{len(repaired):,} of {len(ids):,} areas have outlines that are not valid, "
                    f"such as ones that cross themselves, and were repaired: {listed(repaired)}"
                )
            if in_several[0]:
                yield f"{in_several[0]:,} places lie in several areas, and count in the first"

        return Locator(locate, lambda: regions, notes)

    def _id(self, feature: _Feature, number: int) -> str:
        properties = feature.properties
        if self.id_property is None:
            own = (properties.get(name) for name in (None, *_USUAL_IDS))
            return next((str(name) for name in own if name is not None), str(number))
        if self.id_property not in properties:
            found = listed(name for name in properties if name is not None)
            raise RecordsError(
                f"has no property {self.id_property!r} (found {found})", where=feature.where
            )
        return str(properties[self.id_property])


def holds_areas(path: Path) -> bool:
    """Tell whether a GeoJSON file begins with an area, not with a point."""
    geometry = geojson_features(Stored(existing(path)))[0].get("geometry")
    return isinstance(geometry, dict) and geometry.get("type") in _AREAS


def _features(shapely: Any, areas: AnyPath | Frame) -> Iterator[_Feature]:  # noqa: ANN401
    if is_frame(areas):
        return _of_table(shapely, open_frame(areas))
    path = existing(Path(areas))
    if path.suffix.lower() != ".parquet":
        return _of_geojson(shapely, path)
    with readable(path):
        return _of_table(shapely, open_parquet(Stored(path)))


def _of_geojson(shapely: Any, path: Path) -> Iterator[_Feature]:  # noqa: ANN401
    for number, feature in enumerate(geojson_features(Stored(path)), start=1):
        where = f"{path}, feature {number}"
        geometry = feature.get("geometry") or {}
        found = geometry.get("type", "missing geometry")
        if found not in _AREAS:
            raise RecordsError(f"a {found} where a Polygon was expected", where=where)
        try:
            shape = shapely.geometry.shape(geometry)
        except (*_DAMAGES, shapely.errors.ShapelyError) as error:
            raise RecordsError(f"its geometry cannot be read ({error})", where=where) from error
        properties = feature.get("properties")
        known = properties if isinstance(properties, dict) else {}
        # A feature's own id has no name.
        yield _Feature({None: feature.get("id"), **known}, shape, where)


def _of_table(shapely: Any, source: Source) -> Iterator[_Feature]:  # noqa: ANN401
    path, name, table = source.path, source.points or "geometry", source.whole()
    if table.schema.get(name) != pl.Binary:
        raise RecordsError(
            f"has no column of polygons in WKB (found {listed(table.columns)})",
            where=path,
            fix="Write it as GeoParquet, or as GeoJSON",
        )
    try:
        shapes = shapely.from_wkb(table[name].to_list())
    except (*_DAMAGES, shapely.errors.ShapelyError) as error:
        raise RecordsError(f"its geometry cannot be read ({error})", where=path) from error
    names: list[str | None] = [one for one in table.columns if one != name]
    rows = table.drop(name).rows()
    for number, (row, shape) in enumerate(zip(rows, shapes, strict=True)):
        where = source.place(number)
        found = "missing geometry" if shape is None else shape.geom_type
        if found not in _AREAS:
            raise RecordsError(f"a {found} where a Polygon was expected", where=where)
        yield _Feature(dict(zip(names, row, strict=True)), shape, where)


def _sound(shapely: Any, feature: _Feature) -> Any:  # noqa: ANN401
    """Return the shape of a feature, repaired if it has to be; refuse one that is no area."""
    shape = feature.shape
    if not shape.is_valid:
        shape = shapely.make_valid(shape, method="structure", keep_collapsed=False)
    if shape.is_empty or not shape.area:
        raise RecordsError("its polygon has no area", where=feature.where, fix="Correct it")
    west, south, east, north = shape.bounds
    with naming(feature.where):
        for corner in ((west, south), (east, north)):
            refuse_position("its polygon", *corner)
    return shape


def _outlines(
    shapely: Any,  # noqa: ANN401
    shapes: Sequence[Any],
    at: NDArray[np.float64],
) -> list[list[list[float]]] | None:
    """Return the outlines around the positions, without details that no map shows."""
    if len(shapes) > MOST_OUTLINES:
        return None
    west, south, east, north = shapely.total_bounds(shapes)
    detail = _DETAIL * max(east - west, north - south)
    outlines = []
    for shape, (lon, lat) in zip(shapes, at, strict=True):
        parts = [part for part in shapely.get_parts(shape) if part.area > detail**2]
        drawn = shapely.simplify(parts or [shape.envelope], detail, preserve_topology=True)
        rings = [ring for part in drawn for ring in (part.exterior, *part.interiors)]
        corners = [np.asarray(ring.coords)[:-1, :2] - (lon, lat) for ring in rings]
        outlines.append([ring.ravel().tolist() for ring in corners])
    return outlines
