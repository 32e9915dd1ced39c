"""What is said about data, on data of which it is known."""

import numpy as np
import pytest

from whosthere import simulate
from whosthere.paper.claims import Status, judged_data
from whosthere.paper.datasets import PRESETS
from whosthere.paper.description import LENGTHS, SCALES, describe


@pytest.fixture(scope="module")
def described():
    traces = simulate("milan-like", seed=3).traces()
    return traces, describe(traces, PRESETS["milan-like"], seed=1)


def test_marginals_are_shares(described):
    traces, found = described
    for marginal in (found.true_space, found.true_time, found.compressed_time, found.noisy_space):
        assert marginal.sum() == pytest.approx(1)
        assert marginal.min() >= 0
    assert found.true_space == pytest.approx(traces.counts().sum(axis=1) / traces.n_visits)
    assert found.activity.sum() == traces.n_visits


def test_nothing_is_suppressed_by_k_0_and_more_by_more(described):
    shares = described[1].suppressed.mean(axis=1)
    assert shares[0] == 0
    assert (np.diff(shares) > 0).all()


def test_marginals_become_uniform_only_where_counts_are_sparse(described):
    """Theorem A.5 and its remark: noise alone leaves a deviation of sqrt(3 / T)."""
    _, found = described
    measured, predicted = found.convergence
    assert predicted == pytest.approx(np.sqrt(3 / np.array(LENGTHS)))
    assert measured[-2:] == pytest.approx(predicted[-2:], rel=0.3)
    assert (np.diff(measured) < 0).all()
    # A Laplace number that is limited to 0 deviates by sqrt(3) of its mean; 168 epochs.
    assert SCALES[-1] == 100
    shares = found.space_by_scale[-1]
    assert np.std(shares * shares.size) == pytest.approx(np.sqrt(3 / 168), rel=0.25)


def test_targets_are_some_of_the_users(described):
    traces, found = described
    visits = traces.visits_per_user()
    assert found.of_targets([3, 70]).target_visits.tolist() == visits[[3, 70]].tolist()


def test_claims_about_data(described):
    first, compress, _, lognormal = (one for _, one in judged_data(described[1]))
    assert first.status is Status.HELD
    assert compress.status is Status.HELD
    assert lognormal.status is Status.HELD
