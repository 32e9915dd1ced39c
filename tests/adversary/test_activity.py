"""How many visits people make: means, shapes and names.

Means are within 4.5 standard errors: a false alarm in 1e-5 of fresh seeds.
"""

from dataclasses import replace

import numpy as np
import pytest

from whosthere.adversary.synthetic import (
    Constant,
    Exponential,
    Lognormal,
    parse_activity,
)
from whosthere.errors import InputError

N = 40_000


def draw(activity, rng, n=N):
    return activity.at(rng.random(n))


@pytest.mark.parametrize("mean", [3.3, 5.64, 117.0])
@pytest.mark.parametrize("shape", [Exponential(1), Constant(1), Lognormal(1, 1.2)])
def test_the_mean_is_right(shape, mean, rng):
    activity = replace(shape, mean=mean)
    assert type(activity) is type(shape)
    assert activity.mean == pytest.approx(mean)
    visits = draw(activity, rng)
    assert visits.dtype == np.int64
    assert visits.shape == (N,)
    assert visits.min() >= 0
    # Rounding to the nearest moves the mean of the others by a little.
    rounding = {Exponential: 1 / (24 * mean)}.get(type(shape), 0.01)
    assert abs(visits.mean() - mean) < 4.5 * visits.std() / np.sqrt(N) + rounding


def test_some_people_have_no_visit(rng):
    """Rounded to the nearest: P(0) is that of less than half a visit; 4.5 sigma."""
    none = (draw(Exponential(2.0), rng, N) == 0).mean()
    p = 1 - np.exp(-0.25)
    assert abs(none - p) < 4.5 * np.sqrt(p * (1 - p) / N)


def test_constants_are_rounded_up_or_down(rng):
    assert set(draw(Constant(2.4), rng, 1000)) == {2, 3}
    assert set(draw(Constant(2.0), rng, 1000)) == {2}


def test_a_lognormal_has_the_given_spread(rng):
    logs = np.log(draw(Lognormal(1e6, 1.2), rng, N))
    assert abs(logs.std() - 1.2) < 4.5 * 1.2 / np.sqrt(2 * N)
    assert draw(Lognormal(7.0, 0.0), rng, 5).tolist() == [7] * 5


def test_no_visits_at_all(rng):
    for activity in (Exponential(0), Constant(0), Lognormal(0, 1)):
        assert not draw(activity, rng, 10).any()


def test_names():
    assert parse_activity("exponential", 3.0) == Exponential(3.0)
    assert parse_activity("Constant", 3.0) == Constant(3.0)
    assert parse_activity(" lognormal:1.2 ", 3.0) == Lognormal(3.0, 1.2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exponentail", "Did you mean 'exponential'"),
        ("", "Known: exponential, constant, lognormal:SIGMA"),
        ("lognormal", "Write it like lognormal:1.2"),
        ("lognormal:wide", "Write it like lognormal:1.2"),
        ("lognormal:nan", "within 0 to 5"),
        ("lognormal:-1", "within 0 to 5"),
        ("constant:3", "takes no number"),
    ],
)
def test_wrong_names_say_what_is_right(text, message):
    with pytest.raises(InputError, match=message):
        parse_activity(text, 1.0)


@pytest.mark.parametrize("mean", [-1.0, np.nan, np.inf])
def test_impossible_means_are_refused(mean):
    for make in (Exponential, Constant, lambda m: Lognormal(m, 1.0)):
        with pytest.raises(InputError, match="a mean of"):
            make(mean)
