"""What holds for every mechanism: all presets, all steps at their ends, chains, steps of others."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from whosthere.adversary.count_tables import count_tables
from whosthere.errors import SpecError
from whosthere.privacy.catalogue import MECHANISMS, PRESETS, STEPS
from whosthere.privacy.cell_key import CellKey, Ptable
from whosthere.privacy.discrete_gaussian import DiscreteGaussian
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.rounding import Floor, RandomRound, Round, RoundBySize, Scale, Suppress
from whosthere.privacy.shapes import ChanceTable, Choices, Map
from whosthere.privacy.step import WITHHELD, Span
from whosthere.specs import NUMBER, Catalogue, content, parameter


@dataclass(frozen=True)
class Jitter(ChanceTable):
    """A step that nobody knew of: counts above 0 move by one, down or up, with a given chance.

    With a chance of 0.8 the likelihood ratios are not monotone, so this is the hard case.
    """

    chance: float = parameter(NUMBER, "chance to move", ladder=(0.1, 0.5, 0.9))
    name: ClassVar[str] = "jitter"
    example: ClassVar[str] = "jitter(chance=0.5)"
    summary: ClassVar[str] = "move counts by one at random"

    def choices(self, values, within):
        around = np.stack([values - 1, values, values + 1], axis=-1)
        half = np.where(values > 0, self.chance / 2, 0.0)
        chances = np.stack([half, 1 - 2 * half, half], axis=-1)
        return Choices(np.clip(around, *within).astype(np.int32), chances)

    def describe(self):
        return f"Counts above 0 move by one with a chance of {self.chance:g}."


@dataclass(frozen=True)
class Shifted(Map):
    """Another: counts are scaled up and shifted, to a range of their own."""

    name: ClassVar[str] = "shifted"

    def apply(self, values, within):
        return values * 3 - 5

    def span(self, within):
        return Span(3 * within.lowest - 5, 3 * within.highest - 5)

    def describe(self):
        return "Counts are scaled up."


SPECS = [
    "raw",
    *PRESETS,
    *(kind.example for kind in STEPS if kind is not Ptable),
    "suppress(k=0)",
    "suppress(k=40)",
    "suppress(k=0, shown=mark)",
    "suppress(k=40, shown=mark)",
    "suppress(k=0, shown=mark, zeros=mark)",
    "suppress(k=5, shown=mark, zeros=mark)",
    "round(to=1)",
    "round(to=4)",
    "round(to=50)",
    "random-round(to=1)",
    "random-round(to=2)",
    "random-round(to=50)",
    "random-round(to=3, up=0:1)",
    "random-round(to=5, up=0.1:0.3:0.3:0.9)",
    "floor(at=4)",
    "floor(at=60, drop=3)",
    "round-by-size(bands=6/10:15/20)",
    "scale(by=0.3)",
    "scale(by=1)",
    "laplace(eps=0.2)",
    "laplace(eps=6, unit=user, max_visits=3)",
    "discrete-laplace(eps=1, unit=user-day, max_visits=10)",
    "gaussian(eps=8, delta=1e-3)",
    "gaussian(eps=5, delta=1e-9, unit=user, max_visits=20)",
    "discrete-gaussian(rho=0.02)",
    "cell-key(d=2, v=1.05, js=1)",
    # Maps before chance, after it, and on both sides.
    "laplace(eps=0.5) | opensafely",
    "suppress(k=2) | laplace(eps=1)",
    "suppress(k=2, shown=mark) | laplace(eps=1)",
    "laplace(eps=1) | suppress(k=4, shown=mark) | round(to=5)",
    "round(to=3) | discrete-laplace(eps=1) | suppress(k=4) | round(to=5)",
    "suppress(k=2, shown=mark) | round(to=4) | suppress(k=4, shown=mark, zeros=mark)",
    "suppress(k=2, shown=mark) | gaussian(eps=3) | suppress(k=3, shown=mark, zeros=mark)",
    "random-round(to=3) | suppress(k=3, shown=mark)",
    "suppress(k=2) | random-round(to=5) | suppress(k=4)",
    "cell-key(d=3, v=2, js=1) | suppress(k=4, shown=mark)",
    "scale(by=5.13) | suppress(k=4, shown=mark)",
    "scale(by=0.4) | round(to=3)",
    "scale(by=0.3) | laplace(eps=1) | suppress(k=4, shown=mark)",
    "scale(by=2.5) | laplace(eps=1) | floor(at=4, drop=1)",
    "floor(at=4, drop=1) | random-round(to=3, up=0.1:0.8)",
    "random-round(to=3, up=1/3:2/3) | floor(at=4)",
    "suppress(k=2, shown=mark) | round-by-size(bands=4/3:9/10)",
    "round-by-size(bands=6/10) | cell-key(d=2, v=1.05)",
]
JITTER = Jitter(0.8)
OF_OTHERS = [
    (JITTER,),
    (Suppress(1), JITTER),
    (JITTER, Suppress(1), Round(3)),
    (Shifted(), Laplace(0.5), Suppress(4, "mark"), Round(7)),
    (Shifted(), Round(2)),
]
MECHANISMS_TO_TEST = [*map(Mechanism.parse, dict.fromkeys(SPECS)), *map(Mechanism, OF_OTHERS)]
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS_TO_TEST, ids=str)
BY_SPEC = [one for one in MECHANISMS_TO_TEST if not {*one.steps} & {*sum(OF_OTHERS, ())}]
M = 23
SIZES = [1, 7, M]


# The law once more, step by step, from rules in words and the distributions of scipy.


def multiple(value, to):
    return to * math.floor(value / to + 0.5)


def by_size(value, bands):
    to = next((to for least, to in reversed(bands) if value >= least), 1)
    return round(value / to) * to


def law_of_noise(step):
    if isinstance(step, DiscreteLaplace):
        return stats.dlaplace(step.eps / step.unit.l1_sensitivity).cdf
    if isinstance(step, Laplace):
        law = stats.laplace(scale=step.unit.l1_sensitivity / step.eps)
    elif isinstance(step, Gaussian):
        law = stats.norm(scale=step.scale)
    else:
        assert isinstance(step, DiscreteGaussian)
        z = np.arange(-2000, 2001)
        chances = np.exp(-(z**2) / (2 * step.unit.most_visits / (2 * step.rho)))
        below = np.cumsum(chances) / chances.sum()
        return lambda value: np.where(value < -2000, 0.0, below[np.clip(value, -2000, 2000) + 2000])
    return lambda value: law.cdf(value + 1)


def outcomes(step, n, lowest, highest):  # noqa: PLR0911 - a rule for each kind of step
    """The results of a count, and their chances."""
    cut = lambda value: min(max(value, lowest), highest)  # noqa: E731
    if isinstance(step, Suppress):
        if step.shown == "zero":
            return {n if n > step.k else 0: 1.0}
        return {WITHHELD if (step.zeros == "zero") <= n <= step.k else n: 1.0}
    if isinstance(step, Floor):
        return {(cut(step.at) if n < step.at else n) if n > step.drop else min(n, 0): 1.0}
    if isinstance(step, Round):
        return {cut(step.to * ((n + step.to // 2) // step.to)): 1.0}
    if isinstance(step, RoundBySize):
        return {cut(by_size(n, step.bands)): 1.0}
    if isinstance(step, Scale):
        return {math.floor(n * step.by + 0.5): 1.0}
    if isinstance(step, Shifted):
        return {3 * n - 5: 1.0}
    if isinstance(step, RandomRound):
        down, rest = divmod(n, step.to)
        up = rest / step.to if step.up is None or not rest else step.up[rest - 1]
        return add_up((cut(down * step.to), 1 - up), (cut((down + 1) * step.to), up))
    if isinstance(step, Jitter):
        half = step.chance / 2 * (n > 0)
        return add_up((cut(n - 1), half), (n, 1 - 2 * half), (cut(n + 1), half))
    if isinstance(step, CellKey):
        row = step.changes.chances[min(n, len(step.changes.chances) - 1)]
        return add_up(*((max(n + by, 0), p) for by, p in enumerate(row, step.changes.least)))
    below = law_of_noise(step)(np.arange(lowest, highest) - n)
    return dict(enumerate(np.diff(np.concatenate([[0.0], below, [1.0]])), lowest))


def add_up(*parts):
    found = {}
    for value, chance in parts:
        found[value] = found.get(value, 0.0) + chance
    return found


@cache
def reference(mechanism, m):
    """P(published | true), shape (m + 1, symbols)."""
    laws, (lowest, highest) = [{n: 1.0} for n in range(m + 1)], (0, m)
    for step in mechanism.steps:
        laws = [
            add_up(
                *(
                    (result, chance * p)
                    for value, chance in law.items()
                    for result, p in (
                        {WITHHELD: 1.0}
                        if value == WITHHELD
                        else outcomes(step, value, lowest, highest)
                    ).items()
                )
            )
            for law in laws
        ]
        if isinstance(step, Scale):
            highest = math.floor(highest * step.by + 0.5)
        elif isinstance(step, Shifted):
            lowest, highest = 3 * lowest - 5, 3 * highest - 5
        elif isinstance(step, CellKey):
            highest += step.d
    marks = any(isinstance(one, Suppress) and one.withheld for one in mechanism.steps)
    symbols = [WITHHELD] * marks + list(range(lowest, highest + 1))
    assert all(set(law) <= set(symbols) for law in laws)
    return np.array([[law.get(one, 0.0) for one in symbols] for law in laws])


def published_values(mechanism, m):
    alphabet = mechanism.alphabet(m)
    return alphabet.values(np.arange(alphabet.size, dtype=np.int32))


@every_mechanism
@pytest.mark.parametrize("m", SIZES)
def test_the_law_is_that_of_its_steps(mechanism, m):
    values, counts = published_values(mechanism, m), np.arange(m + 1)
    found = mechanism.pmf(values, counts[:, None], m)
    np.testing.assert_allclose(found, reference(mechanism, m), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


@every_mechanism
def test_an_interval_is_the_sum_of_its_points(mechanism):
    law, points = mechanism.law(M), reference(mechanism, M)[:, mechanism.alphabet(M).withholds :]
    lowest = law.alphabet.lowest
    ends = np.sort(np.random.default_rng(1).integers(0, points.shape[1], (40, 2)), axis=1)
    for lo, hi in ends:
        found = law.log_between(np.arange(M + 1), np.array(lowest + lo), np.array(lowest + hi))
        np.testing.assert_allclose(np.exp(found), points[:, lo : hi + 1].sum(axis=1), atol=1e-12)
        empty = law.log_between(np.arange(M + 1), np.array(lowest + hi + 1), np.array(lowest + lo))
        assert np.isneginf(empty).all()


@every_mechanism
def test_what_is_published_follows_the_law(mechanism):
    """Chi-square of 20,000 cells for each of six counts; false alarm rate 1e-5 a mechanism."""
    rng, law, alphabet = np.random.default_rng(41), reference(mechanism, M), mechanism.alphabet(M)
    for count in (0, 1, 2, 10, 22, M):
        cells = np.full((100, 200), count, np.int32)
        published = mechanism.apply(cells, M, rng)
        assert published.dtype == np.int32
        assert published.shape == cells.shape
        assert not np.shares_memory(published, cells)
        assert (cells == count).all()
        observed = np.bincount(alphabet.symbols(published).ravel(), minlength=alphabet.size)
        expected = cells.size * law[count]
        assert not observed[expected == 0].any()
        rare = expected < 5
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        used = expected > 1e-9 * cells.size
        if used.sum() > 1:
            statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
            assert stats.chi2.sf(statistic, used.sum() - 1) > 1e-5 / 6


# Of these, one person more is another draw.
DRAWN_BY_PEOPLE = [one for one in MECHANISMS_TO_TEST if "cell-key" in str(one)]


@pytest.mark.parametrize(
    "mechanism", [one for one in MECHANISMS_TO_TEST if one not in DRAWN_BY_PEOPLE], ids=str
)
def test_the_same_noise_keeps_the_order_of_groups(mechanism):
    """Groups that share it differ only where their counts do; a mark hides what is larger."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, M, (30, 40)).astype(np.int32)
    more = counts + (rng.random(counts.shape) < 0.3)
    noise = mechanism.draw(counts.shape, rng)
    copies = tuple(z.copy() for z in noise)
    one, other = (mechanism.publish(c, noise, M) for c in (counts, more))
    assert np.array_equal(one[counts == more], other[counts == more])
    assert ((one <= other) | (other == WITHHELD)).all()
    assert np.array_equal(mechanism.publish(np.stack([counts, more]), noise, M), [one, other])
    assert all(np.array_equal(z, copy) for z, copy in zip(noise, copies, strict=True))


