"""The parameters of the simulated cities, which stand in ``cities.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import date

_DAY_PARTS = (
    (0, 0.93, 0.02, 0.88),
    (7, 0.60, 0.15, 0.80),
    (9, 0.08, 0.84, 0.58),
    (13, 0.10, 0.76, 0.45),
    (18, 0.42, 0.12, 0.42),
    (21, 0.72, 0.03, 0.60),
    (23, 0.90, 0.02, 0.75),
)


@dataclass(frozen=True)
class CityModel:
    """Everything that a simulated city is made from, except the seed.

    Parameters
    ----------
    name
        What the city is called.
    users, regions, days
        Sizes, unless the caller asks for others.
    layout
        "grid": equal squares that fill a square area, records anywhere inside their square;
        "antennas": positions in a disc, denser where more happens, records at the antenna.
    area_km2
        Area of the whole city; it stays the same whatever the number of regions.
    lon, lat
        Middle of the city, degrees.
    first_day, timezone
        Local date of the first epoch, which begins at midnight, and the zone of that date.
    centres
        How many centres the city has: one in its middle, the others at random places.
    centre_km
        Distance over which the density of antennas falls by the factor e around a centre.
    homes_km, jobs_km, leisure_km
        The same for the number of homes, jobs and leisure places per region.
    homes_spread, jobs_spread, leisure_spread
        Standard deviation of the logarithm of a region's own, random attraction.
    commute_km, leisure_trip_km
        Distance scale d0 of the choice of a workplace or a leisure place, whose probability
        falls like (1 + d / d0) ** -distance_power.
    distance_power
        How fast distance deters.
    workers
        Share of people with a workplace (or a school, or a university).
    other_days_off
        Share of workers whose two days off are not Saturday and Sunday.
    favourites
        Mean number of favourite places besides home and work; each person has at least one.
    most_favourites
        Largest number of favourite places.
    favourite_power
        A person's favourite number r has the weight r ** -favourite_power.
    near_work
        Share of workers' favourite places that were chosen near work instead of home.
    roaming, roaming_spread
        Mean over people, and the concentration a + b of the Beta distribution, of the share
        of stays elsewhere that lead to a new place instead of a favourite one.
    chronotype_hours
        Standard deviation of the shift of a person's clock against the wall clock.
    day_parts
        The parts of a day, in which a person stays in one place: the hour at which each begins by
        the person's own clock; the probabilities of spending it at home and at work on a working
        day; and that of home on a free day. The rest is elsewhere.
    working_hours, free_hours
        Relative number of sessions in each hour of a working and a free day, 24 values each.
    weekend_level
        Sessions on a Saturday or Sunday relative to one on another day.
    sessions_a_week
        Mean number of sessions (bursts of records) that a person makes in a week.
    activity_spread
        Standard deviation of the logarithm of that mean over people.
    day_spread
        Standard deviation of the logarithm of a person's activity from day to day.
    seen_weekly
        Whether everybody makes at least one session in each whole week.
    records_a_session
        Mean number of records in a session (geometric).
    gap_minutes
        Mean time between the records of a session (exponential).
    stray_share
        Share of records that carry a region next to the person's own: on the move, or served
        by another antenna.
    stray_regions
        How many nearest regions such a record can carry.
    """

    name: str
    users: int
    regions: int
    days: int
    layout: Literal["grid", "antennas"]
    area_km2: float
    lon: float
    lat: float
    first_day: date
    timezone: str
    centres: int
    centre_km: float
    homes_km: float
    jobs_km: float
    leisure_km: float
    homes_spread: float
    jobs_spread: float
    leisure_spread: float
    commute_km: float
    leisure_trip_km: float
    working_hours: tuple[float, ...]
    free_hours: tuple[float, ...]
    weekend_level: float
    sessions_a_week: float
    activity_spread: float
    day_spread: float
    records_a_session: float
    gap_minutes: float
    stray_share: float
    distance_power: float = 2.0
    workers: float = 0.68
    other_days_off: float = 0.15
    favourites: float = 4.0
    most_favourites: int = 12
    favourite_power: float = 1.0
    near_work: float = 0.3
    roaming: float = 0.25
    roaming_spread: float = 4.0
    chronotype_hours: float = 1.3
    day_parts: tuple[tuple[float, float, float, float], ...] = _DAY_PARTS
    seen_weekly: bool = True
    stray_regions: int = 5


def _cities() -> dict[str, CityModel]:
    tables = tomllib.loads((files("whosthere.data.city") / "cities.toml").read_text("utf-8"))
    for parameters in tables.values():
        for day in ("working_hours", "free_hours"):
            parameters[day] = tuple(parameters[day])
    return {name: CityModel(name=name, **parameters) for name, parameters in tables.items()}


CITIES = _cities()
