"""Areas of a GeoJSON file; needs the `geo` extra."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from whosthere.data.partition.base import NOWHERE, Box, Locator, Places
from whosthere.data.reading.geojson import geojson_features
from whosthere.data.regions import Regions
from whosthere.errors import InputError, MissingExtraError, RecordsError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


# What shapely makes of a geometry that is none.
_DAMAGES = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)


@dataclass(frozen=True)
class Polygons:
    """Areas of a GeoJSON file; where they overlap, the first one counts.

    Parameters
    ----------
    path
        A FeatureCollection of Polygons and MultiPolygons.
    id_property
        The property that holds a region's id; by default the feature's own id, a property
        called region, id or name, or else its number in the file.
    """

    path: Path
    id_property: str | None = None

    uses_points = True
    needs_box = False
    is_open = False

    def locator(self, box: Box | None) -> Locator:  # noqa: ARG002 - areas lie where they lie
        """Read and index the areas."""
        return _PolygonLocator(self)


class _PolygonLocator:
    def __init__(self, polygons: Polygons) -> None:
        try:
            import shapely  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingExtraError("Reading polygons", "geo") from error
        self._shapely = shapely
        features = geojson_features(polygons.path)
        shapes = [self._shape(f, _place(polygons, i)) for i, f in enumerate(features)]
        ids = [_feature_id(f, i, polygons) for i, f in enumerate(features)]
        self._tree = shapely.STRtree(shapes)
        inner = [shape.representative_point() for shape in shapes]
        try:
            self._regions = Regions(ids, [p.x for p in inner], [p.y for p in inner])
        except InputError as error:
            raise RecordsError(error.problem, where=polygons.path, fix=error.fix) from error

    def _shape(self, feature: dict[str, Any], where: str) -> Any:  # noqa: ANN401 - shapely is untyped
        geometry = feature.get("geometry") or {}
        found = geometry.get("type", "missing geometry")
        if found not in {"Polygon", "MultiPolygon"}:
            raise RecordsError(f"a {found} where a Polygon was expected", where=where)
        try:
            return self._shapely.geometry.shape(geometry)
        except (*_DAMAGES, self._shapely.errors.ShapelyError) as error:
            raise RecordsError(f"its geometry cannot be read ({error})", where=where) from error

    def locate(self, places: Places) -> NDArray[np.int32]:
        lon, lat = places.points
        points = self._shapely.points(lon, lat)
        point, shape = self._tree.query(points, predicate="intersects")
        found = np.full(lon.size, len(self._regions), dtype=np.int32)
        np.minimum.at(found, point, shape.astype(np.int32))
        return np.where(found < len(self._regions), found, np.int32(NOWHERE))

    def regions(self) -> Regions:
        return self._regions


def _place(polygons: Polygons, index: int) -> str:
    return f"{polygons.path}, feature {index + 1}"


def _feature_id(feature: dict[str, Any], index: int, polygons: Polygons) -> str:
    properties = feature.get("properties") or {}
    if polygons.id_property is not None:
        if polygons.id_property not in properties:
            raise RecordsError(
                f"has no property {polygons.id_property!r} "
                f"(found {', '.join(properties) or 'none'})",
                where=_place(polygons, index),
            )
        return str(properties[polygons.id_property])
    found = (feature.get("id"), *(properties.get(name) for name in ("region", "id", "name")))
    return next((str(name) for name in found if name is not None), str(index + 1))
