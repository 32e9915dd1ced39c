"""Traces of the unicity model against probabilities worked out by hand or by recursion.

Every test of chance has a fixed seed and would, with a fresh one, fail with probability 1e-4.
"""

import itertools
from collections import Counter

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

from whosthere.arrays import frozen
from whosthere.kernels.drawing import put_smallest_first
from whosthere.kernels.unicity import People, add_first_visits, draw_traces

FALSE_ALARMS = 1e-4
# Two triangles that share region 2, and a pair of regions apart from them.
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (5, 6)]
SPACE = [4.0, 1.0, 2.0, 1.0, 0.5, 1.0, 0.5]


def make(space=SPACE, time=(1.0,), *, edges=EDGES, connected=True, n_rois=3):
    both = sorted([*edges, *((b, a) for a, b in edges)])
    degrees = np.bincount([a for a, _ in both], minlength=len(space))
    # Read-only, as the classes hand them over: other flags would be compiled anew.
    return People(
        frozen(space, np.float64),
        frozen(time, np.float64),
        frozen(np.concatenate([[0], np.cumsum(degrees)]), np.int32),
        frozen([b for _, b in both], np.int32),
        connected,
        n_rois,
    )


def rows(people, n, visits, seed=1):
    n_visits = np.full(n, visits, np.int64)
    indptr, cells = draw_traces(people, n_visits, np.uint64(seed), in_order=False)
    return [tuple(cells[a:b].tolist()) for a, b in itertools.pairwise(indptr)]


def assert_follows(found, expected):
    """Compare the frequencies of outcomes with their probabilities."""
    assert set(found) <= {k for k, p in expected.items() if p > 0}
    total = sum(found.values())
    outcomes = [k for k, p in expected.items() if p > 0]
    probabilities = np.array([expected[k] for k in outcomes])
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities.min() * total > 5, "too few draws for a chi-square test"
    test = chisquare([found.get(k, 0) for k in outcomes], probabilities * total)
    assert test.pvalue > FALSE_ALARMS


def grown(start, n, edges=EDGES):
    """Probability of each set that grows from `start`, by following every choice."""
    outcomes = Counter()

    def follow(chosen, p):
        frontier = {b for e in edges for a, b in (e, e[::-1]) if a in chosen} - chosen
        if len(chosen) == n or not frontier:
            outcomes[tuple(sorted(chosen))] += p
            return
        for region in frontier:
            follow(chosen | {region}, p / len(frontier))

    follow({start}, 1.0)
    return outcomes


def drawn_by_weight(weights, n, first=()):
    """Probability of each set of `n` that are drawn one after another without replacement."""
    outcomes = Counter()

    def follow(chosen, p):
        if len(chosen) == n:
            outcomes[tuple(sorted(chosen))] += p
            return
        left = {i: w for i, w in enumerate(weights) if i not in chosen and w > 0}
        for i, w in left.items():
            follow((*chosen, i), p * w / sum(left.values()))

    follow(tuple(first), 1.0)
    return outcomes


# Which regions a person has: so many visits show all of them, but for a chance below 1e-6.


