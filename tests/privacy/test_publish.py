"""From traces to a release: the group, its bounded visits, and the same draws from a seed."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Group, Traces
from whosthere.errors import GroupError
from whosthere.privacy.exact_noise import Randomness
from whosthere.privacy.ledger import GuaranteeLedger
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish, publish_table

RAW = Mechanism()
USER = "laplace(eps=1, unit=user, max_visits=5)"


def make_traces(lists, *, n_regions=4, n_epochs=60):
    """Make traces from a list of distinct cells per user; days change at local midnight."""
    start = datetime(2013, 10, 26, 17, tzinfo=UTC)
    epochs = Epochs(start, timedelta(hours=1), n_epochs, "Europe/Rome")
    indptr = np.concatenate([[0], np.cumsum([len(cells) for cells in lists])])
    cells = np.array([cell for cells in lists for cell in sorted(cells)], dtype=np.int32)
    users = tuple(f"u{i:03}" for i in range(len(lists)))
    return Traces(users, indptr, cells, Regions([f"r{i}" for i in range(n_regions)]), epochs)


@pytest.fixture(scope="module")
def revealing():
    """Give each of 50 users a cell of their own, so that raw counts tell who was chosen."""
    return make_traces([[i] for i in range(50)], n_regions=5, n_epochs=10)


def chosen(made):
    return set(np.flatnonzero(made.truth.reshape(-1)).tolist())


@settings(max_examples=50, deadline=None)
@given(m=st.integers(1, 50), seed=st.integers(0, 2**64))
def test_the_group_has_m_distinct_users(revealing, m, seed):
    made = publish(revealing, mechanism=RAW, group_size=m, seed=seed)
    assert len(chosen(made)) == m == made.release.group_size
    assert made.truth.max() == 1
    again = publish(revealing, mechanism=RAW, group_size=m, seed=seed)
    assert chosen(again) == chosen(made)


def test_everybody_is_as_likely_to_be_chosen(revealing):
    times = np.zeros(50)
    for seed in range(400):
        times[list(chosen(publish(revealing, mechanism=RAW, group_size=10, seed=seed)))] += 1
    # Each is chosen 80 times on average, with a standard deviation of 8.
    assert times.sum() == 4000
    assert np.abs(times - 80).max() < 8 * 4.5


def test_everybody_is_the_default_group(traces):
    made = publish(traces, mechanism=RAW)
    assert made.release.group_size == traces.n_users
    assert np.array_equal(made.truth, traces.counts())
    assert made.release.regions == traces.regions
    assert made.release.epochs == traces.epochs


@pytest.mark.parametrize("m", [-1, 0, 41, 10**9])
def test_impossible_groups_are_refused(traces, m):
    with pytest.raises(GroupError, match=rf"a group of {m} cannot.*from 1 to 40"):
        publish(traces, mechanism=RAW, group_size=m)


@pytest.mark.parametrize("m", [1, 17, 40])
def test_a_raw_release_is_the_truth(traces, m):
    made = publish(traces, mechanism=RAW, group_size=m, seed=3)
    assert np.array_equal(made.release.counts, made.truth)
    assert made.share_dropped == 0


SPECS = [
    "laplace(eps=1, unit=event)",
    "discrete-laplace(eps=0.5, unit=user-day, max_visits=2)",
    "gaussian(eps=1, delta=1e-6, unit=user, max_visits=3) | suppress(k=1)",
]


@pytest.mark.parametrize("spec", ["raw", "opensafely", *SPECS])
def test_the_same_seed_gives_the_same_release(traces, spec):
    mechanism = Mechanism.parse(spec)
    first, second = (publish(traces, mechanism=mechanism, group_size=25, seed=9) for _ in range(2))
    assert first.release == second.release
    assert np.array_equal(first.truth, second.truth)
    assert first.share_dropped == second.share_dropped


@pytest.mark.parametrize("spec", SPECS)
def test_other_seeds_give_other_noise(traces, spec):
    mechanism = Mechanism.parse(spec)
    seeds = [0, 1, 2, 2**40, None, None]
    counts = [publish(traces, mechanism=mechanism, seed=s).release.counts.tobytes() for s in seeds]
    assert len(set(counts)) == len(seeds)


def test_the_group_does_not_depend_on_the_mechanism(traces):
    """Releases of one group under several protections can be compared by giving one seed."""
    truths = {
        publish(traces, mechanism=Mechanism.parse(spec), group_size=11, seed=4).truth.tobytes()
        for spec in ["raw", "flowkit", *SPECS]
    }
    assert len(truths) == 1


@pytest.mark.parametrize("spec", ["raw", "flowkit", *SPECS])
def test_published_counts_lie_in_the_group(traces, spec):
    made = publish(traces, mechanism=Mechanism.parse(spec), group_size=5, seed=1)
    assert 0 <= made.release.counts.min() <= made.release.counts.max() <= 5
    assert made.truth.max() <= 5


CELL_LISTS = st.lists(st.sets(st.integers(0, 4 * 60 - 1), max_size=40), min_size=1, max_size=8)


def _kept(lists, epochs, max_visits, *, per_day):
    """Count, by hand, the visits that stay when each day or user may keep so many."""
    kept = 0
    for cells in lists:
        per_period = defaultdict(int)
        for cell in cells:
            moment = epochs.start + (cell % epochs.n) * epochs.length
            # Summer time ends in the night to the 27th, at 01:00 UTC.
            hours = 2 if moment < datetime(2013, 10, 27, 1, tzinfo=UTC) else 1
            per_period[(moment + timedelta(hours=hours)).date() if per_day else None] += 1
        kept += sum(min(n, max_visits) for n in per_period.values())
    return kept


@settings(max_examples=60, deadline=None)
@given(CELL_LISTS, st.integers(1, 12), st.booleans(), st.integers(0, 99))
def test_the_share_dropped_is_that_of_the_visits_over_the_bound(lists, bound, per_day, seed):
    unit = "user-day" if per_day else "user"
    # So large an eps draws no noise: what is published is the bounded counts.
    mechanism = Mechanism.parse(f"discrete-laplace(eps=1e6, unit={unit}, max_visits={bound})")
    traces = make_traces(lists)
    made = publish(traces, mechanism=mechanism, seed=seed)
    visits = sum(map(len, lists))
    kept = _kept(lists, traces.epochs, bound, per_day=per_day)
    assert made.share_dropped == pytest.approx(1 - kept / visits if visits else 0)
    assert made.release.counts.sum() == kept
    assert (made.release.counts <= made.truth).all()
    assert made.truth.sum() == visits


def test_the_share_dropped_is_of_the_group(revealing):
    """One user of 20 visits among many of one; the share depends on whether they are chosen."""
    traces = make_traces([list(range(20)), *([i] for i in range(20, 39))])
    mechanism = Mechanism.parse("laplace(eps=1, unit=user, max_visits=5)")
    shares = set()
    for seed in range(20):
        made = publish(traces, mechanism=mechanism, group_size=4, seed=seed)
        expected = 15 / 23 if made.truth.sum() > 4 else 0
        assert made.share_dropped == pytest.approx(expected)
        shares.add(expected)
    assert len(shares) == 2


def test_no_trial_of_seeds_finds_the_noise(traces):
    """Releases without a seed share nothing with what any generator of numpy draws."""
    made = publish(traces, mechanism="laplace(eps=1)")
    assert made.release.ledger.randomness is Randomness.EXACT
    for seed in range(50):
        guessed = publish(traces, mechanism="laplace(eps=1)", seed=seed)
        assert guessed.release != made.release
        assert guessed.release.ledger == GuaranteeLedger(Randomness.SEEDED)


def test_group_and_noise_come_from_the_operating_system(traces, monkeypatch):
    """With every ordinary generator held fast, the group and the noise still change."""
    fixed = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda *_: fixed(1))
    for spec in ("laplace(eps=1)", "discrete-gaussian(rho=1)"):
        made = [publish(traces, mechanism=spec, group_size=20) for _ in range(3)]
        assert len({one.only.group.users for one in made}) == 3
        assert len({(one.release.counts - one.truth).tobytes() for one in made}) == 3


def test_groups_without_a_seed_are_uniform(revealing):
    times = np.zeros(50)
    for _ in range(2000):
        times[list(chosen(publish(revealing, mechanism=RAW, group_size=10)))] += 1
    # 400 times each on average, with a standard deviation of 18.
    assert np.abs(times - 400).max() < 6 * 18


def test_trials_have_no_ledger(traces):
    rng = np.random.default_rng(0)
    laplace = Mechanism.parse("laplace(eps=1)")
    made = publish_table(Group.all_of(traces), laplace, bounding=rng, noise=rng)
    assert made.release.ledger is None


@pytest.mark.parametrize("spec", ["raw", "laplace(eps=1)", USER])
def test_a_group_is_published_as_if_nobody_else_were_there(traces, spec):
    rows, mechanism = np.array([31, 4, 38, 20, 39]), Mechanism.parse(spec)
    chosen, alone = (
        publish_table(
            group,
            mechanism,
            bounding=np.random.default_rng(1),
            noise=np.random.default_rng(2),
        )
        for group in (Group(traces, rows), Group.all_of(traces.select(rows)))
    )
    assert chosen.release == alone.release
    assert chosen.share_dropped == alone.share_dropped
    assert np.array_equal(chosen.truth, alone.truth)
    for i in range(5):
        assert np.array_equal(chosen.counted.trace(i), alone.counted.trace(i))


def test_nothing_is_copied_where_nothing_is_dropped(traces):
    rng = np.random.default_rng(0)
    group = Group(traces, np.arange(10))
    made = publish_table(group, Mechanism.parse("suppress(k=1)"), bounding=rng, noise=rng)
    assert made.counted is made.group is group
    assert "traces" not in vars(group)


def test_a_publication_as_a_frame_has_the_truth_beside_what_is_published(traces):
    made = publish(traces, mechanism="suppress(k=1, shown=mark)", group_size=5, seed=1)
    frame = made.to_frame()
    assert frame.drop("truth").equals(made.release.to_frame())
    assert frame.columns == ["region", "epoch_start", "count", "withheld", "truth"]
    assert (frame["truth"].to_numpy() == made.truth.ravel()).all()
    assert (frame.filter(pl.col("truth") > 1)["count"] > 0).all()
