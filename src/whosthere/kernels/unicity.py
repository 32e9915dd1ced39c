"""Loops that draw traces from the unicity model, many at once.

A person has a few regions of their own. Each visit falls into one of them and, independently,
into an epoch. A cell is ``region * n_epochs + epoch``; one that is drawn twice counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from whosthere.kernels.drawing import (
    put_smallest_first,
    random_share,
    random_word,
    sort_both,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Which regions a person may visit: all, a connected part of the graph, or a few from anywhere.
ANYWHERE, CONNECTED, SCATTERED = 0, 1, 2
# Up to so many weights are looked at one by one.
_FEW = 16
# Up to so many visits are sorted one by one.
_FEW_VISITS = 24
# Entries of a guide for each weight: the more, the more often they tell the index at once.
_ENTRIES_PER_WEIGHT = 8
# The product of a power of two with this number has another beginning for each of the 64 powers,
# which tells the power.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT = np.empty(64, np.int64)
for _power in range(64):
    _BIT[(0x03F79D71B4CB0A89 << _power & 0xFFFFFFFFFFFFFFFF) >> 58] = _power


class People(NamedTuple):
    """The model that traces are drawn from, as plain arrays and numbers.

    `space` and `time` are weights of regions and epochs, not negative, some of them positive. The
    neighbours of each region, `indptr` and `indices`, are read only where `places` is CONNECTED; a
    person has at most `n_rois` regions, unless it is ANYWHERE. In the `original` variant the first
    region is uniform, and no two visits of a trace share an epoch. Otherwise it follows `space`,
    and every visit chooses its epoch freely.
    """

    space: NDArray[np.float64]
    time: NDArray[np.float64]
    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    places: int
    n_rois: int
    original: bool


@njit(cache=True, nogil=True)
def draw_traces(
    people: People,
    n_visits: NDArray[np.int64],
    key: np.uint64,
    in_order: bool,  # noqa: FBT001 - compiled functions have no keyword-only parameters
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw a trace of as many visits as each entry of `n_visits` says, as compressed rows.

    A trace belongs to the key and its own number. The first visits of a trace do not depend on how
    many there are.

    Returns the rows' bounds, shape (n_traces + 1,), and the cells, sorted and distinct in each. Or,
    if `in_order`, the cells in the order in which they are visited; one that a person visits again
    is replaced by the number of cells, which stands for none.
    """
    bounds = np.zeros(n_visits.size + 1, np.int64)
    cells = np.empty(n_visits.sum(), np.int32)
    model = _prepared(people)
    n_epochs = people.time.size
    end = 0
    for trace in range(n_visits.size):
        if n_visits[trace] > 0:
            n, n_rois = _draw_visits(people, model, key, trace, n_visits[trace], cells, end)
            if in_order:
                end += n
            elif n <= _FEW_VISITS:
                end = _sort_distinct(cells, end, n, people.space.size * n_epochs)
            else:
                end = _take_marks(model, n_rois, n_epochs, cells, end)
            model.marks[: n_rois * _words(n_epochs)] = 0
        bounds[trace + 1] = end
    # Memory that was never written to costs nothing, so the rest need not be cut off by a copy.
    return bounds, cells[:end]


@njit(cache=True, nogil=True)
def add_first_visits(
    bounds: NDArray[np.int64],
    cells: NDArray[np.int32],
    n_visits: NDArray[np.int64],
    counts: NDArray[np.int32],
) -> None:
    """Add one to ``counts[c]`` for every cell c among the first visits of each row."""
    for row in range(n_visits.size):
        for i in range(bounds[row], min(bounds[row] + n_visits[row], bounds[row + 1])):
            counts[np.uint32(cells[i])] += 1


class _Prepared(NamedTuple):
    """What all traces share, and memory to work in."""

    # Cumulated weights, and the first index that a random number may stand for, by its beginning.
    space: NDArray[np.float64]
    time: NDArray[np.float64]
    space_guide: NDArray[np.int32]
    time_guide: NDArray[np.int32]
    # Number of the last trace that reached each region, so that it need not be cleared.
    reached: NDArray[np.int32]
    # A bit for each epoch of a person's regions, whole words for each; none set between traces.
    marks: NDArray[np.uint64]
    # A person's regions as they were chosen, their cumulated weights, and the regions next to them.
    rois: NDArray[np.int32]
    own: NDArray[np.float64]
    frontier: NDArray[np.int32]
    # The numbers of a person's regions, for sorting them.
    order: NDArray[np.int32]