# Their noise is too wide, or chosen by count; so no table of numbers that are added says it.
TOO_WIDE = [Mechanism((Laplace(1e-6),)), Mechanism((Suppress(1), Laplace(1e-6)))]
WITHOUT_TABLE = [
    *TOO_WIDE,
    *(one for one in MECHANISMS_TO_TEST if "cell-key" in str(one) or "jitter" in str(one)),
]


@pytest.mark.parametrize("mechanism", [*MECHANISMS_TO_TEST, *TOO_WIDE], ids=str)
def test_tables_and_means_are_those_of_the_law(mechanism):
    table, mean = mechanism.tabulated(M), mechanism.expected(M, withheld=1.5)
    assert (mean is None) == (mechanism in WITHOUT_TABLE)
    if mean is None:
        assert table is None
        return
    values, law = published_values(mechanism, M), reference(mechanism, M)
    shown = np.where(values == WITHHELD, 1.5, values)
    np.testing.assert_allclose(mean, law @ shown, atol=1e-9)
    first = mechanism.steps and mechanism.steps[0].is_random
    assert (table is None) == bool(mechanism.random_steps and not first)
    if table is not None:
        found = np.zeros_like(law)
        for added, chance in enumerate(table.chances, table.lowest):
            sums = np.clip(np.arange(M + 1) + added, 0, table.results.size - 1)
            found[np.arange(M + 1), table.results[sums]] += chance
        np.testing.assert_allclose(found, law, atol=1e-12)


