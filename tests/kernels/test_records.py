"""Numbering keys and counting fates, against plain Python."""

import numpy as np

from whosthere.kernels import count_fates, empty_key_table, look_up_keys, number_keys


def test_keys_are_numbered_in_order_of_first_appearance(rng):
    table, known, expected = empty_key_table(), 0, {}
    for _ in range(4):
        # Halves that repeat, so that keys differ in one half only; many enough for growth.
        first, second = rng.integers(0, 60, (2, 3000)).astype(np.uint64) << np.uint64(40)
        keys = list(zip(first.tolist(), second.tolist(), strict=True))
        before = [expected.get(key, -1) for key in keys]
        assert look_up_keys(table, first, second).tolist() == before
        table, numbers, new = number_keys(table, known, first, second)
        for key in keys:
            expected.setdefault(key, len(expected))
        assert numbers.tolist() == [expected[key] for key in keys]
        assert [keys[i] for i in new] == list(expected)[known:]
        known += new.size
    assert known == len(expected)
    assert table.shape[0] >= 2 * known


def test_a_key_of_zeros_is_a_key():
    zero = np.zeros(2, np.uint64)
    assert look_up_keys(empty_key_table(), zero, zero).tolist() == [-1, -1]
    table, numbers, new = number_keys(empty_key_table(), 0, zero, zero)
    assert numbers.tolist() == [0, 0]
    assert new.tolist() == [0]
    assert look_up_keys(table, zero, zero).tolist() == [0, 0]


def test_fates_are_counted_by_user(rng):
    users = rng.integers(0, 5, 100).astype(np.int32)
    fates = rng.integers(0, 4, 100).astype(np.int8)
    weights = np.array([0, -1, -1, 1])
    furthest, balance, records = np.zeros(6, np.int8), np.zeros(6, np.int64), np.zeros(4, np.int64)
    count_fates(users, fates, weights, furthest, balance, records)
    assert records.tolist() == np.bincount(fates, minlength=4).tolist()
    for user in range(6):
        mine = fates[users == user]
        assert furthest[user] == mine.max(initial=0)
        assert balance[user] == weights[mine].sum()
