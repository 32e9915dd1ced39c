"""Aggregates that an attacker makes up."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats

from whosthere import kernels
from whosthere.adversary.groups import GroupSampler
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import GroupError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.rounding import RandomRound

M = 25


@pytest.fixture
def target(rng):
    return np.sort(rng.choice(7 * 72, 30, replace=False)).astype(np.int32)


def _sampler(traces, target, spec):
    return GroupSampler(traces, target, M, Mechanism.parse(spec))


def test_raw_pairs_differ_in_exactly_the_target_and_one_other_trace(traces, target, rng):
    pairs = _sampler(traces, target, "raw").sample(20, "paired", rng).counts.dense().astype(int)
    indicator = np.zeros(traces.n_cells, int)
    indicator[target] = 1
    everybody = [traces.counts([row]).ravel() for row in range(traces.n_users)]
    for inside, outside in zip(pairs[::2], pairs[1::2], strict=True):
        other = outside - inside + indicator
        assert any(np.array_equal(other, trace) for trace in everybody)


def test_pairs_share_their_noise(traces, target, rng):
    """Where neither the target nor the other was, a pair is equal under any noise."""
    spec = "laplace(eps=0.2, unit=event)"
    pairs = _sampler(traces, target, spec).sample(20, "paired", rng).counts.dense().astype(int)
    for inside, outside in zip(pairs[::2], pairs[1::2], strict=True):
        assert np.abs(inside - outside).max() <= 1
        assert (inside != outside).sum() <= target.size + traces.visits_per_user().max()


def test_independent_groups_do_not_share_noise(traces, target, rng):
    spec = "laplace(eps=0.2, unit=event)"
    groups = _sampler(traces, target, spec).sample(4, "independent", rng).counts.dense().astype(int)
    assert np.abs(groups[0] - groups[1]).max() > 3


@pytest.mark.parametrize("sampling", ["paired", "independent"])
def test_groups_have_their_size_and_are_balanced(rng, regions, epochs, sampling):
    """With one visit each, in a cell of their own, the counts name the members."""
    cells = np.arange(40, dtype=np.int32)
    loners = Traces(tuple(f"{i:02d}" for i in range(40)), np.arange(41), cells, regions, epochs)
    target = np.array([500], np.int32)
    made = GroupSampler(loners, target, M, Mechanism()).sample(10, sampling, rng)
    assert made.labels.tolist() == [True, False] * 5
    counts = made.counts.dense()
    assert (counts.sum(axis=1) == M).all()
    assert counts.max() == 1
    assert np.array_equal(counts[:, 500] == 1, made.labels)


def test_chosen_cells_are_those_of_whole_aggregates(traces, target):
    cells = np.array([3, 17, 100])
    sampler = _sampler(traces, target, "suppress(k=1)")
    whole = sampler.sample(6, "independent", np.random.default_rng(5))
    part = sampler.sample(6, "independent", np.random.default_rng(5), cells=cells)
    assert np.array_equal(part.counts.dense(), whole.counts.dense()[:, cells])


@pytest.mark.parametrize(
    "spec",
    ["raw", "suppress(k=1)", "laplace(eps=1, unit=event) | round(to=2)", "random-round(to=2000)"],
)
def test_chosen_cells_differ_in_pairs_as_all_do(traces, target, rng, spec):
    """Some of the target's cells and some others, with and without tables of the mechanism."""
    cells = np.sort(np.concatenate([target[::3], np.setdiff1d(np.arange(504), target)[::5]]))
    pairs = _sampler(traces, target, spec).sample(40, "paired", rng, cells=cells)
    inside, outside = np.split(pairs.counts.dense().reshape(20, -1).astype(int), 2, axis=1)
    assert inside.shape == (20, cells.size)
    of_target = np.isin(cells, target)
    assert not (inside > outside)[:, ~of_target].any()
    assert not (inside < outside)[:, of_target].any()


