"""Mechanisms as tables: what compiled code publishes by them has the very same law.

Every test of chance has a fixed seed and would, with a fresh one, fail with probability 1e-5.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy import stats

from whosthere.kernels.stages import publish_cell, publish_lanes
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
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


# The cells and groups that counts are published in, side by side in the lanes of a few groups.
FIRST_CELL, FIRST_GROUP, N_LANES, N_GROUPS = 5, 64, 32, 30


def published(spec, counts, m=M, key=1):
    n_cells = -(-counts.size // N_GROUPS)
    lanes = np.zeros((n_cells, N_LANES), np.uint16)
    lanes[:, :N_GROUPS].flat[: counts.size] = counts
    out = np.zeros((FIRST_CELL + n_cells, FIRST_GROUP + N_GROUPS), np.uint16)
    stages = Mechanism.parse(spec).tabulated(m)
    stop = FIRST_GROUP + N_GROUPS
    largest = publish_lanes(lanes, stages, np.uint64(key), FIRST_CELL, FIRST_GROUP, stop, out)
    assert not out[:FIRST_CELL].any()
    assert not out[:, :FIRST_GROUP].any()
    made = out[FIRST_CELL:, FIRST_GROUP:]
    assert largest >= made.max(initial=0)
    return made.reshape(-1)[: counts.size]


@every_mechanism
def test_what_is_published_follows_the_exact_chances(spec):
    """Chi-square of 60,001 cells for each of five counts."""
    for count in (0, 1, 2, 11, M):
        found = np.bincount(published(spec, np.full(60_001, count)), minlength=M + 1)
        chances = Mechanism.parse(spec).pmf(np.arange(M + 1), count, M)
        expected = 60_001 * chances
        assert not found[expected == 0].any()
        rare = expected < 5
        found = np.append(found[~rare], found[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        used = expected > 1e-9
        if used.sum() > 1:
            statistic = ((found[used] - expected[used]) ** 2 / expected[used]).sum()
            assert stats.chi2.sf(statistic, used.sum() - 1) > 1e-5 / len(SPECS) / 5


@every_mechanism
def test_cells_and_draws_are_independent(spec):
    """Neighbours, which share random words, and further counts, which do not; 4.5 sigma."""
    values = published(spec, np.full(40_000, 9)).astype(float)
    if values.std() == 0:
        return
    for lag in (1, 2, 3, 4, N_GROUPS, 1024):
        assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < 4.5 / np.sqrt(40_000)


@every_mechanism
def test_a_cell_alone_is_published_as_among_others(spec):
    counts = np.random.default_rng(0).integers(0, M + 1, 3001)
    row = published(spec, counts, key=7)
    stages = Mechanism.parse(spec).tabulated(M)
    assert row.tolist() == published_one_by_one(counts, stages, np.uint64(7)).tolist()


@numba.njit
def published_one_by_one(counts, stages, key):
    alone = np.empty(counts.size, np.int64)
    for i in range(counts.size):
        cell, group = FIRST_CELL + i // N_GROUPS, FIRST_GROUP + i % N_GROUPS
        alone[i] = publish_cell(counts[i], cell, group, stages, key)
    return alone


@every_mechanism
def test_the_same_key_keeps_the_order_of_groups(spec):
    counts = np.random.default_rng(0).integers(0, M, 5000)
    assert (published(spec, counts) <= published(spec, counts + 1)).all()
    assert np.array_equal(published(spec, counts), published(spec, counts))


@every_mechanism
def test_the_expected_count_is_that_of_the_exact_chances(spec):
    mechanism = Mechanism.parse(spec)
    values = np.arange(M + 1)
    exact = mechanism.pmf(values, values[:, None], M) @ values
    np.testing.assert_allclose(mechanism.expected(M), exact, atol=1e-10)


@pytest.mark.parametrize(
    "noise", [Laplace(1), Laplace(0.02), DiscreteLaplace(1), Gaussian(1), Gaussian(0.1)], ids=str
)
def test_both_tails_are_exact_to_64_bits(noise):
    """Whatever the chance: the summed ones differ by rounding, and by the last bit, alone."""
    stages = Mechanism((noise,)).tabulated(M)
    values = noise.window[0] + np.arange(stages.limits.size)
    below = stages.limits.astype(np.float64)
    above = (~stages.limits).astype(np.float64) + 1
    np.testing.assert_allclose(below, np.exp(noise.log_cdf(values)) * 2.0**64, rtol=1e-11, atol=2)
    np.testing.assert_allclose(above, np.exp(noise.log_sf(values)) * 2.0**64, rtol=1e-11, atol=2)
    assert (np.diff(stages.limits.astype(object)) >= 0).all()


@pytest.mark.parametrize("noise", [Laplace(1), Laplace(0.02), Gaussian(0.5)], ids=str)
def test_the_guide_says_what_the_limits_say(noise):
    """For the first and the last number of each of its entries."""
    stages = Mechanism((noise,)).tabulated(M)
    bits = int(stages.guide_bits[0])
    firsts = np.arange(2**bits, dtype=np.uint64) << np.uint64(64 - bits)
    lasts = firsts + np.uint64(2 ** (64 - bits) - 1)
    low, high = (np.searchsorted(stages.limits, ends, side="right") for ends in (firsts, lasts))
    assert np.array_equal(stages.guide, np.where(low == high, low, -1 - low))


def test_steps_without_tables_are_left_to_the_general_way():
    assert Laplace(1e-6).tabulated(Span(0, M)) is None
    assert RandomRound(5000).tabulated(Span(0, M)) is None
    for steps in ((Laplace(1e-6),), (Suppress(1), Laplace(1e-6)), (RandomRound(5000),)):
        assert Mechanism(steps).tabulated(M) is None
        assert Mechanism(steps).expected(M) is None
