"""Whom an attacker asks about, and what it knows of each: visits, some of them, or places alone.

Known visits are traces again; so one person is known as everybody is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from whosthere import kernels
from whosthere.arrays import frozen
from whosthere.data.cells import cell_at, region_of
from whosthere.data.traces import Traces
from whosthere.display import counted
from whosthere.errors import InputError, SpecError, suggestion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from whosthere.arrays import Floats, Ints32, Ints64
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.scheme import Layout

Guess: TypeAlias = Literal["greedy", "random"]
GUESSES: tuple[str, ...] = get_args(Guess)
_NO_CELLS = frozen([], np.int32)


class Habits(NamedTuple):
    """When and how often people are seen, as far as an attacker can tell.

    `time` is the probability that a visit is in each epoch, shape (n_epochs,), and `mean_visits`
    how many visits a person makes.
    """

    time: Floats
    mean_visits: float

    @classmethod
    def of(cls, counts: ArrayLike, n_people: int) -> Habits:
        """Read them off the counts of so many people, shape (n_regions, n_epochs)."""
        by_epoch = np.asarray(counts, np.float64).sum(axis=0)
        total = float(by_epoch.sum())
        time = by_epoch / total if total else np.full(by_epoch.size, 1 / by_epoch.size)
        return cls(time, total / n_people)


@dataclass(frozen=True, eq=False)
class Places:
    """People who are known by regions alone, most visited first, as compressed rows."""

    indptr: Ints64
    """Where the regions of each person begin, and where the last ones end."""
    regions: Ints32
    """Rows of the regions, distinct for each person."""
    guess: Guess = "greedy"
    """How an attacker that needs a trace makes one: "greedy" takes every epoch of each region,
    "random" spreads the mean number of visits evenly over the regions, at epochs drawn from the
    time marginal."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "indptr", frozen(self.indptr, np.int64))
        object.__setattr__(self, "regions", frozen(self.regions, np.int32))
        pairs = owners(self.indptr) * (self.regions.max(initial=0) + 1) + self.regions
        if self.regions.min(initial=0) < 0 or np.unique(pairs).size < pairs.size:
            raise InputError("the known regions must be distinct rows of the regions")
        check_guess(self.guess)

    def __repr__(self) -> str:
        return f"<Places: {counted(self.regions.size, 'region')}, {self.guess} guess>"

    @classmethod
    def of_one(cls, regions: ArrayLike, guess: Guess = "greedy") -> Places:
        """Know some regions of one person, most visited first."""
        found = np.asarray(regions, np.int32).reshape(-1)
        if not found.size:
            raise InputError("nothing is known of the target", fix="Give at least one region")
        return cls(np.array([0, found.size]), found, guess)

    @classmethod
    def most_visited(
        cls, traces: Traces, top: int | None = None, guess: Guess = "greedy"
    ) -> Places:
        """Know the `top` most visited regions of each person, or all; ties by number."""
        n_regions = len(traces.regions)
        visited = owners(traces.indptr) * n_regions + region_of(traces.cells, traces.epochs.n)
        pairs, visits = np.unique(visited, return_counts=True)
        person, region = np.divmod(pairs, n_regions)
        order = np.lexsort((region, -visits, person))
        rank = np.arange(person.size) - np.searchsorted(person, person)
        kept = order[rank < (n_regions if top is None else top)]
        indptr = np.searchsorted(person[kept], np.arange(traces.n_users + 1))
        return cls(indptr, region[kept], guess)

    @property
    def cells(self) -> Ints32:
        """The cells that were surely visited: none, as times are not known."""
        return _NO_CELLS

    @property
    def n_users(self) -> int:
        """How many people there are."""
        return self.indptr.size - 1

    def select(self, rows: ArrayLike) -> Places:
        """Return what is known of the people in `rows`, in that order."""
        indptr, regions = kernels.take_rows(self.indptr, self.regions, np.asarray(rows, np.int64))
        return replace(self, indptr=indptr, regions=regions)

    def trace(self, habits: Habits, rng: np.random.Generator) -> Ints32:
        """Guess the trace of one person: sorted cells, int32."""
        n_epochs, regions = habits.time.size, self.regions[:, None]
        epochs = np.arange(n_epochs)
        if self.guess == "random":
            visits = max(1, round(habits.mean_visits / regions.size))
            epochs = rng.choice(n_epochs, size=(regions.size, visits), p=habits.time)
        return np.unique(cell_at(regions, epochs, n_epochs)).astype(np.int32)

    def over(self, layout: Layout) -> Places:
        """Return the same over the regions of a table."""
        if layout.regions is None:
            return self
        person, region = owners(self.indptr), np.array(layout.regions)[self.regions]
        _keys, first = np.unique(person * (region.max(initial=0) + 1) + region, return_index=True)
        kept = np.sort(first)
        indptr = np.searchsorted(person[kept], np.arange(self.n_users + 1))
        return replace(self, indptr=indptr, regions=region[kept])


Known: TypeAlias = Traces | Places
"""What an attacker has of some people: visits of each, all or a part of them, or places alone."""


def visits_of_one(cells: ArrayLike, regions: Regions, epochs: Epochs) -> Traces:
    """Know some or all visits of one person.

    Parameters
    ----------
    cells
        Their cells, as numbered by `whosthere.data.cells` and in `Traces.trace`, in any order.
    regions, epochs
        Those of the release.
    """
    known = np.unique(np.asarray(cells))
    if not known.size:
        raise InputError("nothing is known of the target", fix="Give at least one visit")
    if known.dtype.kind not in "iu":
        raise InputError("known visits are numbers of cells", fix="Give whole numbers from 0")
    if known[0] < 0 or known[-1] >= len(regions) * epochs.n:
        raise InputError("a known visit lies outside the release's regions and epochs")
    return Traces(("",), np.array([0, known.size]), known.astype(np.int32), regions, epochs)


def share_known(traces: Traces, share: float, rng: np.random.Generator) -> Traces:
    """Know a random share of each person's visits, rounded up to whole visits.

    The same random numbers give nested knowledge: a smaller share is a part of a larger one.
    """
    person, n = owners(traces.indptr), np.diff(traces.indptr)
    order = np.lexsort((rng.random(person.size), person))
    rank = np.empty(person.size, np.int64)
    rank[order] = np.arange(person.size) - traces.indptr[person]
    # The guard keeps 0.1 * 30 visits at 3 where floating point makes it a little more.
    return traces.marked(rank < np.ceil(share * n - 1e-9)[person])


def lies_within(known: Known, facts: Facts) -> bool:
    """Tell whether all that is known is about regions and epochs of a release with these facts."""
    if isinstance(known, Places):
        return bool(known.regions.max(initial=0) < len(facts.regions))
    return (known.regions.ids, known.epochs) == (facts.regions.ids, facts.epochs)


def over(known: Known, layout: Layout) -> Known:
    """Return the same over the cells of a table."""
    return known.over(layout) if isinstance(known, Places) else layout(known)


def check_guess(guess: str) -> None:
    """Refuse what is no way to make a trace of regions."""
    if guess not in GUESSES:
        fix = suggestion(str(guess), GUESSES)
        raise SpecError(f"there is no way to guess called {guess!r}", fix=fix)


def owners(indptr: Ints64) -> Ints64:
    """Return whose each entry of compressed rows is."""
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
