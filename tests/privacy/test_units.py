"""What each unit of privacy weighs, and the bounding of contributions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from scipy import stats

from whosthere.data.epochs import Epochs, parse_length, to_micros
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import InputError, SpecError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.units import UNITS, Event, User, UserDay, UserPeriod, UserWeek

N_REGIONS, N_EPOCHS = 5, 72


def make_traces(lists):
    epochs = Epochs(datetime(2024, 3, 1, tzinfo=UTC), timedelta(hours=1), N_EPOCHS)
    indptr = np.concatenate([[0], np.cumsum([len(cells) for cells in lists])])
    cells = np.concatenate([np.sort(cells) for cells in lists]) if lists else np.empty(0)
    users = tuple(f"u{i:03}" for i in range(len(lists)))
    regions = Regions([f"r{i}" for i in range(N_REGIONS)])
    return Traces(users, indptr, cells.astype(np.int32), regions, epochs)


@pytest.fixture(scope="module")
def traces():
    rng = np.random.default_rng(1)
    sizes = [0, 1, 5, 20, 60, 150, 360]
    return make_traces([rng.choice(N_REGIONS * N_EPOCHS, n, replace=False) for n in sizes])


def visits(traces):
    return {
        (user, int(cell)) for row, user in enumerate(traces.users) for cell in traces.trace(row)
    }


@pytest.mark.parametrize(
    ("unit", "l1", "l2"),
    [(Event(), 1, 1), (UserDay(10), 10, math.sqrt(10)), (User(64), 64, 8)],
)
def test_sensitivities(unit, l1, l2):
    assert unit.l1_sensitivity == l1
    assert unit.l2_sensitivity == pytest.approx(l2)
    assert UNITS[unit.name] is type(unit)
    assert unit.question.startswith("that ")
    assert unit.is_person == isinstance(unit, User)


def test_the_units_of_people(traces):
    assert Event().contributions(traces)[0].tolist() == [0, 1, 5, 20, 60, 150, 360]
    assert User(3).contributions(traces)[0].tolist() == [0] + [1] * 6
    days = [len({int(cell) % N_EPOCHS // 24 for cell in traces.trace(row)}) for row in range(7)]
    assert UserDay(3).contributions(traces)[0].tolist() == days


@pytest.mark.parametrize("unit", [Event(), UserDay(3), UserDay(100), User(17)])
def test_the_visits_counted_are_those_that_bounding_leaves(unit, traces):
    kept = unit.bound(traces, np.random.default_rng(0))
    assert unit.contributions(traces)[1].tolist() == kept.visits_per_user().tolist()


@pytest.mark.parametrize("kind", [UserDay, User])
@pytest.mark.parametrize("bad", [0, -3, 1.5, math.nan, True, "10", None, 2**31])
def test_a_bound_must_be_a_positive_derived_seed(kind, bad):
    with pytest.raises(SpecError, match="max_visits must"):
        kind(bad)


def test_units_are_values():
    assert User(3) == User(np.int64(3))
    assert hash(User(3)) == hash(User(3))
    assert User(3) != UserDay(3)
    assert type(User(np.int64(3)).max_visits) is int


DAYS = "user-day, max_visits=10"
THREE_DAYS = "user-period, days=3, max_visits=10"
WEEK = "user-week, max_visits=10"


@pytest.mark.parametrize(
    ("unit", "moments"),
    [
        (DAYS, ("04-02T00:20", "04-02T12:20")),
        (THREE_DAYS, ("04-02T00:20", "04-04T23:40")),
        (WEEK, ("04-06T00:20", "04-12T23:40")),
    ],
)
@pytest.mark.parametrize(
    ("length", "first", "refused"),
    [
        ("1h", "03-30", ()),
        ("1h", "03-30T05:00", ()),
        ("1d", "03-30", ()),
        ("1d", "03-30T05:00", ()),
        ("5h", "03-30", (DAYS, THREE_DAYS, WEEK)),
        ("6h", "03-30", (DAYS, THREE_DAYS, WEEK)),
        ("12h", "03-30", (DAYS, THREE_DAYS, WEEK)),
        ("3d", "03-30", (DAYS, WEEK)),
        ("1w", "03-30", (DAYS, THREE_DAYS)),
    ],
)
def test_no_table_tells_more_of_a_unit_than_is_promised(unit, moments, length, first, refused):
    """The largest log-likelihood ratio of all noisy counts, with and without one unit of somebody.

    The clocks of Rome change on 31 March 2024. The unit has visits to ten regions at each of two
    moments, and nobody else is counted.
    """
    rome = ZoneInfo("Europe/Rome")
    first, *moments = (
        datetime.fromisoformat(f"2024-{one}").replace(tzinfo=rome) for one in (first, *moments)
    )
    epochs = Epochs.covering(first, datetime(2024, 4, 20, tzinfo=rome), length=parse_length(length),
                             timezone="Europe/Rome")  # fmt: skip
    at = np.repeat(epochs.index_of(np.array(list(map(to_micros, moments)))), 10)
    cells = np.arange(20) * epochs.n + at
    regions = Regions([f"r{i}" for i in range(20)])
    traces = Traces(("u",), np.array([0, 20]), cells.astype(np.int32), regions, epochs)
    mechanism = Mechanism.parse(f"laplace(eps=1, unit={unit})")
    if unit in refused:
        with pytest.raises(
            InputError, match=r"whole epochs of .* begin and end with the local day"
        ):
            mechanism.bound(traces, np.random.default_rng(0))
        return
    counts = mechanism.bound(traces, np.random.default_rng(0)).counts()
    with_one, with_none = (mechanism.log_pmf(np.arange(10), np.full(10, n), 9) for n in (1, 0))
    assert counts.sum() * np.abs(with_one - with_none).max() <= 1 + 1e-9


def test_event_needs_no_bound(traces):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert Event().bound(traces, rng) is traces
    assert rng.bit_generator.state == before


def test_periods_are_those_within_which_visits_are_bounded(traces):
    epochs = traces.epochs
    assert Event().period(epochs) is None
    assert not Event().bounds_visits
    for unit in (UserDay(2), User(2)):
        period = unit.period(epochs)
        assert unit.bounds_visits
        assert period.dtype == np.int32
        assert period.shape == (N_EPOCHS,)
        bounded = unit.bound(traces, np.random.default_rng(1))
        assert bounded.visits_per_period(period).max() == 2
    assert np.array_equal(UserDay(2).period(epochs), epochs.days)
    assert not User(2).period(epochs).any()


@pytest.mark.parametrize(
    ("unit", "days"),
    [
        (UserDay(4, 2), 1),
        (UserPeriod(5, 2, 2), 2),
        (UserPeriod(9, None, 2), 2),
        (UserWeek(7, 3), 7),
        (User(6, 1), 7),
    ],
    ids=str,
)
def test_no_period_has_more_visits_or_regions_than_its_bounds(unit, days, traces):
    bounded = unit.bound(traces, np.random.default_rng(5))
    assert visits(bounded) <= visits(traces)
    for row in range(traces.n_users):
        for start in range(0, N_EPOCHS, 24 * days):
            before, after = (
                cells[(cells % N_EPOCHS) // (24 * days) == start // (24 * days)]
                for cells in (traces.trace(row), bounded.trace(row))
            )
            n_regions = unit.max_regions or N_REGIONS
            seen, kept = (set((cells // N_EPOCHS).tolist()) for cells in (before, after))
            assert len(after) <= unit.max_visits
            assert len(kept) <= n_regions
            if len(seen) <= n_regions:
                assert len(after) == min(len(before), unit.max_visits)


def test_every_region_is_as_likely_to_stay():
    """However many visits go there."""
    n = 3000
    one = np.concatenate([np.arange(20), N_EPOCHS + np.arange(3), [4 * N_EPOCHS]])
    bounded = UserDay(100, 1).bound(make_traces([one] * n), np.random.default_rng(2))
    assert set(np.unique(bounded.visits_per_user()).tolist()) == {20, 3, 1}
    kept = [(bounded.visits_per_user() == size).sum() for size in (20, 3, 1)]
    assert stats.chisquare(kept).pvalue > 1e-4


@pytest.mark.parametrize("limit", [1, 3, 10, 1000])
@pytest.mark.parametrize("kind", [UserDay, User])
def test_bounding_keeps_the_right_number_of_each_persons_own_visits(traces, kind, limit):
    cells = traces.cells.copy()
    bounded = kind(limit).bound(traces, np.random.default_rng(5))
    days = traces.epochs.days
    before, after = traces.visits_per_period(days), bounded.visits_per_period(days)
    if kind is User:
        before, after = before.sum(axis=1), after.sum(axis=1)
    assert np.array_equal(after, np.minimum(before, limit))
    assert visits(bounded) <= visits(traces)
    assert bounded.users == traces.users
    assert np.array_equal(traces.cells, cells)


@pytest.mark.parametrize("unit", [UserDay(3), User(7)])
def test_the_seed_decides_which_visits_stay(traces, unit):
    kept = [visits(unit.bound(traces, np.random.default_rng(seed))) for seed in (1, 1, 2)]
    assert kept[0] == kept[1] != kept[2]


@pytest.mark.parametrize(
    ("unit", "share"), [(UserDay(6), 6 / 24), (User(18), 18 / 72)], ids=["day", "user"]
)
def test_every_visit_is_as_likely_to_stay(unit, share):
    """Chi-square over the 72 visits of 4,000 identical people; false alarm rate below 1e-4.

    Draws are without replacement, which makes the statistic smaller, never larger.
    """
    n = 4000
    bounded = unit.bound(make_traces([np.arange(N_EPOCHS)] * n), np.random.default_rng(9))
    kept = np.bincount(bounded.cells, minlength=N_EPOCHS)
    statistic = ((kept - n * share) ** 2 / (n * share)).sum()
    assert stats.chi2.sf(statistic, N_EPOCHS - 1) > 1e-4


@pytest.mark.parametrize("noise", ["laplace", "discrete-laplace", "gaussian", "discrete-gaussian"])
def test_noise_that_nobody_can_predict_is_as_wide_as_its_unit_needs(noise):
    budget = "rho" if noise == "discrete-gaussian" else "eps"
    spec = f"{noise}({budget}=1, unit=user-week, max_visits=16, max_regions=3)"
    (step,) = Mechanism.parse(spec).steps
    secure, quick = step.draw_securely((4000,)), step.draw((4000,), np.random.default_rng(1))
    assert np.abs(secure + 0.0).mean() == pytest.approx(np.abs(quick + 0.0).mean(), rel=0.15)


@pytest.mark.parametrize("spec", ["raw", "suppress(k=3)", "laplace(eps=1)"])
def test_without_a_bound_nothing_is_dropped(traces, spec):
    assert Mechanism.parse(spec).bound(traces, np.random.default_rng(3)) is traces


def test_nobody_went_anywhere():
    empty = make_traces([[], []])
    mechanism = Mechanism.parse("laplace(eps=1, unit=user, max_visits=2)")
    assert mechanism.bound(empty, np.random.default_rng(0)).n_visits == 0
