"""What an attacker has of a target: visits, or only places."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

import numpy as np

from whosthere.arrays import frozen
from whosthere.data.cells import cell_at, region_of
from whosthere.display import counted
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from whosthere.privacy.facts import Facts

Guess: TypeAlias = Literal["greedy", "random"]
GUESSES: tuple[str, ...] = get_args(Guess)
# However often a place is visited, no single visit there is taken for more certain than this.
_MOST_LIKELY_VISIT = 0.9
_NO_CELLS = frozen([], np.int32)


class Habits(Protocol):
    """When and how often people are seen, as far as an attacker can tell."""

    def time_marginal(self) -> NDArray[np.float64]:
        """Return the probability that a visit is in each epoch, shape (n_epochs,)."""

    def mean_visits(self) -> float:
        """Return the mean number of visits of a person."""


class Knowledge(ABC):
    """What an attacker has of one target.

    An attack never asks what kind of knowledge it is given: what is certain, likely and believed
    is for the knowledge to say.
    """

    @property
    @abstractmethod
    def certain(self) -> NDArray[np.int32]:
        """The cells that the target surely visited, sorted; none where times are unknown."""

    @abstractmethod
    def believed_trace(self, habits: Habits, rng: np.random.Generator) -> NDArray[np.int32]:
        """Return a trace to put in the target's place: sorted cells, int32."""

    @abstractmethod
    def likely_visits(self, habits: Habits) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return cells that the target may have visited, and the chance of each; shapes (k,)."""

    @abstractmethod
    def places(self, n_epochs: int) -> tuple[int, ...]:
        """Return the regions that the target surely visited, as rows of the regions."""

    @abstractmethod
    def lies_within(self, facts: Facts) -> bool:
        """Tell whether all of it is about regions and epochs of a release with these facts."""

    def weighed(self, trace: NDArray[np.int32], added: NDArray[np.int32] | int) -> Knowledge:  # noqa: ARG002
        """Return the same with what the target adds to the counts of its trace, where known."""
        return self


@dataclass(frozen=True, eq=False)
class KnownVisits(Knowledge):
    """Some or all visits of the target: each really took place.

    Parameters
    ----------
    cells
        The visited cells (`whosthere.data.cells`); kept sorted and distinct, int32.
    added
        What the target adds to the counts of these cells.
    """

    cells: NDArray[np.int32]
    added: NDArray[np.int32] | int = 1

    def __post_init__(self) -> None:
        cells = np.unique(np.asarray(self.cells))
        if not cells.size:
            raise InputError("nothing is known of the target", fix="Give at least one visit")
        if cells.dtype.kind not in "iu":
            raise InputError("known visits are numbers of cells", fix="Give whole numbers from 0")
        if cells[0] < 0 or cells[-1] > np.iinfo(np.int32).max:
            raise InputError("a known visit lies in no cell")
        object.__setattr__(self, "cells", frozen(cells, np.int32))

    def __repr__(self) -> str:
        return f"<KnownVisits: {counted(self.cells.size, 'visit')}>"

    @classmethod
    def fraction(cls, trace: ArrayLike, share: float, rng: np.random.Generator) -> KnownVisits:
        """Know a random share of a trace, rounded up to whole visits.

        The same random numbers give nested knowledge: a smaller share is a part of a larger one.
        """
        if not 0 < share <= 1:
            raise InputError(f"a share of {share:g} of the visits", fix="Give it within (0, 1]")
        visits = np.asarray(trace)
        # The guard keeps 0.1 * 30 visits at 3 where floating point makes it a little more.
        known = math.ceil(share * visits.size - 1e-9)
        return cls(rng.permutation(visits)[:known])

    @property
    def certain(self) -> NDArray[np.int32]:
        return self.cells

    def believed_trace(self, habits: Habits, rng: np.random.Generator) -> NDArray[np.int32]:  # noqa: ARG002
        return self.cells

    def likely_visits(self, habits: Habits) -> tuple[NDArray[np.int32], NDArray[np.float64]]:  # noqa: ARG002
        return self.cells, np.ones(self.cells.size)

    def places(self, n_epochs: int) -> tuple[int, ...]:
        return tuple(np.unique(region_of(self.cells, n_epochs)).tolist())

    def lies_within(self, facts: Facts) -> bool:
        return bool(self.cells[-1] < facts.n_cells)

    def weighed(self, trace: NDArray[np.int32], added: NDArray[np.int32] | int) -> Knowledge:
        if isinstance(added, int):
            return self
        return replace(self, added=added[np.searchsorted(trace, self.cells)])


@dataclass(frozen=True, eq=False)
class KnownRegions(Knowledge):
    """Places that the target visited, without the times.

    Parameters
    ----------
    regions
        Rows of the regions, most visited first.
    guess
        How an attacker makes a trace of them: "greedy" takes every epoch of each region,
        "random" spreads the mean number of visits evenly over the regions, at epochs drawn
        from the time marginal.
    """

    regions: tuple[int, ...]
    guess: Guess = "greedy"

    def __post_init__(self) -> None:
        if not self.regions:
            raise InputError("nothing is known of the target", fix="Give at least one region")
        if len(set(self.regions)) < len(self.regions) or min(self.regions) < 0:
            raise InputError("the known regions must be distinct rows of the regions")
        if self.guess not in GUESSES:
            fix = suggestion(str(self.guess), GUESSES)
            raise InputError(f"there is no way to guess called {self.guess!r}", fix=fix)

    def __repr__(self) -> str:
        return f"<KnownRegions: {counted(len(self.regions), 'region')}, {self.guess} guess>"

    @classmethod
    def most_visited(
        cls, trace: ArrayLike, n_epochs: int, *, top: int | None = None, guess: Guess = "greedy"
    ) -> KnownRegions:
        """Know the `top` most visited regions of a trace (default: all), ties by number."""
        regions, visits = np.unique(region_of(np.asarray(trace), n_epochs), return_counts=True)
        order = np.argsort(-visits, kind="stable")[:top]
        return cls(tuple(int(region) for region in regions[order]), guess)

    @property
    def certain(self) -> NDArray[np.int32]:
        return _NO_CELLS

    def believed_trace(self, habits: Habits, rng: np.random.Generator) -> NDArray[np.int32]:
        if self.guess == "greedy":
            return np.sort(self._all_cells(habits.time_marginal().size))
        time = habits.time_marginal()
        regions = np.array(self.regions)
        visits = max(1, round(habits.mean_visits() / regions.size))
        epochs = rng.choice(time.size, size=(regions.size, visits), p=time)
        return np.unique(cell_at(regions[:, None], epochs, time.size)).astype(np.int32)

    def likely_visits(self, habits: Habits) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        time, n = habits.time_marginal(), len(self.regions)
        chance = np.minimum(time * habits.mean_visits() / n, _MOST_LIKELY_VISIT)
        return self._all_cells(time.size), np.tile(chance, n)

    def places(self, n_epochs: int) -> tuple[int, ...]:  # noqa: ARG002
        return self.regions

    def lies_within(self, facts: Facts) -> bool:
        return max(self.regions) < len(facts.regions)

    def _all_cells(self, n_epochs: int) -> NDArray[np.int32]:
        """Return every epoch of each region, region by region."""
        regions = np.array(self.regions)[:, None]
        return cell_at(regions, np.arange(n_epochs), n_epochs).reshape(-1).astype(np.int32)
