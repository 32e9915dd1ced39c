"""Rates of others in each cell: through the mechanism, with the structure that a release shows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import poisson

from whosthere.adversary.components import completion
from whosthere.adversary.count_tables import count_tables, filled
from whosthere.adversary.rates import (
    LOW_RANK,
    RANK_ONE,
    USUAL,
    Rates,
    Seen,
    factors,
    fit_rates,
    hours_of_week,
    low_rank,
)
from whosthere.data.epochs import Epochs
from whosthere.data.flows import Pairs
from whosthere.data.regions import Regions
from whosthere.privacy.catalogue import PRESETS
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

M = 5000
SPECS = [
    "raw",
    "suppress(k=3)",
    "round(to=5)",
    "random-round(to=5)",
    "laplace(eps=1, unit=event)",
    "gaussian(eps=2, unit=event)",
    "laplace(eps=1, unit=event) | suppress(k=1)",
    "laplace(eps=5, unit=user-day, max_visits=10)",
    "opensafely",
]


START = datetime(2021, 6, 7, tzinfo=UTC)
"""A Monday."""
HOUR = timedelta(hours=1)


def _release(rates, spec, rng, *, regions=None, length=HOUR, timezone="UTC"):
    """Publish counts of the model itself."""
    regions = regions or Regions([f"r{i}" for i in range(len(rates))])
    epochs = Epochs(START, length, rates.shape[1], timezone)
    facts = Facts(regions, epochs, M, Mechanism.parse(spec))
    true = np.minimum(rng.poisson(rates), M).astype(np.int32)
    return Release(facts.mechanism.apply(true, M, rng), facts)


def _dense(release, parts=USUAL):
    return np.exp(fit_rates(release, parts).base)


def _products(rng, shape=(40, 90), level=2.0):
    rates = np.outer(rng.lognormal(0, 1, shape[0]), rng.lognormal(0, 0.6, shape[1]))
    return rates * (level / rates.mean())


def _with_rhythm(rng, shape=(40, 90), level=20.0):
    """Regions of work and of sleep: two groups with opposite days."""
    rates = _products(rng, shape, level)
    group = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)
    hour = np.sin(np.arange(shape[1]) * 2 * np.pi / 24)
    return rates * (1 + 0.7 * np.outer(group, hour))


def _error(found, rates):
    """Mean distance of the logarithms, weighted by how many people there are."""
    return np.average(np.abs(np.log(found / rates)), weights=rates)


# Factors


@pytest.mark.parametrize("spec", SPECS)
def test_expected_sums_are_the_published_ones(rng, spec):
    """The factor of each row and column is the one at which its sum is expected, in turn."""
    release = _release(_products(rng, (12, 20), level=4.0), spec, rng)
    seen, log_rates = Seen(release), fit_rates(release, RANK_ONE).base
    grid = seen.tables.first + seen.tables.step * np.arange(seen.tables.mean.size)
    expected = np.interp(log_rates, grid, seen.tables.mean - seen.tables.empty_mean)
    by_row, by_column = (
        seen.excess(filled(release).sum(axis=1 - i), log_rates.shape[1 - i]) for i in (0, 1)
    )
    np.testing.assert_allclose(expected.sum(axis=1), by_row, rtol=0.01)
    by_column *= by_row.sum() / by_column.sum()
    np.testing.assert_allclose(expected.sum(axis=0), by_column, rtol=0.01)
    rows, columns = log_rates[:, :1] - log_rates[0, 0], log_rates[:1]
    np.testing.assert_allclose(rows + columns, log_rates, atol=1e-9)


def test_sums_that_are_noise_are_drawn_together(rng):
    """To the mean of what there may be: closer to the truth, and never below nothing."""
    true = np.full(400, 20.0)
    seen = Seen(_release(np.ones((400, 40)), "laplace(eps=0.05, unit=event)", rng))
    deviation = np.sqrt(40 * seen.tables.empty_variance)
    noisy = true + 40 * seen.tables.empty_mean + rng.normal(0, deviation, 400)
    found = seen.excess(noisy, 40)
    assert (found > 0).all()
    assert found.std() < 0.2 * deviation
    exact = Seen(_release(np.ones((4, 4)), "suppress(k=1)", rng))
    assert exact.excess(np.array([0.0, 3.0]), 4) == pytest.approx([0.05, 3.0])


def test_a_mechanism_that_publishes_nothing_leaves_rates_finite(rng):
    assert np.isfinite(fit_rates(_release(np.ones((4, 6)), "suppress(k=4900)", rng))).all()


# Completing counts


@pytest.mark.parametrize("rate", [0.02, 1.0, 9.0, 80.0])
def test_a_suppressed_count_is_completed_to_its_mean(rate):
    """The mean of a Poisson count given that it is at most k; other counts stay as they are."""
    made = completion(Mechanism.parse("suppress(k=9)"), M)
    row = round((np.log(rate) - made.tables.first) / made.tables.step)
    rate = np.exp(made.tables.first + row * made.tables.step)
    n = np.arange(10)
    chances = poisson.pmf(n, rate)
    hidden = made.completed[row, made.scales.bin_of_symbol[0]]
    assert hidden == pytest.approx((n * chances).sum() / chances.sum(), rel=1e-4, abs=1e-6)
    near = [v for v in (10, 15, 60) if poisson.pmf(v, rate) > 1e-12]
    for value in near:
        assert made.completed[row, made.scales.bin_of_symbol[value]] == pytest.approx(
            value, rel=1e-4
        )


@pytest.mark.parametrize("spec", SPECS)
def test_completed_counts_have_the_mean_of_the_true_rate(rng, spec):
    """Completing by the right rate changes nothing on average, and the variance is the weight.
    100,000 draws, 5 standard errors and the grid of the tables."""
    mechanism = Mechanism.parse(spec)
    made = completion(mechanism, M)
    for near in (0.5, 4.0, 40.0):
        row = round((np.log(near) - made.tables.first) / made.tables.step)
        rate = float(np.exp(made.tables.first + row * made.tables.step))
        counts = mechanism.apply(rng.poisson(rate, 100_000).astype(np.int32), M, rng)
        inside = np.minimum(counts, made.scales.bin_of_symbol.size - 1)
        found = made.completed[row, made.scales.bin_of_symbol[inside]] - rate
        found *= made.precision[row]
        error = 5 * max(found.std(), 1e-3) / np.sqrt(found.size)
        assert found.mean() == pytest.approx(0, abs=error + 2e-3)
        assert found.var() == pytest.approx(made.weight[row], rel=0.1, abs=2e-3)
        assert made.weight[row] <= 1


@pytest.mark.parametrize("spec", ["raw", "suppress(k=3)", "laplace(eps=1, unit=event)"])
def test_counts_are_completed_by_the_rates_and_measured_from_the_base(rng, spec):
    """Against the tables, cell by cell: the assumed rates decide what a count is completed to."""
    release = _release(_products(rng, (12, 20), level=4.0), spec, rng)
    made = completion(release.mechanism, M)
    base = rng.normal(1.0, 0.8, (12, 20))
    moved = rng.normal(0, 0.5, (12, 20)).astype(np.float32)
    values, by_row, by_column = made.residuals(release.counts, base, moved)
    by_rate = np.arange(len(made.completed))
    at_base, at_rate = (
        (one - made.tables.first) / made.tables.step for one in (base, base + moved)
    )
    precision = np.interp(at_base, by_rate, made.precision)
    for s, t in zip(*np.unravel_index(np.arange(0, 240, 7), (12, 20)), strict=True):
        column = made.completed[:, made.scales.bin_of_symbol[release.counts[s, t]]]
        expected = np.interp(at_rate[s, t], by_rate, column) - np.exp(base[s, t])
        assert values[s, t] == pytest.approx(expected * precision[s, t], rel=1e-4, abs=1e-4)
    weights = np.interp(at_base, by_rate, made.weight)
    np.testing.assert_allclose(by_row, weights.sum(axis=1))
    np.testing.assert_allclose(by_column, weights.sum(axis=0))
    deviations = made.relative_deviations(base) * np.exp(base)
    np.testing.assert_allclose(deviations, 1 / precision, rtol=1e-9)


@pytest.mark.parametrize("spec", SPECS)
def test_one_person_more_is_the_slope_by_the_rate(spec):
    """d log f_0 / d rate = f_1 / f_0 - 1, by differences of the exact chances."""
    mechanism = Mechanism.parse(spec)
    n, values = np.arange(120), np.array([0, 5, 10, 15])
    chances = mechanism.pmf(values, n[:, None], M)
    rate, small = 6.0, 1e-4
    low, high = (poisson.pmf(n, rate + end) @ chances for end in (-small, small))
    middle = poisson.pmf(n, rate) @ chances
    one_more = poisson.pmf(n[:-1], rate) @ chances[1:]
    possible = middle > 1e-9
    slope = (high - low)[possible] / (2 * small) / middle[possible]
    np.testing.assert_allclose(slope, one_more[possible] / middle[possible] - 1, atol=1e-4)


# Components


@pytest.mark.parametrize("level", [0.02, 0.3, 3.0, 60.0])
@pytest.mark.parametrize("spec", SPECS)
def test_chance_is_no_structure(rng, spec, level):
    """Products of region and epoch, 10 releases each: next to never a component."""
    releases = [_release(_products(rng, level=level), spec, rng) for _ in range(10)]
    parts = (RANK_ONE, LOW_RANK)
    found = [not np.array_equal(*(_dense(one, some) for some in parts)) for one in releases]
    assert np.mean(found) <= 0.2


@pytest.mark.parametrize("spec", SPECS)
def test_structure_is_followed(rng, spec):
    rates = _with_rhythm(rng)
    release = _release(rates, spec, rng)
    structured, plain = _dense(release), _dense(release, RANK_ONE)
    assert _error(structured, rates) < 0.7 * _error(plain, rates)
    assert (structured > 0).all()


@pytest.mark.parametrize("spec", ["raw", "suppress(k=3)", "laplace(eps=1, unit=event)"])
def test_regions_and_epochs_are_treated_alike_in_any_order(rng, spec):
    release = _release(_with_rhythm(rng, (90, 40)), spec, rng)
    rows, columns = rng.permutation(90), rng.permutation(40)
    moved = Release(
        release.counts[rows][:, columns].T.copy(), _release(np.ones((40, 90)), spec, rng).facts
    )
    np.testing.assert_allclose(_dense(moved).T, _dense(release)[rows][:, columns], rtol=5e-3)


def _any(seen, so_far):
    """A part of a user's own, which moves what levels are told by alone."""
    by = 0.3 * np.sin(np.arange(seen.symbols.size)).reshape(seen.symbols.shape)
    return Rates(so_far.base + by, so_far.at_cells)


