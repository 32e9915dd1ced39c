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

from whosthere.kernels.compiling import kernel
from whosthere.kernels.drawing import random_share, random_word
from whosthere.kernels.stages import Stages, publish_cell, publish_lanes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Ints32, Ints64, Words

# Bytes of all lanes side by side: a line of the processor's cache.
LINE = 64
_WORDS = LINE // 8
# Cells counted together: their lanes stay in the processor's second cache.
_TILE = 20_480
# The word of a key that the noise of the first table is drawn by: no group has such a number.
_NOISE = np.int64(-1)


def publish_groups(
    indptr: Ints64,
    cells: Ints32,
    target: Ints32,
    m: int,
    stages: Stages,
    key: np.uint64,
    first: int,
    stop: int,
    lanes: NDArray[np.unsignedinteger],
    published: NDArray[np.unsignedinteger],
    bounds: Ints64,
    changed: Ints32,
    changes: Ints32,
    table: int = 0,
) -> bool:
    """Fill in published counts of groups of m people; return whether all of them fit in.

    Where `bounds` is empty, the target is in each group of even number. Otherwise a group is a
    pair: its counts are without the target, and it is noted how they change if the target replaces
    the last of its people. Both groups of a pair share all random numbers. So they differ at most
    where either the target or the one replaced was.

    There are compressed rows of at least m people to choose from, and the cells of the target, who
    is none of them, sorted. Groups `first` to `stop` are made; the first is a multiple of the
    number of lanes, and their columns of `published` are filled in, shape (n_cells, n_groups).
    `lanes` is room for those of everybody, shape (n_people, n_lanes), `LINE` bytes each, of a type
    that holds the number of all people who visited a cell, the target included. Pair ``first + i``
    differs in the cells ``changed[bounds[i] : bounds[i + 1]]`` by as much as `changes` says; these
    are filled in, and must have room for target and longest row in each pair. Of several tables of
    the same groups, each has noise of its own, by its number (`table`).
    """
    (n_people, n_lanes), n_cells = lanes.shape, published.shape[0]
    paired = bounds.size > 0
    counts = np.empty((min(_TILE, n_cells), n_lanes), lanes.dtype)
    people, last = np.empty(n_people, np.int32), np.empty(n_lanes, np.int32)
    noise_key = np.uint64(random_word(key, _NOISE - table))
    most = np.iinfo(published.dtype).max
    for begin in range(first, stop, n_lanes):
        end = min(begin + n_lanes, stop)
        own_bounds = bounds[begin - first : end - first + 1]
        lanes.fill(0)
        _choose(people, m, paired, key, begin, end, lanes, last)
        if paired:
            _replace(target, indptr, cells, last, own_bounds, changed, changes)
        at = indptr[:-1].copy()
        for start in range(0, n_cells, _TILE):
            tile = counts[: n_cells - start]
            tile.fill(0)
            # Whole words are added: no lane runs over.
            _count(indptr, cells, at, lanes.view(np.uint64), start, tile.view(np.uint64))
            if paired:
                _count_changed(tile, start, own_bounds, changed, changes)
            else:
                here = target[(target >= start) & (target < start + _TILE)]
                tile[here - start, : end - begin : 2] += 1
            if publish_lanes(tile, stages, noise_key, start, begin, end, published) > most:
                return False
    if paired:
        _keep_changes(stages, noise_key, first, stop, published, bounds, changed, changes)
    return True


@kernel()
def _choose(
    people: Ints32,
    m: int,
    paired: bool,  # noqa: FBT001 - compiled functions have no keyword-only parameters
    key: np.uint64,
    begin: int,
    end: int,
    lanes: NDArray[np.unsignedinteger],
    last: Ints32,
) -> None:
    """Put a one into the lane of each group that a person is in, and note its last person."""
    for group in range(begin, end):
        lane, own_key = group - begin, random_word(key, group)
        for i in range(people.size):
            people[i] = i
        # Where groups are single, the target has the last place of each second one.
        for i in range(m if paired or group % 2 else m - 1):
            j = i + int(random_share(own_key, i) * (people.size - i))
            person = people[j]
            people[j] = people[i]
            people[i] = person
            lanes[person, lane] = 1
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
def _replace(
    joins: Ints32,
    indptr: Ints64,
    cells: Ints32,
    leaves: Ints32,
    bounds: Ints64,
    changed: Ints32,
    changes: Ints32,
) -> None:
    """Note how true counts change if one person replaces the one who leaves each group.

    Fills in the bounds from the second one on. Everybody's cells are sorted.
    """
    for group in range(bounds.size - 1):
        end, i = bounds[group], 0
        j, stop = indptr[leaves[group]], indptr[leaves[group] + 1]
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
        bounds[group + 1] = end


@kernel()
def _count_changed(
    counts: NDArray[np.unsignedinteger],
    start: int,
    bounds: Ints64,
    changed: Ints32,
    changes: Ints32,
) -> None:
    """Turn changes in some cells from `start` on into true counts after them."""
    for lane in range(bounds.size - 1):
        for i in range(bounds[lane], bounds[lane + 1]):
            cell = changed[i] - start
            if 0 <= cell < counts.shape[0]:
                changes[i] += np.int32(counts[cell, lane])


@kernel()
def _keep_changes(
    stages: Stages,
    noise_key: np.uint64,
    first: int,
    stop: int,
    published: NDArray[np.unsignedinteger],
    bounds: Ints64,
    changed: Ints32,
    changes: Ints32,
) -> None:
    """Turn true counts after a change into changes of published ones; keep those that are any."""
    begin, kept = bounds[0], bounds[0]
    for pair in range(first, stop):
        end = bounds[pair - first + 1]
        for i in range(begin, end):
            cell = changed[i]
            after = publish_cell(changes[i], np.int64(cell), pair, stages, noise_key)
            change = after - np.int64(published[cell, pair])
            if change != 0:
                changed[kept], changes[kept] = cell, change
                kept += 1
        begin = end
        bounds[pair - first + 1] = kept
