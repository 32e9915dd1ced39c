"""Which column of a table holds what: given by name, or guessed from the usual names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.errors import RecordsError, suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

USUAL_NAMES = {
    "user": ("user", "user_id", "userid", "uid", "msisdn", "subscriber", "subscriber_id", "device",
             "device_id", "member", "id"),
    "time": ("timestamp", "datetime", "time", "date_time", "event_time", "epoch_start", "hour",
             "date", "ts", "t"),
    "lon": ("lon", "lng", "long", "longitude", "x"),
    "lat": ("lat", "latitude", "y"),
    "region": ("region", "region_id", "cell", "cell_id", "antenna", "antenna_id", "station",
               "station_id", "roi", "zone", "site", "location", "location_id"),
    "count": ("count", "counts", "n", "value", "total", "people", "users", "visits"),
}  # fmt: skip

_OTHERWISE = {"region": ", or make regions from points: a grid, antennas, polygons or hexagons"}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns that hold each thing; None asks for a guess from `USUAL_NAMES`."""

    user: str | None = None
    time: str | None = None
    lon: str | None = None
    lat: str | None = None
    region: str | None = None
    count: str | None = None

    def find(self, role: str, found: Sequence[str]) -> str | None:
        """Return the name of the column for a role, None where none fits.

        A column that was named but is not among those found is refused.
        """
        named: str | None = getattr(self, role)
        if named is not None:
            if named not in found:
                raise RecordsError(f"has no column {named!r}", fix=suggestion(named, found))
            return named
        by_lower_case = {name.strip().lower(): name for name in reversed(found)}
        return next(
            (by_lower_case[usual] for usual in USUAL_NAMES[role] if usual in by_lower_case), None
        )

    def require(self, roles: Sequence[str], found: Sequence[str]) -> dict[str, str]:
        """Return the name of the column for every role, refusing a table that lacks one."""
        names: dict[str, str] = {}
        for role in roles:
            name = self.find(role, found)
            if name is None:
                otherwise = _OTHERWISE.get(role, "")
                raise RecordsError(
                    f"has no column for the {role} (found {', '.join(found) or 'none'})",
                    fix=f"Say which column holds the {role}{otherwise}",
                )
            names[role] = name
        return names
