"""Rates of others in each cell: through the mechanism, with the structure that a release shows."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import poisson

from whosthere.adversary.components import completion
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.rates import fit_rates
from whosthere.data.epochs import Epochs
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


def _facts(shape, spec, m=M):
    n_regions, n_epochs = shape
    return Facts(
        Regions([f"r{i}" for i in range(n_regions)]),
        Epochs(datetime(2021, 6, 1, tzinfo=UTC), timedelta(hours=1), n_epochs),
        m,
        Mechanism.parse(spec),
    )


def _release(rates, spec, rng):
    facts = _facts(rates.shape, spec)
    true = np.minimum(rng.poisson(rates), M).astype(np.int32)
    return Release(facts.mechanism.apply(true, M, rng), facts)


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


# Rank one


@pytest.mark.parametrize("spec", SPECS)
def test_expected_sums_are_the_published_ones(rng, spec):
    """Against a solver of its own for each row and column in turn, in full precision."""
    rates = _products(rng, (12, 20), level=4.0)
    release = _release(rates, spec, rng)
    tables = count_tables(release.mechanism, M)
    grid = tables.first + tables.step * np.arange(tables.mean.size)
    fitted = fit_rates(release, low_rank=False)
    expected = np.interp(fitted.rows[:, None] + fitted.columns, grid, tables.mean)
    for axis, factors, others in (
        (1, fitted.rows, fitted.columns),
        (0, fitted.columns, fitted.rows),
    ):
        sums = expected.sum(axis=axis)
        for i in (0, 3, 7):
            solved = brentq(
                lambda x, wanted=sums[i], others=others: (
                    np.interp(x + others, grid, tables.mean).sum() - wanted
                ),
                factors[i] - 3,
                factors[i] + 3,
            )
            assert factors[i] == pytest.approx(solved, abs=5e-3)
    if tables.empty_variance == 0:
        published = release.counts.sum(axis=1)
        seen = published > 5
        np.testing.assert_allclose(expected.sum(axis=1)[seen], published[seen], rtol=5e-3)


def test_a_mechanism_that_publishes_nothing_leaves_rates_finite():
    facts = _facts((4, 6), "suppress(k=60)", m=50)
    fitted = fit_rates(Release(np.zeros((4, 6), np.int32), facts))
    assert np.isfinite(fitted.dense()).all()


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
    rows, columns = rng.normal(0.5, 0.7, 12), rng.normal(0.5, 0.4, 20)
    moved = rng.normal(0, 0.5, (12, 20)).astype(np.float32)
    values, by_row, by_column = made.residuals(
        release.counts, (rows, columns, np.zeros((1, 1))), moved
    )
    by_rate = np.arange(len(made.completed))
    for s, t in zip(*np.unravel_index(np.arange(0, 240, 7), (12, 20)), strict=True):
        base = rows[s] + columns[t]
        at_rate, at_base = (
            np.array([base + moved[s, t], base]) - made.tables.first
        ) / made.tables.step
        column = made.completed[:, made.scales.bin_of_symbol[release.counts[s, t]]]
        expected = np.interp(at_rate, by_rate, column) - np.exp(base)
        expected *= np.interp(at_base, by_rate, made.precision)
        assert values[s, t] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    weights = np.interp(
        (rows[:, None] + columns - made.tables.first) / made.tables.step, by_rate, made.weight
    )
    np.testing.assert_allclose(by_row, weights.sum(axis=1))
    np.testing.assert_allclose(by_column, weights.sum(axis=0))


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
    found = [
        fit_rates(_release(_products(rng, level=level), spec, rng)).n_components for _ in range(10)
    ]
    assert np.mean(found) <= 0.2


@pytest.mark.parametrize("spec", SPECS)
def test_structure_is_followed(rng, spec):
    rates = _with_rhythm(rng)
    release = _release(rates, spec, rng)
    structured, plain = (fit_rates(release, low_rank=low_rank) for low_rank in (True, False))
    assert structured.n_components >= 1
    assert plain.n_components == 0
    assert _error(structured.dense(), rates) < 0.7 * _error(plain.dense(), rates)
    assert (structured.dense() > 0).all()


def test_without_structure_rates_are_those_of_region_times_epoch(rng):
    release = _release(_products(rng), "suppress(k=1)", rng)
    structured, plain = (fit_rates(release, low_rank=low_rank) for low_rank in (True, False))
    assert structured.n_components == 0
    np.testing.assert_array_equal(structured.dense(), plain.dense())


@pytest.mark.parametrize("spec", ["raw", "suppress(k=3)", "laplace(eps=1, unit=event)"])
def test_the_order_of_regions_and_epochs_does_not_matter(rng, spec):
    release = _release(_with_rhythm(rng, (90, 40)), spec, rng)
    rows, columns = rng.permutation(90), rng.permutation(40)
    moved = Release(np.ascontiguousarray(release.counts[rows][:, columns]), release.facts)
    found = fit_rates(release).dense()
    np.testing.assert_allclose(fit_rates(moved).dense(), found[rows][:, columns], rtol=1e-3)


def test_regions_and_epochs_are_treated_alike(rng):
    release = _release(_with_rhythm(rng), "suppress(k=3)", rng)
    turned = Release(np.ascontiguousarray(release.counts.T), _facts((90, 40), "suppress(k=3)"))
    np.testing.assert_allclose(fit_rates(turned).dense(), fit_rates(release).dense().T, rtol=5e-3)


@pytest.mark.parametrize("shaped", [False, True])
def test_rates_of_cells_are_those_of_all(rng, shaped):
    rates = _with_rhythm(rng, level=300.0)
    release = _release(rates, "suppress(k=3)", rng)
    shape = rng.normal(0, 0.1, rates.shape) if shaped else np.zeros((1, 1))
    fitted = fit_rates(release, shape)
    assert fitted.n_components
    cells = rng.choice(rates.size, 200, replace=False)
    np.testing.assert_allclose(
        fitted.log_rates(cells), np.log(fitted.dense().ravel()[cells]), rtol=1e-5, atol=1e-6
    )
    assert fitted.total() == pytest.approx(fitted.dense().sum())
    by_epoch = fitted.dense().sum(axis=0)
    np.testing.assert_allclose(fitted.time_marginal(), by_epoch / by_epoch.sum())


def test_a_threshold_far_above_the_usual_is_seen_through(rng):
    """Regions with 150 to 900 people an hour, of which counts up to 300 are suppressed."""
    rates = np.outer(np.linspace(150, 900, 30), rng.lognormal(0, 0.1, 60))
    found = fit_rates(_release(rates, "suppress(k=300)", rng)).dense()
    busy = rates > 350
    assert np.abs(np.log(found / rates))[busy].mean() < 0.05
    np.testing.assert_allclose(found[rates < 290].mean(), rates[rates < 290].mean(), rtol=0.25)


def test_posteriors_hold_in_a_crowd(rng):
    """Of people in dense cells with structure, posteriors mean what they say over all targets
    together; those from region times epoch do not. 4 standard errors."""
    rates = _with_rhythm(rng, (60, 120), level=60.0)
    tables = count_tables(Mechanism(), M)
    outcome = {}
    for low_rank in (True, False):
        draws = np.random.default_rng(1)
        posteriors, inside = [], []
        for _ in range(8):
            true = draws.poisson(rates)
            people = [draws.choice(rates.size, 60, replace=False) for _ in range(60)]
            for person in people[::2]:
                true.reshape(-1)[person] += 1
            release = Release(true.astype(np.int32), _facts(rates.shape, "raw"))
            fitted = fit_rates(release, low_rank=low_rank)
            for i, person in enumerate(people):
                score = tables.log_ratio_of(true.reshape(-1)[person], fitted.log_rates(person))
                posteriors.append(1 / (1 + np.exp(-score.sum())))
                inside.append(i % 2 == 0)
        posterior, label = np.array(posteriors), np.array(inside)
        extreme = np.abs(posterior - 0.5) > 0.2
        error = np.sqrt((posterior * (1 - posterior))[extreme].sum())
        high = np.where(posterior > 0.5, posterior, 1 - posterior)[extreme]
        right = np.where(posterior > 0.5, label, ~label)[extreme]
        outcome[low_rank] = (right.sum() - high.sum()) / error
    assert abs(outcome[True]) < 4
    assert outcome[False] < -4


@pytest.mark.parametrize("tables", [count_tables, completion])
def test_an_audit_of_all_presets_at_two_sizes_makes_its_tables_once(tables):
    assert tables.cache_parameters()["maxsize"] >= 2 * (1 + len(PRESETS))
