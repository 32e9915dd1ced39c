"""Distinct visits out of a stream of them."""

import numpy as np
import pytest

from whosthere.data.reading import distinct
from whosthere.data.reading.distinct import Visits


@pytest.mark.parametrize("block", [1, 7, 64, 10_000])
def test_each_visit_is_kept_once(block, rng, monkeypatch):
    monkeypatch.setattr(distinct, "_BLOCK", block)
    gathered, expected = Visits(), set()
    for size in (0, 1, 30, 50, 9):
        users, cells = rng.integers(0, 12, (2, size)).astype(np.int32)
        gathered.add(users, cells)
        expected |= set(zip(users.tolist(), cells.tolist(), strict=True))
    indptr, cells = gathered.rows(15)
    users = np.repeat(np.arange(15), np.diff(indptr))
    assert list(zip(users.tolist(), cells.tolist(), strict=True)) == sorted(expected)


def test_nobody_went_anywhere():
    indptr, cells = Visits().rows(3)
    assert indptr.tolist() == [0, 0, 0, 0]
    assert cells.size == 0


def test_the_largest_cell_and_many_users(monkeypatch):
    monkeypatch.setattr(distinct, "_BLOCK", 2)
    gathered = Visits()
    last = np.iinfo(np.int32).max
    gathered.add(np.array([2, 0, 2], np.int32), np.array([last, last, 0], np.int32))
    indptr, cells = gathered.rows(3)
    assert indptr.tolist() == [0, 1, 1, 3]
    assert cells.tolist() == [last, 0, last]