@pytest.mark.parametrize("kind", ["regions", "pairs"])
@pytest.mark.parametrize("spec", ["raw", "suppress(k=3)", "laplace(eps=0.5, unit=event)"])
def test_parts_in_any_order_give_finite_rates(rng, spec, kind):
    """Each reads the rates so far and nothing else of another part: these are two arrays."""
    assert Rates._fields == ("base", "at_cells")
    regions = Pairs(Regions(list("abcdef"))) if kind == "pairs" else None
    rates = _products(rng, (36, 60), level=5.0)
    release = _release(rates, spec, rng, regions=regions, length=timedelta(hours=6))
    for order in permutations((low_rank, hours_of_week, _any)):
        found = fit_rates(release, (factors, *order))
        assert np.isfinite(found).all()
        assert np.abs(np.log(np.exp(found.at_cells).sum() / rates.sum())) < 0.6


def test_a_threshold_far_above_the_usual_is_seen_through(rng):
    """Regions with 150 to 900 people an hour, of which counts up to 300 are suppressed."""
    rates = np.outer(np.linspace(150, 900, 30), rng.lognormal(0, 0.1, 60))
    found = _dense(_release(rates, "suppress(k=300)", rng))
    busy = rates > 350
    assert np.abs(np.log(found / rates))[busy].mean() < 0.05
    np.testing.assert_allclose(found[rates < 290].mean(), rates[rates < 290].mean(), rtol=0.25)


