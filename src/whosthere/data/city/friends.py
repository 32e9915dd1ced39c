"""Who knows whom in a simulated city: people who share places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.neighbours import Neighbours, as_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.city.residents import People


def draw_friends(people: People, *, mean_friends: float, rng: np.random.Generator) -> Neighbours:
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


def _belonging(people: People) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
