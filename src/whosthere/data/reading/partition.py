"""How places become regions: by their ids, a grid, the nearest antenna, polygons or H3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.neighbours import EARTH_RADIUS_KM, KM_A_DEGREE
from whosthere.data.reading.distinct import Labels
from whosthere.data.reading.extent import WORLD, Box, Extent, lon_lat
from whosthere.data.regions import MOST_OUTLINES, Regions
from whosthere.errors import InputError, RecordsError, optional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

NOWHERE, UNKNOWN = -1, -2


@dataclass(frozen=True, eq=False)
class Locator:
    """Finds the region of each place: points in columns lon and lat, or ids in a column region.

    `locate` returns `NOWHERE` for a place in none, and `UNKNOWN` for an id that means nothing.
    `regions` returns those learned so far where they are learned from the places, and `notes` what
    the user should know of how the places fit them.
    """

    locate: Callable[[pl.DataFrame], NDArray[np.int32]]
    regions: Callable[[], Regions]
    notes: Callable[[], Iterable[str]] = tuple


class Partition(ABC):
    """A way to make regions, before any data is seen.

    Places are longitudes and latitudes where it `uses_points`, and else ids. The regions depend on
    the box that surrounds the data where it `needs_box`.
    """

    uses_points: bool = True
    needs_box: bool = False

    @property
    def is_open(self) -> bool:
        """Whether regions are learned from the data; then only visited ones are kept."""
        return False

    @abstractmethod
    def locator(self, box: Box = WORLD, /) -> Locator:
        """Begin locating; `box` surrounds the data where `needs_box`."""


@dataclass(frozen=True)
class RegionIds(Partition):
    """Regions that the records name."""

    table: Regions | None = None
    """The regions there are; a record that names another is invalid. Without a table the regions
    are those that the records name, and have no positions."""

    uses_points = False

    @property
    def is_open(self) -> bool:
        return self.table is None

    def locator(self, _box: Box = WORLD, /) -> Locator:
        table = self.table
        if table is not None:
            return _locator(table, np.arange(len(table), dtype=np.int32), lambda: table)
        labels = Labels(pl.String)
        return Locator(
            lambda places: labels.encode(places["region"]), lambda: Regions(labels.texts)
        )


@dataclass(frozen=True)
class ThroughAntennas(Partition):
    """The square, area or hexagon that a record's antenna stands in."""

    antennas: Regions
    """Their ids, which the records name, and their positions. A grid covers all of them."""
    areas: Partition
    """How positions become regions."""

    uses_points = False

    def __post_init__(self) -> None:
        if not self.areas.uses_points:
            raise InputError("antennas can be put into a grid, polygons or hexagons only")

    @property
    def is_open(self) -> bool:
        return self.areas.is_open

    def locator(self, _box: Box = WORLD, /) -> Locator:
        lon, lat = self.antennas.degrees
        extent = Extent()
        extent.add(lon, lat)
        areas = self.areas.locator(extent.box)
        region = areas.locate(pl.DataFrame({"lon": lon, "lat": lat}))

        def notes() -> Iterator[str]:
            if nowhere := int((region == NOWHERE).sum()):
                yield f"{nowhere:,} of {region.size:,} antennas stand in no region"
            yield from areas.notes()

        return replace(_locator(self.antennas, region, areas.regions), notes=notes)


def _locator(table: Regions, region: NDArray[np.int32], regions: Callable[[], Regions]) -> Locator:
    """Locate by the ids of a table, given the region that each row of it means."""
    rows = pl.Enum(table.ids)
    # Looked up at -1, an id that is not in the table is found at the end.
    region = np.append(np.maximum(region, NOWHERE), np.int32(UNKNOWN))

    def locate(places: pl.DataFrame) -> NDArray[np.int32]:
        row = places["region"].cast(pl.String).cast(rows, strict=False).to_physical()
        return np.asarray(region[row.cast(pl.Int32).fill_null(-1).to_numpy()])

    return Locator(locate, regions)


# A box without extent still gets squares of some size, in degrees.
_SMALLEST_STEP = 1e-6
_MOST_SQUARES = 10_000_000


@dataclass(frozen=True)
class Grid(Partition):
    """Squares of `km` by `km` over the box of the data, from its south-west corner.

    Rows count from the south, columns from the west; region ``r02c11`` is row 2, column 11.
    Every square of the box is a region, visited or not.
    """

    km: float

    needs_box = True

    def __post_init__(self) -> None:
        if not 0 < self.km < np.inf:
            raise InputError(f"grid squares of {self.km} km", fix="Give a size above 0, like 1.6")

    def locator(self, box: Box = WORLD, /) -> Locator:
        lat_step = self.km / KM_A_DEGREE
        middle = np.radians((box.north + box.south) / 2)
        lon_step = lat_step / max(float(np.cos(middle)), _SMALLEST_STEP)
        rows = max(1, int(np.ceil((box.north - box.south) / lat_step)))
        columns = max(1, int(np.ceil((box.east - box.west) / lon_step)))
        if rows * columns > _MOST_SQUARES:
            raise InputError(
                f"a grid of {rows} x {columns} squares of {self.km:g} km",
                fix="Use larger squares, or leave out positions far away from all others, "
                "such as by a query",
            )
        return _squares(box, (lat_step, lon_step), (rows, columns))


