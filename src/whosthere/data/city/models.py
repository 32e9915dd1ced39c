"""The parameters of the simulated cities, which stand in ``cities.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from whosthere.display import told

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
    """Everything that a simulated city with a `name` is made from, except the seed.

    docs/explanation/cities.md says what each parameter means. Attractions fall by the factor e over
    `homes_km`, `jobs_km` and `leisure_km` around a centre, and so does the density of antennas over
    `centre_km`. A choice at the distance d has a probability like (1 + d / d0) ** -distance_power,
    d0 being `commute_km` or `leisure_trip_km`. All but `roaming_spread`, a concentration a + b of
    the Beta distribution, spreads are standard deviations of logarithms.

    Each of `day_parts` is the hour at which a part of the day begins by the person's own clock, the
    chances of spending it at home and at work on a working day, and that of home on a free day.
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
    tables = told("whosthere.data.city", "cities")
    for parameters in tables.values():
        for day in ("working_hours", "free_hours"):
            parameters[day] = tuple(parameters[day])
    return {name: CityModel(name=name, **parameters) for name, parameters in tables.items()}


CITIES = _cities()
