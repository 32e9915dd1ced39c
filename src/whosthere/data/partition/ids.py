"""Regions that the records themselves name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.partition.base import UNKNOWN
from whosthere.data.reading.labels import Labels
from whosthere.data.regions import Regions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.partition.base import Box, Locator, Places


@dataclass(frozen=True)
class RegionIds:
    """Regions that the records name.

    Parameters
    ----------
    table
        The regions there are; a record that names another is invalid. Without a table the
        regions are those that the records name, and have no positions.
    """

    table: Regions | None = None

    uses_points = False
    needs_box = False

    @property
    def is_open(self) -> bool:
        """Whether the regions are learned from the records."""
        return self.table is None

    def locator(self, box: Box | None) -> Locator:  # noqa: ARG002 - ids need no box
        """Begin looking ids up."""
        return _LearnedIds() if self.table is None else _KnownIds(self.table)


class _KnownIds:
    def __init__(self, table: Regions) -> None:
        self._table = table
        self._labels = Labels(pl.String)
        self._labels.encode(pl.Series(table.ids, dtype=pl.String))

    def locate(self, places: Places) -> NDArray[np.int32]:
        found = self._labels.look_up(places.ids)
        return np.where(found < 0, np.int32(UNKNOWN), found)

    def regions(self) -> Regions:
        return self._table


class _LearnedIds:
    def __init__(self) -> None:
        self._labels = Labels(pl.String)

    def locate(self, places: Places) -> NDArray[np.int32]:
        return self._labels.encode(places.ids)

    def regions(self) -> Regions:
        return Regions(self._labels.texts())
