"""The single steps: maps and noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from whosthere.errors import SpecError
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.rounding import RandomRound, Round, Suppress
from whosthere.privacy.step import Span
from whosthere.privacy.trade_off import gaussian_sigma, log_delta
from whosthere.privacy.units import Event, User, UserDay

NOISES = [
    Laplace(1),
    Laplace(0.1),
    Laplace(5),
    Laplace(1, UserDay(10)),
    DiscreteLaplace(1),
    DiscreteLaplace(0.3, User(20)),
    DiscreteLaplace(4),
    Gaussian(1),
    Gaussian(0.5, 1e-9, User(50)),
    Gaussian(8, 1e-3),
]


def rounded_down_cdf(noise):
    """P(Z <= z) from scipy, written without our formulas."""
    b = noise.unit.l1_sensitivity / noise.eps
    if isinstance(noise, Laplace):
        return lambda z: stats.laplace(scale=b).cdf(np.asarray(z) + 1.0)
    if isinstance(noise, DiscreteLaplace):
        return lambda z: stats.dlaplace(1 / b).cdf(z)
    return lambda z: stats.norm(scale=noise.scale).cdf(np.asarray(z) + 1.0)


def test_suppress_and_round_by_hand():
    values = np.array([0, 1, 2, 3, 7, 8, 12, 13], np.int32)
    assert Suppress(2).apply(values, Span(0, 13)).tolist() == [0, 0, 0, 3, 7, 8, 12, 13]
    assert Round(5).apply(values, Span(0, 13)).tolist() == [0, 0, 0, 5, 5, 10, 10, 13]
    assert Round(2).apply(values, Span(0, 100)).tolist() == [0, 2, 2, 4, 8, 8, 12, 14]
    assert Round(1).apply(values, Span(0, 13)).tolist() == values.tolist()
    assert values.tolist() == [0, 1, 2, 3, 7, 8, 12, 13]


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noise_matches_scipy(noise):
    z = np.arange(-60, 60)
    cdf = rounded_down_cdf(noise)
    assert np.exp(noise.log_cdf(z)) == pytest.approx(cdf(z), abs=1e-13)
    assert np.exp(noise.log_sf(z)) == pytest.approx(1 - cdf(z), abs=1e-13)
    assert np.exp(noise.log_between(z, z + 3)) == pytest.approx(cdf(z + 3) - cdf(z - 1), abs=1e-13)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_draws_follow_the_cdf(noise):
    """Chi-square of 200,000 draws; false alarm rate 1e-4."""
    draws = noise.draw((500, 400), np.random.default_rng(12))
    assert draws.shape == (500, 400)
    assert draws.dtype == np.int32
    n = draws.size
    edges = np.unique((np.linspace(-5, 5, 60) * noise.scale).round())
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    expected = n * np.exp(noise.log_between(bounds[:-1] + 1, bounds[1:]))
    observed = np.diff(
        np.concatenate([[0], np.searchsorted(np.sort(draws, None), edges, "right"), [n]])
    )
    keep = expected > 5
    expected = np.append(expected[keep], expected[~keep].sum())
    observed = np.append(observed[keep], observed[~keep].sum())
    used = expected > 0
    statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
    assert stats.chi2.sf(statistic, used.sum() - 1) > 1e-4


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_neighbouring_draws_are_independent(noise):
    """Correlation of 100,000 pairs within 4.5 standard errors; false alarm rate below 1e-5."""
    draws = noise.draw((200_000,), np.random.default_rng(4)).astype(float)
    pairs = draws.reshape(-1, 2)
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 4.5 / math.sqrt(len(pairs))


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_window_holds_all_but_a_trace(noise):
    low, high = noise.window
    assert np.exp(noise.log_cdf(low - 1)) + np.exp(noise.log_sf(high)) < 1e-18
    assert np.exp(noise.log_cdf(low // 2)) + np.exp(noise.log_sf(high // 2)) > 1e-18


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_far_tails_do_not_cancel(noise):
    far = np.array([3, 10, 25]) * math.ceil(noise.scale)
    point = noise.log_between(far, far)
    assert np.isfinite(point).all()
    assert np.isfinite(noise.log_between(-far, -far)).all()
    tail = noise.log_between(far, np.inf)
    assert tail == pytest.approx(noise.log_sf(far - 1))
    assert (tail >= point).all()


def test_far_tail_of_laplace_in_closed_form():
    b = 2.0
    z = np.array([50, 500, 5000])
    expected = math.log(0.5) - z / b + math.log(1 - math.exp(-1 / b))
    assert Laplace(1 / b).log_between(z, z) == pytest.approx(expected, rel=1e-13)


def test_empty_and_whole_intervals():
    for noise in NOISES:
        assert noise.log_between(3, 2) == -np.inf
        assert noise.log_between(1, -4) == -np.inf
        assert noise.log_between(-2, -3) == -np.inf
        assert noise.log_between(-np.inf, np.inf) == 0


@pytest.mark.parametrize("eps", [1e-3, 0.1, 1, 10, 100])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
def test_sigma_is_the_least_that_keeps_the_guarantee(eps, delta):
    sigma = gaussian_sigma(eps, delta, 3.0)
    assert log_delta(eps, sigma / 3) <= math.log(delta) + 1e-11
    assert log_delta(eps, sigma / 3 * (1 - 1e-6)) > math.log(delta)


@pytest.mark.parametrize("eps", [0.1, 1, 10])
def test_sigma_agrees_with_the_plain_formula(eps):
    def excess(s):
        norm = stats.norm.cdf
        return norm(0.5 / s - eps * s) - math.exp(eps) * norm(-0.5 / s - eps * s) - 1e-5

    assert gaussian_sigma(eps, 1e-5, 1) == pytest.approx(optimize.brentq(excess, 0.05, 200))


def test_analytic_sigma_is_below_the_classical_one():
    assert gaussian_sigma(1, 1e-6, 1) < math.sqrt(2 * math.log(1.25e6))


@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace, Gaussian])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", None, True, 10**400])
def test_eps_must_be_a_positive_number(kind, bad):
    with pytest.raises(SpecError, match="eps must be"):
        kind(bad)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 2, math.nan, "x"])
def test_delta_must_lie_between_0_and_1(bad):
    with pytest.raises(SpecError, match="delta must be"):
        Gaussian(1, bad)


@pytest.mark.parametrize("bad", [-1, 1.0, math.nan, None, True, 10**30])
def test_whole_numbers_are_checked(bad):
    with pytest.raises(SpecError, match="k must"):
        Suppress(bad)
    for kind in (Round, RandomRound):
        with pytest.raises(SpecError, match="to must"):
            kind(bad)


@pytest.mark.parametrize("kind", [Round, RandomRound])
def test_rounding_to_0_is_refused(kind):
    with pytest.raises(SpecError, match="to must lie between 1 and"):
        kind(0)


@pytest.mark.parametrize("eps", [1e-9, 1e9])
@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace])
def test_scales_beyond_whole_counts_are_refused(kind, eps):
    with pytest.raises(SpecError, match="adds noise of scale"):
        kind(eps)


def test_the_unit_must_be_a_unit():
    with pytest.raises(SpecError, match="unit must be"):
        Laplace(1, "event")
    assert Laplace(1) == Laplace(1.0, Event())


@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace])
def test_the_largest_noise_fits(kind):
    noise = kind(1e-7)
    draws = noise.draw((1000,), np.random.default_rng(0))
    assert np.abs(draws).max() < 2**30
    assert noise.scale == pytest.approx(1e7)


def test_the_largest_bases_fit():
    step, m = RandomRound(2**30), 2**30
    counts = np.array([0, 5, 2**29, 2**30], np.int32)
    published = step.publish(counts, np.array([0.5, 1 - 1e-12, 0.75, 0.5]), Span(0, m))
    assert published.tolist() == [0, 2**30, 2**30, 2**30]
