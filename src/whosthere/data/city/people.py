"""The people of a simulated city: how they live, whom they know, and the records they leave."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.city.places import Choices, CityPlaces
from whosthere.data.epochs import DAYS_A_WEEK
from whosthere.data.neighbours import Neighbours, as_graph
from whosthere.display import in_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.arrays import Floats, Ints32, Ints64
    from whosthere.data.city.models import CityModel

    _Sessions = tuple[Ints64, Ints64, Floats]

_SATURDAY = 5
_DAY_SECONDS = 24 * 60 * 60


@dataclass(frozen=True, eq=False)
class Residents:
    """What is lasting about each person; every array has one row per person."""

    home: Ints32
    work: Ints32
    """Regions of the home and the workplace, -1 without one."""
    favourites: Ints32
    n_favourites: Ints32
    """Regions of favourite places, best first, shape (n, most), and how many are in use, from 1."""
    roaming: Floats
    """Share of stays elsewhere that lead to a new place instead of a favourite one."""
    clock_shift: Floats
    """Hours by which the person lives later than the wall clock says."""
    first_day_off: Ints32
    """Weekday (0 = Monday) of the first of a worker's two days off in a row."""
    sessions_a_week: Floats
    """Expected number of sessions in an average week."""

    def __len__(self) -> int:
        return int(self.home.size)

    def __repr__(self) -> str:
        return in_one_line("Residents", f"{len(self):,}")


def draw_people(
    model: CityModel, n: int, places: CityPlaces, rng: np.random.Generator
) -> Residents:
    """Draw `n` people: a home, a workplace near it, favourite places near either, a rhythm."""
    home = places.homes.draw(np.zeros(n, dtype=np.int64), rng)
    works = rng.random(n) < model.workers
    work = np.where(works, places.jobs.draw(home, rng), np.int32(-1))
    usual_days_off = rng.random(n) >= model.other_days_off
    return Residents(
        home=home,
        work=work,
        favourites=_favourites(model, home, work, places, rng),
        n_favourites=np.minimum(
            1 + rng.poisson(model.favourites - 1, n), model.most_favourites
        ).astype(np.int32),
        roaming=rng.beta(
            model.roaming * model.roaming_spread, (1 - model.roaming) * model.roaming_spread, n
        ),
        clock_shift=rng.normal(scale=model.chronotype_hours, size=n),
        first_day_off=np.where(
            usual_days_off, np.int32(_SATURDAY), rng.integers(7, size=n, dtype=np.int32)
        ),
        sessions_a_week=mean_one(model.activity_spread, n, rng) * model.sessions_a_week,
    )


def joined(parts: Sequence[Residents]) -> Residents:
    """Put groups of people together, in the given order."""
    columns = {
        f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Residents)
    }
    for column in columns.values():
        column.setflags(write=False)
    return Residents(**columns)


