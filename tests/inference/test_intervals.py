"""Intervals over rounds and people: textbook cases, and what is added up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, t

from whosthere.inference.intervals import of_share, reaches, variance
from whosthere.inference.looks import Errors


def left_out(values):
    """The mean without each value."""
    return (values.sum() - values) / (values.size - 1)


def test_variance_is_that_of_a_mean(rng):
    values = rng.normal(size=12)
    assert variance(left_out(values)) == pytest.approx(values.var(ddof=1) / 12)


def test_rounds_alone_are_students_t(rng):
    """Where people do not differ, all is as for a mean of rounds."""
    values = rng.normal(size=8)
    reach = reaches(left_out(values), np.full(25, values.mean()), 0.025)
    assert reach == pytest.approx(t.ppf(0.975, 7) * values.std(ddof=1) / np.sqrt(8))


def test_rounds_and_people_are_added(rng):
    rounds, groups = rng.normal(size=10), rng.normal(size=25)
    both = reaches(left_out(rounds), left_out(groups), 0.025)
    a, b = rounds.var(ddof=1) / 10, groups.var(ddof=1) / 25
    freedom = (a + b) ** 2 / (a**2 / 9 + b**2 / 24)
    assert both == pytest.approx(t.ppf(0.975, freedom) * np.sqrt(a + b))


@pytest.mark.parametrize("right", [0, 3, 40])
def test_never_narrower_than_independent_scores(right):
    same = np.full(10, right / 40)
    found = of_share(right / 40, same, same, 40)
    exact = binomtest(right, 40).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_ends_stay_between_0_and_1(rng):
    rounds = np.clip(0.97 + 0.1 * rng.normal(size=6), 0, 1)
    found = of_share(float(rounds.mean()), left_out(rounds), rounds, 1000, Errors(1e-4, 1e-4))
    assert (
        0 <= found.low_to_decide < found.low < found.value < found.high < found.high_to_decide <= 1
    )
