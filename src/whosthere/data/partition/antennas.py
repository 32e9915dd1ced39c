"""Nearest-antenna regions: the Voronoi cells of given points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.neighbours import EARTH_RADIUS_KM
from whosthere.data.partition.base import NOWHERE, Box, Locator, Places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.regions import Regions


@dataclass(frozen=True)
class NearestAntenna:
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

    uses_points = True
    needs_box = False
    is_open = False

    def locator(self, box: Box | None) -> Locator:  # noqa: ARG002 - antennas lie where they lie
        """Index the antennas."""
        return _NearestLocator(self.antennas, self.reach_km)


class _NearestLocator:
    def __init__(self, antennas: Regions, reach_km: float) -> None:
        from scipy.spatial import KDTree  # noqa: PLC0415 - slow to import

        self._antennas = antennas
        self._tree = KDTree(_on_sphere(*antennas.degrees))
        half_turn = min(reach_km / EARTH_RADIUS_KM, np.pi)
        self._chord = 2.0 * np.sin(half_turn / 2) if half_turn < np.pi else np.inf

    def locate(self, places: Places) -> NDArray[np.int32]:
        _, nearest = self._tree.query(
            _on_sphere(*places.points), distance_upper_bound=self._chord, workers=-1
        )
        return np.where(nearest < len(self._antennas), nearest, NOWHERE).astype(np.int32)

    def regions(self) -> Regions:
        return self._antennas


def _on_sphere(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points of the unit sphere, shape (n, 3): nearest there is nearest on the ground."""
    lam, phi = np.radians(lon), np.radians(lat)
    return np.column_stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])
