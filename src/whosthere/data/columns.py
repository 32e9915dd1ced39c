"""Which column of a table holds what: given by name, or guessed from the usual names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.errors import RecordsError, listed, suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

# Compared without case and without anything but letters and digits: Cell-ID is cell_id.
USUAL_NAMES = {
    "user": ("user", "user_id", "uid", "msisdn", "imsi", "subscriber", "subscriber_id",
             "caller", "caller_id", "calling_number", "a_number", "party_a", "imei", "device",
             "device_id", "member", "person", "person_id", "customer_id", "client_id", "phone",
             "phone_number", "id"),
    "time": ("timestamp", "datetime", "date_time", "time", "event_time", "event_timestamp",
             "start_time", "call_time", "start_datetime", "record_time", "epoch_start", "hour",
             "date", "call_date", "event_date", "start_date", "created", "created_at", "ts", "t"),
    "date": ("date", "call_date", "event_date", "start_date", "record_date", "day"),
    "clock": ("time", "call_time", "event_time", "start_time", "record_time", "time_of_day",
              "clock", "hour", "hh"),
    "lon": ("lon", "lng", "long", "longitude", "x"),
    "lat": ("lat", "latitude", "y"),
    "geometry": ("geometry", "geom", "wkb_geometry", "wkb", "point"),
    "region": ("region", "region_id", "cell", "cell_id", "antenna", "antenna_id", "station",
               "station_id", "bts", "bts_id", "site", "site_id", "tower", "tower_id", "cgi",
               "ecgi", "roi", "zone", "zone_id", "area", "area_id", "location", "location_id"),
    "area code": ("lac", "tac"),
    "cell in area": ("ci", "cid", "eci"),
    "count": ("count", "counts", "n", "value", "total", "people", "persons", "users",
              "subscribers", "visits"),
}  # fmt: skip

TOGETHER = "+"
"""Between the names of columns that make one id together, as in LAC+CI."""

_OTHERWISE = {"region": ", or make regions from points: a grid, antennas, polygons or hexagons"}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns that hold each thing; None asks for a guess from `USUAL_NAMES`.

    A user or region may be several columns together, as in ``LAC+CI``.
    """

    user: str | None = None
    time: str | None = None
    date: str | None = None
    lon: str | None = None
    lat: str | None = None
    region: str | None = None
    count: str | None = None

    def find(self, role: str, found: Sequence[str]) -> str | None:
        """Return the name of the column for a role, None where none fits.

        A column that was named but is not among those found is refused.
        """
        named: str | None = getattr(self, role, None)
        if named is not None:
            if named not in found:
                for part in named.split(TOGETHER):
                    if part not in found:
                        raise RecordsError(f"has no column {part!r}", fix=suggestion(part, found))
            return named
        if role == "region":
            return self._guess_region(found)
        return guess(role, found)

    def require(self, roles: Sequence[str], found: Sequence[str]) -> dict[str, str]:
        """Return the name of the column for every role, refusing a table that lacks one."""
        names: dict[str, str] = {}
        for role in roles:
            name = self.find(role, found)
            if name is None:
                raise missing(role, found)
            names[role] = name
        return names

    def _guess_region(self, found: Sequence[str]) -> str | None:
        """Return a column of regions, or the two that number cells within areas."""
        name = guess("region", found)
        area, cell = guess("area code", found), guess("cell in area", found)
        if name is not None or cell is None:
            return name
        return cell if area is None else f"{area}{TOGETHER}{cell}"


def guess(role: str, found: Sequence[str]) -> str | None:
    """Return the column whose name is the most usual one for a role, None where none is."""
    by_letters = {_letters(name): name for name in reversed(found)}
    usual = (_letters(name) for name in USUAL_NAMES[role])
    return next((by_letters[name] for name in usual if name in by_letters), None)


def parts_of(name: str, found: Sequence[str]) -> list[str]:
    """Return the columns that a name stands for: one, or those of ``A+B``."""
    return [name] if name in found else name.split(TOGETHER)


def missing(role: str, found: Sequence[str]) -> RecordsError:
    """Say that a table has no column for a role."""
    return RecordsError(
        f"has no column for the {role} (found {listed(found)})",
        fix=f"Say which column holds the {role}{_OTHERWISE.get(role, '')}",
    )


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
