"""Square grids over the box that holds the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.neighbours import KM_A_DEGREE
from whosthere.data.reading.partition.base import NOWHERE, WORLD, Box, Locator, Partition, lon_lat
from whosthere.data.regions import Regions
from whosthere.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

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
                fix="Use larger squares, or drop stray places (`box_quantile`), such as by 0.99",
            )
        return _locator(box, (lat_step, lon_step), (rows, columns))


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
        return _locator(box, (lat_step, lon_step), (self.rows, self.columns))


def _locator(box: Box, steps: tuple[float, float], shape: tuple[int, int]) -> Locator:
    """Locate in the squares of a grid: steps in degrees of latitude and longitude."""
    (lat_step, lon_step), (n_rows, n_columns) = steps, shape

    def locate(places: pl.DataFrame) -> NDArray[np.int32]:
        lon, lat = lon_lat(places)
        row = ((lat - box.south) / lat_step).astype(np.int32)
        column = ((lon - box.west) / lon_step).astype(np.int32)
        # Points on the northern and eastern edge of the box belong to the last squares.
        row, column = np.minimum(row, n_rows - 1), np.minimum(column, n_columns - 1)
        return np.where(box.holds(lon, lat), row * n_columns + column, NOWHERE).astype(np.int32)

    def regions() -> Regions:
        row, column = np.divmod(np.arange(n_rows * n_columns), n_columns)
        r_digits, c_digits = len(str(n_rows - 1)), len(str(n_columns - 1))
        return Regions(
            [f"r{r:0{r_digits}d}c{c:0{c_digits}d}" for r, c in zip(row, column, strict=True)],
            box.west + (column + 0.5) * lon_step,
            box.south + (row + 0.5) * lat_step,
        )

    return Locator(locate, regions)
