"""The real Milan data of the paper: geolocated tweets, read as the paper describes them.

The file is `social-pulse-milano.geojson` of the Telecom Italia Big Data Challenge (Harvard
Dataverse, doi:10.7910/DVN/9IZALB). It is not part of whosthere, and nothing downloads it.
"""

from __future__ import annotations

import gzip
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from whosthere.data.reading.columns import Columns
from whosthere.data.reading.partition.grid import Grid
from whosthere.data.reading.read import Filters, read_records
from whosthere.data.reading.source import readable
from whosthere.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

    from whosthere.data.traces import Traces

ENDINGS = (".geojson", ".geojson.gz")
TIMEZONE = "Europe/Rome"
_LOCAL = ZoneInfo(TIMEZONE)
FIRST_WEEK = Filters(
    start=datetime(2013, 11, 1, tzinfo=_LOCAL),
    end=datetime(2013, 11, 8, tzinfo=_LOCAL),
    box_quantile=0.99,
)
"""The first week of November 2013, in the box that holds 99 % of the records along each axis."""
# What each record has, and how far one has to read to see it.
_POINT, _BEGINNING = b"geomPoint", 2**16
CELL_KM = 1.6
"""Side of a cell of the grid: 100 of them cover the box, 2.56 square kilometres each."""


def is_milan_file(path: Path) -> bool:
    """Tell whether a file is the real data; any other GeoJSON is refused."""
    if not path.name.lower().endswith(ENDINGS):
        return False
    with readable(path), (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        beginning = file.read(_BEGINNING)
    if _POINT not in beginning:
        raise FileError(
            "is GeoJSON, but not the Milan file: its records have no `geomPoint`",
            where=path,
            fix="Make traces of other records with `whosthere ingest`, and give these",
        )
    return True


def read_milan(path: Path) -> Traces:
    """Read the first week of the real data over the paper's grid, in hours."""
    return read_records(
        path,
        partition=Grid(CELL_KM),
        timezone=TIMEZONE,
        columns=Columns(user="user", time="timestamp"),
        filters=FIRST_WEEK,
        drop_invalid=True,
    )
