"""Regions of antennas: the records name antennas, whose positions lie in squares or areas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.partition.base import NOWHERE, UNKNOWN, Box, Locator, Partition, Places
from whosthere.data.reading.labels import Labels
from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.regions import Regions


@dataclass(frozen=True)
class ThroughAntennas:
    """The square, area or hexagon that a record's antenna stands in.

    Parameters
    ----------
    antennas
        Their ids, which the records name, and their positions. A grid covers all of them.
    areas
        How positions become regions.
    """

    antennas: Regions
    areas: Partition

    uses_points = False
    needs_box = False

    def __post_init__(self) -> None:
        if not self.areas.uses_points:
            raise InputError("antennas can be put into a grid, polygons or hexagons only")

    @property
    def is_open(self) -> bool:
        """Whether only visited regions are kept."""
        return self.areas.is_open

    def locator(self, box: Box | None) -> Locator:  # noqa: ARG002 - antennas stand where they stand
        """Find the region of every antenna, once."""
        lon, lat = self.antennas.degrees
        around = Box(float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max()))
        areas = self.areas.locator(around if self.areas.needs_box else None)
        return _ThroughLocator(self.antennas, areas.locate(Places(lon, lat)), areas)


class _ThroughLocator:
    def __init__(self, antennas: Regions, area: NDArray[np.int32], areas: Locator) -> None:
        self._labels = Labels(pl.String)
        self._labels.encode(pl.Series(antennas.ids, dtype=pl.String))
        # Looked up at -1, an antenna that is not in the table is found at the end.
        self._area = np.append(np.maximum(area, NOWHERE), np.int32(UNKNOWN))
        self._areas = areas

    def locate(self, places: Places) -> NDArray[np.int32]:
        return self._area[self._labels.look_up(places.ids)]

    def regions(self) -> Regions:
        return self._areas.regions()
