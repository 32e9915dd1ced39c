"""Publishing counts, and the exact chance of what is published."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from whosthere.errors import InputError, SpecError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.probability import placed
from whosthere.privacy.rounding import RandomRound, Round, Suppress
from whosthere.privacy.shapes import Map
from whosthere.privacy.step import WITHHELD, Correction, Span
from whosthere.privacy.units import Event, Guarantee, User, UserDay

SPECS = [
    "raw",
    "suppress(k=3)",
    "round(to=4)",
    "opensafely",
    "flowkit",
    "laplace(eps=0.1)",
    "laplace(eps=1)",
    "laplace(eps=5)",
    "laplace(eps=1, unit=user-day, max_visits=10)",
    "laplace(eps=2, unit=user, max_visits=50)",
    "discrete-laplace(eps=1)",
    "discrete-laplace(eps=1, unit=user-day, max_visits=10)",
    "gaussian(eps=1)",
    "gaussian(eps=5, delta=1e-9, unit=user, max_visits=20)",
    "laplace(eps=1) | suppress(k=1)",
    "laplace(eps=0.5) | opensafely",
    "suppress(k=2) | laplace(eps=1)",
    "round(to=3) | discrete-laplace(eps=1) | suppress(k=4) | round(to=5)",
    "laplace(eps=1) | gaussian(eps=3)",
    "laplace(eps=1) | suppress(k=2) | discrete-laplace(eps=0.7) | round(to=3)",
    "suppress(k=1) | laplace(eps=3) | gaussian(eps=9) | suppress(k=1) | discrete-laplace(eps=2)",
    "random-round(to=3)",
    "random-round(to=40)",
    "suppress(k=2) | random-round(to=5)",
    "random-round(to=5) | suppress(k=4)",
    "random-round(to=2) | random-round(to=3)",
    "laplace(eps=1) | random-round(to=3)",
    "random-round(to=3) | laplace(eps=1) | suppress(k=2)",
    "laplace(eps=1) | random-round(to=3) | gaussian(eps=3)",
]
M = 23
COUNTS = np.arange(M + 1)


def table(mechanism, m=M):
    """P(published | true) as a matrix, a row for each true count."""
    counts = np.arange(m + 1)
    return mechanism.pmf(counts, counts[:, None], m)


def step_matrix(step, m):
    """The same for one step, built cell by cell from scipy's distributions."""
    matrix = np.zeros((m + 1, m + 1))
    for n in range(m + 1):
        if isinstance(step, Suppress):
            matrix[n, n if n > step.k else 0] = 1
        elif isinstance(step, Round):
            matrix[n, min(m, step.to * math.floor(n / step.to + 0.5))] = 1
        elif isinstance(step, RandomRound):
            down, part = divmod(n, step.to)
            matrix[n, down * step.to] += 1 - part / step.to
            matrix[n, min(m, (down + 1) * step.to)] += part / step.to
        else:
            below = cdf_of(step)(np.arange(m) - n)
            matrix[n] = np.diff(np.concatenate([[0.0], below, [1.0]]))
    return matrix


def cdf_of(noise):
    if isinstance(noise, DiscreteLaplace):
        return stats.dlaplace(noise.eps / noise.unit.l1_sensitivity).cdf
    if isinstance(noise, Laplace):
        law = stats.laplace(scale=noise.unit.l1_sensitivity / noise.eps)
    else:
        law = stats.norm(scale=noise.scale)
    return lambda z: law.cdf(z + 1)


@pytest.fixture(params=SPECS)
def mechanism(request):
    return Mechanism.parse(request.param)


@pytest.mark.parametrize("m", [1, 2, 7, M, 60])
def test_composition_is_the_product_of_the_steps_matrices(mechanism, m):
    expected = np.eye(m + 1)
    for step in mechanism.steps:
        expected = expected @ step_matrix(step, m)
    assert table(mechanism, m) == pytest.approx(expected, abs=1e-12)


def test_rows_sum_to_one(mechanism):
    assert table(mechanism, 80).sum(axis=1) == pytest.approx(1, abs=1e-12)


def test_what_is_published_follows_the_pmf(mechanism):
    """Chi-square of 40,000 cells for each of five true counts; false alarm rate 1e-4."""
    rng = np.random.default_rng(77)
    n = 40_000
    p_values = []
    for true in (0, 1, 5, 14, M):
        published = mechanism.apply(np.full((200, 200), true), M, rng)
        observed = np.bincount(published.ravel(), minlength=M + 1)
        expected = n * mechanism.pmf(COUNTS, true, M)
        assert not observed[expected == 0].any()
        rare = expected < 5
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        used = expected > 1e-9 * n
        statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
        p_values.append(stats.chi2.sf(statistic, used.sum() - 1) if used.sum() > 1 else 1.0)
    assert min(p_values) > 1e-4 / len(p_values)


