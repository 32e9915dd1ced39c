"""Compression and stretching of a marginal: formulas, order, and inputs at the edge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.adversary.marginals import log_compressed, power_transformed

COUNTS = st.lists(st.integers(0, 10**6), min_size=1, max_size=30).filter(any)


def normalised(counts):
    return np.array(counts, dtype=float) / np.sum(counts, dtype=float)


def test_compression_by_hand():
    # gamma is 1 / 0.1, so the values are log(1 + 1), log(1 + 3), log(1 + 0), log(1 + 6).
    expected = np.log([2, 4, 1, 7])
    found = log_compressed(np.array([0.1, 0.3, 0.0, 0.6]))
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)


def test_stretching_by_hand():
    # Two values 1/2 +- d have variance d^2, which is to be 1 / (3 * 2^2).
    high, low = 0.5 + np.sqrt(1 / 12), 0.5 - np.sqrt(1 / 12)
    found = power_transformed(np.array([0.4, 0.6]))
    np.testing.assert_allclose(found, [low, high], rtol=1e-9)


def test_the_target_is_that_of_uniform_draws(rng):
    """The stated limit 1 / (3 n^2); the mean over 2000 draws is within 1 % of it for n = 500."""
    draws = rng.random((2000, 500))
    variance = (draws / draws.sum(axis=1, keepdims=True)).var(axis=1).mean()
    assert variance == pytest.approx(1 / (3 * 500**2), rel=0.01)


@given(COUNTS)
def test_compression_keeps_order_and_zeros_and_evens_out(counts):
    marginal = normalised(counts)
    found = log_compressed(marginal)
    assert found.sum() == pytest.approx(1)
    assert ((found == 0) == (marginal == 0)).all()
    assert (np.diff(found[np.argsort(marginal)]) >= 0).all()
    assert found.max() <= marginal.max() + 1e-12


@given(COUNTS)
def test_stretching_keeps_order_and_meets_the_target_or_does_nothing(counts):
    marginal = normalised(counts)
    found = power_transformed(marginal)
    n = marginal.size
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1)
    assert (np.diff(found[np.argsort(marginal)]) >= 0).all()
    if not np.array_equal(found, marginal):
        assert found.var() == pytest.approx(1 / (3 * n**2), rel=1e-6)


@pytest.mark.parametrize(
    "marginal",
    [
        [1.0],
        [0.25] * 4,
        # Nine equal ones stay equal whatever the power: too even, though not constant.
        [0.11] * 9 + [0.01],
        # These vary enough as they are.
        [0.97, 0.01, 0.01, 0.01],
        [1.0, 0.0, 0.0],
    ],
)
def test_what_cannot_be_stretched_stays_as_it_is(marginal):
    found = power_transformed(np.array(marginal))
    assert found.tolist() == marginal


def test_huge_powers_and_tiny_probabilities_stay_finite():
    nearly_even = np.full(100, 0.01) + np.linspace(0, 1e-10, 100)
    found = power_transformed(nearly_even / nearly_even.sum())
    assert found.var() == pytest.approx(1 / (3 * 100**2), rel=1e-3)
    tiny = np.array([5e-324, 0.5, 0.5])
    assert np.isfinite(log_compressed(tiny)).all()
    assert np.isfinite(power_transformed(tiny)).all()
