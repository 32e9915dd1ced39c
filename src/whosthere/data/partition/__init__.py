"""How places become regions: by their ids, a grid, the nearest antenna, polygons or H3."""

from whosthere.data.partition.antennas import NearestAntenna
from whosthere.data.partition.base import NOWHERE, UNKNOWN, Box, Locator, Partition, Places
from whosthere.data.partition.grid import Grid, GridShape
from whosthere.data.partition.hexagons import H3Cells
from whosthere.data.partition.ids import RegionIds
from whosthere.data.partition.polygons import Polygons
from whosthere.data.partition.through import ThroughAntennas

__all__ = [
    "NOWHERE",
    "UNKNOWN",
    "Box",
    "Grid",
    "GridShape",
    "H3Cells",
    "Locator",
    "NearestAntenna",
    "Partition",
    "Places",
    "Polygons",
    "RegionIds",
    "ThroughAntennas",
]