def test_published_counts_are_int32_within_the_group(mechanism):
    rng = np.random.default_rng(2)
    counts = rng.integers(0, M + 1, (3, 10, 20), dtype=np.int32)
    before = counts.copy()
    published = mechanism.apply(counts, M, rng)
    assert published.dtype == np.int32
    assert published.shape == counts.shape
    assert 0 <= published.min() <= published.max() <= M
    assert np.array_equal(counts, before)
    assert not np.shares_memory(published, counts)


def test_the_same_noise_differs_only_where_counts_differ(mechanism):
    rng = np.random.default_rng(3)
    counts = rng.integers(0, M, (30, 40)).astype(np.int32)
    more = counts + (rng.random(counts.shape) < 0.1)
    noise = mechanism.draw(counts.shape, rng)
    copies = tuple(z.copy() for z in noise)
    one, other = (mechanism.publish(c, noise, M) for c in (counts, more))
    assert np.array_equal(one[counts == more], other[counts == more])
    assert (one <= other).all()
    assert np.array_equal(mechanism.publish(np.stack([counts, more]), noise, M), [one, other])
    assert all(np.array_equal(z, copy) for z, copy in zip(noise, copies, strict=True))


def test_the_seed_decides(mechanism):
    counts = np.arange(24).reshape(4, 6)
    one, other = (mechanism.apply(counts, M, np.random.default_rng(8)) for _ in range(2))
    assert np.array_equal(one, other)


def test_single_counts_and_empty_arrays(mechanism):
    rng = np.random.default_rng(0)
    assert mechanism.apply(5, M, rng).shape == ()
    assert mechanism.apply(np.zeros((0, 4), int), M, rng).shape == (0, 4)
    assert mechanism.pmf(3, 5, M).shape == ()
    assert mechanism.pmf(np.zeros(0, int), 5, M).shape == (0,)
    assert mechanism.pmf(np.zeros((4, 1), int), np.zeros(3, int), M).shape == (4, 3)


@pytest.mark.parametrize(("eps", "b"), [(1.0, 1.0), (0.25, 4.0)])
def test_laplace_is_a_difference_of_its_cdf(eps, b):
    """P(a | n) = F(a + 1 - n) - F(a - n) within, the tails collected at 0 and m."""
    found = table(Mechanism((Laplace(eps),)))
    cdf = stats.laplace(scale=b).cdf
    a, n = np.meshgrid(COUNTS, COUNTS)
    within = cdf(a + 1 - n) - cdf(a - n)
    assert found[:, 1:-1] == pytest.approx(within[:, 1:-1], abs=1e-14)
    assert found[:, 0] == pytest.approx(cdf(1 - COUNTS), abs=1e-14)
    assert found[:, -1] == pytest.approx(1 - cdf(M - COUNTS), abs=1e-14)


@pytest.mark.parametrize(
    "spec",
    [
        "laplace(eps=0.1)",
        "laplace(eps=1, unit=user, max_visits=50) | suppress(k=15) | round(to=5)",
        "discrete-laplace(eps=0.5) | flowkit",
        "gaussian(eps=0.1)",
        "laplace(eps=1) | gaussian(eps=1) | round(to=5)",
        "laplace(eps=0.1) | random-round(to=5)",
        "random-round(to=100) | laplace(eps=0.5)",
    ],
)
def test_large_groups_and_counts(spec):
    mechanism, m = Mechanism.parse(spec), 3_000_000
    steps, true = placed(mechanism.steps, m)[0], np.array([0, 4000, 9000, m])[:, None]
    middle = Span(m // 2, m // 2)
    landing = reduce(lambda counts, at: at[0].lands(counts, at[1]), steps, middle)
    reach = landing.highest - landing.lowest + 10
    published = np.clip(true + np.arange(-reach, reach + 1), 0, m)
    tracemalloc.start()
    found = mechanism.pmf(published, true, m)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1e8
    assert np.isfinite(found).all()
    for row, values in zip(found, published, strict=True):
        _, first = np.unique(values, return_index=True)
        assert row[first].sum() == pytest.approx(1, abs=1e-10)


def test_log_pmf_goes_on_where_pmf_underflows():
    mechanism = Mechanism.parse("laplace(eps=1)")
    steps = mechanism.log_pmf([5000, 4000], 10, 100_000)
    assert steps[1] - steps[0] == pytest.approx(1000)
    assert mechanism.pmf(5000, 10, 100_000) == 0
    assert Mechanism.parse("suppress(k=3)").log_pmf(2, 2, 10) == -np.inf


@pytest.mark.parametrize("eps", [0.01, 0.5, 1, 3, 20])
@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace])
@pytest.mark.parametrize("after", [(), (Suppress(2),), (Round(5), Gaussian(1))])
def test_one_visit_changes_no_chance_by_more_than_eps(kind, eps, after):
    counts = np.arange(41)
    logs = Mechanism((kind(eps), *after)).log_pmf(counts, counts[:, None], 40)
    # Sums over the noise of a first step are exact down to a chance of about 1e-18.
    possible = (logs > (-30 if len(after) == 2 else -np.inf)).all(axis=0)
    most = np.abs(np.diff(logs[:, possible], axis=0)).max()
    assert most <= eps + 1e-9
    assert after or most >= eps - 1e-9


