"""Which column of a table holds what: given by name, or guessed from the usual names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.data.reading.time_forms import looks_like_time
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

# A column called id may number the rows, so that beside one of these it is in doubt.
_OF_PEOPLE = ("user", "subscriber", "msisdn", "imsi", "imei", "caller", "device", "member",
              "person", "customer", "client", "phone")  # fmt: skip
# What is said to be missing, or there several times, where the role is part of another.
_ROLE_IN_WORDS = {"clock": "time", "area code": "region", "cell in area": "region"}
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
                        refuse_data_as_names(found)
                        raise RecordsError(f"has no column {part!r}", fix=suggestion(part, found))
            return named
        if role == "region":
            return self._guess_region(found)
        return guess(role, found)

    def require(self, role: str, found: Sequence[str]) -> str:
        """Return the name of the column for a role, refusing a table that lacks one."""
        name = self.find(role, found)
        if name is None:
            raise missing(role, found)
        return name

    def _guess_region(self, found: Sequence[str]) -> str | None:
        """Return a column of regions, or the two that number cells within areas."""
        name = guess("region", found)
        cell = guess("cell in area", found) if name is None else None
        if cell is None:
            return name
        area = guess("area code", found)
        return cell if area is None else f"{area}{TOGETHER}{cell}"


def guess(role: str, found: Sequence[str]) -> str | None:
    """Return the column whose name is the most usual one for a role, None where none is.

    Several columns that would serve equally well are refused.
    """
    fitting = _fitting(role, found)
    if len(fitting) > 1:
        words = _ROLE_IN_WORDS.get(role, role)
        raise RecordsError(
            f"has several columns that may hold the {words}: {listed(fitting)}",
            fix=f"Say which column holds the {words} (`columns.{words}`), or rename the others",
        )
    return fitting[0] if fitting else None


def _fitting(role: str, found: Sequence[str]) -> list[str]:
    """Return the columns that have the most usual name for a role, in any spelling."""
    by_letters: dict[str, list[str]] = {}
    for name in found:
        by_letters.setdefault(letters(_as_written(name, found)), []).append(name)
    usual = next((one for one in map(letters, USUAL_NAMES[role]) if one in by_letters), None)
    if usual is None:
        return []
    fitting = by_letters[usual]
    if role == "user" and usual == "id":
        fitting += [name for name in found if any(one in letters(name) for one in _OF_PEOPLE)]
    return fitting


def _as_written(name: str, found: Sequence[str]) -> str:
    """Return a name without the number that the reader gave it because it came before."""
    written = re.sub(r"_duplicated_\d+$", "", name)
    return written if written in found else name


def parts_of(name: str, found: Sequence[str]) -> list[str]:
    """Return the columns that a name stands for: one, or those of ``A+B``."""
    return [name] if name in found else name.split(TOGETHER)


def missing(role: str, found: Sequence[str]) -> RecordsError:
    """Say that a table has no column for a role, or no names of columns at all."""
    refuse_data_as_names(found)
    return RecordsError(
        f"has no column for the {role} (found {listed(found)})",
        fix=f"Say which column holds the {role} (`columns.{role}`){_OTHERWISE.get(role, '')}",
    )


def refuse_data_as_names(
    found: Sequence[str], *, where: object = None, header: str = "user,time,region"
) -> None:
    """Refuse a table whose header is missing, so that its first record stands for the names.

    No name is shown: together they would say where somebody was.
    """
    if _look_like_data(found):
        raise RecordsError(
            "line 1 looks like data: the header with the names of the columns is missing",
            where=where,
            fix=f"Add a first line with the names, such as {header}",
        )


def _look_like_data(found: Sequence[str]) -> bool:
    """Tell whether a name is a number or a time, and none is a usual one.

    Counts may have a column for each time: then nearly all names are times.
    """
    n_times = sum(map(looks_like_time, found))
    if n_times >= max(2, len(found) - 1) or any(letters(name) in _SURE_NAMES for name in found):
        return False
    return n_times > 0 or any(_DATUM.search(name) for name in found)


def letters(name: str) -> str:
    """Return a name as it is compared: its letters and digits, without case."""
    return re.sub(r"[\W_]", "", name).lower()


# Shorter ones may be ids: a region can be called x.
_SURE_NAMES = {letters(name) for names in USUAL_NAMES.values() for name in names if len(name) > 2}
# A number, or a time of day anywhere.
_DATUM = re.compile(r"^\s*[+-]?\d+(?:[.,]\d+)?\s*$|\d:\d\d")
