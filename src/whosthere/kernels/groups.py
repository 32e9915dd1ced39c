"""Loops that make groups out of compressed rows: choose people, count them, publish the counts.

Groups are counted side by side, a lane of a few bytes for each. A person has ones in the lanes of
the groups that they are in; adding these to the lanes of a cell that they visited counts them in
all of the groups at once. Lanes are so wide that no count runs over into the next one.

Each group belongs to a key and its own number, so that it does not matter which others are made,
or in what order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from whosthere.kernels.drawing import random_share, random_word
from whosthere.kernels.stages import Stages, publish_cell, publish_lanes

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Bytes of all lanes side by side: a line of the processor's cache.
LINE = 64
_WORDS = LINE // 8
# Cells counted together: their lanes stay in the processor's second cache.
_TILE = 20_480


@njit(cache=True, nogil=True)
def publish_groups(
    indptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    target: NDArray[np.int32],
    m: int,
    stages: Stages,
    key: np.uint64,
    first: int,
    stop: int,
    lanes: NDArray[np.unsignedinteger],
    published: NDArray[np.unsignedinteger],
    bounds: NDArray[np.int64],
    changed: NDArray[np.int32],
    changes: NDArray[np.int32],
) -> bool:
    """Fill in published counts of groups of m people; return whether all of them fit in.

    Where `bounds` is empty, the target is in each group of even number. Otherwise a group is a
    pair: its counts are without the target, and it is noted how they change if the target replaces
    the last of its people. Both groups of a pair share all random numbers. So they differ at most
    where either the target or the one replaced was.

    Parameters
    ----------
    indptr, cells, target
        Compressed rows of at least m people to choose from; cells of the target, who is none of
        them, sorted.
    first, stop
        The groups to make; the first is a multiple of the number of lanes.
    lanes
        Room for the lanes of everybody, shape (n_people, n_lanes), `LINE` bytes for each of them.
        The type holds the number of all people who visited a cell, the target included.
    published
        Shape (n_cells, n_groups); the columns of these groups are filled in.
    bounds, changed, changes
        Pair ``first + i`` differs in the cells ``changed[bounds[i] : bounds[i + 1]]`` by as much as
        `changes` says; filled in. There must be room for target and longest row in each pair.
    """
    n_cells, paired = published.shape[0], bounds.size > 0
    counts = np.empty((min(_TILE, n_cells), lanes.shape[1]), lanes.dtype)
    people, order = np.empty(lanes.shape[0], np.int32), np.arange(lanes.shape[0], dtype=np.int32)
    noise_key = random_word(key, -1)
    most = np.iinfo(published.dtype).max
    done = np.zeros(lanes.shape[1], np.int64)
    for begin in range(first, stop, lanes.shape[1]):
        end = min(begin + lanes.shape[1], stop)
        lanes[:] = 0
        for group in range(begin, end):
            drawn = m if paired or group % 2 else m - 1
            people[:] = order
            _choose(people, drawn, random_word(key, group), lanes, group - begin)
            if paired:
                last, i = people[m - 1], group - first
                done[group - begin] = bounds[i]
                bounds[i + 1] = _replace(
                    target, cells, indptr[last], indptr[last + 1], changed, changes, bounds[i]
                )
        at = indptr[:-1].copy()
        of_target = 0
        for start in range(0, n_cells, _TILE):
            tile = counts[: min(_TILE, n_cells - start)]
            beyond = start + tile.shape[0]
            _count(cells, at, indptr, lanes, start, tile)
            if paired:
                for lane in range(end - begin):
                    i = done[lane]
                    while i < bounds[begin + lane - first + 1] and changed[i] < beyond:
                        changes[i] += np.int32(tile[changed[i] - start, lane])
                        i += 1
                    done[lane] = i
            else:
                while of_target < target.size and target[of_target] < beyond:
                    for lane in range(begin % 2, end - begin, 2):
                        tile[target[of_target] - start, lane] += 1
                    of_target += 1
            if publish_lanes(tile, stages, noise_key, start, begin, end, published) > most:
                return False
    if paired:
        _keep_changes(stages, noise_key, first, stop, published, bounds, changed, changes)
    return True


@njit(cache=True, nogil=True)
def _choose(
    people: NDArray[np.int32],
    n: int,
    key: np.uint64,
    lanes: NDArray[np.unsignedinteger],
    lane: int,
) -> None:
    """Put `n` people in random order first, and a one into the given lane of each of them."""
    for i in range(n):
        j = i + int(random_share(key, i) * (people.size - i))
        person = people[j]
        people[j] = people[i]
        people[i] = person
        lanes[person, lane] = 1


@njit(cache=True, nogil=True)
def _count(
    cells: NDArray[np.int32],
    at: NDArray[np.int64],
    indptr: NDArray[np.int64],
    lanes: NDArray[np.unsignedinteger],
    start: int,
    counts: NDArray[np.unsignedinteger],
) -> None:
    """Count the people in some cells from `start` on, in all lanes.

    Everybody's cells before ``at[person]`` were counted already; it moves on to the first one
    beyond.
    """
    counts[:] = 0
    # Whole words are added: no lane runs over.
    sums, ones = counts.view(np.uint64), lanes.view(np.uint64)
    stop = start + counts.shape[0]
    for person in range(lanes.shape[0]):
        i, end = at[person], indptr[person + 1]
        while i < end and cells[i] < stop:
            cell = np.uint32(cells[i] - start)
            for word in range(_WORDS):
                sums[cell, word] += ones[person, word]
            i += 1
        at[person] = i


@njit(cache=True, nogil=True)
def _replace(
    joins: NDArray[np.int32],
    cells: NDArray[np.int32],
    j: int,
    stop: int,
    changed: NDArray[np.int32],
    changes: NDArray[np.int32],
    end: int,
) -> int:
    """Note how true counts change if one person replaces another, from `end` on.

    Returns where that ends. The cells of who leaves are ``cells[j:stop]``; both persons' cells are
    sorted.
    """
    i = 0
    while i < joins.size or j < stop:
        if j == stop or (i < joins.size and joins[i] < cells[j]):
            changed[end], changes[end] = joins[i], 1
            i += 1
            end += 1
        elif i == joins.size or cells[j] < joins[i]:
            changed[end], changes[end] = cells[j], -1
            j += 1
            end += 1
        else:
            i += 1
            j += 1
    return end


@njit(cache=True, nogil=True)
def _keep_changes(
    stages: Stages,
    noise_key: np.uint64,
    first: int,
    stop: int,
    published: NDArray[np.unsignedinteger],
    bounds: NDArray[np.int64],
    changed: NDArray[np.int32],
    changes: NDArray[np.int32],
) -> None:
    """Turn true counts after a change into changes of published ones; keep those that are any."""
    begin, kept = bounds[0], bounds[0]
    for pair in range(first, stop):
        end = bounds[pair - first + 1]
        for i in range(begin, end):
            cell = changed[i]
            after = publish_cell(changes[i], cell, pair, stages, noise_key)
            change = after - np.int64(published[cell, pair])
            if change != 0:
                changed[kept], changes[kept] = cell, change
                kept += 1
        begin = end
        bounds[pair - first + 1] = kept
