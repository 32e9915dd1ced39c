"""Loops that draw traces from the unicity model, many at once.

A person has a few regions of their own. Each visit falls into one of them and, independently,
into an epoch. A cell is ``region * n_epochs + epoch``; one that is drawn twice counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from whosthere.kernels.random_words import random_share, random_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Which regions a person may visit: all, a connected part of the graph, or a few from anywhere.
ANYWHERE, CONNECTED, SCATTERED = 0, 1, 2
# Up to so many weights are looked at one by one.
_FEW = 16
# The product of a power of two with this number has another beginning for each of the 64 powers,
# which tells the power.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT = np.empty(64, np.int64)
for _power in range(64):
    _BIT[(0x03F79D71B4CB0A89 << _power & 0xFFFFFFFFFFFFFFFF) >> 58] = _power


class People(NamedTuple):
    """The model that traces are drawn from, as plain arrays and numbers.

    Attributes
    ----------
    space, time
        Weight of each region and epoch, not negative, some of them positive.
    indptr, indices
        Neighbours of each region; read only where `places` is CONNECTED.
    places
        ANYWHERE, CONNECTED or SCATTERED.
    n_rois
        How many regions a person has at most; not read where `places` is ANYWHERE.
    original
        The first region is uniform, and no two visits of a trace share an epoch. Otherwise it
        follows `space`, and every visit chooses its epoch freely.
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
    people: People, n_visits: NDArray[np.int64], key: np.uint64
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw a trace of as many visits as each entry of `n_visits` says, as compressed rows.

    A trace belongs to the key and its own number. The first visits of a trace do not depend on how
    many there are, except in the original variant.

    Returns the rows' bounds, shape (n_traces + 1,), and the cells, sorted and distinct in each.
    """
    bounds = np.zeros(n_visits.size + 1, np.int64)
    cells = np.empty(n_visits.sum(), np.int32)
    model = _prepared(people)
    end = 0
    for trace in range(n_visits.size):
        rois = _draw_trace(people, model, n_visits[trace], random_word(key, trace), trace)
        end = _take_marks(model.marks, rois, people.time.size, cells, end)
        bounds[trace + 1] = end
    # Memory that was never written to costs nothing, so the rest need not be cut off by a copy.
    return bounds, cells[:end]


@njit(cache=True, nogil=True)
def add_traces(
    people: People,
    n_visits: NDArray[np.int64],
    key: np.uint64,
    counts: NDArray[np.int32],
) -> None:
    """Add one to ``counts[c]`` for every cell c of the traces that `draw_traces` would draw."""
    model = _prepared(people)
    cells = np.empty(n_visits.max() if n_visits.size else 0, np.int32)
    for trace in range(n_visits.size):
        rois = _draw_trace(people, model, n_visits[trace], random_word(key, trace), trace)
        end = _take_marks(model.marks, rois, people.time.size, cells, 0)
        for i in range(end):
            counts[cells[i]] += 1


class _Prepared(NamedTuple):
    """What all traces share, and memory to work in.

    Attributes
    ----------
    space, time
        Cumulated weights.
    guide
        First epoch that a random number may stand for, by its leading part.
    reached
        Number of the last trace that reached each region, so that it need not be cleared.
    marks
        A bit for each epoch of each of a person's regions, in whole words for each region.
    chosen, own, frontier
        A person's regions, their cumulated weights, and the regions next to them.
    """

    space: NDArray[np.float64]
    time: NDArray[np.float64]
    guide: NDArray[np.int64]
    reached: NDArray[np.int64]
    marks: NDArray[np.uint64]
    chosen: NDArray[np.int64]
    own: NDArray[np.float64]
    frontier: NDArray[np.int64]


@njit(cache=True, nogil=True)
def _prepared(people: People) -> _Prepared:
    time = np.cumsum(people.time)
    guide = np.empty(4 * time.size, np.int64)
    epoch = 0
    for i in range(guide.size):
        while epoch < time.size - 1 and time[epoch] <= i / guide.size * time[-1]:
            epoch += 1
        guide[i] = epoch
    n_regions = people.space.size
    most = n_regions if people.places == ANYWHERE else min(people.n_rois, n_regions)
    return _Prepared(
        np.cumsum(people.space),
        time,
        guide,
        np.full(n_regions, -1, np.int64),
        np.zeros(most * _words(time.size), np.uint64),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(n_regions, np.int64),
    )


@njit(cache=True, nogil=True)
def _words(n_bits: int) -> int:
    return (n_bits + 63) // 64


@njit(cache=True, nogil=True)
def _draw_trace(
    people: People, model: _Prepared, n_visits: int, key: np.uint64, trace: int
) -> NDArray[np.int64]:
    """Mark the epochs that a person visits each of some regions in; return these regions, sorted.

    None stand for all.
    """
    rois = _choose_rois(people, model, random_word(key, 0), trace)
    own = _cumulated(people.space, rois, model.own) if rois.size else model.space
    epochs = np.empty(0, np.int64)
    if people.original:
        epochs = _race(people.time, n_visits, -1, random_word(key, 1))
        n_visits = epochs.size
    where, when = random_word(key, 2), random_word(key, 3)
    words = _words(people.time.size)
    for i in range(n_visits):
        place = _pick(own, random_share(where, i))
        epoch = epochs[i] if people.original else _pick_epoch(model, random_share(when, i))
        model.marks[place * words + (epoch >> 6)] |= np.uint64(1) << np.uint64(epoch & 63)
    return rois


@njit(cache=True, nogil=True)
def _cumulated(
    weights: NDArray[np.float64], rois: NDArray[np.int64], own: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sort a person's few regions and cumulate their weights, or ones where none has a weight."""
    for i in range(1, rois.size):
        region, j = rois[i], i
        while j > 0 and rois[j - 1] > region:
            rois[j] = rois[j - 1]
            j -= 1
        rois[j] = region
    total = 0.0
    for i in range(rois.size):
        total += weights[rois[i]]
        own[i] = total
    if total <= 0:
        for i in range(rois.size):
            own[i] = i + 1.0
    return own[: rois.size]


