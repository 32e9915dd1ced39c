"""Ways to make regions out of records."""

from whosthere.data.partition import (
    Grid,
    GridShape,
    H3Cells,
    NearestAntenna,
    Polygons,
    RegionIds,
    ThroughAntennas,
)

__all__ = [
    "Grid",
    "GridShape",
    "H3Cells",
    "NearestAntenna",
    "Polygons",
    "RegionIds",
    "ThroughAntennas",
]