@every_mechanism
def test_results_lie_where_they_are_said_to_land(mechanism):
    law = mechanism.law(4000)
    for count in np.random.default_rng(0).integers(0, 4001, 20):
        low, high = law.landing(Span(count, count))
        assert law.alphabet.lowest <= low <= high <= law.alphabet.highest
        for first, last in ((law.alphabet.lowest, low - 1), (high + 1, law.alphabet.highest)):
            if first <= last:
                outside = law.log_between(np.array(count), np.array(first), np.array(last))
                assert outside < np.log(1e-18)


@every_mechanism
def test_what_changes_nothing_says_so(mechanism):
    law = reference(mechanism, M)
    same = law.shape[0] == law.shape[1] and np.array_equal(law, np.eye(M + 1))
    assert mechanism.changes_counts == (not same)


@pytest.mark.parametrize("mechanism", BY_SPEC, ids=str)
def test_mechanisms_are_values(mechanism):
    again = Mechanism.parse(str(mechanism))
    assert again == mechanism == Mechanism(list(mechanism.steps))
    assert (hash(again), again.content) == (hash(mechanism), mechanism.content)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    same = [one for one in BY_SPEC if one.content == mechanism.content]
    assert all(one == mechanism for one in same)


@every_mechanism
def test_descriptions_are_public_sentences(mechanism):
    text = mechanism.describe()
    assert text.endswith(".")
    assert ("no formal guarantee" in text) == (mechanism.guarantee is None)
    assert (mechanism.guarantee is None) == (
        not mechanism.steps or mechanism.steps[0].guarantee is None
    )
    for unit in mechanism.units:
        assert unit.describe_bound() in text
    if mechanism.guarantee is not None:
        assert f"the odds {mechanism.guarantee.unit.question} by a factor of at most e^" in text