@njit(cache=True, nogil=True)
def _take_marks(
    marks: NDArray[np.uint64],
    rois: NDArray[np.int64],
    n_epochs: int,
    cells: NDArray[np.int32],
    end: int,
) -> int:
    """Write down the marked cells, ascending, from `end` on, and clear all marks.

    Returns where the cells end.
    """
    words = _words(n_epochs)
    n_places = rois.size if rois.size else marks.size // words
    for place in range(n_places):
        first = (rois[place] if rois.size else place) * n_epochs
        for w in range(words):
            left = marks[place * words + w]
            if left == 0:
                continue
            marks[place * words + w] = 0
            while left != 0:
                lowest = left & (~left + np.uint64(1))
                cells[end] = first + 64 * w + _BIT[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                end += 1
                left ^= lowest
    return end


@njit(cache=True, nogil=True)
def _choose_rois(people: People, model: _Prepared, key: np.uint64, trace: int) -> NDArray[np.int64]:
    """Return the regions of one person; none stands for all."""
    if people.places == ANYWHERE:
        return np.empty(0, np.int64)
    share = random_share(key, 0)
    origin = int(share * model.space.size) if people.original else _pick_many(model.space, share)
    if people.places == SCATTERED:
        return _race(people.space, people.n_rois, origin, random_word(key, 1))
    return _grow(people, model, origin, trace, random_word(key, 1))


@njit(cache=True, nogil=True)
def _pick(cumulated: NDArray[np.float64], share: float) -> int:
    """Return the index at a share of the cumulated weights; one without weight never is."""
    if cumulated.size > _FEW:
        return _pick_many(cumulated, share)
    # A product with a number below 1 stays below the total, also after rounding.
    drawn = share * cumulated[-1]
    place = 0
    for weight in cumulated:
        place += drawn >= weight
    return place


@njit(cache=True, nogil=True)
def _pick_many(cumulated: NDArray[np.float64], share: float) -> int:
    """Do the same where there are too many to look at each."""
    return int(np.searchsorted(cumulated, share * cumulated[-1], side="right"))


@njit(cache=True, nogil=True)
def _pick_epoch(model: _Prepared, share: float) -> int:
    """Return the epoch at a share of the time's weights."""
    drawn = share * model.time[-1]
    # Rounding may have moved the guide's entry by one; it never begins too late.
    epoch = model.guide[int(share * model.guide.size)]
    while model.time[epoch] <= drawn:
        epoch += 1
    return int(epoch)


@njit(cache=True, nogil=True)
def _grow(
    people: People, model: _Prepared, origin: int, trace: int, key: np.uint64
) -> NDArray[np.int64]:
    """Grow a connected set from `origin`, each time by a uniformly random region next to it.

    Ends early where nothing else is connected.
    """
    indptr, indices = people.indptr, people.indices
    chosen, frontier, reached = model.chosen, model.frontier, model.reached
    waiting = 0
    newest = origin
    reached[origin] = trace
    for filled in range(chosen.size):
        chosen[filled] = newest
        for i in range(indptr[newest], indptr[newest + 1]):
            if reached[indices[i]] != trace:
                reached[indices[i]] = trace
                frontier[waiting] = indices[i]
                waiting += 1
        if waiting == 0:
            return chosen[: filled + 1]
        place = int(random_share(key, filled) * waiting)
        newest = frontier[place]
        waiting -= 1
        frontier[place] = frontier[waiting]
    return chosen


@njit(cache=True, nogil=True)
def _race(weights: NDArray[np.float64], n: int, first: int, key: np.uint64) -> NDArray[np.int64]:
    """Draw up to `n` distinct indices one after another by weight, in no particular order.

    Index `first`, where not negative, is taken before all others. One without weight is never
    drawn. Exponential clocks that run at the speed of the weights ring in just that order.
    """
    clocks = np.empty(weights.size)
    runners = np.empty(weights.size, np.int64)
    n_runners = 0
    for i in range(weights.size):
        if weights[i] > 0 or i == first:
            ringing = -np.log1p(-random_share(key, i)) / max(weights[i], 1e-300)
            clocks[n_runners] = -1.0 if i == first else ringing
            runners[n_runners] = i
            n_runners += 1
    if n < n_runners:
        _put_smallest_first(clocks[:n_runners], runners[:n_runners], n)
    return runners[: min(n, n_runners)]


@njit(cache=True, nogil=True)
def _put_smallest_first(keys: NDArray[np.float64], values: NDArray[np.int64], n: int) -> None:
    """Reorder both arrays so that the `n` smallest keys come first (Hoare's selection)."""
    # Written out because numba takes seconds to compile np.partition.
    low, high = 0, keys.size - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            return