def test_posteriors_hold_in_a_crowd(rng):
    """Of people in dense cells with structure, posteriors mean what they say over all targets
    together; those from region times epoch do not. 4 standard errors."""
    rates = _with_rhythm(rng, (60, 120), level=60.0)
    tables = count_tables(Mechanism(), M)
    outcome = {}
    for parts in (USUAL, RANK_ONE):
        draws = np.random.default_rng(1)
        posteriors, inside = [], []
        for _ in range(8):
            people = [draws.choice(rates.size, 60, replace=False) for _ in range(60)]
            release = _release(rates, "raw", draws)
            true = release.counts.copy()
            for person in people[::2]:
                true.reshape(-1)[person] += 1
            log_rates = fit_rates(Release(true, release.facts), parts).base.reshape(-1)
            for i, person in enumerate(people):
                score = tables.log_ratio_of(true.reshape(-1)[person], log_rates[person])
                posteriors.append(1 / (1 + np.exp(-score.sum())))
                inside.append(i % 2 == 0)
        posterior, label = np.array(posteriors), np.array(inside)
        extreme = np.abs(posterior - 0.5) > 0.2
        error = np.sqrt((posterior * (1 - posterior))[extreme].sum())
        high = np.where(posterior > 0.5, posterior, 1 - posterior)[extreme]
        right = np.where(posterior > 0.5, label, ~label)[extreme]
        outcome[parts] = (right.sum() - high.sum()) / error
    assert abs(outcome[USUAL]) < 4
    assert outcome[RANK_ONE] < -4


