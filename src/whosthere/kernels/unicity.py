"""Loops that draw traces from the unicity model, many at once.

A person has a few regions of their own. Each visit falls into one of them and, independently,
into an epoch. A cell is ``region * n_epochs + epoch``; one that is drawn twice counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from whosthere.kernels.compiling import kernel, part
from whosthere.kernels.drawing import put_smallest_first, random_share, random_word, sort_both

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Ints32, Ints64, Words

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
# Which of a person's random words serves for what, as numbers whose type says nothing of them.
_ORIGIN, _OTHERS = np.int64(0), np.int64(1)
_REGIONS, _WHERE, _WHEN = np.int64(0), np.int64(2), np.int64(3)


class People(NamedTuple):
    """The model that traces are drawn from, as plain arrays and numbers.

    `space` and `time` are weights of regions and epochs, not negative, some of them positive. A
    person has at most `n_rois` regions: a connected part of the graph, or a few from anywhere. The
    neighbours of each region, `indptr` and `indices`, are read only where they are connected.
    """

    space: Floats
    time: Floats
    indptr: Ints32
    indices: Ints32
    connected: bool
    n_rois: int


def draw_traces(
    people: People, n_visits: Ints64, key: np.uint64, *, in_order: bool
) -> tuple[Ints64, Ints32]:
    """Draw a trace of as many visits as each entry of `n_visits` says, as compressed rows.

    A trace belongs to the key and its own number. The first visits of a trace do not depend on how
    many there are.

    Returns the rows' bounds, shape (n_traces + 1,), and the cells, sorted and distinct in each. Or,
    if `in_order`, the cells in the order in which they are visited; one that a person visits again
    is replaced by the number of cells, which stands for none.
    """
    bounds = np.zeros(n_visits.size + 1, np.int64)
    cells = np.empty(n_visits.sum(), np.int32)
    end = _draw_all(people, _Work.of(people), n_visits, key, in_order, bounds, cells)
    # Memory that was never written to costs nothing, so the rest need not be cut off by a copy.
    return bounds, cells[:end]


@kernel()
def add_first_visits(bounds: Ints64, cells: Ints32, n_visits: Ints64, counts: Ints32) -> None:
    """Add one to ``counts[c]`` for every cell c among the first visits of each row."""
    for row in range(n_visits.size):
        for i in range(bounds[row], min(bounds[row] + n_visits[row], bounds[row + 1])):
            counts[np.uint32(cells[i])] += 1


class _Work(NamedTuple):
    """What all traces share, and memory to work in."""

    # Cumulated weights, and the first index that a random number may stand for, by its beginning.
    space: Floats
    time: Floats
    space_guide: Ints32
    time_guide: Ints32
    # Number of the last trace that reached each region, so that it need not be cleared.
    reached: Ints32
    # A bit for each epoch of a person's regions, whole words for each; none set between traces.
    marks: Words
    # A person's regions as they were chosen, their cumulated weights, and the regions next to them.
    rois: Ints32
    own: Floats
    frontier: Ints32
    # The numbers of a person's regions, for sorting them.
    order: Ints32

    @classmethod
    def of(cls, people: People) -> Self:
        space, time = np.cumsum(people.space), np.cumsum(people.time)
        n_regions = space.size
        most = min(people.n_rois, n_regions)
        return cls(
            space,
            time,
            _guide(space),
            _guide(time),
            np.full(n_regions, -1, np.int32),
            np.zeros(most * -(-time.size // 64), np.uint64),
            np.empty(most, np.int32),
            np.empty(most),
            # Room for one more, which is written to and not kept.
            np.empty(n_regions + 1, np.int32),
            np.empty(most, np.int32),
        )


def _guide(cumulated: Floats) -> Ints32:
    """Return the first index that random numbers of each leading part may stand for."""
    n = _ENTRIES_PER_WEIGHT * cumulated.size
    first = np.searchsorted(cumulated, np.arange(n) / n * cumulated[-1], side="right")
    return np.asarray(np.minimum(first, cumulated.size - 1), np.int32)


@kernel()
def _draw_all(
    people: People,
    work: _Work,
    n_visits: Ints64,
    key: np.uint64,
    in_order: bool,  # noqa: FBT001 - compiled functions have no keyword-only parameters
    bounds: Ints64,
    cells: Ints32,
) -> int:
    """Fill in bounds and cells of all traces; return where the cells end."""
    n_epochs = people.time.size
    end = bounds[0]
    for trace in range(n_visits.size):
        if n_visits[trace] > 0:
            n_rois = _draw_visits(people, work, key, trace, n_visits[trace], cells, end)
            if in_order:
                end += n_visits[trace]
            elif n_visits[trace] <= _FEW_VISITS:
                end = _sort_distinct(cells, end, n_visits[trace], people.space.size * n_epochs)
            else:
                end = _take_marks(work, n_rois, n_epochs, cells, end)
            for i in range(n_rois * _words(n_epochs)):
                work.marks[i] = 0
        bounds[trace + 1] = end
    return int(end)


@part()
def _words(n_bits: int) -> int:
    return (n_bits + 63) // 64


@part(once=True)
def _draw_visits(
    people: People,
    work: _Work,
    key: np.uint64,
    trace: int,
    n_visits: int,
    cells: Ints32,
    begin: int,
) -> int:
    """Fill in the cells of one person's visits from `begin` on, and mark their epochs by region.

    A cell that is drawn again is replaced by the number of cells. Returns how many regions there
    are.
    """
    own_key = random_word(key, trace)
    n_rois = _choose_rois(people, work, random_word(own_key, _REGIONS), trace)
    n_epochs, words = people.time.size, _words(people.time.size)
    nowhere = people.space.size * n_epochs
    where, when = random_word(own_key, _WHERE), random_word(own_key, _WHEN)
    for i in range(n_visits):
        place = _pick(work.own, n_rois, random_share(where, i))
        epoch = _guided(work.time, work.time_guide, random_share(when, i))
        at, bit = place * words + (epoch >> 6), np.uint64(1) << np.uint64(epoch & 63)
        seen = work.marks[at]
        work.marks[at] = seen | bit
        cells[begin + i] = nowhere if seen & bit else work.rois[place] * n_epochs + epoch
    return n_rois


@part()
def _sort_distinct(cells: Ints32, begin: int, n: int, nowhere: int) -> int:
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


@part()
def _take_marks(work: _Work, n_rois: int, n_epochs: int, cells: Ints32, end: int) -> int:
    """Write down the marked cells, ascending, from `end` on; return where they end."""
    words, rois, order = _words(n_epochs), work.rois, work.order[:n_rois]
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
            left = work.marks[place * words + w]
            while left != 0:
                lowest = left & (~left + np.uint64(1))
                bit = _BIT[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                cells[end] = region * n_epochs + 64 * w + bit
                end += 1
                left ^= lowest
    return end


@part(once=True)
def _choose_rois(people: People, work: _Work, key: np.uint64, trace: int) -> int:
    """Fill in the regions of one person and their cumulated weights; return how many there are."""
    origin = _guided(work.space, work.space_guide, random_share(key, _ORIGIN))
    own_key = random_word(key, _OTHERS)
    if people.connected:
        n = _grow(people, work, origin, trace, own_key)
    else:
        n = _race(people.space, origin, own_key, work.rois)
    total = 0.0
    for i in range(n):
        total += people.space[work.rois[i]]
        work.own[i] = total
    return n


@part()
def _pick(cumulated: Floats, n: int, share: float) -> int:
    """Return the index at a share of the first `n` cumulated weights, never one without weight."""
    # A product with a number below 1 stays below the total, also after rounding.
    drawn = share * cumulated[n - 1]
    place = 0
    for i in range(n):
        place += drawn >= cumulated[i]
    return place


@part()
def _guided(cumulated: Floats, guide: Ints32, share: float) -> int:
    """Return the same with a guide, which is faster where many are picked."""
    drawn = share * cumulated[-1]
    # Rounding may have moved the guide's entry by one; it never begins too late.
    index = guide[int(share * guide.size)]
    while cumulated[index] <= drawn:
        index += 1
    return int(index)


@part()
def _grow(people: People, work: _Work, origin: int, trace: int, key: np.uint64) -> int:
    """Grow a connected set from `origin`, each time by a uniformly random region next to it.

    Ends early where nothing else is connected. Returns how many regions it has.
    """
    indptr, indices = people.indptr, people.indices
    rois, frontier, reached = work.rois, work.frontier, work.reached
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


@part()
def _race(weights: Floats, first: int, key: np.uint64, winners: Ints32) -> int:
    """Draw as many distinct indices by weight as there is room for, one after another.

    Index `first` is taken before all others. One without weight is never drawn. Exponential clocks
    that run at the speed of the weights ring in just that order. Returns how many there are.
    """
    clocks = np.empty(weights.size)
    runners = np.empty(weights.size, np.int32)
    n_runners = 0
    for i in range(weights.size):
        if weights[i] > 0:
            ringing = -np.log1p(-random_share(key, i)) / weights[i]
            clocks[n_runners] = -1.0 if i == first else ringing
            runners[n_runners] = i
            n_runners += 1
    n = min(winners.size, n_runners)
    if n < n_runners:
        put_smallest_first(clocks[:n_runners], runners[:n_runners], n)
    sort_both(clocks[:n], runners[:n])
    for i in range(n):
        winners[i] = runners[i]
    return n
