"""Ways to make regions out of records."""

from whosthere.data.reading.partition.areas import (
    H3Cells as H3Cells,
    NearestAntenna as NearestAntenna,
    Polygons as Polygons,
)
from whosthere.data.reading.partition.by_id import (
    RegionIds as RegionIds,
    ThroughAntennas as ThroughAntennas,
    read_regions as read_regions,
)
from whosthere.data.reading.partition.grid import Grid as Grid, GridShape as GridShape
