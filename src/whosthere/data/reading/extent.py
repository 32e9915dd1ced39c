"""Where points lie: the box that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Box:
    """A rectangle of longitudes and latitudes, in degrees, edges included.

    One that reaches over the antimeridian ends east of 180 degrees.
    """

    west: float = -180.0
    south: float = -90.0
    east: float = 180.0
    north: float = 90.0

    def eastward(self, lon: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return longitudes as they are counted here: up to 360 where the box reaches 180."""
        return lon % 360.0 if self.west >= 0.0 and self.east >= 180.0 else lon

    def holds(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which points lie inside."""
        lon = self.eastward(lon)
        inside: NDArray[np.bool_] = (
            (lon >= self.west) & (lon <= self.east) & (lat >= self.south) & (lat <= self.north)
        )
        return inside


WORLD = Box()


def lon_lat(places: pl.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the longitudes and latitudes of places, degrees."""
    return places["lon"].to_numpy(), places["lat"].to_numpy()


class Extent:
    """The range of points, found in one pass."""

    def __init__(self) -> None:
        # Longitudes from -180, the same ones from 0, which join over the antimeridian; latitudes.
        self._low, self._high = np.full(3, np.inf), np.full(3, -np.inf)

    def add(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> None:
        """Take points in."""
        for axis, degrees in enumerate((lon, lon % 360.0, lat)):
            self._low[axis] = min(self._low[axis], degrees.min(initial=np.inf))
            self._high[axis] = max(self._high[axis], degrees.max(initial=-np.inf))

    @property
    def box(self) -> Box:
        """The box that holds all points; the world where there are none."""
        if self._low[0] > self._high[0]:
            return WORLD
        width = self._high - self._low
        # Over the antimeridian only where that is narrower by far, and not by rounding.
        lon = int(2 * width[1] < width[0])
        low, high = self._low.tolist(), self._high.tolist()
        return Box(low[lon], low[2], high[lon], high[2])