def test_connected_regions_grow_by_a_uniform_choice_of_the_frontier():
    people = make([1.0] * 7, time=[1.0] * 400)
    expected = Counter()
    for origin in range(7):
        for outcome, p in grown(origin, 3).items():
            expected[outcome] += p / 7
    visited = rows(people, 5000, 60)
    assert_follows(Counter(tuple(sorted({c // 400 for c in row})) for row in visited), expected)


def test_the_first_region_follows_the_space_marginal():
    weights = np.array(SPACE) / sum(SPACE)
    alone = rows(make(n_rois=1), 5000, 1)
    assert_follows(Counter(alone), {(i,): p for i, p in enumerate(weights)})


def test_growth_ends_with_the_component():
    found = set(rows(make(n_rois=10, time=[1.0] * 50), 500, 400))
    regions = {tuple(sorted({c // 50 for c in row})) for row in found}
    assert regions == {(0, 1, 2, 3, 4), (5, 6)}


def test_scattered_regions_are_drawn_by_weight_without_replacement():
    weights = [4.0, 1.0, 0.0, 2.0, 1.0]
    people = make(weights, [1.0] * 50, edges=[], connected=False, n_rois=2)
    visited = Counter(tuple(sorted({c // 50 for c in row})) for row in rows(people, 5000, 200))
    assert_follows(visited, drawn_by_weight(weights, 2))


def test_fewer_regions_with_weight_than_wanted_are_all_taken():
    people = make([1.0, 0.0, 3.0], [1.0] * 50, edges=[], connected=False, n_rois=10)
    assert {c // 50 for row in rows(people, 50, 100) for c in row} == {0, 2}


# Where and when visits are


def test_visits_follow_the_space_marginal_within_the_persons_regions():
    people = make(n_rois=10)
    found = Counter(row[0] for row in rows(people, 8000, 1))
    weights = np.array(SPACE)
    # The origin's component is chosen by its weight, and the region within it again by weight.
    assert_follows(found, dict(enumerate(weights / weights.sum())))


@pytest.mark.parametrize("connected", [True, False])
def test_the_time_marginal_is_reproduced_exactly(connected):
    """One visit a person, so that no cell can be drawn twice."""
    time = np.array([5.0, 0.0, 1.0, 2.0, 8.0, 0.5])
    people = make(time=time, connected=connected)
    found = Counter(row[0] % 6 for row in rows(people, 6000, 1))
    assert_follows(found, dict(enumerate(time / time.sum())))


def test_space_and_time_of_a_visit_are_independent():
    people = make(time=[1.0, 3.0, 2.0], connected=False)
    table = np.zeros((7, 3))
    for row in rows(people, 6000, 1):
        table[row[0] // 3, row[0] % 3] += 1
    assert chi2_contingency(table).pvalue > FALSE_ALARMS


# Rows, counts and seeds


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("n_epochs", [8, 130])
def test_first_visits_add_up_to_the_very_traces(connected, n_epochs):
    """Of few visits and of many, which are sorted in different ways."""
    people = make(time=np.arange(1.0, n_epochs + 1), connected=connected)
    n_cells = 7 * n_epochs
    n_visits = np.random.default_rng(3).integers(0, 60, 200)
    indptr, cells = draw_traces(people, n_visits, np.uint64(5), in_order=False)
    for a, b in itertools.pairwise(indptr):
        assert (np.diff(cells[a:b]) > 0).all()
    assert (np.diff(indptr) <= n_visits).all()
    expected = np.bincount(cells, minlength=n_cells).tolist()
    for more in (0, 5):
        bounds, visits = draw_traces(people, n_visits + more, np.uint64(5), in_order=True)
        counts = np.zeros(n_cells + 1, np.int32)
        add_first_visits(bounds, visits, n_visits, counts)
        assert counts[:-1].tolist() == expected


def test_counts_are_added_to_what_is_there():
    bounds, visits = draw_traces(make(), np.array([1, 0, 1]), np.uint64(0), in_order=True)
    counts = np.full(8, 10, np.int32)
    add_first_visits(bounds, visits, np.array([1, 0, 1]), counts)
    assert counts.sum() == 82


def test_the_seed_decides_everything():
    people = make(time=[1.0] * 9)
    assert rows(people, 50, 9, seed=4) == rows(people, 50, 9, seed=4)
    assert rows(people, 50, 9, seed=4) != rows(people, 50, 9, seed=5)


@pytest.mark.parametrize("connected", [True, False])
def test_whoever_visits_more_visits_the_same_cells_and_others(connected):
    people = make(time=np.arange(1.0, 100.0), connected=connected)
    few, many = rows(people, 100, 5), rows(people, 100, 25)
    assert all(set(a) <= set(b) for a, b in zip(few, many, strict=True))
    assert sum(map(len, few)) < sum(map(len, many))


def test_a_trace_belongs_to_its_number():
    people = make(time=np.arange(1.0, 100.0))
    assert rows(people, 10, 7) == rows(people, 30, 7)[:10]


def test_nobody_and_no_visits():
    assert rows(make(), 0, 5) == []
    assert rows(make(), 3, 0) == [(), (), ()]
    bounds, visits = draw_traces(make(), np.empty(0, np.int64), np.uint64(0), in_order=True)
    assert (bounds.tolist(), visits.size) == ([0], 0)


def test_other_labels_change_labels_only():
    """Renumbering the regions and their graph renumbers the visits; two-sample chi-square."""
    new_label = np.array([3, 6, 0, 5, 1, 4, 2])
    space = np.empty(7)
    space[new_label] = SPACE
    edges = [(int(new_label[a]), int(new_label[b])) for a, b in EDGES]
    plain = Counter(r for row in rows(make(), 4000, 3, seed=1) for r in row)
    moved = Counter(r for row in rows(make(space, edges=edges), 4000, 3, seed=2) for r in row)
    table = [[plain[r] for r in range(7)], [moved[new_label[r]] for r in range(7)]]
    assert chi2_contingency(table).pvalue > FALSE_ALARMS


@numba.njit
def smallest_first(keys, values, n):
    put_smallest_first(keys, values, n)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_selection_puts_the_smallest_first(keys, data):
    n = data.draw(st.integers(0, len(keys) - 1))
    sorted_keys, values = np.array(keys, np.float64), np.arange(len(keys))
    smallest_first(sorted_keys, values, n)
    assert sorted(sorted_keys[:n]) == sorted(keys)[:n]
    assert [keys[v] for v in values] == sorted_keys.tolist()
