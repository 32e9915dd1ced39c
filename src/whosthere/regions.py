"""Ways to make regions out of records."""

from whosthere.data.reading.partition.areas import H3Cells, NearestAntenna, Polygons
from whosthere.data.reading.partition.by_id import RegionIds, ThroughAntennas, read_regions
from whosthere.data.reading.partition.grid import Grid, GridShape

__all__ = [
    "Grid",
    "GridShape",
    "H3Cells",
    "NearestAntenna",
    "Polygons",
    "RegionIds",
    "ThroughAntennas",
    "read_regions",
]