@njit(cache=True, nogil=True)
def _prepared(people: People) -> _Prepared:
    space, time = np.cumsum(people.space), np.cumsum(people.time)
    n_regions = space.size
    most = n_regions if people.places == ANYWHERE else min(people.n_rois, n_regions)
    return _Prepared(
        space,
        time,
        _guide(space),
        _guide(time),
        np.full(n_regions, -1, np.int32),
        np.zeros(most * _words(time.size), np.uint64),
        np.arange(most, dtype=np.int32),
        np.empty(most),
        # Room for one more, which is written to and not kept.
        np.empty(n_regions + 1, np.int32),
        np.empty(most, np.int32),
    )


@njit(cache=True, nogil=True)
def _guide(cumulated: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the first index that random numbers of each leading part may stand for."""
    guide = np.empty(_ENTRIES_PER_WEIGHT * cumulated.size, np.int32)
    index = 0
    for i in range(guide.size):
        while index < cumulated.size - 1 and cumulated[index] <= i / guide.size * cumulated[-1]:
            index += 1
        guide[i] = index
    return guide


@njit(cache=True, nogil=True)
def _words(n_bits: int) -> int:
    return (n_bits + 63) // 64


@njit(cache=True, nogil=True)
def _draw_visits(
    people: People,
    model: _Prepared,
    key: np.uint64,
    trace: int,
    n_visits: int,
    cells: NDArray[np.int32],
    begin: int,
) -> tuple[int, int]:
    """Fill in the cells of one person's visits from `begin` on, and mark their epochs by region.

    A cell that is drawn again is replaced by the number of cells. Returns how many visits there
    are (in the original variant, no more than there are epochs) and how many regions.
    """
    own_key = random_word(key, trace)
    n_rois = _choose_rois(people, model, random_word(own_key, 0), trace)
    anywhere = people.places == ANYWHERE
    n_epochs, words = people.time.size, _words(people.time.size)
    nowhere = people.space.size * n_epochs
    epochs = model.rois[:0]
    if people.original:
        epochs = _race(people.time, n_visits, -1, random_word(own_key, 1))
        n_visits = epochs.size
    where, when = random_word(own_key, 2), random_word(own_key, 3)
    for i in range(n_visits):
        share = random_share(where, i)
        if anywhere:
            place = _guided(model.space, model.space_guide, share)
        else:
            place = _pick(model.own, n_rois, share)
        if people.original:
            epoch = int(epochs[i])
        else:
            epoch = _guided(model.time, model.time_guide, random_share(when, i))
        at, bit = place * words + (epoch >> 6), np.uint64(1) << np.uint64(epoch & 63)
        seen = model.marks[at]
        model.marks[at] = seen | bit
        cells[begin + i] = nowhere if seen & bit else model.rois[place] * n_epochs + epoch
    return n_visits, n_rois


@njit(cache=True, nogil=True)
def _sort_distinct(cells: NDArray[np.int32], begin: int, n: int, nowhere: int) -> int:
    """Sort `n` cells from `begin` on and drop those that stand for none; return where they end."""
    end = begin
    for i in range(begin, begin + n):
        cell, j = cells[i], end
        if cell == nowhere:
            continue
        while j > begin and cells[j - 1] > cell:
            cells[j] = cells[j - 1]
            j -= 1
        cells[j] = cell
        end += 1
    return end


@njit(cache=True, nogil=True)
def _take_marks(
    model: _Prepared, n_rois: int, n_epochs: int, cells: NDArray[np.int32], end: int
) -> int:
    """Write down the marked cells, ascending, from `end` on; return where they end."""
    words, rois, order = _words(n_epochs), model.rois, model.order[:n_rois]
    # Regions in ascending order, which takes no time if they are sorted.
    for i in range(n_rois):
        j = i
        while j > 0 and rois[order[j - 1]] > rois[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    for place in order:
        region = rois[place]
        for w in range(words):
            left = model.marks[place * words + w]
            while left != 0:
                lowest = left & (~left + np.uint64(1))
                bit = _BIT[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                cells[end] = region * n_epochs + 64 * w + bit
                end += 1
                left ^= lowest
    return end


@njit(cache=True, nogil=True)
def _choose_rois(people: People, model: _Prepared, key: np.uint64, trace: int) -> int:
    """Fill in the regions of one person and their cumulated weights; return how many there are."""
    if people.places == ANYWHERE:
        return model.rois.size
    share = random_share(key, 0)
    if people.original:
        origin = int(share * model.space.size)
    else:
        origin = _guided(model.space, model.space_guide, share)
    if people.places == SCATTERED:
        raced = _race(people.space, people.n_rois, origin, random_word(key, 1))
        n = raced.size
        model.rois[:n] = raced
    else:
        n = _grow(people, model, origin, trace, random_word(key, 1))
    total = 0.0
    for i in range(n):
        total += people.space[model.rois[i]]
        model.own[i] = total
    if total <= 0:
        # Nobody is ever seen there: all of them are as likely.
        for i in range(n):
            model.own[i] = i + 1.0
    return n


@njit(cache=True, nogil=True)
def _pick(cumulated: NDArray[np.float64], n: int, share: float) -> int:
    """Return the index at a share of the first `n` cumulated weights, never one without weight."""
    # A product with a number below 1 stays below the total, also after rounding.
    drawn = share * cumulated[n - 1]
    if n > _FEW:
        return int(np.searchsorted(cumulated[:n], drawn, side="right"))
    place = 0
    for i in range(n):
        place += drawn >= cumulated[i]
    return place


@njit(cache=True, nogil=True)
def _guided(cumulated: NDArray[np.float64], guide: NDArray[np.int32], share: float) -> int:
    """Return the same with a guide, which is faster where many are picked."""
    drawn = share * cumulated[-1]
    # Rounding may have moved the guide's entry by one; it never begins too late.
    index = guide[int(share * guide.size)]
    while cumulated[index] <= drawn:
        index += 1
    return int(index)


@njit(cache=True, nogil=True)
def _grow(people: People, model: _Prepared, origin: int, trace: int, key: np.uint64) -> int:
    """Grow a connected set from `origin`, each time by a uniformly random region next to it.

    Ends early where nothing else is connected. Returns how many regions it has.
    """
    indptr, indices = people.indptr, people.indices
    rois, frontier, reached = model.rois, model.frontier, model.reached
    waiting = 0
    newest = np.int32(origin)
    reached[newest] = trace
    for filled in range(rois.size):
        rois[filled] = newest
        if filled == rois.size - 1:
            break
        for i in range(indptr[newest], indptr[newest + 1]):
            # Overwritten by the next one where this was reached before.
            frontier[waiting] = indices[i]
            waiting += reached[indices[i]] != trace
            reached[indices[i]] = trace
        if waiting == 0:
            return filled + 1
        place = int(random_share(key, filled) * waiting)
        newest = frontier[place]
        waiting -= 1
        frontier[place] = frontier[waiting]
    return rois.size


@njit(cache=True, nogil=True)
def _race(weights: NDArray[np.float64], n: int, first: int, key: np.uint64) -> NDArray[np.int32]:
    """Draw up to `n` distinct indices one after another by weight, in that order.

    Index `first`, where not negative, is taken before all others. One without weight is never
    drawn. Exponential clocks that run at the speed of the weights ring in just that order.
    """
    clocks = np.empty(weights.size)
    runners = np.empty(weights.size, np.int32)
    n_runners = 0
    for i in range(weights.size):
        if weights[i] > 0 or i == first:
            ringing = -np.log1p(-random_share(key, i)) / max(weights[i], 1e-300)
            clocks[n_runners] = -1.0 if i == first else ringing
            runners[n_runners] = i
            n_runners += 1
    if n < n_runners:
        put_smallest_first(clocks[:n_runners], runners[:n_runners], n)
    n = min(n, n_runners)
    sort_both(clocks[:n], runners[:n])
    return runners[:n]
