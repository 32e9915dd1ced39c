"""Levels of lines: which cells share one, its law, and what counts say about it."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from whosthere import kernels
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.levels import (
    Lines,
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
