"""Rates by the hour of the week, where weeks are published that are alike."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.rates import fit_rates
from whosthere.adversary.weekly import Alike
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

M = 1000
# A Monday.
START = datetime(2021, 6, 7, tzinfo=UTC)
SIX_HOURS = timedelta(hours=6)


def _release(counts, spec, rng, length=SIX_HOURS, timezone="UTC"):
    mechanism = Mechanism.parse(spec)
    regions = Regions([f"r{i}" for i in range(len(counts))])
    epochs = Epochs(START, length, counts.shape[1], timezone)
    published = mechanism.apply(np.minimum(counts, M).astype(np.int32), M, rng)
    return Release(published, Facts(regions, epochs, M, mechanism))


def _rates(rng, weeks, spread):
    """Rates of 12 regions by six hours, the same every week, which are no region times epoch."""
    by_slot = np.exp(rng.normal(0, spread, (12, 28)) - spread**2 / 2)
    return 2.0 * np.tile(by_slot, (1, weeks))


@pytest.mark.parametrize("spec", ["raw", "suppress(k=2)", "random-round(to=3)"])
def test_factors_are_found_where_weeks_are_alike(rng, spec):
    """Logarithms are closer by a sixth after 12 weeks, at cells whose own counts are left out."""
    rates = _rates(rng, 12, spread=0.6)
    fitted = fit_rates(_release(rng.poisson(rates), spec, rng))
    cells = rng.choice(rates.size, 60, replace=False)
    errors = [
        np.abs(found - np.log(rates.reshape(-1)[cells])).mean()
        for found in (fitted.log_rates(cells), fitted.log_rates_for(cells))
    ]
    assert errors[1] < errors[0] * 5 / 6


def test_nothing_is_made_of_chance(rng):
    """Where rates really are region times epoch, factors stay close to 1."""
    rates = np.outer(rng.lognormal(0, 1, 12), rng.lognormal(0, 0.5, 28 * 4))
    for spec in ("raw", "laplace(eps=0.5, unit=event)"):
        fitted = fit_rates(_release(rng.poisson(rates), spec, rng))
        cells = np.arange(0, rates.size, 7)
        moved = fitted.log_rates_for(cells) - fitted.log_rates(cells)
        assert np.abs(moved).max() < 0.35


def test_less_than_two_weeks_are_left_as_they_were(rng):
    for length, n in ((SIX_HOURS, 55), (timedelta(weeks=1), 60)):
        counts = rng.poisson(2.0, (6, n))
        assert fit_rates(_release(counts, "raw", rng, length)).weekly == ()
    counts = rng.poisson(2.0, (6, 56))
    assert fit_rates(_release(counts, "raw", rng)).weekly
    assert not fit_rates(_release(counts, "raw", rng), low_rank=False).weekly


def test_a_habit_does_not_hide_its_own_person(rng):
    """Somebody at the same place and hour of eight weeks changes less of what is expected there."""
    rates = _rates(rng, 8, spread=0.6)
    visits = np.arange(3, 28 * 8, 28)
    found = []
    for added in (0, 1):
        counts = np.random.default_rng(1).poisson(rates)
        counts.reshape(-1)[visits] += added
        fitted = fit_rates(_release(counts, "raw", rng))
        found.append([fitted.log_rates_for(visits).mean(), fitted.log_rates_by_hour(visits).mean()])
    without, knowing_them = np.diff(found, axis=0)[0]
    assert without < knowing_them - 0.05


def test_hours_are_those_on_the_wall(rng):
    """Summer time ends within the weeks: the hour of the week stays the same there."""
    start = datetime(2021, 10, 18, tzinfo=UTC)
    epochs = Epochs(start, timedelta(hours=1), 28 * 24, "Europe/Rome")
    facts = Facts(Regions(["a", "b"]), epochs, M, Mechanism())
    counts = np.zeros((2, epochs.n), np.int32)
    is_noon = np.array([one.hour == 12 for one in epochs.local_starts])
    counts[0, is_noon], counts[1, ~is_noon] = 9, 1
    by_hour = fit_rates(Release(counts, facts)).weekly[0]
    assert len({int(one) for one in by_hour.time[is_noon]}) == 2
    busy = by_hour.log_factors[0, np.unique(by_hour.time[is_noon])]
    assert (busy > by_hour.log_factors[0].mean() + 0.5).all()


def test_counts_that_a_small_spread_cannot_explain_choose_a_larger_one_without_a_warning():
    """They are forty times what is expected, so that their chance is too small a number."""
    symbols, time = np.full((3, 8), 40, np.int32), np.zeros(8, np.int64)
    alike = Alike.of(symbols, np.zeros((3, 8)), count_tables(Mechanism(), M), time)
    assert alike.spread > 1
    assert (alike.log_factors > 2).all()


def test_people_are_expected_where_people_go(rng):
    """A visit chooses its cell by how full that is: the mean of factors is moved up by visits."""
    rates, time = _rates(rng, 4, spread=0.6), np.tile(np.arange(28), 4)
    tables, symbols = count_tables(Mechanism(), M), rng.poisson(rates).astype(np.int32)
    found = Alike.of(symbols, np.log(np.full(rates.shape, 2.0)), tables, time)
    # Nothing is left to look at: somebody was there every week.
    cells = np.arange(4) * 28
    assert found.spread > 0.3
    assert found.log_factors_for(cells) == pytest.approx(found.spread**2 / 2, abs=0.01)