def test_everybody_is_as_likely_to_be_in_a_group(regions, epochs):
    """Chi-square of who is in 2,000 groups; a false alarm in 1e-5 of fresh seeds."""
    cells = np.arange(40, dtype=np.int32)
    loners = Traces(tuple(f"{i:02d}" for i in range(40)), np.arange(41), cells, regions, epochs)
    sampler = GroupSampler(loners, np.array([500], np.int32), M, Mechanism())
    for sampling in ("paired", "independent"):
        groups = sampler.sample(4000, sampling, np.random.default_rng(3)).counts.dense()
        without = groups[1::2, :40].sum(axis=0)
        # Drawn without replacement: the counts vary less than those of independent draws.
        variance = 2000 * (M / 40) * (1 - M / 40) * 40 / 39
        statistic = ((without - 2000 * M / 40) ** 2).sum() / variance
        assert 1e-5 / 4 < stats.chi2.sf(statistic, 39) < 1 - 1e-5 / 4
        together = (groups[1::2, 0] & groups[1::2, 1]).mean()
        exact = M * (M - 1) / (40 * 39)
        assert abs(together - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 2000)


@pytest.mark.parametrize("sampling", ["paired", "independent"])
@pytest.mark.parametrize(
    ("m", "dtype"),
    [
        (200, np.uint8),
        (300, np.uint16),
        # Compiled for this test alone, which takes seconds.
        pytest.param(70_000, np.uint32, marks=pytest.mark.full),
    ],
)
def test_large_counts_find_room(rng, regions, epochs, sampling, m, dtype):
    """Everybody is in cell 3: more than a byte, and more than two, can hold."""
    n = m + 5
    names = tuple(f"{i:06d}" for i in range(n))
    crowd = Traces(names, np.arange(n + 1), np.full(n, 3, np.int32), regions, epochs)
    target = np.array([3, 7], np.int32)
    made = GroupSampler(crowd, target, m, Mechanism()).sample(4, sampling, rng).counts
    assert made.base.dtype == dtype
    assert made.dense()[:, [3, 7]].tolist() == [[m, 1], [m, 0]] * 2
    assert kernels.cell_sums(made)[1][3] == 4 * m**2


@pytest.mark.parametrize("sampling", ["paired", "independent"])
def test_many_cells_and_groups_are_counted_part_by_part(rng, sampling):
    """Everybody is in every group without the target: its counts are everybody's."""
    regions = Regions([f"r{i:03d}" for i in range(700)])
    epochs = Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 72)
    visits = [np.sort(rng.choice(50_400, 40, replace=False)) for _ in range(30)]
    people = Traces(
        tuple(f"{i:02d}" for i in range(30)),
        np.arange(31) * 40,
        np.concatenate(visits).astype(np.int32),
        regions,
        epochs,
    )
    target = np.sort(rng.choice(50_400, 50, replace=False)).astype(np.int32)
    made = GroupSampler(people, target, 30, Mechanism()).sample(140, sampling, rng)
    counts, everybody = made.counts.dense().astype(int), people.counts().ravel()
    assert (counts[1::2] == everybody).all()
    alone = np.bincount(target, minlength=50_400)
    left_out = everybody + alone - counts[::2]
    traces = {tuple(cells.tolist()) for cells in visits}
    assert {tuple(np.flatnonzero(row).tolist()) for row in left_out} <= traces
    assert left_out.max() == 1


def test_mechanisms_without_tables_publish_by_the_same_law(traces, target):
    """Random rounding to 1,000 has tables and to 1,001 has none; means within 4.5 sigma."""
    means = []
    for to in (1000, 1001):
        sampler = GroupSampler(traces, target, M, Mechanism((RandomRound(to),)))
        counts = sampler.sample(400, "paired", np.random.default_rng(8)).counts.dense()
        assert set(np.unique(counts)) <= {0, M}
        means.append((counts > 0).mean() * to)
    true = GroupSampler(traces, target, M, Mechanism()).sample(
        400, "paired", np.random.default_rng(8)
    )
    expected = true.counts.dense().mean()
    for mean in means:
        assert abs(mean - expected) < 4.5 * np.sqrt(expected * 1000 / (200 * traces.n_cells))


def test_impossible_groups_are_refused(traces, target):
    with pytest.raises(GroupError, match="40 reference traces"):
        GroupSampler(traces, target, 41, Mechanism())
