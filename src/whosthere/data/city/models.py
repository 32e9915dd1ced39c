"""The parameters of the simulated cities."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

# Shares of a working day's and a free day's sessions in each hour, 0 to 23, by a clock that
# runs with the person's own rhythm. Tweets rise until late in the evening; calls follow the
# working day, with a second peak after it.
_TWEETS_WORKING_DAY = (
    *(2.4, 1.3, 0.7, 0.45, 0.35, 0.45, 1.0, 2.4, 3.6, 4.0, 4.2, 4.4),
    *(5.0, 5.6, 5.2, 4.7, 4.6, 4.8, 5.2, 5.6, 6.0, 6.8, 7.0, 4.6),
)
_TWEETS_FREE_DAY = (
    *(3.8, 2.6, 1.6, 0.9, 0.55, 0.4, 0.6, 1.1, 2.0, 3.2, 4.2, 4.8),
    *(5.2, 5.6, 5.4, 5.2, 5.2, 5.4, 5.6, 5.8, 6.0, 6.6, 6.6, 4.8),
)
_CALLS_WORKING_DAY = (
    *(0.8, 0.4, 0.25, 0.2, 0.3, 0.9, 2.4, 4.2, 5.6, 6.2, 6.6, 6.8),
    *(6.6, 6.0, 5.9, 6.0, 6.3, 6.8, 7.0, 6.4, 5.2, 4.0, 2.6, 1.5),
)
_CALLS_FREE_DAY = (
    *(1.5, 0.9, 0.6, 0.4, 0.35, 0.6, 1.3, 2.6, 4.2, 5.6, 6.4, 6.7),
    *(6.6, 6.3, 6.0, 5.9, 6.0, 6.3, 6.6, 6.4, 5.6, 4.6, 3.2, 2.1),
)


@dataclass(frozen=True)
class DayPart:
    """A part of a person's day, and where people usually spend it.

    Parameters
    ----------
    start
        Hour at which it begins by the person's own clock; it lasts until the next part.
    home, work
        Probability of spending it at home and at work on a working day; the rest is elsewhere.
    home_when_free
        Probability of spending it at home on a free day; the rest is elsewhere.
    """

    start: float
    home: float
    work: float
    home_when_free: float


_DAY_PARTS = (
    DayPart(start=0, home=0.93, work=0.02, home_when_free=0.88),
    DayPart(start=7, home=0.60, work=0.15, home_when_free=0.80),
    DayPart(start=9, home=0.08, work=0.84, home_when_free=0.58),
    DayPart(start=13, home=0.10, work=0.76, home_when_free=0.45),
    DayPart(start=18, home=0.42, work=0.12, home_when_free=0.42),
    DayPart(start=21, home=0.72, work=0.03, home_when_free=0.60),
    DayPart(start=23, home=0.90, work=0.02, home_when_free=0.75),
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
        The day, from 0 to 24 h; where a person is changes only between parts.
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
    day_parts: tuple[DayPart, ...] = _DAY_PARTS
    seen_weekly: bool = True
    stray_regions: int = 5


MILAN_LIKE = CityModel(
    name="milan-like",
    users=5_000,
    regions=100,
    days=7,
    layout="grid",
    area_km2=256.0,
    lon=9.19,
    lat=45.464,
    first_day=date(2013, 11, 1),
    timezone="Europe/Rome",
    centres=3,
    centre_km=4.0,
    homes_km=4.0,
    jobs_km=2.5,
    leisure_km=2.5,
    homes_spread=0.9,
    jobs_spread=1.1,
    leisure_spread=1.2,
    commute_km=5.0,
    leisure_trip_km=3.0,
    working_hours=_TWEETS_WORKING_DAY,
    free_hours=_TWEETS_FREE_DAY,
    weekend_level=1.05,
    sessions_a_week=5.0,
    activity_spread=1.15,
    day_spread=0.7,
    records_a_session=1.4,
    gap_minutes=30.0,
    stray_share=0.06,
)

CDR_LIKE = CityModel(
    name="cdr-like",
    users=11_000,
    regions=500,
    days=30,
    layout="antennas",
    area_km2=150.0,
    lon=-74.085,
    lat=4.64,
    first_day=date(2021, 6, 1),
    timezone="America/Bogota",
    centres=4,
    centre_km=3.0,
    homes_km=8.0,
    jobs_km=3.0,
    leisure_km=3.0,
    homes_spread=1.3,
    jobs_spread=1.6,
    leisure_spread=1.6,
    commute_km=3.0,
    leisure_trip_km=2.0,
    working_hours=_CALLS_WORKING_DAY,
    free_hours=_CALLS_FREE_DAY,
    weekend_level=0.8,
    sessions_a_week=24.5,
    activity_spread=1.0,
    day_spread=0.5,
    records_a_session=1.9,
    gap_minutes=12.0,
    stray_share=0.15,
)

CITIES = {model.name: model for model in (MILAN_LIKE, CDR_LIKE)}
