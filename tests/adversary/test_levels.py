"""Levels of lines: the integral of the definition, few epochs, few regions, tails."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

from whosthere import kernels
from whosthere.adversary import levels
from whosthere.adversary.attacks import Auxiliary, LikelihoodRatio
from whosthere.adversary.attacks.likelihood_ratio import log_likelihood_ratio, terms_by_cell
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.knowledge import KnownRegions, KnownVisits
from whosthere.adversary.levels import (
    Levels,
    Lines,
    fitted_levels,
    likeliest_law,
    likeliest_spread,
    posterior,
)
from whosthere.adversary.rates import RANK_ONE, fit_rates
from whosthere.data.epochs import Epochs
from whosthere.data.flows import Pairs
from whosthere.data.regions import Regions
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

M = 500
SPECS = (
    "raw",
    "suppress(k=2)",
    "round(to=5)",
    "laplace(eps=1, unit=event)",
    "gaussian(eps=1, delta=1e-6, unit=event) | suppress(k=1)",
)


def _facts(n_regions, n_epochs, spec):
    start = datetime(2021, 6, 1, tzinfo=UTC)
    return Facts(
        Regions([f"r{i}" for i in range(n_regions)]),
        Epochs(start, timedelta(hours=1), n_epochs),
        M,
        Mechanism.parse(spec),
    )


def _release(true, spec, rng):
    facts = _facts(*true.shape, spec)
    counts = np.minimum(true, M).astype(np.int32)
    return Release(facts.mechanism.apply(counts, M, rng), facts)


def _city(rng, n_regions, n_epochs, median=1.5, spread=1.0):
    """Rates whose lines have normal logarithms of levels."""
    return median * np.outer(rng.lognormal(0, spread, n_regions), rng.lognormal(0, 0.3, n_epochs))


def _fitted(true, spec, rng):
    release = _release(true, spec, rng)
    return release, fit_rates(release)


def _by_line(release, rates):
    lines = Lines.of(release.regions, release.counts.shape)
    tables = count_tables(release.mechanism, M)
    return lines, (lines.take(release.symbols, -1), lines.take(rates.base), tables)


def _by_definition(release, cells):
    """The score by a plain sum over 500 levels of each line, with nothing of tables."""
    lines, (symbols, log_rates, tables) = _by_line(release, fit_rates(release))
    levels, n = np.linspace(-9, 9, 500), np.arange(M)
    visited = np.zeros(release.counts.size, bool)
    visited[cells] = True
    said = np.zeros((2, len(symbols), levels.size))
    for line, i in np.ndindex(symbols.shape):
        others = poisson.pmf(n, np.exp(log_rates[line, i] + levels)[:, None])
        there = visited[lines.cells[line, i]]
        value = lines.take(release.values)[line, i]
        for within in (0, 1):
            law = release.mechanism.pmf(np.array([value]), n + within * there, M).reshape(-1)
            said[within, line] += np.log(np.maximum(others @ law, 1e-300))
    level = fitted_levels(log_rates)[:, None] + levels
    centre, spread = likeliest_law(symbols, log_rates, tables)
    # The level of a visited line: weighted by itself.
    prior = -(((level - centre) / spread) ** 2) / 2 + level
    by_line = logsumexp(said[1] + prior, axis=1) - logsumexp(said[0] + prior, axis=1)
    return by_line.sum()


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("shape", [(40, 1), (1, 40), (30, 4), (4, 30)], ids=str)
def test_scores_are_those_of_the_definition(rng, spec, shape):
    rates = _city(rng, *shape) if shape[0] > shape[1] else _city(rng, *shape[::-1]).T
    cells = np.sort(rng.choice(rates.size, 6, replace=False))
    true = rng.poisson(rates)
    true.reshape(-1)[cells] += 1
    release = _release(true, spec, rng)
    found = log_likelihood_ratio(release, KnownVisits(cells), fit_rates(release))
    assert found.score == pytest.approx(_by_definition(release, cells), abs=0.02)


@pytest.mark.parametrize("spec", SPECS)
def test_a_turned_table_says_the_same(rng, spec):
    release = _release(rng.poisson(_city(rng, 25, 6)), spec, rng)
    turned = Release(np.ascontiguousarray(release.counts.T), _facts(6, 25, spec))
    cells = np.sort(rng.choice(150, 10, replace=False))
    region, epoch = np.divmod(cells, 6)
    scores = [
        log_likelihood_ratio(one, KnownVisits(known), fit_rates(one)).score
        for one, known in ((release, cells), (turned, epoch * 25 + region))
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)


@pytest.mark.parametrize("spec", ["raw", "suppress(k=2)", "laplace(eps=1, unit=event)"])
@pytest.mark.parametrize("n_epochs", [1, 3])
def test_the_law_of_levels_is_found(rng, spec, n_epochs):
    """Of 1,000 lines: within 0.15 of mean and deviation."""
    rates = _city(rng, 1000, n_epochs)
    centre, spread = likeliest_law(*_by_line(*_fitted(rng.poisson(rates), spec, rng))[1])
    busy = np.log(rates.sum(axis=1))
    assert centre == pytest.approx(busy.mean(), abs=0.15)
    assert spread == pytest.approx(busy.std(), abs=0.15)


@pytest.mark.parametrize("spec", ["raw", "suppress(k=2)", "laplace(eps=1, unit=event)"])
@pytest.mark.parametrize("spread", [0.2, 0.6, 1.2])
def test_the_spread_of_levels_around_rates_is_found(rng, spec, spread):
    """2,000 lines of 12 cells, levels of mean 1; the smallest of those that do about as well."""
    busy = np.exp(rng.normal(-(spread**2) / 2, spread, (2000, 1)))
    log_rates = np.log(2.0) + rng.normal(0, 0.3, (2000, 12))
    release = _release(rng.poisson(busy * np.exp(log_rates)), spec, rng)
    tried = np.arange(0.05, 2.0, 0.05)
    at = release.symbols, log_rates, count_tables(release.mechanism, M)
    found = likeliest_spread(*at, tried)
    assert found == pytest.approx(spread, abs=0.1)
    assert likeliest_spread(*at, tried, 5.0) <= found


@pytest.mark.parametrize("spec", SPECS)
def test_levels_are_their_law_given_the_counts(rng, spec):
    """Against a fine grid: mean, deviation, and the mean without each count. Cells that a line
    lacks say nothing."""
    release = _release(rng.poisson(_city(rng, 6, 8)), spec, rng)
    log_rates, tables = fit_rates(release, RANK_ONE).base, count_tables(release.mechanism, M)
    symbols, spread = release.symbols.copy(), 0.5
    symbols[2, 3:] = symbols[4] = -1
    expected = np.linspace(-0.4, 0.4, 6)
    found = posterior(symbols, log_rates, expected, spread, tables)
    grid = np.tile(np.linspace(-4, 4, 2001), (6, 1))
    prior = -(((grid - expected[:, None]) / spread) ** 2) / 2
    whole = prior + kernels.sum_log_chances(symbols, log_rates, grid, *tables.of_chances)

    def mean(logs):
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        return (weight * grid).sum(axis=1) / weight.sum(axis=1)

    weight = np.exp(found.log_weight)
    np.testing.assert_allclose(weight.sum(axis=1), 1)
    np.testing.assert_allclose((weight * found.nodes).sum(axis=1), mean(whole), atol=2e-3)
    without = found.means_without_each(symbols, log_rates, tables)
    for i in range(8):
        hidden = symbols.copy()
        hidden[:, i] = -1
        logs = prior + kernels.sum_log_chances(hidden, log_rates, grid, *tables.of_chances)
        there = symbols[:, i] >= 0
        np.testing.assert_allclose(without[there, i], mean(logs)[there], atol=0.02)


def test_levels_are_found_some_lines_at_a_time(rng, monkeypatch):
    release = _release(rng.poisson(_city(rng, 40, 6)), "suppress(k=1)", rng)
    _, at = _by_line(release, fit_rates(release))
    whole = Levels.of(*at, relative=False)
    monkeypatch.setattr(levels, "_AT_A_TIME", 50)
    parts = Levels.of(*at, relative=False)
    np.testing.assert_array_equal(parts.log_weight, whole.log_weight)
    np.testing.assert_array_equal(parts.nodes, whole.nodes)


def test_both_directions_are_one_line():
    """a > b and b > a; b > b; c > a. Where a line has no such trip, it has no cell."""
    pairs = Pairs(Regions(list("abc"))).select([1, 3, 4, 6])
    lines = Lines.of(pairs, (4, 2))
    assert lines.are_relative
    assert lines.cells.tolist() == [[0, 1, 2, 3], [-1, -1, 6, 7], [4, 5, -1, -1]]
    values = np.arange(8) * 10
    assert lines.take(values, -1).tolist() == [[0, 10, 20, 30], [-1, -1, 60, 70], [40, 50, -1, -1]]
    assert lines.put(lines.take(values), (4, 2)).reshape(-1).tolist() == values.tolist()
    # Where only regions are known, each is a line.
    assert (
        Lines.of(pairs, (4, 9), by_region=True).cells.tolist()
        == np.arange(36).reshape(4, 9).tolist()
    )


@pytest.mark.parametrize(("shape", "first"), [((3, 2), [0, 1]), ((2, 3), [0, 3]), ((2, 2), [0, 1])])
def test_lines_are_regions_unless_epochs_are_more(shape, first):
    lines = Lines.of(Regions(list("abc")[: shape[0]]), shape)
    assert lines.cells[0].tolist() == first
    values = np.arange(shape[0] * shape[1]).reshape(shape)
    np.testing.assert_array_equal(lines.put(lines.take(values), shape), values)


def _people(rng, busy, n, visits=12):
    """People who go to lines of one cell in proportion to their levels."""
    share = busy / busy.sum()
    return [np.sort(rng.choice(busy.size, visits, replace=False, p=share)) for _ in range(n)]


@pytest.mark.parametrize(
    ("spec", "turned"),
    [
        pytest.param("raw", False, marks=pytest.mark.full),
        ("raw", True),
        ("suppress(k=2)", False),
        pytest.param("suppress(k=2)", True, marks=pytest.mark.full),
        ("laplace(eps=1, unit=event)", False),
        pytest.param("laplace(eps=1, unit=event)", True, marks=pytest.mark.full),
    ],
)
def test_posteriors_hold_where_every_cell_is_a_line(rng, spec, turned, full):
    """400 people, half of them in: of posteriors near p a share near p is in,
    for those who go where people go. False alarm rate below 1e-5 a case (5 standard errors)."""
    busy = np.exp(rng.normal(0.4, 1.0, 2000))
    shape = (1, 2000) if turned else (2000, 1)
    people = _people(rng, busy, 400)
    said, truth = [], []
    for _ in range(3 if full else 1):
        inside = rng.random(400) < 0.5
        # Those who are asked about come on top of all others, who are many more.
        true = rng.poisson(busy)
        counts_with = true.copy()
        for cells in (cells for cells, is_in in zip(people, inside, strict=True) if is_in):
            counts_with[cells] += 1
        for cells, is_in in zip(people, inside, strict=True):
            alone = true.copy()
            alone[cells] += is_in
            release = _release(alone.reshape(shape), spec, rng)
            rates = fit_rates(release, RANK_ONE)
            said.append(log_likelihood_ratio(release, KnownVisits(cells), rates).posterior())
            truth.append(is_in)
    said, truth = np.array(said), np.array(truth)
    for low, high in ((0, 0.1), (0.1, 0.35), (0.35, 0.65), (0.65, 0.9), (0.9, 1)):
        own = (said >= low) & (said <= high)
        if own.sum() > 10:
            spread = np.sqrt((said[own] * (1 - said[own])).sum()) + 0.5
            assert abs(truth[own].sum() - said[own].sum()) < 5 * spread


@pytest.mark.parametrize("spec", SPECS)
def test_p_values_are_those_of_all_counts(rng, spec):
    """One cell that is known: all of its counts one by one. Twice the standard error is added to
    what is simulated; it may be too small by chance, and by the steps of the tables."""
    rates = _city(rng, 60, 2)
    mechanism = Mechanism.parse(spec)
    cell = int(np.argsort(rates.ravel())[80])
    for more in (0, 3, 8):
        true = rng.poisson(rates)
        true.reshape(-1)[cell] += more
        release = _release(true, spec, rng)
        fitted = fit_rates(release, RANK_ONE)
        answer = log_likelihood_ratio(release, KnownVisits(np.array([cell])), fitted)
        if answer.null is None:
            continue
        lines, at = _by_line(release, fitted)
        found = Levels.of(*at, relative=False)
        line = np.argmax((lines.cells == cell).any(axis=1))
        n, value = np.arange(M), release.values.reshape(-1)[cell]
        log_rates = fitted.base.reshape(-1)[cell] + found.nodes[line]
        others = poisson.pmf(n, np.exp(log_rates)[:, None])
        # What the line's other counts say.
        weight = np.exp(found.log_weight[line])
        weight /= np.maximum(others @ mechanism.pmf(value, n, M), 1e-300)
        weight /= weight.sum()
        values = np.arange(120)
        without, within = (
            weight @ others @ mechanism.pmf(values, np.minimum(n + one, M)[:, None], M)
            for one in (0, 1)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.log(within) - np.log(without)
        exact = without[score >= score[release.counts.reshape(-1)[cell]] - 1e-6].sum()
        assert 0.93 * exact <= answer.p_value <= 1.25 * exact + 1e-9


def test_far_tails_are_seen(rng):
    """Forty visits that nobody else makes, counted as they are: a chance of far below 1e-6."""
    rates = np.full((50, 40), 0.05)
    cells = np.arange(0, 2000, 50)
    true = rng.poisson(rates)
    true.reshape(-1)[cells] += 1
    release = _release(true, "laplace(eps=3, unit=event)", rng)
    answer = log_likelihood_ratio(release, KnownVisits(cells), fit_rates(release))
    assert 0 < answer.p_value < 1e-9
    # By Markov's inequality, a likelihood ratio of e^s has a chance of e^-s at most.
    assert answer.p_value < 1.3 * np.exp(-answer.score)


@pytest.mark.parametrize("spec", SPECS)
def test_terms_of_cells_add_up_to_the_score(rng, spec):
    true = rng.poisson(_city(rng, 30, 6)) + 1
    release = _release(true, spec, rng)
    for known in (KnownVisits(np.arange(0, 180, 7)), KnownRegions((3, 8))):
        rates = fit_rates(release)
        cells, terms = terms_by_cell(release, known, rates)
        assert cells.shape == terms.shape
        score = log_likelihood_ratio(release, known, rates).score
        assert terms.sum() == pytest.approx(score)


def test_few_epochs_no_longer_explain_themselves_away(rng):
    """Places of very different levels, one epoch, small counts hidden: people in and out are told
    apart over everybody, which rates fitted to single counts cannot."""
    busy = np.exp(rng.normal(0.4, 1.0, 2000))
    people = _people(rng, busy, 300, visits=25)
    scores, plain, labels = [], [], []
    for i, cells in enumerate(people):
        true = rng.poisson(busy)
        true[cells] += i % 2
        release = _release(true.reshape(-1, 1), "suppress(k=2)", rng)
        fitted = LikelihoodRatio().fit(release.facts, KnownVisits(cells), Auxiliary(), seed=0)
        scores.append(fitted.score(release).score)
        tables = count_tables(release.mechanism, M)
        log_rates = fit_rates(release).base.reshape(-1)[cells]
        plain.append(tables.log_ratio_of(release.counts.reshape(-1)[cells], log_rates).sum())
        labels.append(i % 2 == 1)
    assert _auc(scores, labels) > _auc(plain, labels) + 0.05


def _auc(scores, labels):
    inside, outside = (np.array(scores)[np.array(labels) == kind] for kind in (True, False))
    return (inside[:, None] > outside).mean()