@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace])
def test_a_whole_person_changes_no_chance_by_more_than_eps(kind):
    """A person of 10 visits moves ten cells by one: ten times the change of one cell."""
    counts = np.arange(41)
    logs = Mechanism((kind(1.5, User(10)),)).log_pmf(counts, counts[:, None], 40)
    assert 10 * np.abs(np.diff(logs, axis=0)).max() == pytest.approx(1.5)


@pytest.mark.parametrize(("eps", "delta"), [(0.3, 1e-5), (1, 1e-6), (1, 0.05), (6, 1e-3)])
def test_gaussian_stays_within_delta(eps, delta):
    found = table(Mechanism((Gaussian(eps, delta),)), 90)
    for one, other in ((found[:-1], found[1:]), (found[1:], found[:-1])):
        excess = np.maximum(one - math.exp(eps) * other, 0).sum(axis=1)
        assert excess.max() <= delta * (1 + 1e-9)
        assert excess.max() > delta / 100


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("raw", None),
        ("suppress(k=3)", None),
        ("suppress(k=3) | laplace(eps=1)", None),
        ("laplace(eps=2) | suppress(k=1)", Guarantee(2, 0, Event())),
        ("laplace(eps=2) | gaussian(eps=1)", Guarantee(2, 0, Event())),
        ("gaussian(eps=1, unit=user, max_visits=9)", Guarantee(1, 1e-6, User(9))),
        (
            "laplace(eps=1, unit=user-day, max_visits=9) | laplace(eps=1)",
            Guarantee(1, 0, UserDay(9)),
        ),
        # Bounding whole people lets one visit push another one out: two cells change.
        ("laplace(eps=1) | laplace(eps=1, unit=user, max_visits=9)", None),
        ("random-round(to=3)", None),
        # A visit more can move a rounded count by 3.
        ("random-round(to=3) | laplace(eps=1)", None),
        ("laplace(eps=1) | random-round(to=3)", Guarantee(1, 0, Event())),
    ],
)
def test_guarantee(spec, expected):
    assert Mechanism.parse(spec).guarantee == expected


def test_descriptions_are_public_sentences(mechanism):
    text = mechanism.describe()
    assert text.endswith(".")
    assert ("no formal guarantee" in text) == (mechanism.guarantee is None)
    for unit in mechanism.units:
        assert unit.describe_bound() in text
    if mechanism.guarantee is not None:
        assert f"the odds {mechanism.guarantee.unit.question} by a factor of at most e^" in text
    assert "cannot tell" not in text


def test_descriptions_by_hand():
    assert Mechanism.parse("opensafely").describe() == (
        "Counts of 7 or fewer are published as 0. Counts are rounded to the nearest multiple of 5. "
        "Nothing is left to chance, so no formal guarantee is given."
    )
    text = Mechanism.parse("gaussian(eps=1, unit=user, max_visits=30)").describe()
    assert text.startswith("At most 30 visits of each person are counted")
    assert text.endswith(
        "This is differential privacy with eps 1 and delta 1e-6 for adding or removing one user. "
        "The group's size is public, so somebody else is counted instead of a person left out. "
        "Whoever knows everything else can raise the odds that a person is in the data by a "
        "factor of at most e^1.455 = 4.3, except with a chance of at most 3.8e-05."
    )
    text = Mechanism.parse("laplace(eps=1, unit=user, max_visits=50)").describe()
    assert text.endswith("a person is in the data by a factor of at most e^2 = 7.4.")
    text = Mechanism.parse("laplace(eps=70, unit=user, max_visits=50)").describe()
    assert text.endswith("e^140 = 6.3e+60. That is hardly any protection.")
    text = Mechanism.parse("laplace(eps=1.5, unit=user, max_visits=50)").describe()
    assert text.endswith("e^3 = 20. That is weak protection.")
    text = Mechanism.parse("laplace(eps=1)").describe()
    assert "that one visit of a person took place by a factor of at most e^1 = 2.7. " in text
    assert text.endswith("for each visit of theirs, and of whoever is counted in their place.")
    assert "unchanged" in Mechanism().describe()
    text = Mechanism.parse("random-round(to=3)").describe()
    assert text.endswith("follows no privacy budget, so no formal guarantee is given.")
    text = Mechanism.parse("random-round(to=3) | laplace(eps=1)").describe()
    assert text.endswith("Noise does not come first, so no formal guarantee is given.")


