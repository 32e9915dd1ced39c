"""Loops that make groups side by side: choose people, count them, publish the counts.

A group has a lane of a few bytes. A person has ones in the lanes of the groups that they are in;
adding these to the lanes of a cell counts them in all of the groups at once. Lanes are so wide that
no count runs over into the next one.

What is added to a count is looked up by 16 random bits, which belong to a key, the cell and the
group. So it does not matter which other groups are made, or in what order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.kernels.compiling import kernel
from whosthere.kernels.drawing import random_share, random_word
from whosthere.kernels.threads import in_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Ints32, Ints64, Words

LINE = 64
"""Bytes of all lanes side by side: a line of the processor's cache."""
_WORDS = LINE // 8
# Cells counted together: their lanes stay in the processor's second cache.
_TILE = 20_480


class Noise(NamedTuple):
    """What is published for a count c and 16 random bits b: ``results[c + added[b]]``.

    Sums beyond the table count as its first or last one. `added` has the shape (65536,).
    """

    added: Ints32
    results: Ints32


def count_groups(
    indptr: Ints64,
    cells: Ints32,
    m: int,
    n_people: int,
    key: np.uint64,
    last: Ints32,
    counts: NDArray[np.unsignedinteger],
) -> None:
    """Fill in true counts of groups of m people, shape (n_cells, n_groups).

    People are compressed rows, the first `n_people` of which are chosen from. `last` says who is
    the last one of each group, and is filled in where it is negative. Counts have a type that holds
    the number of all people who visited a cell.
    """
    n_lanes = LINE // counts.itemsize

    def make(first: int, stop: int) -> None:
        tile = np.empty((min(_TILE, len(counts)), n_lanes), counts.dtype)
        lanes = np.empty((indptr.size - 1, n_lanes), counts.dtype)
        for begin in range(first * n_lanes, min(stop * n_lanes, last.size), n_lanes):
            end = min(begin + n_lanes, last.size)
            lanes.fill(0)
            _choose(m, n_people, key, begin, lanes, last[begin:end])
            at = indptr[:-1].copy()
            for start in range(0, len(counts), _TILE):
                some = tile[: len(counts) - start]
                some.fill(0)
                # Whole words are added: no lane runs over.
                _count(indptr, cells, at, lanes.view(np.uint64), start, some.view(np.uint64))
                counts[start : start + _TILE, begin:end] = some[:, : end - begin]

    in_parts(make, -(-last.size // n_lanes))


@kernel()
def _choose(
    m: int,
    n_people: int,
    key: np.uint64,
    begin: int,
    lanes: NDArray[np.unsignedinteger],
    last: Ints32,
) -> None:
    """Put a one into the lane of each group that a person is in, and note its last person.

    Where `last` already says who that is, m - 1 others are chosen.
    """
    people = np.empty(n_people, np.int32)
    for lane in range(last.size):
        own_key = random_word(key, begin + lane)
        for i in range(n_people):
            people[i] = i
        given = last[lane] >= 0
        for i in range(m - 1 if given else m):
            j = i + int(random_share(own_key, i) * (n_people - i))
            person = people[j]
            people[j] = people[i]
            people[i] = person
            lanes[person, lane] = 1
        if given:
            lanes[last[lane], lane] = 1
        else:
            last[lane] = people[m - 1]


@kernel()
def _count(indptr: Ints64, cells: Ints32, at: Ints64, ones: Words, start: int, sums: Words) -> None:
    """Count the people in some cells from `start` on, in all lanes, which are words here.

    Everybody's cells before ``at[person]`` were counted already; it moves on to the first one
    beyond.
    """
    stop = start + sums.shape[0]
    for person in range(ones.shape[0]):
        i, end = at[person], indptr[person + 1]
        while i < end and cells[i] < stop:
            cell = np.uint32(cells[i] - start)
            for word in range(_WORDS):
                sums[cell, word] += ones[person, word]
            i += 1
        at[person] = i


@kernel()
def publish_counts(counts: NDArray[np.unsignedinteger], noise: Noise, key: np.uint64) -> None:
    """Publish counts in place, four groups by each random word; shape (n_cells, n_groups)."""
    last, n = np.int32(noise.results.size - 1), counts.shape[1]
    words = np.empty((n + 3) // 4, np.uint64)
    bits, values = words.view(np.uint16), np.empty(n, np.int32)
    for cell in range(counts.shape[0]):
        own_key, row = random_word(key, cell), counts[cell]
        # Short loops that do one thing each: the compiler makes much faster code of them.
        for w in range(words.size):
            words[w] = random_word(own_key, w)
        for i in range(n):
            values[i] = noise.added[bits[i]]
        for i in range(n):
            values[i] = min(max(values[i] + np.int32(row[i]), np.int32(0)), last)
        for i in range(n):
            row[i] = noise.results[np.uint32(values[i])]


@kernel()
def publish_at(
    true: Ints32, cells: Ints64, groups: Ints64, noise: Noise, key: np.uint64, published: Ints32
) -> None:
    """Publish single counts by the random numbers that their cells and groups have above."""
    last = noise.results.size - 1
    for i in range(true.size):
        word = random_word(random_word(key, cells[i]), groups[i] >> 2)
        bits = int((word >> np.uint64(16 * (groups[i] & 3))) & np.uint64(0xFFFF))
        published[i] = noise.results[min(max(true[i] + noise.added[bits], 0), last)]


@kernel()
def drop_small(counts: NDArray[np.unsignedinteger], least: int) -> None:
    """Make counts below the least one 0, in place."""
    zero = counts.dtype.type(0)
    for cell in range(counts.shape[0]):
        row = counts[cell]
        for i in range(row.size):
            row[i] = row[i] if row[i] >= least else zero
