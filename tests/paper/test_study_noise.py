"""Noise that only the study has: its laws, and what is known of the authors' numbers."""

import numpy as np
import pytest
from scipy import stats

from whosthere.paper.study_noise import EightBitLaplace, UnlimitedLaplace
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import Laplace
from whosthere.privacy.step import Span
from whosthere.privacy.units import UserDay

M = 400
STEPS = [EightBitLaplace(1), EightBitLaplace(0.2), EightBitLaplace(0.01), UnlimitedLaplace(1)]


def table(step, m):
    counts = np.arange(m + 1, dtype=np.int32)
    return np.exp(step.log_landing(counts[:, None], counts, counts, Span(0, m)))


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_chances_sum_to_one(step):
    assert table(step, M).sum(axis=1) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_what_is_published_follows_the_chances(step):
    """A chi-square test that fails for one seed in 10,000."""
    rng = np.random.default_rng(3)
    true = np.full(40_000, 2, np.int32)
    found = np.bincount(step.publish(true, step.draw(true.shape, rng), Span(0, M)), minlength=M + 1)
    expected = table(step, M)[2] * true.size
    likely = expected > 5
    assert found[~likely].sum() == pytest.approx(expected[~likely].sum(), abs=60)
    p = stats.chisquare(
        np.append(found[likely], found[~likely].sum()),
        np.append(expected[likely], expected[~likely].sum() + 1e-9),
        sum_check=False,
    ).pvalue
    assert p > 1e-4


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_tables_say_the_same(step):
    tables = step.tabulated(Span(0, M))
    law = np.exp(step.log_between(*[np.arange(step.window[0], step.window[1] + 1.0)] * 2))
    assert tables.chances == pytest.approx(law, abs=1e-15)
    assert Mechanism((step,)).tabulated(M) is not None


def test_an_interval_is_the_sum_of_its_points():
    step, rng = EightBitLaplace(0.3), np.random.default_rng(0)
    z = np.arange(-128.0, 128)
    points = np.exp(step.log_between(z, z))
    for lo, hi in np.sort(rng.integers(-140, 140, (50, 2)), axis=1):
        inside = (lo <= z) & (z <= hi)
        assert np.exp(step.log_between(lo, hi)) == pytest.approx(points[inside].sum(), abs=1e-14)
    assert np.exp(step.log_cdf(5)) + np.exp(step.log_sf(5)) == pytest.approx(1)
    assert np.isneginf(step.log_between(3, 2))


def test_the_noise_of_8_bits_is_what_the_authors_code_draws():
    """63 % is 0 at scale 1 and 99 % at 0.2; at 100, 28 % lies beyond the bits and wraps."""
    zero = {eps: float(np.exp(EightBitLaplace(eps).log_between(0, 0))) for eps in (1, 5)}
    assert zero[1] == pytest.approx(1 - np.exp(-1))
    assert zero[5] == pytest.approx(1 - np.exp(-5))
    drawn = np.trunc(np.random.default_rng(1).laplace(0, 100, 200_000))
    assert np.mean((drawn < -128) | (drawn > 127)) == pytest.approx(0.28, abs=0.005)
    law = np.exp(EightBitLaplace(0.01).log_between(*[np.arange(-128.0, 128)] * 2))
    wrapped = drawn.astype(np.int64).astype(np.int8).astype(int)
    found = np.bincount(wrapped + 128, minlength=256) / drawn.size
    # 256 shares of 200,000 draws, each within 5 deviations.
    assert np.abs(found - law).max() < 5 * np.sqrt(law.max() / drawn.size)
    assert EightBitLaplace(1).guarantee is None


def test_unlimited_noise_is_laplace_noise_that_keeps_what_is_below_0():
    step, plain = UnlimitedLaplace(0.5, UserDay(2)), Laplace(0.5, UserDay(2))
    assert step.lift > 0
    true = np.arange(6, dtype=np.int32)
    noise = step.draw((50, 6), np.random.default_rng(2))
    same = plain.draw((50, 6), np.random.default_rng(2))
    sums = step.publish(true, noise, Span(0, 10_000)) - step.lift
    assert (sums == true + same).all()
    assert sums.min() < 0
    assert np.array_equal(np.maximum(sums, 0), plain.publish(true, same, Span(0, 10_000)))
    z = np.arange(-30.0, 30)
    assert step.log_between(z + step.lift, z + step.lift) == pytest.approx(plain.log_between(z, z))
    assert step.guarantee == plain.guarantee
