"""How much of somebody's trace another person has as well."""

from dataclasses import replace

import numpy as np
import pytest

import whosthere as wt
from whosthere.data.traces import Traces
from whosthere.game import together
from whosthere.game.together import LEAST_VISITS, shared_visits
from whosthere.kernels import one_thread


@pytest.fixture(scope="module")
def city():
    return wt.simulate("milan-like", seed=3, users=600, regions=9, days=3).traces()


def by_hand(traces):
    """Compare everybody with everybody."""
    visited = np.zeros((traces.n_users, traces.n_cells), np.int32)
    for row in range(traces.n_users):
        visited[row, traces.trace(row)] = 1
    shared = visited @ visited.T
    np.fill_diagonal(shared, 0)
    return shared.max(axis=1)


def test_the_most_that_one_other_person_shares(city):
    found, visits = shared_visits(city), city.visits_per_user()
    enough = visits >= LEAST_VISITS
    np.testing.assert_array_equal(found.visits, visits[enough])
    np.testing.assert_array_equal(found.most, by_hand(city)[enough])


def test_threads_change_nothing(city):
    with one_thread():
        alone = shared_visits(city)
    np.testing.assert_array_equal(alone.most, shared_visits(city).most)
    np.testing.assert_array_equal(alone.by_chance, shared_visits(city).by_chance)


@pytest.mark.parametrize("limit", ["MOST_ASKED", "_MOST_STEPS"])
def test_a_sample_is_exact_for_everybody_in_it(city, monkeypatch, limit):
    """Of some people, drawn at random, the same is known as of everybody."""
    everybody = shared_visits(city)
    counts = city.counts().astype(float)
    per_person = (counts**2).sum() / city.n_users
    monkeypatch.setattr(together, limit, 40 if limit == "MOST_ASKED" else 39 * per_person)
    some = shared_visits(city, seed=1)
    assert some.visits.size == 40 < everybody.visits.size
    known = list(zip(everybody.visits, everybody.most, strict=True))
    assert all(one in known for one in zip(some.visits, some.most, strict=True))
    assert not np.array_equal(some.most, shared_visits(city, seed=2).most)


def test_identical_people_share_all_and_strangers_do_not(city):
    twins = city.select(np.repeat(np.arange(100), 2))
    twins = replace(twins, users=tuple(map(str, range(200))))
    found = shared_visits(twins)
    np.testing.assert_array_equal(found.most, found.visits)
    assert (found.by_chance > 0.5).mean() < 0.2


def test_chance_is_what_independent_people_share():
    """Stand-ins are no different from people who really go wherever others go."""
    rng = np.random.default_rng(5)
    n, n_epochs, n_regions = 800, 24, 4
    city = wt.simulate("milan-like", seed=3, users=n, regions=n_regions, days=1).traces()
    chances = rng.dirichlet([0.5] * n_regions, n_epochs)
    regions = np.array([rng.choice(n_regions, n, p=p) for p in chances]).T
    seen = rng.random((n, n_epochs)) < 0.4
    cells = np.sort(np.where(seen, regions * n_epochs + np.arange(n_epochs), n_regions * n_epochs))
    kept = cells < n_regions * n_epochs
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    made = Traces(
        tuple(map(str, range(n))), indptr, cells[kept].astype(np.int32), city.regions, city.epochs
    )
    found = shared_visits(made)
    real, chance = (found.most > found.visits / 2).mean(), (found.by_chance > 0.5).mean()
    # Five standard errors of a difference: a false alarm in fewer than 1 of a million.
    assert 0.3 < real < 1
    assert abs(real - chance) < 5 * np.sqrt(2 * 0.25 / found.visits.size)


def test_nobody_to_compare(traces):
    few = traces.select([0, 1])
    nobody = replace(few, indptr=np.zeros(3, np.int64), cells=np.zeros(0, np.int32))
    assert shared_visits(nobody).visits.size == 0