def mean_one(spread: float, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw log-normal factors with mean 1 and the given deviation of their logarithm."""
    return rng.lognormal(-(spread**2) / 2, spread, shape)


def _favourites(
    model: CityModel, home: Ints32, work: Ints32, places: CityPlaces, rng: np.random.Generator
) -> Ints32:
    shape = (home.size, model.most_favourites)
    near_work = (rng.random(shape) < model.near_work) & (work >= 0)[:, None]
    seen_from = np.where(near_work, work[:, None], home[:, None])
    return places.leisure.draw(seen_from.reshape(-1), rng).reshape(shape)


def draw_friends(people: Residents, rng: np.random.Generator) -> Neighbours:
    """Return a graph over people who share a home region, a workplace or a favourite place.

    A person makes 6 acquaintances on average, which is 12 friends: one of the person's own places
    is chosen at random, then one of the people who belong there.
    """
    # Pairs of a person and a region that the person keeps coming back to.
    everybody = np.arange(len(people))
    workers = everybody[people.work >= 0]
    in_use = np.arange(people.favourites.shape[1]) < people.n_favourites[:, None]
    person = np.concatenate([everybody, workers, np.nonzero(in_use)[0]])
    place = np.concatenate([people.home, people.work[workers], people.favourites[in_use]])
    by_place = np.argsort(place, kind="stable")
    place_start = np.searchsorted(place[by_place], np.arange(place.max() + 2))
    by_person = np.argsort(person, kind="stable")
    person_start = np.searchsorted(person[by_person], np.arange(len(people) + 1))

    someone = np.repeat(everybody, rng.poisson(6.0, len(people)))
    own = _pick(person_start[someone], person_start[someone + 1], rng)
    shared = place[by_person[own]]
    other = person[by_place[_pick(place_start[shared], place_start[shared + 1], rng)]]
    return as_graph(np.column_stack([someone, other]), len(people))


def _pick(start: Ints64, stop: Ints64, rng: np.random.Generator) -> Ints64:
    """Draw one number from each range, uniformly; no range may be empty."""
    return start + (rng.random(start.size) * (stop - start)).astype(np.int64)


def draw_events(
    model: CityModel, days: int, people: Residents, places: CityPlaces, rng: np.random.Generator
) -> tuple[Ints32, Ints64, Ints32]:
    """Let the people live for some days and note what they leave behind, in no given order.

    Returns the person, the second since the first midnight, and the region of each record.
    """
    person, day, body_hour = _sessions(model, days, people, rng)
    stay_region = _regions_of_stays(model, (person, day, body_hour), people, places, rng)
    size = rng.geometric(1 / model.records_a_session, size=person.size)
    session = np.repeat(np.arange(size.size), size)
    first = np.cumsum(size) - size
    gap = rng.exponential(model.gap_minutes * 60, size=session.size).astype(np.int64)
    gap[first] = 0
    since_start = np.cumsum(gap)
    since_start -= since_start[first][session]
    wall_hour = (body_hour + people.clock_shift[person]) % 24.0
    begin = np.minimum((wall_hour * 3600).astype(np.int64), _DAY_SECONDS - 1)
    second = (day * _DAY_SECONDS + begin)[session] + since_start
    region = _strayed(model, stay_region[session], places, rng)
    inside = second < days * _DAY_SECONDS
    return person[session][inside].astype(np.int32), second[inside], region[inside]


def _sessions(
    model: CityModel, days: int, people: Residents, rng: np.random.Generator
) -> _Sessions:
    """Draw bursts of records: the person, the day, and the hour by the person's own clock."""
    weekend = _weekday(model, np.arange(days)) >= _SATURDAY
    level = np.where(weekend, model.weekend_level, 1.0)
    level /= (DAYS_A_WEEK - 2) + 2 * model.weekend_level
    each_day = mean_one(model.day_spread, (len(people), days), rng)
    each_day *= people.sessions_a_week[:, None] * level
    number = rng.poisson(each_day)
    if model.seen_weekly:
        _fill_empty_weeks(number, rng)
    person, day = (
        np.repeat(i, number.reshape(-1)) for i in np.divmod(np.arange(number.size), days)
    )
    hours = Choices(np.array([model.working_hours, model.free_hours]))
    body_hour = hours.draw(weekend[day].astype(np.int64), rng) + rng.random(day.size)
    return person, day, body_hour


def _fill_empty_weeks(number: Ints64, rng: np.random.Generator) -> None:
    """Put one session on a random day of each whole week in which a person has none."""
    weeks = number.shape[1] // DAYS_A_WEEK
    by_week = number[:, : weeks * DAYS_A_WEEK].reshape(len(number), weeks, DAYS_A_WEEK)
    person, week = np.nonzero(by_week.sum(axis=2) == 0)
    number[person, week * DAYS_A_WEEK + rng.integers(DAYS_A_WEEK, size=person.size)] = 1


def _regions_of_stays(
    model: CityModel,
    sessions: _Sessions,
    people: Residents,
    places: CityPlaces,
    rng: np.random.Generator,
) -> Ints32:
    """Return where each session takes place; sessions in one part of a day share a place."""
    person, day, body_hour = sessions
    starts, home, work, home_when_free = np.array(model.day_parts).T
    part = np.searchsorted(starts, body_hour, side="right") - 1
    n_days = int(day.max(initial=0)) + 1
    key = (person * n_days + day) * starts.size + part
    stay, stay_of_session = np.unique(key, return_inverse=True)
    stay, part = np.divmod(stay, starts.size)
    person, day = np.divmod(stay, n_days)

    day_off = (_weekday(model, day) - people.first_day_off[person]) % DAYS_A_WEEK < 2
    works = (people.work[person] >= 0) & ~day_off
    chance = rng.random(person.size)
    at_home = chance < np.where(works, home[part], home_when_free[part])
    at_work = ~at_home & works & (chance < (home + work)[part])
    region = np.where(at_work, people.work[person], people.home[person])
    out = np.flatnonzero(~at_home & ~at_work)
    region[out] = _elsewhere(model, person[out], people, places, rng)
    return region[stay_of_session]


def _elsewhere(
    model: CityModel,
    person: Ints64,
    people: Residents,
    places: CityPlaces,
    rng: np.random.Generator,
) -> Ints32:
    """Return a favourite place of each person or, now and then, one that is new to them."""
    rank = np.arange(1, model.most_favourites + 1)
    weights = np.where(rank <= rank[:, None], rank**-model.favourite_power, 0.0)
    favourite = Choices(weights).draw(people.n_favourites[person] - 1, rng)
    roams = rng.random(person.size) < people.roaming[person]
    new = places.leisure.draw(people.home[person], rng)
    return np.where(roams, new, people.favourites[person, favourite])


def _strayed(
    model: CityModel, region: Ints32, places: CityPlaces, rng: np.random.Generator
) -> Ints32:
    strays = np.flatnonzero(rng.random(region.size) < model.stray_share)
    strayed = region.copy()
    choice = rng.integers(places.nearest.shape[1], size=strays.size)
    strayed[strays] = places.nearest[region[strays], choice]
    return strayed


def _weekday(model: CityModel, day: Ints64) -> Ints64:
    """Weekday, 0 = Monday, of days counted from the city's first."""
    return (model.first_day.weekday() + day) % DAYS_A_WEEK
