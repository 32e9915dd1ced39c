"""Regions around given points, of a map, and of the H3 system."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whosthere.data.files import existing
from whosthere.data.neighbours import EARTH_RADIUS_KM
from whosthere.data.reading.geojson import geojson_features
from whosthere.data.reading.labels import Labels
from whosthere.data.reading.partition.base import NOWHERE, WORLD, Box, Locator, Partition, lon_lat
from whosthere.data.reading.source import Stored, naming
from whosthere.data.regions import Regions
from whosthere.errors import InputError, MissingExtraError, RecordsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What shapely makes of a geometry that is none.
_DAMAGES = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)


@dataclass(frozen=True)
class NearestAntenna(Partition):
    """The nearest of given antennas by great-circle distance: their Voronoi regions.

    Parameters
    ----------
    antennas
        The regions, with positions.
    reach_km
        Places farther than this from every antenna belong to none.
    """

    antennas: Regions
    reach_km: float = np.inf

    def locator(self, _box: Box = WORLD, /) -> Locator:
        from scipy.spatial import KDTree  # noqa: PLC0415 - slow to import

        tree = KDTree(_on_sphere(*self.antennas.degrees))
        half_turn = min(self.reach_km / EARTH_RADIUS_KM, np.pi)
        chord = 2.0 * np.sin(half_turn / 2) if half_turn < np.pi else np.inf

        def locate(places: pl.DataFrame) -> NDArray[np.int32]:
            points = _on_sphere(*lon_lat(places))
            _, nearest = tree.query(points, distance_upper_bound=chord, workers=-1)
            return np.where(nearest < len(self.antennas), nearest, NOWHERE).astype(np.int32)

        return Locator(locate, lambda: self.antennas)


def _on_sphere(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points of the unit sphere, shape (n, 3): nearest there is nearest on the ground."""
    lam, phi = np.radians(lon), np.radians(lat)
    return np.column_stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])


@dataclass(frozen=True)
class H3Cells(Partition):
    """Hexagons of the H3 system at a resolution from 0 (continents) to 15 (a square metre).

    Needs the `geo` extra.
    """

    resolution: int

    def __post_init__(self) -> None:
        if not 0 <= self.resolution <= 15:
            raise InputError(f"H3 resolution {self.resolution}", fix="Give a number from 0 to 15")

    @property
    def is_open(self) -> bool:
        return True

    def locator(self, _box: Box = WORLD, /) -> Locator:
        try:
            import h3.api.basic_int as h3  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingExtraError("Making H3 regions", "geo") from error
        labels = Labels(pl.Int64)

        def locate(places: pl.DataFrame) -> NDArray[np.int32]:
            lon, lat = lon_lat(places)
            cells = map(h3.latlng_to_cell, lat.tolist(), lon.tolist(), repeat(self.resolution))
            return labels.encode(pl.Series(np.fromiter(cells, np.int64, lon.size)))

        def regions() -> Regions:
            cells = [int(cell) for cell in labels.texts()]
            lat, lon = zip(*map(h3.cell_to_latlng, cells), strict=True)
            return Regions([h3.int_to_str(cell) for cell in cells], list(lon), list(lat))

        return Locator(locate, regions)


@dataclass(frozen=True)
class Polygons(Partition):
    """Areas of a GeoJSON file; where they overlap, the first one counts.

    Needs the `geo` extra.

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

    def locator(self, _box: Box = WORLD, /) -> Locator:
        try:
            import shapely  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingExtraError("Reading polygons", "geo") from error
        features = geojson_features(Stored(existing(Path(self.path))))
        ids, shapes = [], []
        for number, feature in enumerate(features, start=1):
            where = f"{self.path}, feature {number}"
            shapes.append(_shape(shapely, feature, where))
            ids.append(self._id(feature, number, where))
        tree = shapely.STRtree(shapes)
        inner = [shape.representative_point() for shape in shapes]
        with naming(self.path):
            regions = Regions(ids, [p.x for p in inner], [p.y for p in inner])

        def locate(places: pl.DataFrame) -> NDArray[np.int32]:
            lon, lat = lon_lat(places)
            point, shape = tree.query(shapely.points(lon, lat), predicate="intersects")
            found = np.full(lon.size, len(regions), dtype=np.int32)
            np.minimum.at(found, point, shape.astype(np.int32))
            return np.where(found < len(regions), found, np.int32(NOWHERE))

        return Locator(locate, lambda: regions)

    def _id(self, feature: dict[str, Any], number: int, where: str) -> str:
        properties = feature.get("properties") or {}
        if self.id_property is None:
            own = (feature.get("id"), *(properties.get(name) for name in ("region", "id", "name")))
            return next((str(name) for name in own if name is not None), str(number))
        if self.id_property not in properties:
            found = ", ".join(properties) or "none"
            raise RecordsError(f"has no property {self.id_property!r} (found {found})", where=where)
        return str(properties[self.id_property])


def _shape(shapely: Any, feature: dict[str, Any], where: str) -> Any:  # noqa: ANN401 - untyped
    geometry = feature.get("geometry") or {}
    found = geometry.get("type", "missing geometry")
    if found not in {"Polygon", "MultiPolygon"}:
        raise RecordsError(f"a {found} where a Polygon was expected", where=where)
    try:
        return shapely.geometry.shape(geometry)
    except (*_DAMAGES, shapely.errors.ShapelyError) as error:
        raise RecordsError(f"its geometry cannot be read ({error})", where=where) from error
