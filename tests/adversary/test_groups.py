"""Aggregates that an attacker makes up."""

import numpy as np
import pytest

from whosthere.adversary.groups import GroupSampler
from whosthere.data.traces import Traces
from whosthere.errors import GroupError
from whosthere.privacy.mechanism import Mechanism

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


def test_impossible_groups_are_refused(traces, target, rng):
    with pytest.raises(GroupError, match="40 reference traces"):
        GroupSampler(traces, target, 41, Mechanism())
    with pytest.raises(GroupError, match="balanced"):
        _sampler(traces, target, "raw").sample(3, "paired", rng)