@pytest.mark.parametrize("tables", [count_tables, completion])
def test_an_audit_of_all_presets_at_two_sizes_makes_its_tables_once(tables):
    assert tables.cache_parameters()["maxsize"] >= 2 * (1 + len(PRESETS))


# Hours of the week

SIX_HOURS = timedelta(hours=6)


def _weeks(rng, n, spread=0.6):
    """Rates of 12 regions by six hours, the same every week, which are no region times epoch."""
    by_slot = np.exp(rng.normal(0, spread, (12, 28)) - spread**2 / 2)
    return 2.0 * np.tile(by_slot, (1, n))


@pytest.mark.parametrize("spec", ["raw", "suppress(k=2)", "random-round(to=3)"])
def test_factors_are_found_where_weeks_are_alike(rng, spec):
    """Logarithms are closer by a sixth after 12 weeks; each cell's own count is left out."""
    rates = _weeks(rng, 12)
    fitted = fit_rates(_release(rates, spec, rng, length=SIX_HOURS))
    errors = [np.abs(one - np.log(rates)).mean() for one in fitted]
    assert errors[1] < errors[0] * 5 / 6


def test_nothing_is_made_of_chance(rng):
    """Where rates really are region times epoch, factors stay close to 1."""
    rates = np.outer(rng.lognormal(0, 1, 12), rng.lognormal(0, 0.5, 28 * 4))
    for spec in ("raw", "laplace(eps=0.5, unit=event)"):
        fitted = fit_rates(_release(rates, spec, rng, length=SIX_HOURS))
        assert np.abs(fitted.at_cells - fitted.base).max() < 0.35


@pytest.mark.parametrize(
    ("length", "n", "are_weeks"),
    [(SIX_HOURS, 55, False), (SIX_HOURS, 56, True), (timedelta(weeks=1), 60, False)],
)
def test_two_weeks_are_the_least(rng, length, n, are_weeks):
    fitted = fit_rates(_release(np.full((6, n), 2.0), "raw", rng, length=length))
    assert (fitted.at_cells != fitted.base).any() == are_weeks


