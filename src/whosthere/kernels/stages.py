"""What a mechanism does to counts, as tables: random whole numbers added, results looked up.

A stage takes a count c to ``results[c + Z]``, where Z is random with a law of its own and the sum
is kept within the table. Z is found from 64 random bits by the inverse of its law. The first 16 of
them decide nearly always; only where they do not are the others drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from whosthere.kernels.random_words import random_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Cells handled together: all that is known of them stays in the processor's first cache.
_BLOCK = 1024
# A few cells among which an undecided one is looked for.
_FEW = 64
# Where the words of further bits begin: no cell has such a number.
_FURTHER = 1 << 40


class Stages(NamedTuple):
    """Stages one after another, the tables of all in one array each.

    Attributes
    ----------
    n
        How many stages there are; 0 publishes counts as they are.
    is_random
        Whether a stage adds anything at all, shape (n,).
    lowest
        The lowest value of each stage's Z, shape (n,).
    guide, guide_bits, guide_start
        Number of the value of Z that the first `guide_bits` random bits decide for, counted from
        the lowest. Where they leave a choice it is -1 less the number of the first one.
    limits, limits_start
        P(Z <= z) times 2^64, for all values of Z except the last.
    results, results_start
        What a sum becomes.
    looks_up
        Whether results differ from sums, shape (n,).
    """

    n: int
    is_random: NDArray[np.bool_]
    lowest: NDArray[np.int64]
    guide: NDArray[np.int32]
    guide_bits: NDArray[np.int64]
    guide_start: NDArray[np.int64]
    limits: NDArray[np.uint64]
    limits_start: NDArray[np.int64]
    results: NDArray[np.int32]
    results_start: NDArray[np.int64]
    looks_up: NDArray[np.bool_]


@njit(cache=True, nogil=True)
def publish_row(
    counts: NDArray[np.int32],
    stages: Stages,
    key: np.uint64,
    published: NDArray[np.unsignedinteger],
) -> int:
    """Publish the counts of all cells; return the largest result.

    Counts must lie within the first stage's table. A result that `published` cannot hold is not
    kept, which the largest shows.
    """
    largest = np.int32(0)
    values, places = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.int32)
    sums, words = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK // 4, np.uint64)
    for start in range(0, counts.size, _BLOCK):
        given, out = counts[start : start + _BLOCK], published[start : start + _BLOCK]
        # Short loops that do one thing each: the compiler makes much faster code of them.
        n = given.size
        for j in range(n):
            values[j] = given[j]
        for stage in range(stages.n):
            results = stages.results[stages.results_start[stage] : stages.results_start[stage + 1]]
            lowest, last = np.int32(0), np.int32(results.size - 1)
            places[:] = 0
            if stages.is_random[stage]:
                lowest = np.int32(stages.lowest[stage])
                _draw(start, n, stages, stage, random_word(key, stage), words, places)
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
        for j in range(n):
            out[j] = values[j]
    return int(largest)


@njit(cache=True, nogil=True)
def publish_cell(count: int, cell: int, stages: Stages, key: np.uint64) -> int:
    """Return what `publish_row` makes of one count, with the same random numbers."""
    value = count
    for stage in range(stages.n):
        if stages.is_random[stage]:
            own_key = random_word(key, stage)
            word = random_word(own_key, cell >> 2)
            first = int((word >> np.uint64(16 * (cell & 3))) & np.uint64(0xFFFF))
            shift = 16 - stages.guide_bits[stage]
            place = stages.guide[stages.guide_start[stage] + (first >> shift)]
            if place < 0:
                place = _decided(first, place, stages, stage, own_key, cell)
            value += place + stages.lowest[stage]
        begin, end = stages.results_start[stage], stages.results_start[stage + 1]
        value = stages.results[min(max(begin + value, begin), end - 1)]
    return value


@njit(cache=True, nogil=True)
def _draw(
    start: int,
    n: int,
    stages: Stages,
    stage: int,
    key: np.uint64,
    words: NDArray[np.uint64],
    places: NDArray[np.int32],
) -> None:
    """Draw the numbers of the values of Z for `n` cells from `start` on; `words` is for work."""
    guide = stages.guide[stages.guide_start[stage] : stages.guide_start[stage + 1]]
    shift = np.uint32(16 - stages.guide_bits[stage])
    firsts = words.view(np.uint16)
    entries = np.empty(_BLOCK, np.uint32)
    for w in range(words.size):
        words[w] = random_word(key, start // 4 + w)
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
                    at = begin + j
                    few[j] = _decided(firsts[at], few[j], stages, stage, key, start + at)


@njit(cache=True, nogil=True)
def _decided(first: int, place: int, stages: Stages, stage: int, key: np.uint64, cell: int) -> int:
    """Return the number of the value of Z where the guide leaves a choice."""
    rest = random_word(key, _FURTHER + cell)
    bits = (np.uint64(first) << np.uint64(48)) | (rest >> np.uint64(16))
    begin, end = stages.limits_start[stage], stages.limits_start[stage + 1]
    at = begin - 1 - place
    while at < end and bits >= stages.limits[at]:
        at += 1
    return int(at - begin)
