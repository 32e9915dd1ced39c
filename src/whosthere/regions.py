"""Ways to make regions out of records."""

from whosthere.data.reading.partition import (
    Grid,
    GridShape,
    H3Cells,
    NearestAntenna,
    Polygons,
    RegionIds,
    ThroughAntennas,
)
from whosthere.data.reading.tables import read_regions

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
