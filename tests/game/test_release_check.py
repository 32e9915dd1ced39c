"""Who would be found in a release: thresholds, tables without people, and whom a release counts."""

import numpy as np
import pytest
from scipy.stats import binom

import whosthere as wt
from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.game.counted import Counted, counted_people
from whosthere.game.release_check import Scored, leaks_in, score
from whosthere.mechanisms import Mechanism
from whosthere.privacy.scheme import TableScheme

TAILS = (0.025, 0.025)


def scored(here, nulls):
    """Return scores of people of whom one block each is left out of each table."""
    n = here.size
    left_out = np.arange(n) % 20 == np.arange(20)[:, None]
    anew = np.where(left_out, nulls, here).astype(np.float32)
    return Scored(here.astype(np.float32), anew, left_out)


def test_a_threshold_lets_one_in_a_hundred_pass_and_counts_who_exceeds_it():
    """Of 999 nulls, 9 exceed it: one more, whoever is not in, makes 10 of 1,000."""
    nulls = np.arange(999.0)
    found = scored(np.where(np.arange(999) < 70, 989.5, 0.0), nulls).found(0.01, TAILS)
    assert found.threshold == 989
    assert found.false_alarms == 0.01
    assert found.share == pytest.approx(70 / 999)
    assert found.low == 0.0
    assert found.high == found.share


@pytest.mark.parametrize("n", [99, 150, 1000])
def test_somebody_who_is_not_in_exceeds_the_threshold_once_in_a_hundred_times(n):
    """Of 2,000 draws, at most 33 do with a chance of 99.9 % if it is a hundredth."""
    rng = np.random.default_rng(5)
    draws = (scored(rng.normal(size=n), rng.normal(size=n)).found(0.01, TAILS) for _ in range(2000))
    above = sum(rng.random() < one.share for one in draws)
    assert above <= 33


def test_too_few_people_to_tell_a_hundredth_leave_nobody_found():
    found = scored(np.full(98, 5.0), np.zeros(98)).found(0.01, TAILS)
    assert (found.threshold, found.share, found.low) == (np.inf, 0.0, 0.0)
    assert found.high == 1.0


def test_the_chance_of_a_score_counts_whoever_is_not_in_as_one_more():
    assert scored(np.zeros(40), np.arange(40.0)).chance(np.array([39.5, 39, 0])).tolist() == [
        1 / 41, 2 / 41, 1.0,
    ]  # fmt: skip


