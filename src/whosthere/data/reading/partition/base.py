"""What every way of making regions has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from whosthere.data.regions import Regions

NOWHERE = -1
UNKNOWN = -2
"""For a place whose id means nothing: an error in the records."""


@dataclass(frozen=True)
class Box:
    """A rectangle of longitudes and latitudes, in degrees, edges included."""

    west: float = -180.0
    south: float = -90.0
    east: float = 180.0
    north: float = 90.0

    def holds(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which points lie inside."""
        inside: NDArray[np.bool_] = (
            (lon >= self.west) & (lon <= self.east) & (lat >= self.south) & (lat <= self.north)
        )
        return inside


WORLD = Box()


def lon_lat(places: pl.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the longitudes and latitudes of places, degrees."""
    return places["lon"].to_numpy(), places["lat"].to_numpy()


@dataclass(frozen=True, eq=False)
class Locator:
    """Finds the region of each place: points in columns lon and lat, or ids in a column region.

    Parameters
    ----------
    locate
        Returns the region of each place, `NOWHERE` where there is none, or `UNKNOWN`.
    regions
        Returns the regions, those learned so far where they are learned from the places.
    """

    locate: Callable[[pl.DataFrame], NDArray[np.int32]]
    regions: Callable[[], Regions]


class Partition(ABC):
    """A way to make regions, before any data is seen.

    Attributes
    ----------
    uses_points
        Whether places are longitudes and latitudes, not ids.
    needs_box
        Whether the regions depend on the box that surrounds the data.
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
