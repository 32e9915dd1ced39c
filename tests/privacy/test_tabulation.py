"""Mechanisms as tables, by which compiled code publishes."""

from __future__ import annotations

import numpy as np
import pytest

from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import Laplace
from whosthere.privacy.rounding import RandomRound, Suppress
from whosthere.privacy.step import Span

M = 23
SPECS = [
    "raw",
    "suppress(k=2)",
    "round(to=4)",
    "round(to=50)",
    "random-round(to=3)",
    "random-round(to=1)",
    "random-round(to=50)",
    "laplace(eps=1, unit=event)",
    "laplace(eps=0.01, unit=event)",
    "laplace(eps=1000, unit=event)",
    "discrete-laplace(eps=0.5, unit=event)",
    "gaussian(eps=1, delta=1e-6, unit=event)",
    "laplace(eps=1, unit=event) | suppress(k=1)",
    "suppress(k=1) | laplace(eps=1, unit=event)",
    "laplace(eps=1, unit=event) | random-round(to=3) | suppress(k=3)",
    "suppress(k=1) | round(to=2) | laplace(eps=2, unit=event) | gaussian(eps=9, unit=event)",
]
every_mechanism = pytest.mark.parametrize("spec", SPECS)


@every_mechanism
def test_the_expected_count_is_that_of_the_exact_chances(spec):
    mechanism = Mechanism.parse(spec)
    values = np.arange(M + 1)
    exact = mechanism.pmf(values, values[:, None], M) @ values
    np.testing.assert_allclose(mechanism.expected(M), exact, atol=1e-10)


def test_steps_without_tables_are_left_to_the_general_way():
    assert Laplace(1e-6).tabulated(Span(0, M)) is None
    assert RandomRound(5000).tabulated(Span(0, M)) is None
    for steps in ((Laplace(1e-6),), (Suppress(1), Laplace(1e-6)), (RandomRound(5000),)):
        assert Mechanism(steps).tabulated(M) is None
        assert Mechanism(steps).expected(M) is None
    assert Mechanism((Suppress(1), Laplace(1))).tabulated(M) is None
