"""Regions by the ids that records name: of regions, or of antennas that stand in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.reading.columns import Columns, parts_of, refuse_data_as_names
from whosthere.data.reading.labels import Labels
from whosthere.data.reading.layout import joined_ids, single_values
from whosthere.data.reading.numbers import degrees_of
from whosthere.data.reading.opening import read_single
from whosthere.data.reading.partition.base import (
    NOWHERE,
    UNKNOWN,
    WORLD,
    Box,
    Locator,
    Partition,
)
from whosthere.data.reading.source import naming
from whosthere.data.regions import Regions
from whosthere.errors import InputError, RecordsError, listed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray


@dataclass(frozen=True)
class RegionIds(Partition):
    """Regions that the records name.

    Parameters
    ----------
    table
        The regions there are; a record that names another is invalid. Without a table the
        regions are those that the records name, and have no positions.
    """

    table: Regions | None = None

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
            lambda places: labels.encode(places["region"]), lambda: Regions(labels.texts())
        )


@dataclass(frozen=True)
class ThroughAntennas(Partition):
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

    def __post_init__(self) -> None:
        if not self.areas.uses_points:
            raise InputError("antennas can be put into a grid, polygons or hexagons only")

    @property
    def is_open(self) -> bool:
        return self.areas.is_open

    def locator(self, _box: Box = WORLD, /) -> Locator:
        lon, lat = self.antennas.degrees
        around = Box(float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max()))
        areas = self.areas.locator(around)
        return _locator(
            self.antennas, areas.locate(pl.DataFrame({"lon": lon, "lat": lat})), areas.regions
        )


def _locator(table: Regions, region: NDArray[np.int32], regions: Callable[[], Regions]) -> Locator:
    """Locate by the ids of a table, given the region that each row of it means."""
    rows = pl.Enum(table.ids)
    # Looked up at -1, an id that is not in the table is found at the end.
    region = np.append(np.maximum(region, NOWHERE), np.int32(UNKNOWN))

    def locate(places: pl.DataFrame) -> NDArray[np.int32]:
        row = places["region"].cast(pl.String).cast(rows, strict=False).to_physical()
        found: NDArray[np.int32] = region[row.cast(pl.Int32).fill_null(-1).to_numpy()]
        return found

    return Locator(locate, regions)


def read_regions(path: str | os.PathLike[str]) -> Regions:
    """Read a table of regions: an id column and, if known, lon and lat."""
    path = Path(path)
    table = read_single(path)
    found = table.columns
    try:
        id_name = Columns().find("region", found) or ("id" if "id" in found else None)
        axes = [Columns().find(axis, found) for axis in ("lon", "lat")]
    except RecordsError as error:
        raise RecordsError(error.problem, where=path, fix="Rename all but one of them") from error
    if id_name is None:
        refuse_data_as_names(found, where=path, header="region,lon,lat")
        raise RecordsError(
            f"has no region column (found {listed(found)})",
            where=path,
            fix="Name the column with the ids 'region'",
        )
    with naming(path):
        expr = joined_ids(parts_of(id_name, found), table.schema)
        ids = table.select(expr.cast(pl.String)).to_series()
        if ids.null_count():
            raise InputError(f"row {_first_null(ids) + 1} has no region id")
        degrees = [None if name is None else _degrees(table, name) for name in axes]
        return Regions(ids.to_list(), *degrees)


def _degrees(table: pl.DataFrame, name: str) -> NDArray[np.float64]:
    written = table.select(single_values(name, table.schema)).to_series()
    degrees = degrees_of(written)
    if degrees.null_count():
        row = _first_null(degrees)
        raise InputError(f"row {row + 1}, column {name!r}: {written[row]!r} is not a number")
    return degrees.to_numpy()


def _first_null(column: pl.Series) -> int:
    return column.is_null().arg_max() or 0
