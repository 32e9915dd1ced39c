"""Arrays that are values: nobody can change them, and those given away are not copied."""

import numpy as np
import pytest

from whosthere.arrays import frozen, own


def _view_of_writable():
    source = np.arange(6)
    view = source[:]
    view.setflags(write=False)
    return source, view


@pytest.mark.parametrize(
    "given",
    [
        lambda: (a := np.arange(6), a),
        lambda: (a := np.arange(6), a[:]),
        lambda: (a := np.arange(6), a.reshape(2, 3)),
        lambda: (a := np.arange(12), a[::2]),
        lambda: (a := np.arange(6, dtype=np.int32), a),
        _view_of_writable,
    ],
    ids=["an array", "a view", "another shape", "every second", "another type", "a read-only view"],
)
def test_what_is_frozen_no_longer_follows_its_source(given):
    source, array = given()
    before = array.copy()
    value = frozen(array, np.int64)
    source[:] = -1
    assert np.array_equal(value, before)
    assert value.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 7


def test_what_nobody_can_write_to_is_not_copied():
    array = own(np.arange(6), np.int64)
    assert frozen(array, np.int64) is array
    assert np.shares_memory(frozen(array[2:], np.int64), array)


def test_lists_and_other_types_are_read():
    assert frozen([1, 2], np.float64).tolist() == [1.0, 2.0]
    assert frozen(own(np.arange(3), np.int64), np.int32).dtype == np.int32


def test_an_array_that_is_given_away_is_not_copied():
    array = np.arange(6)
    value = own(array[1:], np.int64)
    assert np.shares_memory(value, array)
    for each in (value, array):
        with pytest.raises(ValueError, match="read-only"):
            each[0] = 7