@pytest.mark.parametrize("n", [400, 999, 5000])
def test_the_ends_are_thresholds_that_surely_allow_fewer_or_more(n):
    """Above a threshold are one more of those who are in than nulls, so shares tell how many."""
    nulls = np.arange(float(n))
    found = scored(nulls + 0.5, nulls).found(0.01, TAILS)
    law = binom(n, 0.01)
    fewer = max(k for k in range(n // 20) if law.cdf(k) <= 0.025)
    most = min(k for k in range(n // 20) if law.sf(k - 1) <= 0.025) - 1
    assert np.array([found.low, found.high]) * n == pytest.approx([fewer + 1, most + 1])


def test_found_again_is_about_tables_with_the_person():
    assert (scored(np.zeros(40), np.full(40, 9.0)).again(5.0) == 0).all()
    assert (scored(np.full(40, 9.0), np.zeros(40)).again(5.0) == 1).all()


def test_the_interval_covers_what_the_right_threshold_finds():
    """Of 400 intervals at 95 %, 20 may miss; 31 or more do so with a chance of 1 %."""
    rng, right, missed = np.random.default_rng(1), 2.3263479, 0
    for _ in range(400):
        here = rng.normal(1.5, size=1500).astype(np.float32)
        found = scored(here, rng.normal(size=1500)).found(0.01, TAILS)
        missed += not found.low <= (here > right).mean() <= found.high
    assert missed <= 30


def test_where_all_scores_are_the_same_nobody_is_found():
    assert scored(np.zeros(100), np.zeros(100)).found(0.01, TAILS)[1:4] == (0, 0, 0)


def test_with_few_people_a_threshold_may_surely_allow_less_only_if_it_finds_nobody():
    found = scored(np.full(300, 5.0), np.zeros(300)).found(0.01, TAILS)
    assert (found.share, found.low) == (1.0, 0.0)
    assert scored(np.full(400, 5.0), np.zeros(400)).found(0.01, TAILS).low == 1.0


@pytest.fixture(scope="module")
def people():
    """Return 300 people who make 6 visits each in 6 regions over 24 hours."""
    rng = np.random.default_rng(2)
    drawn = [np.sort(rng.choice(144, 6, replace=False)) for _ in range(300)]
    epochs = wt.Epochs.from_json(
        {"start": "2024-05-01T00:00:00+00:00", "length": "1h", "n": 24, "timezone": "UTC"}
    )
    return wt.Traces(
        tuple(f"{i:03}" for i in range(300)),
        np.arange(0, 1801, 6),
        np.concatenate(drawn).astype(np.int32),
        wt.Regions([f"r{i}" for i in range(6)]),
        epochs,
    )


def counted(people, spec="raw", rows=None):
    rows = np.arange(people.n_users) if rows is None else rows
    return Counted((TableScheme(Mechanism.parse(spec)),), (people,), rows)


def test_everybody_is_left_out_once_and_the_others_are_published(people):
    of_all = counted(people, rows=np.arange(10, 250))
    times = np.zeros(240, int)
    for out, made in of_all.without(3, 40):
        times += out
        assert out.sum() == 6
        assert made.release.group_size == 234
        assert (made.release.values == people.counts(np.arange(10, 250)[~out])).all()
    assert (times == 1).all()


def test_what_places_leak_adds_up_to_what_scores_gain(people):
    of_all = counted(people, "laplace(eps=0.5, unit=event)")
    release = wt.publish(people, "laplace(eps=0.5, unit=event)", seed=1).release
    [found] = score(
        of_all, [LikelihoodRatio()], [release], n_tables=20, seed=4, on_progress=lambda *_: None
    )
    gain = float(found.here.sum() - found.anew[found.left_out].sum())
    leaks = leaks_in(of_all, [release], n_tables=20, seed=4)
    for axis in ("region", "hour"):
        shown = leaks.filter(axis=axis)["leak"]
        assert shown.null_count() == 0
        assert shown.sum() == pytest.approx(gain, rel=1e-3)


def test_scores_without_people_are_lower_than_with_them(people):
    release = wt.publish(people, "raw", seed=1).release
    [found] = score(
        counted(people), [LikelihoodRatio()], [release], n_tables=40, seed=4,
        on_progress=lambda *_: None,
    )  # fmt: skip
    assert found.anew.shape == (40, 300)
    assert (found.here - found.without).mean() > 0.3
    again = found.again(found.found(0.01, TAILS).threshold)
    assert ((again >= 0) & (again <= 1)).all()


SPECS = (
    "raw",
    "suppress(k=8)",
    "round(to=5)",
    "laplace(eps=0.5, unit=event)",
    "laplace(eps=9, unit=user-day, max_visits=6) | suppress(k=1)",
    "sdctools-d2",
)


@pytest.mark.parametrize("spec", SPECS)
def test_a_release_is_known_to_be_of_its_people_and_not_of_others(people, spec):
    release = wt.publish(people, spec, seed=1).release
    mine, over = counted_people([release], people, np.arange(300), ())
    mine.refuse_others(over, 5)
    rng = np.random.default_rng(8)
    moved = people.select(np.arange(300))
    cells = np.concatenate([np.sort(rng.choice(144, 6, replace=False)) for _ in range(300)])
    object.__setattr__(moved, "cells", cells.astype(np.int32))
    with pytest.raises(wt.InputError, match="not the people of this release") as caught:
        counted(moved, spec).refuse_others([release], 5)
    if "laplace" not in spec and "sdc" not in spec:
        assert "of 144 published values" in str(caught.value)


def test_one_person_more_is_noticed_where_nothing_is_left_to_chance(people):
    release = wt.publish(people, "raw", group=np.arange(299), seed=1).release
    with pytest.raises(wt.InputError, match="6 of 144 published values"):
        counted(people).refuse_others([release], 0)