@pytest.mark.parametrize(
    ("spec", "changes", "correction", "units"),
    [
        ("raw", False, Correction.NONE, ()),
        ("suppress(k=0) | round(to=1) | random-round(to=1)", False, Correction.NONE, ()),
        ("round(to=5)", True, Correction.NONE, ()),
        ("random-round(to=3)", True, Correction.NONE, ()),
        ("suppress(k=1) | round(to=5)", True, Correction.COMPRESS, ()),
        ("suppress(k=1) | laplace(eps=1)", True, Correction.STRETCH, (Event(),)),
        (
            "laplace(eps=1, unit=user, max_visits=9) | laplace(eps=1) | gaussian(eps=1)",
            True,
            Correction.STRETCH,
            (User(9), Event()),
        ),
    ],
)
def test_what_others_need_to_know(spec, changes, correction, units):
    mechanism = Mechanism.parse(spec)
    assert mechanism.changes_counts == changes
    assert mechanism.correction == correction
    assert mechanism.units == units
    assert mechanism.bounds_visits == any(unit != Event() for unit in units)


def test_content_tells_mechanisms_apart_and_nothing_else():
    specs = [*SPECS, "laplace(eps=1.5)", "laplace(eps=1, unit=user, max_visits=10)"]
    mechanisms = {Mechanism.parse(spec) for spec in specs}
    assert len({mechanism.content for mechanism in mechanisms}) == len(mechanisms)
    same = ["laplace(eps=1)", "raw | LAPLACE(unit=event, eps=1.0)"]
    assert len({Mechanism.parse(spec).content for spec in same}) == 1