def test_trips_have_no_hours_of_the_week(rng):
    """The level of two places would look like one."""
    pairs = Pairs(Regions(["a", "b", "c"]))
    fitted = fit_rates(_release(_weeks(rng, 8)[:9], "raw", rng, regions=pairs, length=SIX_HOURS))
    assert np.array_equal(fitted.at_cells, fitted.base)


def test_a_count_says_nothing_of_its_own_rate_and_something_of_others(rng):
    """Nobody hides in the factor of an hour by being there once."""
    release = _release(_weeks(rng, 8), "raw", rng, length=SIX_HOURS)
    more = release.counts.copy()
    more[3, 5] += 4
    moved = []
    for counts in (release.counts, more):
        so_far = Rates(*[np.zeros(more.shape)] * 2)
        moved.append(hours_of_week(Seen(Release(counts, release.facts)), so_far).at_cells)
    changed = moved[1] - moved[0]
    assert changed[3, 5 + 28] > 0.05
    assert abs(changed[3, 5]) < 0.2 * changed[3, 5 + 28]


def test_hours_are_those_on_the_wall(rng):
    """Summer time ends within the weeks: the hour of the week stays the same there."""
    release = _release(np.full((2, 28 * 24), 3.0), "raw", rng, timezone="Europe/Rome")
    epochs = replace(release.epochs, start=datetime(2021, 10, 18, tzinfo=UTC))
    is_noon = np.array([one.hour == 12 for one in epochs.local_starts])
    counts = np.where(is_noon, [[9], [2]], [[2], [9]]).astype(np.int32)
    facts = replace(release.facts, epochs=epochs)
    found = fit_rates(Release(counts, facts), (factors, hours_of_week))
    moved = (found.at_cells - found.base)[0]
    assert moved[is_noon].min() > moved[~is_noon].max() + 0.5


# Two ends of trips

N = 20


def _trips(rng, n_epochs=3):
    """Rates of all pairs of 20 places, as factors of origins, destinations and epochs."""
    origins, destinations = rng.lognormal(0, 0.8, (2, N))
    return np.multiply.outer(np.outer(origins, destinations).ravel(), 0.5 * 2.0 ** np.arange(3))


@pytest.mark.parametrize("published", ["all", "some"])
@pytest.mark.parametrize(
    ("spec", "off"),
    [("raw", 0.14), ("suppress(k=2)", 0.17), ("laplace(eps=0.5, unit=event)", 0.3)],
)
def test_factors_of_ends_and_epochs_are_found(rng, spec, off, published):
    """Also where only some pairs are published."""
    kept = np.arange(N * N) if published == "all" else np.sort(rng.permutation(N * N)[:250])
    rates = 3 * _trips(rng)[kept]
    pairs = Pairs(Regions([f"p{i}" for i in range(N)])).select(kept)
    found = _dense(_release(rates, spec, rng, regions=pairs), RANK_ONE)
    assert np.abs(np.log(found / rates)[rates > 1]).mean() < off


def test_structure_of_origins_by_destinations_is_found(rng):
    """Two parts of a town with few trips between them; a component is one of pairs."""
    part = np.arange(N) % 2
    rates = 8 * _trips(rng) * np.where(part[:, None] == part, 1.8, 0.2).ravel()[:, None]
    pairs = Pairs(Regions([f"p{i}" for i in range(N)]))
    release = _release(rates, "suppress(k=1)", rng, regions=pairs)
    plain, structured = _dense(release, RANK_ONE), _dense(release)
    errors = [np.abs(np.log(one / rates))[rates > 1].mean() for one in (plain, structured)]
    assert errors[1] < 0.5 * errors[0]
    moved = np.log(structured / plain)
    np.testing.assert_allclose(moved - moved[:, :1], 0, atol=1e-9)