@every_mechanism
def test_single_counts_and_empty_arrays(mechanism):
    rng, lowest = np.random.default_rng(0), mechanism.alphabet(M).lowest
    assert mechanism.apply(5, M, rng).shape == ()
    assert mechanism.apply(np.zeros((0, 4), int), M, rng).shape == (0, 4)
    assert mechanism.pmf(lowest, 5, M).shape == ()
    assert mechanism.pmf(np.zeros(0, int), 5, M).shape == (0,)
    assert mechanism.pmf(np.full((4, 1), lowest), np.zeros(3, int), M).shape == (4, 3)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_rule_with_its_source(name):
    preset = PRESETS[name]
    assert str(Mechanism.parse(name)) == preset.spec
    assert Mechanism.parse(name).has_law
    assert len(preset.meaning) > 20
    assert preset.publisher
    assert preset.source
    assert 2010 <= preset.year <= 2026


@pytest.mark.parametrize("kind", [kind for kind in STEPS if kind is not Ptable])
def test_every_kind_of_step_is_listed(kind):
    listed = MECHANISMS.kinds[kind.name]
    assert Mechanism.parse(listed.example).steps[0].name == kind.name
    assert len(listed.summary) > 10
    assert all(len(one.meaning) > 10 for one in listed.parameters)


