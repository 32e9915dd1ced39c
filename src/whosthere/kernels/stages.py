"""What a mechanism does to counts, as tables: random whole numbers added, results looked up.

A stage takes a count c to ``results[c + Z]``, where Z is random with a law of its own and the sum
is kept within the table. Z is found from 64 random bits by the inverse of its law. The first 16 of
them decide nearly always; only where they do not are the others drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.kernels.compiling import kernel, part
from whosthere.kernels.drawing import random_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Bools, Ints32, Ints64, Words

# Cells handled together: all that is known of them, in up to 64 groups, stays in the processor's
# first cache.
_CELLS = 16
# A few counts among which an undecided one is looked for.
_FEW = 64
# Where the words of further bits begin: no group has such a number.
_FURTHER = 1 << 40


class Stages(NamedTuple):
    """Stages one after another, the tables of all in one array each; none publishes counts."""

    n: int
    # Whether a stage adds anything at all, and the lowest value of its Z, shape (n,).
    is_random: Bools
    lowest: Ints64
    # Number of the value of Z that the first `guide_bits` random bits decide for, counted from the
    # lowest. Where they leave a choice it is -1 less the number of the first one.
    guide: Ints32
    guide_bits: Ints64
    guide_start: Ints64
    # P(Z <= z) times 2^64, for all values of Z except the last.
    limits: Words
    limits_start: Ints64
    # What a sum becomes, and whether that differs from the sum.
    results: Ints32
    results_start: Ints64
    looks_up: Bools


def publish_lanes(
    counts: NDArray[np.unsignedinteger],
    stages: Stages,
    key: np.uint64,
    start: int,
    first: int,
    stop: int,
    published: NDArray[np.unsignedinteger],
) -> int:
    """Publish the counts of some cells in some groups; return a number that no result exceeds.

    `counts` are of cells from `start` on, a lane for each of up to 64 groups from `first` on, which
    is a multiple of four. They must lie within the first stage's table. These cells and groups are
    filled in in `published`, shape (n_cells, n_groups). A result that it cannot hold is not kept,
    which that number shows.
    """
    if stages.n == 0 or (stages.n == 1 and not stages.is_random[0]):
        least = _least_kept(stages)
        return _publish_surely(counts, stages.results, least, start, first, stop, published)
    return _publish_by_chance(counts, stages, key, start, first, stop, published)


@kernel()
def _publish_by_chance(
    counts: NDArray[np.unsignedinteger],
    stages: Stages,
    key: np.uint64,
    start: int,
    first: int,
    stop: int,
    published: NDArray[np.unsignedinteger],
) -> int:
    # Whole words of random bits, which are for four groups each.
    width = (stop - first + 3) // 4 * 4
    room = _CELLS * width
    values, places = np.empty(room, np.int32), np.empty(room, np.int32)
    sums, words = np.empty(room, np.uint32), np.empty(room // 4, np.uint64)
    largest = np.int32(0)
    for begin in range(0, counts.shape[0], _CELLS):
        some = counts[begin : begin + _CELLS]
        n = some.shape[0] * width
        _copy_counts(some, width, values)
        for stage in range(stages.n):
            results = stages.results[stages.results_start[stage] : stages.results_start[stage + 1]]
            lowest, last = np.int32(0), np.int32(results.size - 1)
            if stages.is_random[stage]:
                lowest = np.int32(stages.lowest[stage])
                own_key = random_word(key, stage)
                _draw(n, width, stages, stage, own_key, start + begin, first, words, sums, places)
            else:
                for j in range(n):
                    places[j] = 0
            # Short loops that do one thing each: the compiler makes much faster code of them.
            for j in range(n):
                total = values[j] + places[j] + lowest
                values[j] = min(max(total, np.int32(0)), last)
            if stages.looks_up[stage]:
                for j in range(n):
                    sums[j] = values[j]
                for j in range(n):
                    values[j] = results[sums[j]]
        for j in range(n):
            largest = max(largest, values[j])
        for c in range(some.shape[0]):
            own, out = values[c * width :], published[start + begin + c, first:stop]
            for lane in range(out.size):
                out[lane] = own[lane]
    return int(largest)


@part()
def _copy_counts(counts: NDArray[np.unsignedinteger], width: int, values: Ints32) -> None:
    for c in range(counts.shape[0]):
        given, own = counts[c], values[c * width : (c + 1) * width]
        for lane in range(own.size):
            own[lane] = given[lane]


@kernel()
def _publish_surely(
    counts: NDArray[np.unsignedinteger],
    results: Ints32,
    least: int,
    start: int,
    first: int,
    stop: int,
    published: NDArray[np.unsignedinteger],
) -> int:
    largest = np.uint32(0)
    for c in range(counts.shape[0]):
        given, out = counts[c, : stop - first], published[start + c, first:stop]
        if least >= 0:
            for lane in range(given.size):
                largest = max(largest, np.uint32(given[lane]))
            for lane in range(given.size):
                out[lane] = given[lane]
            for lane in range(given.size):
                out[lane] = out[lane] if given[lane] >= least else 0
        else:
            for lane in range(given.size):
                value = np.uint32(results[given[lane]])
                largest = max(largest, value)
                out[lane] = value
    return int(largest) if largest >= least else 0


def _least_kept(stages: Stages) -> int:
    """Return the count from which on all are published as they are and below as 0; else -1."""
    if stages.n == 0:
        return 0
    changed = np.flatnonzero(stages.results != np.arange(stages.results.size))
    least = int(changed.max(initial=-1)) + 1
    return -1 if stages.results[:least].any() else least


@part()
def publish_cell(
    count: int, cell: int | np.int64, group: int, stages: Stages, key: np.uint64
) -> int:
    """Return what `publish_lanes` makes of one count, with the same random numbers."""
    value = count
    for stage in range(stages.n):
        if stages.is_random[stage]:
            cell_key = random_word(random_word(key, stage), cell)
            word = random_word(cell_key, group >> 2)
            first = int((word >> np.uint64(16 * (group & 3))) & np.uint64(0xFFFF))
            shift = 16 - stages.guide_bits[stage]
            place = stages.guide[stages.guide_start[stage] + (first >> shift)]
            if place < 0:
                place = _decided(first, place, stages, stage, cell_key, group)
            value += place + stages.lowest[stage]
        begin, end = stages.results_start[stage], stages.results_start[stage + 1]
        value = stages.results[min(max(begin + value, begin), end - 1)]
    return value


@part(once=True)
def _draw(
    n: int,
    width: int,
    stages: Stages,
    stage: int,
    key: np.uint64,
    cell: int,
    group: int,
    words: Words,
    entries: NDArray[np.uint32],
    places: Ints32,
) -> None:
    """Draw the numbers of the values of Z for `n` counts; `words` and `entries` are for work.

    They are of cells from `cell` on, each in `width` groups from `group` on.
    """
    for c in range(n // width):
        cell_key = random_word(key, cell + c)
        own = words[c * (width // 4) : (c + 1) * (width // 4)]
        for w in range(own.size):
            own[w] = random_word(cell_key, group // 4 + w)
    guide = stages.guide[stages.guide_start[stage] : stages.guide_start[stage + 1]]
    shift = np.uint32(16 - stages.guide_bits[stage])
    firsts = words.view(np.uint16)
    for j in range(n):
        entries[j] = np.uint32(firsts[j]) >> shift
    for j in range(n):
        places[j] = guide[entries[j]]
    for begin in range(0, n, _FEW):
        few = places[begin : min(begin + _FEW, n)]
        least = np.int32(0)
        for j in range(few.size):
            least = min(least, few[j])
        if least < 0:
            for j in range(few.size):
                if few[j] < 0:
                    c, lane = divmod(begin + j, width)
                    cell_key = random_word(key, cell + c)
                    few[j] = _decided(
                        firsts[begin + j], few[j], stages, stage, cell_key, group + lane
                    )


@part()
def _decided(first: int, place: int, stages: Stages, stage: int, key: np.uint64, group: int) -> int:
    """Return the number of the value of Z where the guide leaves a choice."""
    rest = random_word(key, _FURTHER + group)
    bits = (np.uint64(first) << np.uint64(48)) | (rest >> np.uint64(16))
    begin, end = stages.limits_start[stage], stages.limits_start[stage + 1]
    at = begin - 1 - place
    while at < end and bits >= stages.limits[at]:
        at += 1
    return int(at - begin)
