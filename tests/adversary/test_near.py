"""Rates that learn from the cells around."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import numpy as np
import pytest

from whosthere import kernels
from whosthere.adversary import near as module
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.near import Kinds, near
from whosthere.adversary.rates import Seen, factors, fit_rates, hours_of_week, low_rank
from whosthere.data.epochs import Epochs
from whosthere.data.flows import Pairs
from whosthere.data.regions import Regions
from whosthere.privacy.catalogue import PRESETS
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

M = 5000
SPECS = ["raw", "suppress(k=2)", "random-round(to=3)", "laplace(eps=1, unit=event)", "opensafely"]
HOUR = timedelta(hours=1)


def _regions(rng, n, *, placed=True):
    lon, lat = rng.uniform(0, 0.5, (2, n)) if placed else (None, None)
    return Regions([f"r{i}" for i in range(n)], lon, lat)


def _release(rates, spec, rng, regions, length=HOUR):
    epochs = Epochs(datetime(2021, 6, 7, tzinfo=UTC), length, rates.shape[1], "UTC")
    facts = Facts(regions, epochs, M, Mechanism.parse(spec))
    true = np.minimum(rng.poisson(rates), M).astype(np.int32)
    return Release(facts.mechanism.apply(true, M, rng), facts)


def _smooth(rng, regions, n_epochs, level=2.0, spread=0.6):
    """Rates whose logarithms are alike in hours around and in regions nearby."""
    field = rng.normal(0, 1, (len(regions), n_epochs))
    away = np.linalg.norm(regions.positions_km[:, None] - regions.positions_km, axis=2)
    hours = np.abs(np.subtract.outer(np.arange(n_epochs), np.arange(n_epochs)))
    field = np.exp(-((away / 6) ** 2)) @ field @ np.exp(-((hours / 2) ** 2))
    return level * np.exp(spread * field / field.std() - spread**2 / 2)


def _moved(release, parts=(factors,)):
    """Return what near moves the rates of other parts by."""
    so_far = fit_rates(release, parts)
    found = near(Seen(release), so_far)
    assert np.array_equal(found.base - so_far.base, found.at_cells - so_far.at_cells)
    return found.base - so_far.base


@pytest.mark.parametrize("spec", SPECS)
def test_a_smooth_field_is_found_better(rng, spec):
    """Errors of logarithms fall by a tenth at least (by a quarter to two thirds as a rule)."""
    regions = _regions(rng, 60)
    rates = _smooth(rng, regions, 96, level=8.0)
    release = _release(rates, spec, rng, regions)
    plain = fit_rates(release, (factors,)).base - np.log(rates)
    moved = _moved(release)
    assert ((plain + moved) ** 2).mean() < 0.9 * (plain**2).mean()


def test_no_rate_moves_by_more_than_a_factor_of_twelve(rng):
    regions = _regions(rng, 60)
    release = _release(_smooth(rng, regions, 96, level=5.0, spread=2.5), "raw", rng, regions)
    assert np.abs(_moved(release)).max() == pytest.approx(2.5)


@pytest.mark.parametrize("spec", SPECS)
def test_nothing_is_made_of_chance(rng, spec):
    """Products of region and epoch: logarithms move by 0.05 at most, root of the mean square.

    Twelve kinds at two errors: about one of four tables is moved at all.
    """
    regions = _regions(rng, 40)
    rates = np.outer(rng.lognormal(0, 1, 40), rng.lognormal(0, 0.5, 72))
    moved = [_moved(_release(rates, spec, rng, regions)) for _ in range(5)]
    assert np.sqrt(np.mean(np.square(moved))) < 0.05
    assert min(np.abs(one).max() for one in moved) == 0


@pytest.mark.parametrize("spec", SPECS)
def test_it_does_not_matter_how_regions_are_numbered(rng, spec):
    regions = _regions(rng, 30)
    release = _release(_smooth(rng, regions, 48), spec, rng, regions)
    order = rng.permutation(30)
    facts = Facts(regions.select(order), release.epochs, M, release.mechanism)
    again = Release(release.values[order], facts)
    assert _moved(again) == pytest.approx(_moved(release)[order], abs=1e-4)
    assert np.abs(_moved(release)).max() > 0.05


@pytest.mark.parametrize("spec", SPECS)
def test_time_may_run_backwards(rng, spec):
    regions = _regions(rng, 30)
    release = _release(_smooth(rng, regions, 48), spec, rng, regions)
    again = Release(np.ascontiguousarray(release.values[:, ::-1]), release.facts)
    assert _moved(again) == pytest.approx(_moved(release)[:, ::-1], abs=1e-4)


def test_without_neighbours_nothing_moves(rng):
    for placed, shape in ((True, (1, 1)), (False, (30, 1))):
        regions = _regions(rng, shape[0], placed=placed)
        release = _release(rng.lognormal(1, 1, shape), "raw", rng, regions)
        assert (_moved(release) == 0).all()


def test_without_positions_time_alone_counts(rng):
    regions = _regions(rng, 40)
    rates = _smooth(rng, regions, 96)
    kept = _release(rates, "suppress(k=2)", rng, regions)
    facts = Facts(Regions(regions.ids), kept.epochs, M, kept.mechanism)
    release = Release(kept.values, facts)
    order = rng.permutation(40)
    again = Release(release.values[order], facts)
    assert _moved(again) == pytest.approx(_moved(release)[order], abs=1e-4)
    errors = [
        ((fit_rates(one, (factors, near)).base - np.log(rates)) ** 2).mean()
        for one in (release, kept)
    ]
    assert (
        errors[1] < errors[0] < ((fit_rates(release, (factors,)).base - np.log(rates)) ** 2).mean()
    )


def test_neighbours_that_vary_the_other_way_are_not_used(rng):
    """One hour after the other, busy where the other is quiet: no weight is negative."""
    side = rng.choice([-1, 1], 200)
    rates = 20 * np.exp(0.5 * np.column_stack([side, -side]))
    release = _release(rates, "raw", rng, _regions(rng, 200, placed=False))
    assert (_moved(release) == 0).all()


@pytest.mark.parametrize("spec", [*SPECS, *sorted(PRESETS)])
def test_rates_are_finite_whatever_the_order_of_parts(rng, spec):
    for regions in (_regions(rng, 9), Pairs(_regions(rng, 3))):
        release = _release(rng.lognormal(0, 2, (9, 14)), spec, rng, regions, timedelta(days=1))
        for parts in permutations((low_rank, near, hours_of_week)):
            found = fit_rates(release, (factors, *parts))
            assert np.isfinite(found).all()


def test_regions_are_moved_alike_in_and_out_of_the_sample(rng, monkeypatch):
    """Weights come from a sample of regions in a large table; all others are moved by them, too."""
    regions = _regions(rng, 60)
    rates = _smooth(rng, regions, 96)
    release = _release(rates, "suppress(k=2)", rng, regions)
    whole = _moved(release)
    monkeypatch.setattr(module, "_CELLS_TO_FIT", 17 * 96)
    sample = _moved(release)
    assert np.corrcoef(whole.ravel(), sample.ravel())[0, 1] > 0.95
    assert np.allclose(sample.std(axis=1), whole.std(axis=1), rtol=0.5)


def test_the_level_of_two_places_is_not_counted_twice(rng):
    """It differs, the same there and back, and nothing else does: epochs around say no more."""
    pairs, busy = Pairs(_regions(rng, 12)), rng.lognormal(0, 0.25, (12, 12))
    rates = np.repeat((busy * busy.T)[pairs.origins, pairs.destinations][:, None], 48, axis=1)
    moved = _moved(_release(rates, "raw", rng, pairs))
    assert np.sqrt((moved**2).mean()) < 0.1


@pytest.mark.parametrize("spec", ["raw", "suppress(k=2)", "laplace(eps=1, unit=event)"])
def test_hours_of_the_week_are_not_counted_twice(rng, spec):
    """They differ, and nothing else does: errors grow by less than 5 % (else by 10 to 20 %)."""
    rates = np.tile(2 * np.exp(rng.normal(0, 0.6, (60, 28)) - 0.18), (1, 6))
    release = _release(rates, spec, rng, _regions(rng, 60), 6 * HOUR)
    plain, found = (
        fit_rates(release, (factors, hours_of_week, *more)).at_cells for more in ((), (near,))
    )
    error = ((plain - np.log(rates)) ** 2).mean()
    assert ((found - np.log(rates)) ** 2).mean() < 1.05 * error


@pytest.mark.parametrize("alike", ["there and back", "to places nearby", "from places nearby"])
def test_trips_learn_from_trips_around(rng, alike):
    """One epoch after the other by itself: errors beyond levels fall by a tenth.

    Alone in time, so that what a pair's own other epochs tell is nothing.
    """
    places = _regions(rng, 14)
    pairs, own = Pairs(places), rng.normal(0, 1, (14, 14, 60))
    away = np.linalg.norm(places.positions_km[:, None] - places.positions_km, axis=2)
    weight = np.exp(-((away / 12) ** 2))
    field = {
        "there and back": own + own.swapaxes(0, 1),
        "to places nearby": np.einsum("ijt,jk->ikt", own, weight),
        "from places nearby": np.einsum("ijt,ik->kjt", own, weight),
    }[alike].reshape(196, 60)
    log_rates = 2 + 0.6 * (field / field.std(axis=1, keepdims=True))
    release = _release(np.exp(log_rates), "raw", rng, pairs)
    plain = fit_rates(release, (factors,)).base - log_rates
    errors = [
        ((one - one.mean(axis=1, keepdims=True)) ** 2).mean()
        for one in (plain, plain + _moved(release))
    ]
    assert errors[1] < 0.9 * errors[0]


@pytest.mark.parametrize(("length", "day"), [(HOUR, 24), (7 * HOUR, 0), (24 * HOUR, 0)])
def test_kinds_are_those_that_the_docs_list(rng, length, day):
    """A day is known where it is several whole epochs."""
    regions = _regions(rng, 30)
    kinds = Kinds.of(regions, Epochs(datetime(2021, 6, 7, tzinfo=UTC), length, 400, "UTC"))
    found = [
        (kinds.near[:, a:b].tolist(), set(np.abs(kinds.lags[first:last]).tolist()))
        for a, b, first, last in kinds.bounds
    ]
    around = [
        ((0, 1), [{1}, {2}, {3, 4}, {5, 6, 7, 8, 9}]),
        ((1, 5), [{0}, {1}]),
        ((5, 9), [{0}]),
        ((9, 21), [{0}]),
    ]
    if day:
        around[0][1].extend([{day}, {day - 1, day + 1}, {day * n for n in range(2, 8)}])
        around[1][1].append({day})
    by_distance = np.hstack([np.arange(30)[:, None], regions.nearest])
    wanted = [(by_distance[:, a:b].tolist(), one) for (a, b), lags in around for one in lags]
    assert sorted(found, key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("spec", SPECS)
def test_slopes_are_those_of_the_chance_of_what_was_published(rng, spec):
    """By the weights of kinds: against differences of log chances, rates in and beyond tables."""
    release = _release(rng.lognormal(1, 2, (300, 1)), spec, rng, _regions(rng, 300, placed=False))
    seen, symbols = Seen(release), release.symbols.reshape(-1)
    counts = np.maximum(release.values.reshape(-1), 1)
    log_rates = np.log(counts) + rng.normal(0, 1, counts.size) / np.sqrt(counts)
    pulled = rng.normal(0, 1, (counts.size, 2)).astype(np.float32)

    def log_chance(weights):
        nodes = np.clip(pulled @ weights, -2.5, 2.5)[:, None]
        each = symbols[:, None], log_rates[:, None], nodes
        return kernels.sum_log_chances(*each, *seen.tables.of_chances).sum()

    weights, small = np.array([0.02, -0.01]), 0.01

    def slope_and_curvature(weights, most=2.5, every=1):
        given = symbols, log_rates, pulled, weights, most, every
        return kernels.slope_by_weights(*given, *seen.tables.of_slopes)

    found, curvature = slope_and_curvature(weights)
    wanted = [
        (log_chance(weights + step) - log_chance(weights - step)) / (2 * small)
        for step in small * np.eye(2)
    ]
    error = np.sqrt(np.diag(curvature))
    assert np.abs(found - wanted).max() < 0.2 * error.min()
    assert np.linalg.eigvalsh(curvature).min() > 0
    of_some = slope_and_curvature(weights, every=2)
    assert np.array_equal(of_some[0], found)
    assert np.diag(of_some[1]) == pytest.approx(np.diag(curvature), rel=0.6)
    assert not np.array_equal(of_some[1], curvature)
    assert np.array_equal(*(slope_and_curvature(one, most=0.0)[0] for one in (weights, -weights)))
    low = [np.full((counts.size, 1), one) for one in (-40.0, seen.tables.first)]
    slopes = [kernels.slopes_by_cell(release.symbols, one, *seen.tables.of_slopes) for one in low]
    assert np.array_equal(*slopes)


def test_pulls_are_sums_over_neighbours(rng):
    """By the slow formula, with lags beyond the table's ends and regions that are not there."""
    near_, lags = rng.integers(-1, 7, (7, 4)).astype(np.int32), np.array([0, 1, -1, 5, -5])
    bounds = np.array([[0, 4, 0, 5], [1, 2, 1, 3], [0, 0, 0, 1]])
    slope, known = rng.random((2, 7, 6)).astype(np.float32)
    found = Kinds(bounds, near_, lags).pulls((slope, known), np.array([5, 2]))
    assert found.shape == (12, 3)
    for row, (region, t) in enumerate((s, t) for s in (5, 2) for t in range(6)):
        for kind, (a, b, first, last) in enumerate(bounds):
            cells = [
                (other, t + lag)
                for other in near_[region, a:b]
                for lag in lags[first:last]
                if other >= 0 and 0 <= t + lag < 6
            ]
            sums = [sum(one[cell] for cell in cells) for one in (slope, known)]
            assert found[row, kind] == pytest.approx(sums[0] / (sums[1] + 0.7**-2), rel=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_no_count_alone_pulls_far(spec):
    """By six deviations and half of one person at most, nor by more than e^8 times the rate."""
    tables = count_tables(Mechanism.parse(spec), M)
    slopes, information, _ = tables.of_slopes
    most = np.minimum(6 * (np.sqrt(information) + 0.5), tables.rates * np.expm1(8.0))
    assert (slopes <= most * (1 + 1e-12)).all()
    assert (slopes >= -tables.rates * (1 + 1e-12)).all()