def test_specs_of_a_step_that_nobody_knew():
    catalogue = Catalogue.of("mechanism", Jitter)
    assert catalogue.parse("JITTER(chance = .8)") == JITTER
    assert str(Mechanism((Suppress(1), JITTER))) == "suppress(k=1) | jitter(chance=0.8)"
    assert content(JITTER) != content(Jitter(0.7))
    assert catalogue.kinds["jitter"].parameters[0].ladder == (0.1, 0.5, 0.9)
    assert Mechanism((JITTER,)).units == ()


@pytest.mark.parametrize(
    "text",
    [
        "laplace(eps=1) | gaussian(eps=3)",
        "random-round(to=3) | suppress(k=2) | laplace(eps=1)",
        "laplace(eps=1) | cell-key(d=2, v=1.05)",
        "random-round(to=2) | random-round(to=3)",
    ],
)
def test_two_steps_that_leave_something_to_chance_are_refused(text):
    first, *_, second = text.split(" | ")
    with pytest.raises(SpecError, match="both leave something to chance") as caught:
        Mechanism.parse(text)
    for name in (first, second):
        assert name.partition("(")[0] in str(caught.value)
    assert "Leave one of them out" in str(caught.value)


MAPS = st.one_of(
    st.integers(0, 12).map(lambda k: f"suppress(k={k})"),
    st.integers(0, 12).map(lambda k: f"suppress(k={k}, shown=mark)"),
    st.integers(1, 9).map(lambda to: f"round(to={to})"),
)
CHANCES = st.sampled_from(["raw", "laplace(eps=0.7)", "random-round(to=4)"])


@given(st.lists(MAPS, max_size=3), CHANCES, st.lists(MAPS, max_size=3), st.integers(1, 12))
def test_any_chain_of_maps_around_a_chance_has_its_law(before, chance, after, m):
    mechanism = Mechanism.parse(" | ".join([*before, chance, *after]))
    found = mechanism.pmf(published_values(mechanism, m), np.arange(m + 1)[:, None], m)
    np.testing.assert_allclose(found, reference(mechanism, m), atol=1e-12)


@pytest.mark.parametrize(
    "spec",
    [
        "laplace(eps=0.1)",
        "laplace(eps=1, unit=user, max_visits=50) | suppress(k=15) | round(to=5)",
        "discrete-laplace(eps=0.5) | flowkit",
        "gaussian(eps=0.1)",
        "random-round(to=100)",
    ],
)
def test_large_groups_and_counts(spec):
    mechanism, m = Mechanism.parse(spec), 3_000_000
    law, true = mechanism.law(m), np.array([0, 4000, 9000, m])[:, None]
    landing = law.landing(Span(m // 2, m // 2))
    reach = landing.highest - landing.lowest + 210
    published = np.clip(true + np.arange(-reach, reach + 1), 0, m)
    tracemalloc.start()
    found = mechanism.pmf(published, true, m)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1e8
    for row, values in zip(found, published, strict=True):
        _, first = np.unique(values, return_index=True)
        assert row[first].sum() == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("mechanism", [one for one in MECHANISMS_TO_TEST if JITTER in one.steps])
def test_an_attacker_knows_a_step_that_nobody_knew(mechanism):
    """f_1(a) / f_0(a) with f_j(a) = sum over n of P(n) P(a | n + j), n below m."""
    tables, law = count_tables(mechanism, M), reference(mechanism, M)
    place = 130
    rate = math.exp(tables.first + place * tables.step)
    others = stats.poisson.pmf(np.arange(M), rate)
    others /= others.sum()
    without, within = others @ law[:-1], others @ law[1:]
    found = tables.log_ratio_of(np.arange(M + 1), np.full(M + 1, math.log(rate)))
    possible = (without > 1e-12) & (within > 1e-12)
    expected = np.log(within[possible] / without[possible])
    np.testing.assert_allclose(found[possible], expected, atol=1e-9)
