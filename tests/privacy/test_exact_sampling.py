"""Noise that is really published: proved enclosures, exact decisions, the stated laws."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from whosthere.privacy import exact_sampling
from whosthere.privacy.exact_sampling import Randomness, floored_normal, two_sided_geometric
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.units import Event, User, UserDay

RATES = st.fractions(Fraction(1, 10**8), 200, max_denominator=10**9)
NOISES = [
    Laplace(1, Event()),
    Laplace(0.1, UserDay(7)),
    Laplace(3.3, Event()),
    DiscreteLaplace(1, Event()),
    DiscreteLaplace(0.3, User(20)),
    DiscreteLaplace(50, Event()),
    Gaussian(1, 1e-6, Event()),
    Gaussian(0.1, 1e-3, User(30)),
    Gaussian(40, 1e-6, Event()),
]


class TestEnclosures:
    @settings(deadline=None)
    @given(RATES, st.sampled_from([64, 128, 256]))
    def test_against_decimals(self, x, bits):
        with localcontext() as context:
            context.prec = 200
            power = (-Decimal(x.numerator) / Decimal(x.denominator)).exp()
            for found, exact in (
                (exact_sampling.exponential(x, bits), power),
                (exact_sampling.logistic(x, bits), power / (1 + power)),
            ):
                low, high = found
                assert low <= exact * 2**bits <= high
                assert high - low <= 2

    @pytest.mark.parametrize("z", [0.0, 1e-3, 0.3, 1.0, 2.5, 5.0, 6.3])
    def test_tails_of_the_normal_law(self, z):
        ends = {bits: exact_sampling.erfc(Fraction(z) ** 2, bits) for bits in (64, 128, 400)}
        for bits, (low, high) in ends.items():
            assert high - low <= 2
            assert low <= ends[400][1] / Fraction(2) ** (400 - bits)
            assert high >= ends[400][0] / Fraction(2) ** (400 - bits)
        assert ends[400][0] / 2**400 == pytest.approx(special.erfc(z), rel=1e-14)

    def test_pi(self):
        low, high = exact_sampling._pi(64)
        assert low <= Fraction(math.pi) * 2**64 + 2**13
        assert (low / 2**64, high / 2**64) == (math.pi, math.pi)
        assert high - low <= 2

    def test_the_quantile_function_is_as_precise_as_assumed(self):
        """What `floored_normal` takes from scipy without proof."""
        tails = np.concatenate([np.geomspace(2.0**-64, 1, 400), np.linspace(0.3, 1, 200)])
        for tail in tails:
            place = float(-special.ndtri(tail / 2))
            error = 1e-13 * (1 + place)
            for end, side in ((place - error, 1), (place + error, 0)):
                bounds = exact_sampling.erfc(Fraction(max(end, 0.0)) ** 2 / 2, 128)
                exact = Fraction(float(tail)) * 2**128
                assert exact <= bounds[1] if side else exact >= bounds[0]


class TestDecisions:
    @pytest.mark.parametrize("enclose", [exact_sampling.exponential, exact_sampling.logistic])
    def test_more_bits_are_drawn_only_where_64_do_not_decide(self, monkeypatch, enclose):
        x = Fraction(41, 10)
        low, high = enclose(x, 64)
        words = np.array([0, low - 1, low, high, 2**64 - 1], np.uint64)
        monkeypatch.setattr(exact_sampling, "fair_words", lambda size: words[:size])
        drawn = []

        def zeros(n):
            drawn.append(n)
            return bytes(n)

        monkeypatch.setattr(exact_sampling.os, "urandom", zeros)
        assert exact_sampling._happens(5, x, enclose).tolist() == [True, True, True, False, False]
        assert drawn == [8]
        monkeypatch.setattr(exact_sampling.os, "urandom", lambda n: b"\xff" * n)
        assert exact_sampling._happens(5, x, enclose).tolist() == [True, True, False, False, False]

    @pytest.mark.parametrize("sigma", [0.7, 4.2, 1000.0])
    def test_normal_noise_close_to_a_whole_number(self, monkeypatch, sigma):
        """Words on both sides of erfc(k / (sigma sqrt 2)) differ by one in the noise."""
        k = max(1, round(sigma))
        bound, _ = exact_sampling.erfc(Fraction(k) ** 2 / (2 * Fraction(sigma) ** 2), 64)
        words = [np.array([bound - 1, bound + 2], np.uint64), np.zeros(2, np.uint64)]
        monkeypatch.setattr(exact_sampling, "fair_words", lambda size: words.pop(0))
        assert floored_normal((2,), sigma).tolist() == [k, k - 1]

    def test_the_far_tail_of_geometric_noise(self, monkeypatch):
        """A word of zeros is an event of any chance: digits are all 1, and the rest goes on."""
        calls = []

        def words(size):
            calls.append(size)
            return np.zeros(size, np.uint64) if len(calls) <= 8 else np.full(size, 2**64 - 1, "u8")

        monkeypatch.setattr(exact_sampling, "fair_words", words)
        monkeypatch.setattr(exact_sampling.os, "urandom", bytes)
        # Digits 0 to 5 (1 * 2^5 < 40), at least one more 64, another 64, and then no more.
        assert exact_sampling._geometric(1, Fraction(1)).tolist() == [63 + 128]


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_law(noise):
    n = 300_000
    drawn = noise.draw_securely((n,))
    assert drawn.dtype == np.int32
    edges = np.unique(
        np.round(
            np.quantile(noise.draw((n,), np.random.default_rng(0)), np.linspace(0.002, 0.998, 40))
        )
    )
    lo, hi = np.append(-np.inf, edges + 1), np.append(edges, np.inf)
    expected = n * np.exp(noise.log_between(lo, hi))
    observed = np.bincount(np.searchsorted(edges, drawn), minlength=edges.size + 1)
    likely = expected > 5
    # Bins in which next to nothing is expected join the fullest: one draw there proves nothing.
    fullest = int(np.argmax(expected[likely]))
    joined = [np.where(likely, one, 0.0)[likely] for one in (observed, expected)]
    for kept, all_bins in zip(joined, (observed, expected), strict=True):
        kept[fullest] += all_bins[~likely].sum()
    # Once in a million runs, for each kind of noise.
    assert joined[0].size == 1 or stats.chisquare(*joined).pvalue > 1e-6


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_cells_are_independent(noise):
    drawn = noise.draw_securely((400, 500)).astype(float)
    for other in (np.roll(drawn, 1, axis=1), np.roll(drawn, 1, axis=0)):
        if drawn.std():
            assert abs(np.corrcoef(drawn.ravel(), other.ravel())[0, 1]) < 6 / math.sqrt(drawn.size)


def test_shapes():
    for shape in ((), (0,), (3,), (2, 0, 4), (2, 3, 4)):
        assert two_sided_geometric(shape, Fraction(1), fair_sides=True).shape == shape
        assert floored_normal(shape, 3.0).shape == shape


def test_noise_does_not_come_from_a_generator_that_can_be_seeded(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("an ordinary generator was asked")

    monkeypatch.setattr(np.random, "default_rng", forbidden)
    for noise in NOISES:
        assert noise.randomness is Randomness.EXACT
        first, second = (noise.draw_securely((9, 999)) for _ in range(2))
        # With an eps of 50 there is hardly ever any noise.
        assert noise.eps == 50 or not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("text", "most_words"),
    [
        ("laplace(eps=1)", 10),
        ("discrete-laplace(eps=1, unit=user, max_visits=100000)", 30),
        ("gaussian(eps=1, unit=user, max_visits=50)", 3),
    ],
)
def test_little_work_for_each_cell(monkeypatch, text, most_words):
    """A release of 500 x 720 cells: few random words a cell, and hardly a decision by itself."""
    words, decided = [], []
    fair_words, uniform = exact_sampling.fair_words, exact_sampling._Uniform
    monkeypatch.setattr(
        exact_sampling, "fair_words", lambda size: words.append(size) or fair_words(size)
    )
    monkeypatch.setattr(
        exact_sampling, "_Uniform", lambda word: decided.append(word) or uniform(word)
    )
    Mechanism.parse(text).steps[0].draw_securely((500, 720))
    assert 500 * 720 <= sum(words) <= most_words * 500 * 720
    assert len(decided) <= 10


@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_the_same_law_as_opendp(scale):
    """The samplers of another library, written by others to be exact."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    n = 20_000
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * n))
    ours = two_sided_geometric((n,), 1 / Fraction(str(scale)), fair_sides=False)
    values = np.arange(-int(5 * scale), int(5 * scale) + 1)
    table = [[np.sum(x == v) for v in values] for x in (theirs, ours)]
    keep = np.sum(table, axis=0) > 0
    assert stats.chi2_contingency(np.array(table)[:, keep]).pvalue > 1e-6