def test_mechanisms_are_values(mechanism):
    again = Mechanism.parse(str(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert Mechanism(list(mechanism.steps)) == mechanism


def test_steps_must_be_steps():
    with pytest.raises(SpecError, match="not a step"):
        Mechanism(("laplace",))


@pytest.mark.parametrize("counts", [[-1, 0], [0, M + 1]])
def test_counts_outside_the_group_are_refused(counts):
    mechanism = Mechanism.parse("laplace(eps=1)")
    for call in (
        lambda: mechanism.apply(counts, M, np.random.default_rng(0)),
        lambda: mechanism.pmf(counts, 0, M),
        lambda: mechanism.pmf(0, counts, M),
    ):
        with pytest.raises(InputError, match=f"must lie in 0..{M}"):
            call()


def test_other_nonsense_is_refused():
    mechanism = Mechanism.parse("laplace(eps=1)")
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="whole numbers"):
        mechanism.apply([0.5], M, rng)
    with pytest.raises(InputError, match="a group must have"):
        mechanism.apply([0], 0, rng)
    with pytest.raises(InputError, match="needs 1 arrays of noise, not 0"):
        mechanism.publish([0], (), M)


MAPS = st.one_of(
    st.integers(0, 12).map(lambda k: f"suppress(k={k})"),
    st.integers(1, 9).map(lambda to: f"round(to={to})"),
)


@given(st.lists(MAPS, min_size=1, max_size=4), st.integers(1, 12))
def test_chains_of_maps_send_each_count_to_one_value(specs, m):
    mechanism = Mechanism.parse(" | ".join(specs))
    counts = np.arange(m + 1, dtype=np.int32)
    chances = mechanism.pmf(counts, counts[:, None], m)
    expected = np.zeros((m + 1, m + 1))
    expected[counts, mechanism.publish(counts, (), m)] = 1
    np.testing.assert_array_equal(chances, expected)


@given(st.lists(MAPS, min_size=1, max_size=3), st.integers(1, 12))
def test_noise_before_maps_is_a_distribution(specs, m):
    mechanism = Mechanism.parse(" | ".join(["laplace(eps=0.7)", *specs]))
    counts = np.arange(m + 1)
    np.testing.assert_allclose(mechanism.pmf(counts, counts[:, None], m).sum(axis=1), 1)


MARKING = [
    "suppress(k=4, shown=mark)",
    "suppress(k=4, shown=mark, zeros=mark)",
    "suppress(k=0, shown=mark, zeros=mark)",
    "laplace(eps=1) | suppress(k=4, shown=mark)",
    "laplace(eps=1) | suppress(k=4, shown=mark) | round(to=5)",
    "suppress(k=2, shown=mark) | round(to=4) | suppress(k=4, shown=mark, zeros=mark)",
    "suppress(k=3, shown=mark) | laplace(eps=1)",
    "laplace(eps=1) | suppress(k=3, shown=mark) | gaussian(eps=3)",
    "random-round(to=3) | suppress(k=3, shown=mark) | random-round(to=5)",
]
marking = pytest.mark.parametrize("spec", MARKING)


def marked_matrix(mechanism, m):
    """P(symbol | true count), "withheld" first, as a product of the steps' matrices."""
    product = np.hstack([np.zeros((m + 1, 1)), np.eye(m + 1)])
    for step in mechanism.steps:
        own = np.zeros((m + 2, m + 2))
        own[0, 0] = 1
        if isinstance(step, Suppress) and step.shown == "mark":
            held = [n <= step.k and (n > 0 or step.zeros == "mark") for n in range(m + 1)]
            own[1:, 0] = held
            own[1:, 1:] = np.diag(1.0 - np.array(held))
        else:
            own[1:, 1:] = step_matrix(step, m)
        product = product @ own
    return product


@marking
@pytest.mark.parametrize("m", [1, 3, M])
def test_marks_are_part_of_the_law(spec, m):
    mechanism, counts = Mechanism.parse(spec), np.arange(m + 1)
    values = np.append(WITHHELD, counts)
    assert mechanism.alphabet(m) == (0, m, True)
    found = mechanism.pmf(values, counts[:, None], m)
    assert found == pytest.approx(marked_matrix(mechanism, m), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(1)


@marking
def test_marks_are_published_with_their_chance(spec):
    """Chi-square of 40,000 cells for each of four counts; false alarm rate 1e-5."""
    rng, mechanism = np.random.default_rng(8), Mechanism.parse(spec)
    symbols = mechanism.alphabet(M)
    for true in (0, 1, 5, M):
        published = mechanism.apply(np.full((200, 200), true), M, rng)
        observed = np.bincount(symbols.symbols(published).ravel(), minlength=symbols.size)
        expected = published.size * marked_matrix(mechanism, M)[true]
        used = expected > 1e-9
        assert not observed[~used].any()
        if used.sum() > 1:
            statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
            assert stats.chi2.sf(statistic, used.sum() - 1) > 1e-5 / 4


def test_marks_after_noise_keep_the_guarantee():
    assert Mechanism.parse("laplace(eps=2) | suppress(k=1, shown=mark)").guarantee.eps == 2


def test_marks_must_make_sense():
    with pytest.raises(SpecError, match="zeros=mark needs shown=mark"):
        Suppress(3, zeros="mark")
    with pytest.raises(SpecError, match="no shown 'star'"):
        Suppress(3, "star")
    assert str(Suppress(3, "mark")) == "suppress(k=3, shown=mark)"
    assert Mechanism((Suppress(3, "mark"),)) != Mechanism((Suppress(3),))


@dataclass(frozen=True)
class Scaled(Map):
    """Counts are scaled up and shifted, as if to a whole population."""

    name: ClassVar[str] = "scaled"

    def apply(self, values, within):
        return values * 3 - 5

    def span(self, within):
        return Span(3 * within.lowest - 5, 3 * within.highest - 5)

    def describe(self):
        return "Counts are scaled up."


def test_published_values_may_lie_beyond_the_group():
    mechanism = Mechanism((Scaled(), Laplace(0.5), Suppress(4, "mark"), Round(7)))
    lowest, highest, _ = mechanism.alphabet(6)
    assert (lowest, highest) == (-5, 13)
    values = np.append(WITHHELD, np.arange(lowest, highest + 1))
    assert mechanism.pmf(values, np.arange(7)[:, None], 6).sum(axis=1) == pytest.approx(1)
    published = mechanism.apply(np.full(20_000, 2), 6, np.random.default_rng(1))
    seen = [(published == value).mean() for value in values]
    assert seen == pytest.approx(mechanism.pmf(values, 2, 6), abs=0.02)
    plain = Mechanism((Scaled(), Round(2)))
    expected = plain.pmf(np.arange(-5, 14), np.arange(7)[:, None], 6) @ np.arange(-5, 14)
    assert plain.expected(6) == pytest.approx(expected)
