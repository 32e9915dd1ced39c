"""Loops over compressed rows: row r holds ``cells[indptr[r]:indptr[r + 1]]``, sorted, distinct.

And over the records that rows are made of, which stream by: their keys of 128 bits are numbered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part
from whosthere.kernels.drawing import put_smallest_first, random_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Bools, Floats, Ints32, Ints64, Words

# Rows and cells are sorted together as keys ``row << 32 | cell``, much faster than one by one.
_CELL = 0x7FFFFFFF
_BLOCK = 1 << 22
# A row of the table holds the two halves of a key, and its number plus one; 0 where it is free.
_WORDS = 3
_SMALLEST = 1 << 10


@kernel()
def count_cells(indptr: Ints64, cells: Ints32, rows: Ints64, counts: Ints32) -> None:
    """Add one to ``counts[c]`` for every cell c of every given row."""
    for row in rows:
        for i in range(indptr[row], indptr[row + 1]):
            # An index that cannot be negative is not looked at twice.
            counts[np.uint32(cells[i])] += 1


@kernel()
def sum_cells(indptr: Ints64, cells: Ints32, rows: Ints64, values: Floats) -> Floats:
    """Add up ``values[c]`` over the cells c of each given row, in their order, shape (n_rows,).

    Values may be minus infinity, and none plus infinity: a row is left at its first one.
    """
    sums = np.empty(rows.size)
    for j in range(rows.size):
        total = 0.0
        for i in range(indptr[rows[j]], indptr[rows[j] + 1]):
            total += values[np.uint32(cells[i])]
            if total == -np.inf:
                break
        sums[j] = total
    return sums


@kernel()
def count_periods(indptr: Ints64, cells: Ints32, period_of_epoch: Ints32, counts: Ints64) -> None:
    """Add one to ``counts[r, p]`` for every cell of every row r whose epoch is of period p.

    A cell's epoch is its remainder modulo ``period_of_epoch.size``.
    """
    n_epochs = np.uint32(period_of_epoch.size)
    for row in range(indptr.size - 1):
        for i in range(indptr[row], indptr[row + 1]):
            counts[row, period_of_epoch[np.uint32(cells[i]) % n_epochs]] += 1


@kernel()
def take_rows(indptr: Ints64, cells: Ints32, rows: Ints64) -> tuple[Ints64, Ints32]:
    """Copy the given rows, in the given order, into new compressed rows."""
    taken_indptr = np.zeros(rows.size + 1, np.int64)
    for j in range(rows.size):
        taken_indptr[j + 1] = taken_indptr[j] + indptr[rows[j] + 1] - indptr[rows[j]]
    taken = np.empty(taken_indptr[-1], np.int32)
    for j in range(rows.size):
        own = cells[indptr[rows[j]] : indptr[rows[j] + 1]]
        copy = taken[taken_indptr[j] : taken_indptr[j + 1]]
        for i in range(copy.size):
            copy[i] = own[i]
    return taken_indptr, taken


@kernel()
def take_marked(indptr: Ints64, cells: Ints32, keep: Bools) -> tuple[Ints64, Ints32]:
    """Copy the marked cells of all rows into new compressed rows; `keep` is by stored cell."""
    taken_indptr = np.zeros(indptr.size, np.int64)
    for row in range(indptr.size - 1):
        marked = 0
        for i in range(indptr[row], indptr[row + 1]):
            marked += keep[i]
        taken_indptr[row + 1] = taken_indptr[row] + marked
    # With room for one that is written and not kept: without a branch it is twice as fast.
    taken = np.empty(taken_indptr[-1] + 1, np.int32)
    end = 0
    for i in range(cells.size):
        taken[end] = cells[i]
        end += keep[i]
    return taken_indptr, taken[:-1]


def renumber_regions(indptr: Ints64, cells: Ints32, n_epochs: int, number: Ints32) -> Ints32:
    """Return the cells of all rows, sorted in each, where region r has become ``number[r]``.

    A cell is ``region * n_epochs + epoch``. No two regions may become one.
    """
    renumbered = np.empty_like(cells)
    # In blocks of rows, so that little memory is needed besides.
    for rows in np.array_split(np.arange(indptr.size - 1), cells.size // _BLOCK + 1):
        if not rows.size:
            continue
        mine = slice(indptr[rows[0]], indptr[rows[-1] + 1])
        region, epoch = np.divmod(cells[mine], np.int32(n_epochs))
        keys = np.repeat(rows << 32, np.diff(indptr[rows[0] : rows[-1] + 2]))
        keys |= number[region] * np.int32(n_epochs) + epoch
        keys.sort()
        renumbered[mine] = keys & _CELL
    return renumbered


def group_by_row(row_of: Ints32, cell_of: Ints32, n_rows: int) -> tuple[Ints64, Ints32]:
    """Turn unordered (row, cell) pairs with repetitions into compressed rows."""
    keys = (row_of.astype(np.int64) << 32) | cell_of
    keys.sort()
    cells = np.empty(keys.size, np.int32)
    indptr = split_keys(keys, cells)
    beyond = np.full(n_rows + 1 - indptr.size, indptr[-1])
    return np.concatenate([indptr, beyond]), cells[: indptr[-1]].copy()


@kernel()
def split_keys(keys: Ints64, cells: Ints32) -> Ints64:
    """Turn sorted keys ``row << 32 | cell`` with repetitions into compressed rows.

    Writes the cells to the beginning of `cells`, which is as long as `keys` or longer. Returns
    `indptr` for rows up to the last one among the keys.
    """
    n_rows = 0 if keys.size == 0 else (keys[-1] >> 32) + 1
    indptr = np.zeros(n_rows + 1, np.int64)
    end = 0
    row = 0
    last = np.int64(-1)
    for key in keys:
        if key == last:
            continue
        last = key
        while row < key >> 32:
            row += 1
            indptr[row] = end
        cells[end] = np.int32(key & _CELL)
        end += 1
    indptr[n_rows] = end
    return indptr


@kernel()
def merge_rows(
    indptr: Ints64, cells: Ints32, other_indptr: Ints64, other_cells: Ints32, merged: Ints32
) -> Ints64:
    """Unite two sets of compressed rows, row by row; either may have rows that the other lacks.

    Writes the cells to the beginning of `merged`, which has room for the cells of both. Returns
    the new `indptr`.
    """
    n, other_n = indptr.size - 1, other_indptr.size - 1
    merged_indptr = np.zeros(max(n, other_n) + 1, np.int64)
    end = 0
    for row in range(max(n, other_n)):
        i, stop = (indptr[row], indptr[row + 1]) if row < n else (0, 0)
        j, other_stop = (other_indptr[row], other_indptr[row + 1]) if row < other_n else (0, 0)
        while i < stop and j < other_stop:
            # Steps without a branch: which of the two comes first cannot be predicted.
            here, there = cells[i], other_cells[j]
            merged[end] = min(here, there)
            end += 1
            i += here <= there
            j += there <= here
        while i < stop:
            merged[end] = cells[i]
            end += 1
            i += 1
        while j < other_stop:
            merged[end] = other_cells[j]
            end += 1
            j += 1
        merged_indptr[row + 1] = end
    return merged_indptr


@kernel()
def sample_within_periods(
    indptr: Ints64, cells: Ints32, period_of_epoch: Ints32, limit: int, key: np.uint64
) -> Bools:
    """Mark a uniformly random `limit` of each row's cells per period, all where fewer.

    A cell's epoch is its remainder modulo ``period_of_epoch.size``. Each stored cell draws a
    random priority from `key` and its own position, so no array of random numbers is made;
    the `limit` smallest priorities of a row and period stay.
    """
    n_epochs = np.uint32(period_of_epoch.size)
    n_periods = period_of_epoch.max() + 1
    keep = np.ones(cells.size, np.bool_)
    longest = 0
    for row in range(indptr.size - 1):
        longest = max(longest, indptr[row + 1] - indptr[row])
    # Of one row at a time: by cell, by period, and by cell of those periods that are too full.
    period_of = np.empty(longest, np.int32)
    visits = np.empty(n_periods, np.int64)
    end = np.empty(n_periods, np.int64)
    position = np.empty(longest, np.int64)
    priority = np.empty(longest, np.uint64)
    for row in range(indptr.size - 1):
        start, stop = indptr[row], indptr[row + 1]
        if stop - start <= limit:
            continue
        visits[:] = 0
        for i in range(start, stop):
            period = period_of_epoch[np.uint32(cells[i]) % n_epochs]
            period_of[i - start] = period
            visits[period] += 1
        filled = 0
        for period in range(n_periods):
            end[period] = filled
            if visits[period] > limit:
                filled += visits[period]
        if filled == 0:
            continue
        for i in range(start, stop):
            period = period_of[i - start]
            if visits[period] > limit:
                position[end[period]] = i
                priority[end[period]] = random_word(key, i)
                end[period] += 1
        first = 0
        for period in range(n_periods):
            if visits[period] <= limit:
                continue
            put_smallest_first(priority[first : end[period]], position[first : end[period]], limit)
            for i in position[first + limit : end[period]]:
                keep[i] = False
            first = end[period]
    return keep


@kernel()
def most_shared(
    indptr: Ints64,
    cells: Ints32,
    rows: tuple[int, int],
    place_of_cell: Ints32,
    starts: Ints64,
    visitors: Ints32,
    own_row: Ints64,
) -> Ints32:
    """Return the most cells that any one row shares with each of some people, shape (n_people,).

    Memory grows with the people asked about, and not with the rows: each row, from the first of
    `rows` to the one before the second, is read once and forgotten. At place p were the people
    ``visitors[starts[p]:starts[p + 1]]``; the place of a cell is negative where none of them was.
    `own_row` is the row of each person, which is not another one.
    """
    most = np.zeros(own_row.size, np.int32)
    shared = np.zeros(own_row.size, np.int32)
    met = np.empty(own_row.size, np.int32)
    for row in range(rows[0], rows[1]):
        n_met = 0
        for i in range(indptr[row], indptr[row + 1]):
            place = place_of_cell[np.uint32(cells[i])]
            if place < 0:
                continue
            for j in range(starts[place], starts[place + 1]):
                person = visitors[j]
                # Written in any case, and kept only if this is the first cell that both visited.
                met[n_met] = person
                n_met += shared[person] == 0
                shared[person] += 1
        for person in met[:n_met]:
            if own_row[person] != row:
                most[person] = max(most[person], shared[person])
            shared[person] = 0
    return most


def empty_key_table() -> Words:
    """Return a table without keys, shape (a power of two, 3)."""
    return np.zeros((_SMALLEST, _WORDS), np.uint64)


@part()
def _slot_of(table: Words, first: np.uint64, second: np.uint64) -> np.uint64:
    """Return the row of the table that holds a key, or that it would be put into."""
    mixed = first * np.uint64(0x9E3779B97F4A7C15) + second * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    last = np.uint64(table.shape[0] - 1)
    slot = (mixed ^ (mixed >> np.uint64(32))) & last
    while table[slot, 2] and (table[slot, 0] != first or table[slot, 1] != second):
        slot = (slot + np.uint64(1)) & last
    return slot


@part()
def _twice_as_large(table: Words) -> Words:
    larger = np.zeros((2 * table.shape[0], table.shape[1]), np.uint64)
    for row in range(table.shape[0]):
        if table[row, 2]:
            slot = _slot_of(larger, table[row, 0], table[row, 1])
            # One by one: numba takes a second and a half to compile the copy of a row.
            for word in range(_WORDS):
                larger[slot, word] = table[row, word]
    return larger


@kernel()
def look_up_keys(table: Words, first: Words, second: Words) -> Ints32:
    """Return the number of each key, -1 for those that the table does not hold, shape (n,)."""
    numbers = np.empty(first.size, np.int32)
    for i in range(first.size):
        numbers[i] = np.int64(table[_slot_of(table, first[i], second[i]), 2]) - 1
    return numbers


@kernel()
def number_keys(
    table: Words, known: int, first: Words, second: Words
) -> tuple[Words, Ints32, Ints64]:
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


@kernel()
def count_fates(
    users: Ints32,
    fates: NDArray[np.int8],
    weights: Ints64,
    furthest: NDArray[np.int8],
    balance: Ints64,
    records: Ints64,
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
