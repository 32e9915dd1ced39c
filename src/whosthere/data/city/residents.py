"""The people of a simulated city: where they belong, how they live and whom they know."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.neighbours import Neighbours, as_graph
from whosthere.display import in_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.data.city.models import CityModel
    from whosthere.data.city.places import CityPlaces

_SATURDAY = 5


@dataclass(frozen=True, eq=False)
class Residents:
    """What is lasting about each person; every array has one row per person.

    Attributes
    ----------
    home
        Region of the home, int32.
    work
        Region of the workplace, -1 without one, int32.
    favourites
        Regions of the favourite places, best first, shape (n, most), int32; only the first
        `n_favourites` are in use.
    n_favourites
        How many favourite places each person has, at least 1, int32.
    roaming
        Share of stays elsewhere that lead to a new place instead of a favourite one.
    clock_shift
        Hours by which the person lives later than the wall clock says.
    first_day_off
        Weekday (0 = Monday) of the first of a worker's two days off in a row.
    sessions_a_week
        Expected number of sessions in an average week.
    """

    home: NDArray[np.int32]
    work: NDArray[np.int32]
    favourites: NDArray[np.int32]
    n_favourites: NDArray[np.int32]
    roaming: NDArray[np.float64]
    clock_shift: NDArray[np.float64]
    first_day_off: NDArray[np.int32]
    sessions_a_week: NDArray[np.float64]

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
        n_favourites=_numbers_of_favourites(model, n, rng),
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


def mean_one(
    spread: float, shape: int | tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw log-normal factors with mean 1 and the given deviation of their logarithm."""
    return rng.lognormal(-(spread**2) / 2, spread, shape)


def _favourites(
    model: CityModel,
    home: NDArray[np.int32],
    work: NDArray[np.int32],
    places: CityPlaces,
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    shape = (home.size, model.most_favourites)
    near_work = (rng.random(shape) < model.near_work) & (work >= 0)[:, None]
    seen_from = np.where(near_work, work[:, None], home[:, None])
    return places.leisure.draw(seen_from.reshape(-1), rng).reshape(shape)


def _numbers_of_favourites(model: CityModel, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
    further = rng.poisson(model.favourites - 1, size=n)
    return np.minimum(1 + further, model.most_favourites).astype(np.int32)


def draw_friends(people: Residents, *, mean_friends: float, rng: np.random.Generator) -> Neighbours:
    """Join people to others who share a home region, a workplace or a favourite place.

    Each person makes half of `mean_friends` acquaintances on average: one of the person's own
    places is chosen at random, then one of the people who belong there. Friendship goes both
    ways.

    Returns
    -------
    A graph over person numbers.
    """
    person, place = _belonging(people)
    by_place = np.argsort(place, kind="stable")
    place_start = np.searchsorted(place[by_place], np.arange(place.max() + 2))
    by_person = np.argsort(person, kind="stable")
    person_start = np.searchsorted(person[by_person], np.arange(len(people) + 1))

    someone = np.repeat(np.arange(len(people)), rng.poisson(mean_friends / 2, len(people)))
    own = _pick(person_start[someone], person_start[someone + 1], rng)
    shared = place[by_person[own]]
    other = person[by_place[_pick(place_start[shared], place_start[shared + 1], rng)]]
    return as_graph(np.column_stack([someone, other]), len(people))


def _belonging(people: Residents) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a person and a region that the person keeps coming back to."""
    everybody = np.arange(len(people))
    workers = everybody[people.work >= 0]
    rank = np.arange(people.favourites.shape[1])
    in_use = rank < people.n_favourites[:, None]
    person = np.concatenate([everybody, workers, np.nonzero(in_use)[0]])
    place = np.concatenate([people.home, people.work[workers], people.favourites[in_use]])
    return person, place.astype(np.int64)


def _pick(
    start: NDArray[np.int64], stop: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw one number from each range, uniformly; no range may be empty."""
    return start + (rng.random(start.size) * (stop - start)).astype(np.int64)
