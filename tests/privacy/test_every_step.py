"""What holds for every step that specs can name, and for whatever is added to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from whosthere.privacy.cell_key import Ptable
from whosthere.privacy.mechanism import MECHANISMS, STEPS, Mechanism
from whosthere.privacy.noise import Gaussian, Laplace
from whosthere.privacy.rounding import Floor, RandomRound, Round, RoundBySize, Suppress
from whosthere.privacy.scaling import Scale
from whosthere.privacy.step import NO_DRAW, WITHHELD, Span
from whosthere.privacy.units import User

M = 23
SIZES = [1, 2, 7, M, 61]
STEPS_TO_TEST = [
    *(Mechanism.parse(kind.example).steps[0] for kind in STEPS if kind is not Ptable),
    Suppress(0),
    Suppress(40),
    Suppress(0, "mark"),
    Suppress(3, "mark"),
    Suppress(40, "mark"),
    Suppress(0, "mark", "mark"),
    Suppress(5, "mark", "mark"),
    Round(1),
    Round(4),
    Round(50),
    RandomRound(1),
    RandomRound(2),
    RandomRound(10),
    RandomRound(50),
    RandomRound(3, (0.0, 1.0)),
    RandomRound(5, (0.1, 0.3, 0.3, 0.9)),
    Floor(4),
    Floor(60, 3),
    RoundBySize(((6, 10), (15, 20))),
    Scale(0.3),
    Scale(1),
    Laplace(0.2),
    Laplace(6, User(3)),
    Gaussian(8, 1e-3),
]
every_step = pytest.mark.parametrize("step", STEPS_TO_TEST, ids=str)


def results(step, m):
    """All numbers that counts in 0..m can become."""
    lowest, highest = step.span(Span(0, m))
    return np.arange(lowest, highest + 1, dtype=np.int32)


def table(step, m):
    """P(result | count) as a matrix, a row for each count."""
    counts, found = np.arange(m + 1, dtype=np.int32), results(step, m)
    return np.exp(step.log_landing(counts[:, None], found, found, Span(0, m)))


def withheld(step, m):
    """P(withheld | count), shape (m + 1,)."""
    counts = np.arange(m + 1)
    return np.zeros(m + 1) if step.withheld is None else 1.0 * step.withheld.holds(counts)


def test_every_kind_can_be_listed_and_read():
    for kind in STEPS:
        if kind is Ptable:
            continue  # its example names a file
        listed = MECHANISMS.kinds[kind.name]
        assert Mechanism.parse(listed.example).steps[0].name == kind.name
        assert len(listed.summary) > 10
        assert all(len(one.meaning) > 10 for one in listed.parameters)


@every_step
def test_specs_read_back(step):
    assert Mechanism.parse(str(step)).steps == (step,)
    assert Mechanism((step,)).describe().endswith(".")


@every_step
@pytest.mark.parametrize("m", SIZES)
def test_chances_sum_to_one(step, m):
    assert step.span(Span(0, m)).lowest == 0
    assert table(step, m).sum(axis=1) + withheld(step, m) == pytest.approx(1, abs=1e-12)


@every_step
@pytest.mark.parametrize("m", SIZES)
def test_an_interval_is_the_sum_of_its_points(step, m):
    rng = np.random.default_rng(m)
    points = table(step, m)
    ends = np.sort(rng.integers(0, points.shape[1], (40, 2)), axis=1)
    for lo, hi in ends:
        found = step.log_landing(np.arange(m + 1), np.array(lo), np.array(hi), Span(0, m))
        assert np.exp(found) == pytest.approx(points[:, lo : hi + 1].sum(axis=1), abs=1e-12)
        empty = step.log_landing(np.arange(m + 1), np.array(hi + 1), np.array(lo), Span(0, m))
        assert np.isneginf(empty).all()


@every_step
@pytest.mark.parametrize("m", SIZES)
def test_pulling_back_keeps_the_chance(step, m):
    counts = np.arange(m + 1)
    lo, hi = np.meshgrid(np.arange(results(step, m).size + 1), results(step, m))
    pulled = step.pull_back(lo, hi, Span(0, m))
    if pulled is None:
        return
    found = np.zeros((*lo.shape, m + 1))
    for log_chance, first, last in pulled:
        inside = (first[..., None] <= counts) & (counts <= last[..., None])
        found += np.exp(log_chance) * inside
    expected = np.exp(step.log_landing(counts, lo[..., None], hi[..., None], Span(0, m)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@every_step
@pytest.mark.parametrize("block", [1, 7, 10**6])
def test_the_results_to_sum_over_are_all_of_them(step, block):
    counts = np.arange(M + 1, dtype=np.int32)
    found = np.zeros((M + 1, results(step, M).size))
    for values, logs in step.split(counts, Span(0, M), block=block):
        assert values.dtype == np.int32
        assert values.shape == logs.shape
        assert values.shape[-1] <= max(block, 1)
        rows = np.broadcast_to(counts[:, None], values.shape)
        np.add.at(found, (rows, values), np.exp(logs))
    np.testing.assert_allclose(found, table(step, M), atol=1e-12)


@every_step
def test_what_is_published_follows_the_chances(step):
    """Chi-square of 30,000 cells for each of six counts; false alarm rate 1e-5 a step."""
    rng = np.random.default_rng(41)
    chances = table(step, M)
    for count in (0, 1, 2, 10, 22, M):
        cells = np.full((150, 200), count, np.int32)
        published = step.publish(cells, step.draw(cells.shape, rng), Span(0, M))
        assert published.dtype == np.int32
        assert not np.shares_memory(published, cells)
        held = published == WITHHELD
        observed = np.append(held.sum(), np.bincount(published[~held], minlength=chances.shape[1]))
        expected = cells.size * np.append(withheld(step, M)[count], chances[count])
        assert not observed[expected == 0].any()
        rare = expected < 5
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        used = expected > 1e-9
        if used.sum() > 1:
            statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
            assert stats.chi2.sf(statistic, used.sum() - 1) > 1e-5 / 6


@every_step
def test_the_same_draw_keeps_the_order_of_groups(step):
    if step.noise_of == "people":
        return  # one person more is another draw
    rng = np.random.default_rng(5)
    counts = rng.integers(0, M, (30, 40)).astype(np.int32)
    draw = step.draw(counts.shape, rng)
    groups = np.stack([counts, counts + 1])
    less, more = step.publish(groups, draw, Span(0, M))
    assert ((less <= more) | (more == WITHHELD)).all()
    assert np.array_equal(less, step.publish(counts, draw, Span(0, M)))
    assert step.is_random == (draw is not NO_DRAW)


@every_step
def test_results_lie_where_they_are_said_to_land(step):
    within = Span(0, 4000)
    lowest, highest = step.span(within)
    for count in np.random.default_rng(0).integers(0, 4001, 50):
        low, high = step.lands(Span(count, count), within)
        assert lowest <= low <= high <= highest
        outside = [
            step.log_landing(np.array(count), np.array(first), np.array(last), within)
            for first, last in ((lowest, low - 1), (high + 1, highest))
            if first <= last
        ]
        assert all(one < np.log(1e-18) for one in outside)


@every_step
def test_steps_that_change_nothing_say_so(step):
    chances = table(step, M)
    changes = not np.array_equal(chances, np.eye(*chances.shape))
    assert step.changes_counts == changes


@given(st.integers(1, 60), st.integers(1, 200), st.integers(0, 2**32))
def test_random_rounding_keeps_the_mean(to, m, seed):
    """But for counts next to the limit at m."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, m + 1, 20).astype(np.int32)
    results, chances = RandomRound(to).choices(counts, Span(0, m))
    free = counts <= m - m % to
    mean = (results * chances).sum(axis=-1)
    assert mean[free] == pytest.approx(counts[free], abs=1e-9)
    assert ((results % to == 0) | (results == m)).all()


def test_random_rounding_by_hand():
    results, chances = RandomRound(3).choices(np.arange(6, dtype=np.int32), Span(0, 5))
    assert results.tolist() == [[0, 3], [0, 3], [0, 3], [3, 5], [3, 5], [3, 5]]
    assert chances[:, 1] == pytest.approx([0, 1 / 3, 2 / 3, 0, 1 / 3, 2 / 3])


def test_the_largest_bases_fit():
    step, m = RandomRound(2**30), 2**30
    counts = np.array([0, 5, 2**29, 2**30], np.int32)
    published = step.publish(counts, np.array([0.5, 1 - 1e-12, 0.75, 0.5]), Span(0, m))
    assert published.tolist() == [0, 2**30, 2**30, 2**30]
    noise, noisy = Mechanism((Laplace(1),)), np.arange(100)
    mean = noise.pmf(noisy, 3, 10_000) @ noisy
    after_noise = Mechanism((Laplace(1), RandomRound(5000)))
    found = after_noise.pmf([0, 5000, 10_000], np.array([[3], [4000]]), 10_000)
    assert found[0, 1] == pytest.approx(mean / 5000)
    assert found.sum(axis=1) == pytest.approx(1)
