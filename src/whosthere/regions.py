"""Ways to make regions out of records."""

from whosthere.data.flows import Pairs as Pairs
from whosthere.data.reading.partition import (
    Grid as Grid,
    GridShape as GridShape,
    H3Cells as H3Cells,
    NearestAntenna as NearestAntenna,
    Partition as Partition,
    RegionIds as RegionIds,
    ThroughAntennas as ThroughAntennas,
)
from whosthere.data.reading.polygons import Polygons as Polygons
from whosthere.data.reading.tables import read_regions as read_regions