@dataclass(frozen=True)
class GridShape(Partition):
    """A given number of rows and columns over the box of the data, numbered as in `Grid`."""

    rows: int
    columns: int

    needs_box = True

    def __post_init__(self) -> None:
        if min(self.rows, self.columns) < 1 or self.rows * self.columns > _MOST_SQUARES:
            raise InputError(
                f"a grid of {self.rows} x {self.columns} squares", fix="Write it like 22x23"
            )

    def locator(self, box: Box = WORLD, /) -> Locator:
        lat_step = max((box.north - box.south) / self.rows, _SMALLEST_STEP)
        lon_step = max((box.east - box.west) / self.columns, _SMALLEST_STEP)
        return _squares(box, (lat_step, lon_step), (self.rows, self.columns))


def _squares(box: Box, steps: tuple[float, float], shape: tuple[int, int]) -> Locator:
    """Locate in the squares of a grid: steps in degrees of latitude and longitude."""
    (lat_step, lon_step), (n_rows, n_columns) = steps, shape

    def locate(places: pl.DataFrame) -> NDArray[np.int32]:
        lon, lat = lon_lat(places)
        row = ((lat - box.south) / lat_step).astype(np.int32)
        column = ((box.eastward(lon) - box.west) / lon_step).astype(np.int32)
        # Points on the northern and eastern edge of the box belong to the last squares.
        row, column = np.minimum(row, n_rows - 1), np.minimum(column, n_columns - 1)
        return np.where(box.holds(lon, lat), row * n_columns + column, NOWHERE).astype(np.int32)

    def regions() -> Regions:
        row, column = np.divmod(np.arange(n_rows * n_columns), n_columns)
        r_digits, c_digits = len(str(n_rows - 1)), len(str(n_columns - 1))
        lon = box.west + (column + 0.5) * lon_step
        return Regions(
            [f"r{r:0{r_digits}d}c{c:0{c_digits}d}" for r, c in zip(row, column, strict=True)],
            np.where(lon > 180.0, lon - 360.0, lon),
            box.south + (row + 0.5) * lat_step,
            [[np.multiply(_SQUARE, (lon_step / 2, lat_step / 2)).ravel().tolist()]],
        )

    return Locator(locate, regions)


_SQUARE = ((-1, -1), (1, -1), (1, 1), (-1, 1))


# No usual antenna serves anybody so far away.
_FAR_KM = 100


@dataclass(frozen=True)
class NearestAntenna(Partition):
    """The nearest of given antennas by great-circle distance: their Voronoi regions."""

    antennas: Regions
    """The regions, with positions."""
    reach_km: float = np.inf
    """Places farther than this from every antenna belong to none."""

    def locator(self, _box: Box = WORLD, /) -> Locator:
        from scipy.spatial import KDTree  # noqa: PLC0415 - slow to import

        tree = KDTree(_on_sphere(*self.antennas.degrees))
        reach = _chord(self.reach_km)
        n_far = n_places = 0

        def locate(places: pl.DataFrame) -> NDArray[np.int32]:
            nonlocal n_far, n_places
            points = _on_sphere(*lon_lat(places))
            away, nearest = tree.query(points, distance_upper_bound=reach, workers=-1)
            n_far += int((np.asarray(away) > _chord(_FAR_KM)).sum())
            n_places += len(points)
            return np.where(nearest < len(self.antennas), nearest, NOWHERE).astype(np.int32)

        def notes() -> Iterable[str]:
            if 2 * n_far > n_places and not np.isfinite(self.reach_km):
                raise RecordsError(
                    f"{n_far:,} of {n_places:,} records lie more than {_FAR_KM} km from every "
                    "antenna",
                    fix="Are lon and lat of the antennas swapped? If not, say how far an antenna "
                    "reaches (`reach_km`)",
                )
            return ()

        return Locator(locate, lambda: self.antennas, notes)


def _chord(km: float) -> float:
    """Return the length of the straight line between points of the unit sphere so far apart."""
    half_turn = min(km / EARTH_RADIUS_KM, np.pi)
    return float(2.0 * np.sin(half_turn / 2)) if half_turn < np.pi else np.inf


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

    is_open = True

    def locator(self, _box: Box = WORLD, /) -> Locator:
        h3 = optional("h3.api.basic_int", "Making H3 regions", "geo")
        labels = Labels(pl.Int64)

        def locate(places: pl.DataFrame) -> NDArray[np.int32]:
            lon, lat = lon_lat(places)
            cells = map(h3.latlng_to_cell, lat.tolist(), lon.tolist(), repeat(self.resolution))
            return labels.encode(pl.Series(np.fromiter(cells, np.int64, lon.size)))

        def regions() -> Regions:
            cells = [int(cell) for cell in labels.texts]
            lat, lon = zip(*map(h3.cell_to_latlng, cells), strict=True)
            around = (
                [[v for y, x in h3.cell_to_boundary(cell) for v in (x - east, y - north)]]
                for cell, east, north in zip(cells, lon, lat, strict=True)
            )
            outlines = around if len(cells) <= MOST_OUTLINES else None
            ids = [h3.int_to_str(cell) for cell in cells]
            return Regions(ids, list(lon), list(lat), outlines)

        return Locator(locate, regions)
