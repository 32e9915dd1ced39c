"""Groups that copy nothing are the same people as those that were copied."""

import numpy as np
import pytest

from whosthere.data.traces import Group
from whosthere.errors import GroupError


@pytest.mark.parametrize("m", [0, 1, 7, 20, 21, 40])
def test_it_is_what_selecting_gives(traces, rng, m):
    rows = rng.permutation(40)[:m]
    group, copied = Group(traces, rows), traces.select(rows)
    assert group.n_users == m
    assert group.n_visits == copied.n_visits
    assert group.users == copied.users
    assert np.array_equal(group.counts(), copied.counts())
    for i in range(m):
        assert np.array_equal(group.trace(i), copied.trace(i))
    assert np.array_equal(group.traces.cells, copied.cells)


def test_all_are_everybody_in_order(traces):
    group = Group.all_of(traces)
    assert group.users == traces.users
    assert np.array_equal(group.counts(), traces.counts())
    assert np.array_equal(group.trace(-1), traces.trace(39))


def test_nobody_else_can_change_it(traces):
    rows = np.arange(5)
    group = Group(traces, rows)
    rows[:] = 0
    assert group.rows.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        group.rows[0] = 3


@pytest.mark.parametrize("row", [-1, 40, 1000])
def test_who_is_not_there_cannot_be_chosen(traces, row):
    with pytest.raises(GroupError, match=r"0\.\.39"):
        Group(traces, np.array([3, row]))
