"""Levels of lines: the integral of the definition, few epochs, few regions, tails."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

from whosthere.adversary.attacks import Auxiliary, LikelihoodRatio
from whosthere.adversary.attacks.likelihood_ratio import log_likelihood_ratio, terms_by_cell
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.knowledge import KnownRegions, KnownVisits
from whosthere.adversary.lines import Lines, log_sums
from whosthere.adversary.rates import fit_rates
from whosthere.data.epochs import Epochs
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


def _lines(release):
    tables = count_tables(release.mechanism, M)
    return Lines.of(release.counts, fit_rates(release), tables)


def _by_definition(release, cells):
    """The score by a plain sum over 500 levels of each line, with nothing of tables."""
    lines, n_epochs = _lines(release), release.counts.shape[1]
    log_rates = np.log(lines.rates.dense())
    levels = np.linspace(-9, 9, 500)
    n = np.arange(M)
    visited = np.zeros(release.counts.size, bool)
    visited[cells] = True
    score = 0.0
    for line in np.unique(cells // n_epochs if lines.axis == 0 else cells % n_epochs):
        values = np.take(release.counts, line, lines.axis)
        own = np.take(visited.reshape(release.counts.shape), line, lines.axis)
        at = np.take(log_rates, line, lines.axis)
        level = lines.rates.factors(lines.axis)[line] + levels
        # The level of a visited line: weighted by itself.
        both = np.tile(-(((level - lines.centre) / lines.spread) ** 2) / 2 + level, (2, 1))
        for value, there, log_rate in zip(values, own, at, strict=True):
            others = poisson.pmf(n, np.exp(log_rate + levels)[:, None])
            for within in (0, 1):
                law = release.mechanism.pmf(np.array([value]), n + within * there, M).reshape(-1)
                both[within] += np.log(np.maximum(others @ law, 1e-300))
        score += logsumexp(both[1]) - logsumexp(both[0])
    return score


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
    """3,000 lines, of which 1,024 are looked at: within 0.15 of mean and deviation."""
    rates = _city(rng, 3000, n_epochs)
    lines = _lines(_release(rng.poisson(rates), spec, rng))
    by_epoch = np.log(np.exp(lines.rates.columns).mean())
    levels = np.log(rates.mean(axis=1))
    assert lines.centre + by_epoch == pytest.approx(levels.mean(), abs=0.1)
    assert lines.spread == pytest.approx(levels.std(), abs=0.1)


def _people(rng, levels, n, visits=12):
    """People who go to lines of one cell in proportion to their levels."""
    share = levels / levels.sum()
    return [np.sort(rng.choice(levels.size, visits, replace=False, p=share)) for _ in range(n)]


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
    levels = np.exp(rng.normal(0.4, 1.0, 2000))
    shape = (1, 2000) if turned else (2000, 1)
    people = _people(rng, levels, 400)
    said, truth = [], []
    for _ in range(3 if full else 1):
        inside = rng.random(400) < 0.5
        # Those who are asked about come on top of all others, who are many more.
        true = rng.poisson(levels)
        counts_with = true.copy()
        for cells in (cells for cells, is_in in zip(people, inside, strict=True) if is_in):
            counts_with[cells] += 1
        for cells, is_in in zip(people, inside, strict=True):
            alone = true.copy()
            alone[cells] += is_in
            release = _release(alone.reshape(shape), spec, rng)
            rates = fit_rates(release, low_rank=False)
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
        fitted = fit_rates(release, low_rank=False)
        answer = log_likelihood_ratio(release, KnownVisits(np.array([cell])), fitted)
        if answer.null is None:
            continue
        lines = _lines(release)
        [line], [place] = lines.place(np.array([cell]))
        levels = lines.levels(np.array([line]), hidden=(np.array([0]), np.array([place])))
        weight = np.exp(levels.log_weight[0])
        n = np.arange(M)
        others = poisson.pmf(n, np.exp(fitted.log_rates(np.array([cell]))[0] + levels.nodes.T))
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
    levels = np.exp(rng.normal(0.4, 1.0, 2000))
    people = _people(rng, levels, 300, visits=25)
    scores, plain, labels = [], [], []
    for i, cells in enumerate(people):
        true = rng.poisson(levels)
        true[cells] += i % 2
        release = _release(true.reshape(-1, 1), "suppress(k=2)", rng)
        fitted = LikelihoodRatio().fit(release.facts, KnownVisits(cells), Auxiliary(), seed=0)
        scores.append(fitted.score(release).score)
        tables = count_tables(release.mechanism, M)
        log_rates = fit_rates(release).log_rates(cells)
        plain.append(tables.log_ratio_of(release.counts.reshape(-1)[cells], log_rates).sum())
        labels.append(i % 2 == 1)
    assert _auc(scores, labels) > _auc(plain, labels) + 0.05


def _auc(scores, labels):
    inside, outside = (np.array(scores)[np.array(labels) == kind] for kind in (True, False))
    return (inside[:, None] > outside).mean()


@pytest.mark.parametrize("n_nodes", [1, 7, 12, 200])
def test_sums_of_logarithms_are_those_of_scipy_to_the_last_bit(rng, n_nodes):
    logs = rng.normal(0, 30, (300, n_nodes))
    logs[rng.random(logs.shape) < 0.1] = -np.inf
    logs[:5], logs[5:9], logs[9, 0] = -np.inf, 3.5, np.inf
    np.testing.assert_array_equal(log_sums(logs), logsumexp(logs, axis=1))
    assert log_sums(logs[:0]).shape == (0,)
