"""Loops over records that stream by: numbering keys of 128 bits, what became of users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A row of the table holds the two halves of a key, and its number plus one; 0 where it is free.
_WORDS = 3
_SMALLEST = 1 << 10


def empty_key_table() -> NDArray[np.uint64]:
    """Return a table without keys, shape (a power of two, 3)."""
    return np.zeros((_SMALLEST, _WORDS), np.uint64)


@njit(cache=True, nogil=True)
def _slot_of(table: NDArray[np.uint64], first: np.uint64, second: np.uint64) -> np.uint64:
    """Return the row of the table that holds a key, or that it would be put into."""
    mixed = first * np.uint64(0x9E3779B97F4A7C15) + second * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    last = np.uint64(table.shape[0] - 1)
    slot = (mixed ^ (mixed >> np.uint64(32))) & last
    while table[slot, 2] and (table[slot, 0] != first or table[slot, 1] != second):
        slot = (slot + np.uint64(1)) & last
    return slot


@njit(cache=True, nogil=True)
def _twice_as_large(table: NDArray[np.uint64]) -> NDArray[np.uint64]:
    larger = np.zeros((2 * table.shape[0], table.shape[1]), np.uint64)
    for row in range(table.shape[0]):
        if table[row, 2]:
            slot = _slot_of(larger, table[row, 0], table[row, 1])
            # One by one: numba takes a second and a half to compile the copy of a row.
            for word in range(_WORDS):
                larger[slot, word] = table[row, word]
    return larger


@njit(cache=True, nogil=True)
def look_up_keys(
    table: NDArray[np.uint64], first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> NDArray[np.int32]:
    """Return the number of each key, -1 for those that the table does not hold, shape (n,)."""
    numbers = np.empty(first.size, np.int32)
    for i in range(first.size):
        numbers[i] = np.int64(table[_slot_of(table, first[i], second[i]), 2]) - 1
    return numbers


@njit(cache=True, nogil=True)
def number_keys(
    table: NDArray[np.uint64], known: int, first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
    """Give keys numbers from 0 on in order of first appearance, after those that the table holds.

    Slower than `look_up_keys` where nothing is new.

    The table holds `known` keys; it is changed, and must not be used again. `first` and `second`
    are the halves of each key, shape (n,). Returns the table with the new keys, the number of each
    key, and the positions at which new ones first stood, in order.
    """
    numbers = np.empty(first.size, np.int32)
    new = np.empty(first.size, np.int64)
    n_new = 0
    for i in range(first.size):
        slot = _slot_of(table, first[i], second[i])
        if not table[slot, 2]:
            if 2 * (known + n_new + 1) > table.shape[0]:
                table = _twice_as_large(table)
                slot = _slot_of(table, first[i], second[i])
            new[n_new] = i
            n_new += 1
            table[slot, 0] = first[i]
            table[slot, 1] = second[i]
            table[slot, 2] = np.uint64(known + n_new)
        numbers[i] = np.int64(table[slot, 2]) - 1
    return table, numbers, new[:n_new].copy()


@njit(cache=True, nogil=True)
def count_fates(
    users: NDArray[np.int32],
    fates: NDArray[np.int8],
    weights: NDArray[np.int64],
    furthest: NDArray[np.int8],
    balance: NDArray[np.int64],
    records: NDArray[np.int64],
) -> None:
    """Note the fate of every record with its user.

    Raises ``furthest[u]`` to the fate of each record of user u, adds the fate's weight to
    ``balance[u]``, and one to ``records`` of the fate.
    """
    for i in range(users.size):
        user, fate = np.uint32(users[i]), fates[i]
        furthest[user] = max(furthest[user], fate)
        balance[user] += weights[fate]
        records[fate] += 1
