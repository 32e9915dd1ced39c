"""Compressed rows against plain Python sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.kernels import rows
from whosthere.kernels.drawing import random_word
from whosthere.kernels.rows import (
    count_cells,
    count_periods,
    group_by_row,
    renumber_regions,
    sample_within_periods,
    sum_cells,
    take_marked,
    take_rows,
)

PERIODS = np.array([0, 0, 1, 1, 2], np.int32)
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=60)


def _rows(pairs, n_rows=6):
    rows = np.array([p[0] for p in pairs], np.int32)
    cells = np.array([p[1] for p in pairs], np.int32)
    return group_by_row(rows, cells, n_rows)


def _as_sets(indptr, cells):
    return [cells[a:b].tolist() for a, b in itertools.pairwise(indptr)]


@given(PAIRS)
def test_grouping_equals_sorted_sets(pairs):
    expected = [sorted({c for r, c in pairs if r == row}) for row in range(6)]
    assert _as_sets(*_rows(pairs)) == expected


@given(PAIRS, st.lists(st.integers(0, 5), max_size=10))
def test_taking_rows_keeps_their_content_and_order(pairs, chosen):
    indptr, cells = _rows(pairs)
    before = _as_sets(indptr, cells)
    taken = _as_sets(*take_rows(indptr, cells, np.array(chosen, np.int64)))
    assert taken == [before[row] for row in chosen]


@given(PAIRS, st.lists(st.integers(0, 5), max_size=10))
def test_counts_add_up(pairs, chosen):
    indptr, cells = _rows(pairs)
    counts = np.zeros(31, np.int32)
    count_cells(indptr, cells, np.array(chosen, np.int64), counts)
    expected = [sum((row, cell) in set(pairs) for row in chosen) for cell in range(31)]
    assert counts.tolist() == expected


@given(PAIRS, st.lists(st.integers(0, 5), max_size=10), st.integers(0, 30))
def test_sums_are_over_the_cells_of_each_row(pairs, chosen, impossible):
    indptr, cells = _rows(pairs)
    rows, values = np.array(chosen, np.int64), np.arange(31) / 7
    expected = [sum((values[c] for c in cells[indptr[r] : indptr[r + 1]]), 0.0) for r in chosen]
    assert sum_cells(indptr, cells, rows, values).tolist() == expected
    values[impossible] = -np.inf
    found = np.isneginf(sum_cells(indptr, cells, rows, values))
    assert found.tolist() == [(row, impossible) in set(pairs) for row in chosen]


@given(PAIRS)
def test_periods_are_those_of_the_epochs(pairs):
    indptr, cells = _rows(pairs)
    counts = np.zeros((6, 3), np.int64)
    count_periods(indptr, cells, PERIODS, counts)
    expected = [
        [sum(r == row and PERIODS[c % 5] == period for r, c in set(pairs)) for period in range(3)]
        for row in range(6)
    ]
    assert counts.tolist() == expected


@given(PAIRS, st.randoms(use_true_random=False))
def test_taking_what_is_marked(pairs, random):
    indptr, cells = _rows(pairs)
    keep = np.array([random.random() < 0.5 for _ in cells], np.bool_)
    taken = _as_sets(*take_marked(indptr, cells, keep))
    expected = [cells[a:b][keep[a:b]].tolist() for a, b in itertools.pairwise(indptr)]
    assert taken == expected


@given(PAIRS, st.integers(1, 6), st.integers(0, 2**64 - 1))
def test_sampling_keeps_exactly_the_limit_in_each_period(pairs, limit, key):
    indptr, cells = _rows(pairs)
    keep = sample_within_periods(indptr, cells, PERIODS, limit, np.uint64(key))
    for start, stop in itertools.pairwise(indptr):
        periods = PERIODS[cells[start:stop] % 5]
        for period in range(3):
            mine = periods == period
            assert keep[start:stop][mine].sum() == min(limit, mine.sum())


@given(PAIRS, st.integers(1, 6), st.integers(0, 2**64 - 1))
def test_those_with_the_smallest_priorities_stay(pairs, limit, key):
    """Seeds stay what they are: the priority of a cell comes from the key and its position."""
    indptr, cells = _rows(pairs)
    keep = sample_within_periods(indptr, cells, PERIODS, limit, np.uint64(key))
    expected = set()
    for start, stop in itertools.pairwise(indptr):
        for period in range(3):
            mine = [i for i in range(start, stop) if PERIODS[cells[i] % 5] == period]
            expected.update(sorted(mine, key=lambda i: random_word(np.uint64(key), i))[:limit])
    assert set(np.flatnonzero(keep).tolist()) == expected


def test_sampling_is_uniform():
    """Each of 20 visits stays with chance 5/20; false alarm rate below 1e-4 (4.5 sigma of 20)."""
    indptr, cells = np.array([0, 20]), np.arange(20, dtype=np.int32)
    periods = np.zeros(20, np.int32)
    rng = np.random.default_rng(3)
    draws = 4000
    kept = sum(
        sample_within_periods(
            indptr, cells, periods, 5, rng.integers(0, 2**64, dtype=np.uint64)
        ).astype(int)
        for _ in range(draws)
    )
    sigma = np.sqrt(draws * 0.25 * 0.75)
    assert np.abs(kept - draws / 4).max() < 4.5 * sigma


@pytest.mark.parametrize(("n_regions", "n_epochs"), [(5, 1), (5, 7), (300, 4)])
def test_renumbered_regions_keep_their_epochs(rng, monkeypatch, n_regions, n_epochs):
    """Rows of few and of many regions, some of them empty; each is sorted again, in few blocks."""
    monkeypatch.setattr(rows, "_BLOCK", 500)
    people = rng.integers(0, 20, 3000).astype(np.int32)
    cells = rng.integers(0, n_regions * n_epochs, 3000).astype(np.int32)
    indptr, old = group_by_row(people[people != 3], cells[people != 3], 21)
    number = rng.permutation(n_regions).astype(np.int32)
    new = renumber_regions(indptr, old, n_epochs, number)
    for a, b in itertools.pairwise(indptr):
        expected = np.sort(number[old[a:b] // n_epochs] * n_epochs + old[a:b] % n_epochs)
        assert new[a:b].tolist() == expected.tolist()
