"""Square grids over the box that holds the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.neighbours import EARTH_RADIUS_KM
from whosthere.data.partition.base import NOWHERE, Box, Locator, Places
from whosthere.data.regions import Regions
from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

KM_A_DEGREE = np.pi * EARTH_RADIUS_KM / 180.0
# A box without extent still gets squares of some size, in degrees.
_SMALLEST_STEP = 1e-6
_MOST_SQUARES = 10_000_000


@dataclass(frozen=True)
class Grid:
    """Squares of `km` by `km` over the box of the data, from its south-west corner.

    Rows count from the south, columns from the west; region ``r02c11`` is row 2, column 11.
    Every square of the box is a region, visited or not.
    """

    km: float

    uses_points = True
    needs_box = True
    is_open = False

    def __post_init__(self) -> None:
        if not 0 < self.km < np.inf:
            raise InputError(f"grid squares of {self.km} km", fix="Give a size above 0, like 1.6")

    def locator(self, box: Box | None) -> Locator:
        """Lay the grid over the box."""
        box = _given(box)
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
        return _GridLocator(box, lat_step, lon_step, rows, columns)


@dataclass(frozen=True)
class GridShape:
    """A given number of rows and columns over the box of the data, numbered as in `Grid`."""

    rows: int
    columns: int

    uses_points = True
    needs_box = True
    is_open = False

    def __post_init__(self) -> None:
        if min(self.rows, self.columns) < 1 or self.rows * self.columns > _MOST_SQUARES:
            raise InputError(
                f"a grid of {self.rows} x {self.columns} squares", fix="Write it like 22x23"
            )

    def locator(self, box: Box | None) -> Locator:
        """Lay the grid over the box."""
        box = _given(box)
        lat_step = max((box.north - box.south) / self.rows, _SMALLEST_STEP)
        lon_step = max((box.east - box.west) / self.columns, _SMALLEST_STEP)
        return _GridLocator(box, lat_step, lon_step, self.rows, self.columns)


def _given(box: Box | None) -> Box:
    if box is None:
        raise InputError("a grid needs the box to cover")
    return box


@dataclass(frozen=True)
class _GridLocator:
    box: Box
    lat_step: float
    lon_step: float
    rows: int
    columns: int

    def locate(self, places: Places) -> NDArray[np.int32]:
        lon, lat = places.points
        row = ((lat - self.box.south) / self.lat_step).astype(np.int32)
        column = ((lon - self.box.west) / self.lon_step).astype(np.int32)
        # Points on the northern and eastern edge of the box belong to the last squares.
        row, column = np.minimum(row, self.rows - 1), np.minimum(column, self.columns - 1)
        return np.where(self.box.holds(lon, lat), row * self.columns + column, NOWHERE).astype(
            np.int32
        )

    def regions(self) -> Regions:
        row, column = np.divmod(np.arange(self.rows * self.columns), self.columns)
        row_digits, column_digits = len(str(self.rows - 1)), len(str(self.columns - 1))
        return Regions(
            [
                f"r{r:0{row_digits}d}c{c:0{column_digits}d}"
                for r, c in zip(row, column, strict=True)
            ],
            self.box.west + (column + 0.5) * self.lon_step,
            self.box.south + (row + 0.5) * self.lat_step,
        )
