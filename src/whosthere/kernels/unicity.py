"""Loops that draw traces from the unicity model, many at once.

A person has a few regions of their own. Each visit falls into one of them and, independently,
into an epoch. A cell is ``region * n_epochs + epoch``; one that is drawn twice counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Which regions a person may visit: all, a connected part of the graph, or a few from anywhere.
ANYWHERE, CONNECTED, SCATTERED = 0, 1, 2


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
    people: People, n_visits: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw a trace of as many visits as each entry of `n_visits` says, as compressed rows.

    Returns the rows' bounds, shape (n_traces + 1,), and the cells, sorted and distinct in each.
    """
    bounds = np.zeros(n_visits.size + 1, np.int64)
    cells = np.empty(n_visits.sum(), np.int32)
    cumulated = np.cumsum(people.space), np.cumsum(people.time)
    marks = np.full(people.space.size, -1, np.int64)
    end = 0
    for trace in range(n_visits.size):
        rois = _choose_rois(people, cumulated[0], marks, trace, rng)
        drawn = cells[end : end + n_visits[trace]]
        n = _draw_visits(people, cumulated, rois, drawn, rng)
        drawn[:n].sort()
        # The distinct cells are written over the beginning of the row itself.
        for i in range(n):
            if i == 0 or drawn[i] != cells[end - 1]:
                cells[end] = drawn[i]
                end += 1
        bounds[trace + 1] = end
    return bounds, cells[:end].copy()


@njit(cache=True, nogil=True)
def add_traces(
    people: People,
    n_visits: NDArray[np.int64],
    rng: np.random.Generator,
    counts: NDArray[np.int32],
) -> None:
    """Add one to ``counts[c]`` for every cell c of the traces that `draw_traces` would draw."""
    cumulated = np.cumsum(people.space), np.cumsum(people.time)
    marks = np.full(people.space.size, -1, np.int64)
    last_visitor = np.full(counts.size, -1, np.int32)
    most = 0
    for n in n_visits:
        most = max(most, n)
    drawn = np.empty(most, np.int32)
    for trace in range(n_visits.size):
        rois = _choose_rois(people, cumulated[0], marks, trace, rng)
        n = _draw_visits(people, cumulated, rois, drawn[: n_visits[trace]], rng)
        for cell in drawn[:n]:
            if last_visitor[cell] != trace:
                last_visitor[cell] = trace
                counts[cell] += 1


@njit(cache=True, nogil=True)
def _choose_rois(
    people: People,
    cumulated: NDArray[np.float64],
    marks: NDArray[np.int64],
    trace: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the regions of one person; none stands for all."""
    if people.places == ANYWHERE:
        return np.empty(0, np.int64)
    origin = int(rng.random() * cumulated.size) if people.original else _pick(cumulated, rng)
    if people.places == SCATTERED:
        return _race(people.space, people.n_rois, origin, rng)
    return _grow(people, origin, marks, trace, rng)


@njit(cache=True, nogil=True)
def _draw_visits(
    people: People,
    cumulated: tuple[NDArray[np.float64], NDArray[np.float64]],
    rois: NDArray[np.int64],
    drawn: NDArray[np.int32],
    rng: np.random.Generator,
) -> int:
    """Fill `drawn` with cells, unordered and with repetitions; return how many there are."""
    n = drawn.size
    own = np.cumsum(people.space[rois])
    if rois.size and own[-1] <= 0:
        own = np.cumsum(np.ones(rois.size))
    epochs = np.empty(0, np.int64)
    if people.original:
        epochs = _race(people.time, n, -1, rng)
        n = epochs.size
    for i in range(n):
        region = rois[_pick(own, rng)] if rois.size else _pick(cumulated[0], rng)
        epoch = epochs[i] if people.original else _pick(cumulated[1], rng)
        drawn[i] = region * people.time.size + epoch
    return n


@njit(cache=True, nogil=True)
def _pick(cumulated: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw an index by cumulated weights; one without weight is never drawn."""
    # A product with a number below 1 stays below the total, also after rounding.
    drawn = rng.random() * cumulated[-1]
    return int(np.searchsorted(cumulated, drawn, side="right"))


@njit(cache=True, nogil=True)
def _grow(
    people: People, origin: int, marks: NDArray[np.int64], trace: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Grow a connected set from `origin`, each time by a uniformly random region next to it.

    Ends early where nothing else is connected. `marks` holds, for each region, the number of
    the last trace that reached it, so that it need not be cleared.
    """
    indptr, indices = people.indptr, people.indices
    chosen = np.empty(min(people.n_rois, marks.size), np.int64)
    frontier = np.empty(marks.size, np.int64)
    waiting = 0
    newest = origin
    marks[origin] = trace
    for filled in range(chosen.size):
        chosen[filled] = newest
        for i in range(indptr[newest], indptr[newest + 1]):
            if marks[indices[i]] != trace:
                marks[indices[i]] = trace
                frontier[waiting] = indices[i]
                waiting += 1
        if waiting == 0:
            return chosen[: filled + 1]
        place = int(rng.random() * waiting)
        newest = frontier[place]
        waiting -= 1
        frontier[place] = frontier[waiting]
    return chosen


@njit(cache=True, nogil=True)
def _race(
    weights: NDArray[np.float64], n: int, first: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw up to `n` distinct indices one after another by weight, in no particular order.

    Index `first`, where not negative, is taken before all others. One without weight is never
    drawn. Exponential clocks that run at the speed of the weights ring in just that order.
    """
    clocks = np.empty(weights.size)
    runners = np.empty(weights.size, np.int64)
    n_runners = 0
    for i in range(weights.size):
        if weights[i] > 0 or i == first:
            clocks[n_runners] = -1.0 if i == first else -np.log1p(-rng.random()) / weights[i]
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
