"""Synthetic people: whole traces over real regions, and what they must share with their input.

Every test of chance has a fixed seed and would, with a fresh one, fail with probability 1e-4.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2_contingency, chisquare

from whosthere.adversary.synthetic import (
    Constant,
    Exponential,
    SamePeople,
    UnicityModel,
)
from whosthere.data.cities import simulate
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.errors import InputError

FALSE_ALARMS = 1e-4


@pytest.fixture(scope="module")
def city():
    """Antennas of a city with two days of hours, and the marginals of its people."""
    return simulate("cdr-like", seed=5, users=800, regions=60, days=2).traces()


@pytest.fixture(scope="module")
def model(city):
    """People whose regions hang together."""
    counts = city.counts()
    return UnicityModel(
        counts.sum(axis=1), counts.sum(axis=0), Exponential(20.0), city.regions, city.epochs
    )


@pytest.fixture(params=["connected", "scattered"])
def either(model, request):
    """The same, or people whose regions lie nowhere."""
    return model if request.param == "connected" else scattered(model)


def scattered(model):
    return replace(model, regions=Regions(model.regions.ids))


def regions_of(traces, row):
    return np.unique(traces.trace(row) // traces.epochs.n)


def one_visit_each(model, n=8000, seed=2):
    """Visits of people with one visit each: independent draws without any repetition."""
    model = replace(model, activity=Constant(1.0))
    return model.generate(n, np.random.default_rng(seed)).counts()


# What a trace looks like


def test_regions_of_a_trace_hang_together_and_are_ten_at_most(model):
    model = replace(model, activity=Constant(400.0))
    traces = model.generate(200, np.random.default_rng(1))
    graph = model.regions.neighbours
    matrix = csr_matrix((np.ones(graph.indices.size), graph.indices, graph.indptr))
    for row in range(traces.n_users):
        mine = regions_of(traces, row)
        assert mine.size <= 10
        # A region of the ten that was never drawn may leave a gap; then nothing can be said.
        if mine.size == 10:
            assert connected_components(matrix[mine][:, mine])[0] == 1
    assert sum(regions_of(traces, row).size == 10 for row in range(200)) > 100


def test_even_weights_show_every_region_of_a_connected_ten(model):
    """With 400 visits over ten even regions one is missed with chance 5e-18 a trace."""
    model = replace(model, space=np.ones(60), activity=Constant(400.0))
    traces = model.generate(200, np.random.default_rng(1))
    graph = model.regions.neighbours
    matrix = csr_matrix((np.ones(graph.indices.size), graph.indices, graph.indptr))
    for row in range(traces.n_users):
        mine = regions_of(traces, row)
        assert mine.size == 10
        assert connected_components(matrix[mine][:, mine])[0] == 1


def test_scattered_people_have_ten_regions_at_most(model):
    chosen = replace(scattered(model), space=np.ones(60), activity=Constant(400.0))
    traces = chosen.generate(50, np.random.default_rng(1))
    sizes = [regions_of(traces, row).size for row in range(50)]
    assert chosen.most_cells == 10 * 48
    assert 5 < min(sizes) <= max(sizes) <= 10


def test_visits_to_a_cell_count_once(model):
    model = replace(model, activity=Constant(5000.0))
    traces = model.generate(10, np.random.default_rng(1))
    assert traces.counts().max() <= 10
    assert traces.visits_per_user().max() <= model.most_cells == 480


# What a population shares with its input


def test_the_time_marginal_is_reproduced(either):
    seen = one_visit_each(either).sum(axis=0)
    assert chisquare(seen, either.time * seen.sum()).pvalue > FALSE_ALARMS


def test_connected_places_blur_the_space_marginal_towards_popular_neighbourhoods(model):
    """The restriction to a neighbourhood moves visits: near, and not equal to, the input."""
    seen = one_visit_each(model, n=40_000).sum(axis=1)
    share = seen / seen.sum()
    assert np.corrcoef(share, model.space)[0, 1] > 0.9
    assert 0.1 < np.abs(share - model.space).sum() < 0.25


def test_other_epoch_labels_change_labels_only(model):
    order = np.random.default_rng(8).permutation(48)
    plain = one_visit_each(model, seed=3).sum(axis=0)
    moved = one_visit_each(replace(model, time=model.time[order]), seed=4).sum(axis=0)
    assert chi2_contingency([plain[order], moved]).pvalue > FALSE_ALARMS


def test_other_region_labels_change_labels_only(model):
    order = np.random.default_rng(8).permutation(60)
    other = replace(model, space=model.space[order], regions=model.regions.select(order))
    plain = one_visit_each(model, seed=3).sum(axis=1)[order]
    moved = one_visit_each(other, seed=4).sum(axis=1)
    seen = plain + moved > 10
    assert chi2_contingency([plain[seen], moved[seen]]).pvalue > FALSE_ALARMS


# Values and errors


def test_the_same_people_are_counted_with_any_mean(either):
    """Means that ask for more visits than were drawn, and for fewer, in any order."""
    same = SamePeople(either, 100, np.random.default_rng(6))
    for mean in (3.0, 4.5, 40.0, 1.0, 0.0, 90.0):
        model = replace(either, activity=replace(either.activity, mean=mean))
        traces = model.generate(100, np.random.default_rng(6), evenly=True)
        assert np.array_equal(same.counts(mean), traces.counts())


def test_the_same_generator_makes_the_same_people(model):
    traces, again = (model.generate(100, np.random.default_rng(6)) for _ in range(2))
    assert np.array_equal(again.cells, traces.cells)
    assert list(traces.users) == sorted(set(traces.users))
    assert traces.shape == (60, 48)


def test_other_seeds_make_other_people(model):
    a, b = (SamePeople(model, 50, np.random.default_rng(s)).counts(5.0) for s in (1, 2))
    assert not np.array_equal(a, b)


def test_weights_become_probabilities_of_their_own(model):
    given = np.arange(60.0)
    made = replace(model, space=given)
    given[:] = 0
    assert made.space.sum() == pytest.approx(1)
    assert not made.space.flags.writeable


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": np.zeros(48)}, "not all 0"),
        ({"time": np.full(48, np.nan)}, "finite"),
        ({"space": -np.ones(60)}, "weights from 0"),
    ],
)
def test_wrong_input_is_named(model, change, message):
    with pytest.raises(InputError, match=message):
        replace(model, **change)


@pytest.mark.parametrize("regions", [Regions(["all"], [9.0], [45.0]), Regions(["all"])])
def test_one_region_and_one_epoch(regions):
    epochs = Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=1), 1)
    one = np.ones(1)
    model = UnicityModel(one, one, Constant(3.0), regions, epochs)
    assert SamePeople(model, 7, np.random.default_rng(1)).counts(3.0).tolist() == [[7]]
    assert model.generate(0, np.random.default_rng(1)).n_users == 0
