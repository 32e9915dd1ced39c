"""Hexagons of the H3 system; needs the `geo` extra."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.reading.labels import Labels
from whosthere.data.regions import Regions
from whosthere.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.partition.base import Box, Locator, Places


@dataclass(frozen=True)
class H3Cells:
    """Hexagons of the H3 system at a resolution from 0 (continents) to 15 (a square metre)."""

    resolution: int

    uses_points = True
    needs_box = False
    is_open = True

    def __post_init__(self) -> None:
        if not 0 <= self.resolution <= 15:
            raise InputError(f"H3 resolution {self.resolution}", fix="Give a number from 0 to 15")

    def locator(self, box: Box | None) -> Locator:  # noqa: ARG002 - hexagons lie where they lie
        """Begin finding hexagons."""
        return _H3Locator(self.resolution)


class _H3Locator:
    def __init__(self, resolution: int) -> None:
        try:
            import h3.api.basic_int as h3  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingExtraError("Making H3 regions", "geo") from error
        self._h3 = h3
        self._resolution = resolution
        self._labels = Labels(pl.Int64)

    def locate(self, places: Places) -> NDArray[np.int32]:
        lon, lat = places.points
        cells = map(self._h3.latlng_to_cell, lat.tolist(), lon.tolist(), repeat(self._resolution))
        return self._labels.encode(pl.Series(np.fromiter(cells, np.int64, lon.size)))

    def regions(self) -> Regions:
        cells = [int(cell) for cell in self._labels.texts()]
        lat, lon = zip(*map(self._h3.cell_to_latlng, cells), strict=True)
        return Regions([self._h3.int_to_str(cell) for cell in cells], list(lon), list(lat))
