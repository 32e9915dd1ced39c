"""Noise that is really published: proved enclosures, exact decisions, the stated laws."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from whosthere.privacy import exact_noise
from whosthere.privacy.discrete_gaussian import DiscreteGaussian
from whosthere.privacy.exact_noise import Randomness
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import DiscreteLaplace, Laplace
from whosthere.privacy.units import Event, User, UserDay

NOISES = [
    Laplace(1, Event()),
    Laplace(0.1, UserDay(7)),
    Laplace(3.3, Event()),
    DiscreteLaplace(1, Event()),
    DiscreteLaplace(0.3, User(20)),
    DiscreteLaplace(50, Event()),
    DiscreteGaussian(0.5, unit=Event()),
    DiscreteGaussian(3, unit=Event()),
    DiscreteGaussian(0.0003, unit=UserDay(7)),
]
every_noise = pytest.mark.parametrize("noise", NOISES, ids=str)


@settings(deadline=None)
@given(st.fractions(0, 200, max_denominator=10**9), st.sampled_from([64, 128, 256]))
def test_enclosures_against_decimals(x, bits):
    with localcontext() as context:
        context.prec = 200
        power = (-Decimal(x.numerator) / Decimal(x.denominator)).exp()
        low, high = exact_noise.exponential(x, bits)
        assert low <= power * 2**bits <= high
        assert high - low <= 2


@pytest.fixture
def words(monkeypatch):
    """Words in place of those of the operating system, and a count of those drawn further."""

    def given(*lots, further=b"\0"):
        left, drawn = [np.array(one, np.uint64) for one in lots], []
        monkeypatch.setattr(exact_noise, "fair_words", lambda size: left.pop(0)[:size])
        monkeypatch.setattr(exact_noise.os, "urandom", lambda n: drawn.append(n) or further * n)
        return drawn

    return given


class TestDecisions:
    RATE = Fraction(41, 10)

    @pytest.mark.parametrize(("further", "is_more"), [(b"\0", True), (b"\xff", False)])
    def test_more_bits_are_drawn_only_where_64_do_not_decide(self, words, further, is_more):
        low, high = exact_noise.exponential(self.RATE, 64)
        drawn = words([low - 1, low, high, 2**64 - 1], further=further)
        found = exact_noise._geometric(4, self.RATE)
        assert found.tolist() == [1, is_more, 0, 0]
        assert drawn == [8]

    def test_the_smallest_word_is_one_like_others(self, words):
        """U is just below 2^-64, which e^(-4.1 k) is not for k up to 10."""
        words([0], further=b"\xff")
        assert exact_noise._geometric(1, self.RATE).tolist() == [10]

    @pytest.mark.parametrize(("further", "size"), [(b"\0", 1), (b"\xff", 0)])
    def test_a_small_word_leaves_doubt(self, words, further, size):
        """U lies between 5 and 6 times 2^-64, and e^-x at 5.2 of them."""
        words([5], further=further)
        assert exact_noise._geometric(1, Fraction(427127, 10**4)).tolist() == [size]

    def test_in_doubt_everything_is_settled_as_in_floating_point(self):
        drawn = exact_noise.fair_words(500)
        place = -np.log(exact_noise._middle(drawn)) * 3

        def tail(_, k, bits):
            return exact_noise.exponential(Fraction(k, 3), bits)

        found = [
            exact_noise._largest(drawn, place, np.full(500, doubt), tail) for doubt in (1e-9, 2.0)
        ]
        assert np.array_equal(*found)

    def test_what_is_taken_or_left(self, words):
        """|z| = 2 at center 1 and width 3: the chance e^(-1/3)."""
        low, high = exact_noise.exponential(Fraction(1, 3), 64)
        sizes = np.full(4, 2, np.int32)
        drawn = words([0, low - 1, high, 2**64 - 1])
        taken = exact_noise._taken(sizes, Fraction(1), Fraction(3))
        assert taken.tolist() == [True, True, False, False]
        assert not drawn

    @pytest.mark.parametrize("rate", [Fraction(1, 10**8), Fraction(1, 10**12)])
    def test_the_largest_noise_fits_sums_with_counts(self, words, rate):
        """Of 2^30 - 1 on either side, in 32 bits with a group of 2^30; and it is reached."""
        most = 2**30 - 1
        for below, largest in ((2**63, -1 - most), (0, most)):
            words([1000], [below])
            [drawn] = exact_noise.rounded_laplace(1, rate).tolist()
            assert drawn == largest
            assert drawn + 2**30 < 2**31

    def test_the_largest_is_not_passed_in_doubt(self, words):
        words([0])
        place, error = np.array([3.0]), np.array([2.0])
        found = exact_noise._largest(
            np.array([0], np.uint64), place, error, lambda *_: (2**64, 2**64), most=6
        )
        assert found.tolist() == [6]


@every_noise
def test_the_law(noise):
    n = 300_000
    drawn = noise.draw_securely((n,))
    assert drawn.dtype == np.int32
    quick = noise.draw((n,), np.random.default_rng(0))
    edges = np.unique(np.round(np.quantile(quick, np.linspace(0.002, 0.998, 40))))
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


@every_noise
def test_cells_are_independent(noise):
    drawn = noise.draw_securely((400, 500)).astype(float)
    for other in (np.roll(drawn, 1, axis=1), np.roll(drawn, 1, axis=0)):
        if drawn.std():
            assert abs(np.corrcoef(drawn.ravel(), other.ravel())[0, 1]) < 6 / math.sqrt(drawn.size)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_shapes(shape):
    assert all(noise.draw_securely(shape).shape == shape for noise in NOISES)


def test_noise_does_not_come_from_a_generator_that_can_be_seeded(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("an ordinary generator was asked")

    monkeypatch.setattr(np.random, "default_rng", forbidden)
    for noise in NOISES:
        assert noise.randomness is Randomness.EXACT
        first, second = (noise.draw_securely((9, 999)) for _ in range(2))
        # With an eps of 50 there is hardly ever any noise.
        assert noise == DiscreteLaplace(50) or not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("text", "most_words"),
    [
        ("laplace(eps=1)", 2),
        ("discrete-laplace(eps=1, unit=user, max_visits=100000)", 3),
        ("discrete-gaussian(rho=0.001, unit=user, max_visits=50)", 6),
    ],
)
def test_little_work_for_each_cell(monkeypatch, text, most_words):
    """A release of 500 x 720 cells: few random words a cell, and hardly a decision by itself."""
    words, decided = [], []
    fair_words, uniform = exact_noise.fair_words, exact_noise._Uniform
    monkeypatch.setattr(
        exact_noise, "fair_words", lambda size: words.append(size) or fair_words(size)
    )
    monkeypatch.setattr(exact_noise, "_Uniform", lambda word: decided.append(word) or uniform(word))
    Mechanism.parse(text).steps[0].draw_securely((500, 720))
    assert 500 * 720 <= sum(words) <= most_words * 500 * 720
    assert len(decided) <= 10


@pytest.mark.parametrize("scale", [0.7, 3.0])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_same_law_as_opendp(kind, scale):
    """The samplers of another library, written by others to be exact."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    n, exactly = 20_000, Fraction(str(scale))
    metric = dp.l1_distance(T=int) if kind == "laplace" else dp.l2_distance(T=float)
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    theirs = np.array(make(dp.vector_domain(dp.atom_domain(T=int)), metric, scale=scale)([0] * n))
    ours = (
        exact_noise.discrete_laplace(n, 1 / exactly)
        if kind == "laplace"
        else exact_noise.discrete_normal(n, exactly**2)
    )
    values = np.arange(-int(5 * scale) - 1, int(5 * scale) + 2)
    table = np.array([[np.sum(x == v) for v in values] for x in (theirs, ours)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > 1e-6
