"""People who share most of their visits with somebody else, and what that means for an audit.

An audit draws people one by one. Where those who go together are also counted together, as a
household is, each of them adds to what gives the others away, and the audit says too little.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from whosthere import kernels
from whosthere.data.cells import cell_at, epoch_of
from whosthere.data.floor import LEAST_PEOPLE
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
MOST = 0.5
"""Somebody who visited more than this share of a person's cells shares most of them."""
RARE = 0.02
"""If a smaller share of people share most of their visits, beyond chance, nothing is said of it.
Even if all of them were found, a true positive rate would be larger by 0.02 at most."""
_EDGES = (LEAST_VISITS, 10, 20, 50, 100)


@dataclass(frozen=True)
class Band:
    """People with `least` visits or more; the next band says how many at most.

    `people` were compared with everybody, and `sharing` of them share most of their visits with one
    other person; None where these are fewer than `LEAST_PEOPLE`, or none. Where fewer do not, that
    many are said not to. `by_chance` is the share of stand-ins who do: they go at the same times
    wherever others go then.
    """

    least: int
    people: int
    sharing: int | None
    by_chance: float


@dataclass(frozen=True)
class Together:
    """How many people share most of their visits with somebody else, by number of visits."""

    bands: tuple[Band, ...] = ()

    @property
    def people(self) -> int:
        """How many people were compared with everybody."""
        return sum(band.people for band in self.bands)

    @property
    def share(self) -> float:
        """Which share of them is known to share most of their visits with one other person."""
        return sum(band.sharing or 0 for band in self.bands) / max(self.people, 1)

    @property
    def by_chance(self) -> float:
        """Which share of stand-ins does."""
        return sum(band.by_chance * band.people for band in self.bands) / max(self.people, 1)

    @property
    def is_rare(self) -> bool:
        """Whether so few do, beyond chance, that nothing needs to be said."""
        return self.share - self.by_chance < RARE

    def in_words(self) -> tuple[str, ...]:
        """Say what it means for who reads an audit; nothing where it is rare."""
        if self.is_rare:
            return ()
        return (
            f"About {self.share:.1%} of the people with {LEAST_VISITS} or more visits share "
            "more than half of them with one other person (expected by chance: "
            f"{self.by_chance:.1%}). An audit draws people one by one. Where such people are "
            "counted together, as a household is, they are easier to find than its numbers say.",
        )

    def by_visits(self) -> tuple[tuple[str, str], ...]:
        """Return how many share most of their visits, in words, by number of visits."""
        ends = [f" to {edge - 1}" for edge in _EDGES[1:]] + [" or more"]
        words = dict(zip(_EDGES, ends, strict=True))
        hidden = f"fewer than {LEAST_PEOPLE}"
        return tuple(
            (
                f"{band.least}{words.get(band.least, ' or more')} visits",
                f"{hidden if band.sharing is None else f'{band.sharing:,}'} of {band.people:,}",
            )
            for band in self.bands
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the bands as JSON objects."""
        return [asdict(band) for band in self.bands]

    @classmethod
    def read(cls, described: object) -> Self | None:
        """Read what `to_json` wrote; None where it is anything else."""
        try:
            return cls(tuple(Band(**band) for band in described))  # type: ignore[attr-defined]
        except TypeError:
            return None


def together(traces: Traces, *, seed: int = 0) -> Together:
    """Measure how many people share most of their visits with somebody else.

    No number about fewer than `LEAST_PEOPLE` people is in the result, nor follows from it: bands
    with fewer are left out, and the total counts only those who are in a number of their own.
    """
    shared = shared_visits(traces, seed=seed)
    sharing, by_chance = shared.most > MOST * shared.visits, shared.by_chance > MOST
    bands = []
    for least, end in zip(_EDGES, (*_EDGES[1:], None), strict=True):
        own = (shared.visits >= least) & (end is None or shared.visits < end)
        people, n = int(own.sum()), int(sharing[own].sum())
        if people >= LEAST_PEOPLE:
            # Those who do not share are told to be none, or enough.
            known = n if n == people else min(n, people - LEAST_PEOPLE)
            said = known if known >= LEAST_PEOPLE else None
            bands.append(Band(least, people, said, float(by_chance[own].mean())))
    return Together(tuple(bands))


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
