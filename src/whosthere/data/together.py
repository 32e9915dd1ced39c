"""People who go together: how much of somebody's trace another person has as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels
from whosthere.data.cells import cell_at, epoch_of
from whosthere.seeds import generator

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Ints32, Ints64
    from whosthere.data.traces import Traces

LEAST_VISITS = 5
"""People with fewer visits share most of them with somebody all too easily."""
MOST_ASKED = 10_000
"""How many people are compared with everybody: a share of 2 % is then known to 0.14 %."""
_MOST_STEPS = 2e9
"""Pairs of visits to the same cell that are looked at, at most: some seconds."""


@dataclass(frozen=True, eq=False)
class Shared:
    """How much people share, each with the one who shares most with them; shapes (n_asked,).

    They made `visits`, and the same other person went to `most` of these cells. `by_chance` is that
    share of the cells for a stand-in, who is seen in the same epochs in places drawn as all visits
    are spread then.
    """

    visits: Ints64
    most: Ints32
    by_chance: Floats


def shared_visits(traces: Traces, *, seed: int = 0) -> Shared:
    """Compare people with at least `LEAST_VISITS` visits with everybody.

    All of them or, where they are more than `MOST_ASKED`, people drawn at random. For each of these
    the result is exact. In very full tables fewer are drawn, to keep to some seconds.
    """
    rng = generator(seed, "together")
    rows = _asked(traces, rng)
    indptr, cells = kernels.take_rows(traces.indptr, traces.cells, rows)
    person = np.repeat(np.arange(rows.size, dtype=np.int32), np.diff(indptr))
    drawn = _drawn(traces, cells, rng)
    # A stand-in can be in the same cell twice, where the person was in two places at once.
    distinct = np.unique(person.astype(np.int64) * traces.n_cells + drawn)
    stand_in, drawn = np.divmod(distinct, traces.n_cells)
    most = _most_shared(traces, person, cells, rows)
    by_chance = _most_shared(traces, stand_in.astype(np.int32), drawn.astype(np.int32), rows)
    return Shared(
        np.diff(indptr), most, by_chance / np.bincount(stand_in, minlength=rows.size).clip(1)
    )


def _asked(traces: Traces, rng: np.random.Generator) -> Ints64:
    """Return the rows of the people to compare with everybody, in order."""
    eligible = np.flatnonzero(traces.visits_per_user() >= LEAST_VISITS)
    counts = traces.counts().astype(np.float64)
    per_person = max(float((counts * counts).sum()), 1.0) / max(traces.n_users, 1)
    n = min(MOST_ASKED, eligible.size, int(_MOST_STEPS / max(per_person, 1.0)) + 1)
    return np.sort(rng.choice(eligible, n, replace=False)) if n < eligible.size else eligible


def _drawn(traces: Traces, cells: Ints32, rng: np.random.Generator) -> Ints64:
    """Return a cell for each given one: the same epoch, a region as all visits are spread then."""
    counts, epochs = traces.counts(), epoch_of(cells, traces.epochs.n)
    order = np.argsort(epochs, kind="stable")
    bounds = np.searchsorted(epochs[order], np.arange(traces.epochs.n + 1))
    drawn = np.empty(cells.size, np.int64)
    for epoch in np.unique(epochs):
        own = order[bounds[epoch] : bounds[epoch + 1]]
        until = np.cumsum(counts[:, epoch], dtype=np.int64)
        regions = np.searchsorted(until, rng.integers(0, until[-1], own.size), side="right")
        drawn[own] = cell_at(regions, epoch, traces.epochs.n)
    return drawn


def _most_shared(traces: Traces, person: Ints32, cells: Ints32, own_row: Ints64) -> Ints32:
    """Return the most of their cells that one other person visited, shape (n_people,)."""
    order = np.argsort(cells, kind="stable")
    visited, starts = np.unique(cells[order], return_index=True)
    place_of_cell = np.full(traces.n_cells, -1, np.int32)
    place_of_cell[visited] = np.arange(visited.size, dtype=np.int32)
    starts, visitors = np.append(starts, cells.size), person[order]

    def part(first: int, end: int) -> Ints32:
        return kernels.most_shared(
            traces.indptr, traces.cells, (first, end), place_of_cell, starts, visitors, own_row
        )

    parts = kernels.in_parts(part, traces.n_users)
    return np.asarray(np.max(parts, axis=0), np.int32)
