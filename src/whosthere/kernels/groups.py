"""Loops that make groups out of compressed rows: choose people, count them, publish the counts.

Each group belongs to a key and its own number, so that it does not matter which others are made,
or in what order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from whosthere.kernels.random_words import random_share, random_word
from whosthere.kernels.stages import Stages, publish_cell, publish_row

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    published: NDArray[np.unsignedinteger],
) -> bool:
    """Fill in published counts of groups of m people, the target in each one of even number.

    Parameters
    ----------
    indptr, cells
        Compressed rows of the people to choose from, at least m.
    target
        Cells of the target, who is none of them; sorted.
    m
        People in a group, the target among them where in.
    stages
        What is done to counts.
    key
        Decides on all random numbers.
    first, stop
        The number of the group to begin with, and of the one to stop before.
    published
        Shape (n_groups, n_cells); the rows of these groups are filled in.

    Returns
    -------
    Whether all counts fit in.
    """
    people = np.empty(indptr.size - 1, np.int32)
    counts = np.empty(published.shape[1], np.int32)
    most = np.iinfo(published.dtype).max
    for group in range(first, stop):
        own_key = random_word(key, group)
        drawn = m - 1 if group % 2 == 0 else m
        _choose(people, drawn, random_word(own_key, 0))
        _count(indptr, cells, people[:drawn], counts)
        if group % 2 == 0:
            for cell in target:
                counts[cell] += 1
        if publish_row(counts, stages, random_word(own_key, 1), published[group]) > most:
            return False
    return True


@njit(cache=True, nogil=True)
def publish_pairs(
    indptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    target: NDArray[np.int32],
    m: int,
    stages: Stages,
    key: np.uint64,
    first: int,
    stop: int,
    published: NDArray[np.unsignedinteger],
    bounds: NDArray[np.int64],
    changed: NDArray[np.int32],
    changes: NDArray[np.int32],
) -> bool:
    """Fill in published counts of m people, and how they change if the target replaces the last.

    Both groups of a pair share all random numbers. So they differ at most where either the target
    or the one replaced was, and only these differences are kept.

    Parameters
    ----------
    published
        Counts without the target, shape (n_pairs, n_cells); the rows of these pairs are filled in.
    bounds, changed, changes
        Pair ``first + i`` differs in the cells ``changed[bounds[i] : bounds[i + 1]]`` by as much as
        `changes` says; filled in as well. There must be room for target and longest row in each
        pair.

    Returns
    -------
    Whether all counts fit in.
    """
    people = np.empty(indptr.size - 1, np.int32)
    counts = np.empty(published.shape[1], np.int32)
    most = np.iinfo(published.dtype).max
    for pair in range(first, stop):
        own_key = random_word(key, pair)
        noise_key = random_word(own_key, 1)
        _choose(people, m, random_word(own_key, 0))
        _count(indptr, cells, people[:m], counts)
        last = people[m - 1]
        begin = bounds[pair - first]
        end = _replace(
            target, cells[indptr[last] : indptr[last + 1]], counts, changed, changes, begin
        )
        if publish_row(counts, stages, noise_key, published[pair]) > most:
            return False
        kept = begin
        for i in range(begin, end):
            cell = changed[i]
            change = publish_cell(changes[i], cell, stages, noise_key) - published[pair, cell]
            if change != 0:
                changed[kept], changes[kept] = cell, change
                kept += 1
        bounds[pair - first + 1] = kept
    return True


@njit(cache=True, nogil=True)
def restrict_rows(
    indptr: NDArray[np.int64], cells: NDArray[np.int32], place: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the compressed rows of some cells only, where cell c becomes ``place[c]``, if not -1.

    `place` must keep the order of cells.
    """
    bounds = np.zeros(indptr.size, np.int64)
    kept = np.empty(cells.size, np.int32)
    end = 0
    for row in range(indptr.size - 1):
        for i in range(indptr[row], indptr[row + 1]):
            kept[end] = place[cells[i]]
            # Overwritten by the next one where this is none of the cells.
            end += kept[end] >= 0
        bounds[row + 1] = end
    return bounds, kept[:end].copy()


@njit(cache=True, nogil=True)
def _choose(people: NDArray[np.int32], n: int, key: np.uint64) -> None:
    """Put `n` people in random order first, all such orders being equally likely."""
    for i in range(people.size):
        people[i] = i
    for i in range(n):
        j = i + int(random_share(key, i) * (people.size - i))
        people[i], people[j] = people[j], people[i]


@njit(cache=True, nogil=True)
def _count(
    indptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    rows: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> None:
    """Count how many of the given rows hold each cell."""
    counts[:] = 0
    for row in rows:
        for i in range(indptr[row], indptr[row + 1]):
            counts[np.uint32(cells[i])] += 1


@njit(cache=True, nogil=True)
def _replace(
    joins: NDArray[np.int32],
    leaves: NDArray[np.int32],
    counts: NDArray[np.int32],
    changed: NDArray[np.int32],
    replaced: NDArray[np.int32],
    begin: int,
) -> int:
    """Note the counts of all cells that change if one person replaces another, from `begin` on.

    Returns where they end. Both persons' cells are sorted.
    """
    end, i, j = begin, 0, 0
    while i < joins.size or j < leaves.size:
        if j == leaves.size or (i < joins.size and joins[i] < leaves[j]):
            cell, change = joins[i], 1
            i += 1
        elif i == joins.size or leaves[j] < joins[i]:
            cell, change = leaves[j], -1
            j += 1
        else:
            i += 1
            j += 1
            continue
        changed[end], replaced[end] = cell, counts[cell] + change
        end += 1
    return end
