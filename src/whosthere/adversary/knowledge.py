"""What an attacker has of a target: visits, or only places."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import numpy as np

from whosthere.data.arrays import frozen
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Guess: TypeAlias = Literal["greedy", "random"]


def parse_guess(text: str) -> Guess:
    """Read a way of guessing by its name."""
    for known in get_args(Guess):
        if text == known:
            return cast("Guess", known)
    raise InputError(f"{text!r} is no way to guess", fix=suggestion(text, get_args(Guess)))


@dataclass(frozen=True, eq=False)
class KnownVisits:
    """Some or all visits of the target: each really took place.

    Parameters
    ----------
    cells
        The visited cells (region * n_epochs + epoch); kept sorted and distinct, int32.
    """

    cells: NDArray[np.int32]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", frozen(np.unique(self.cells), np.int32))
        if not self.cells.size:
            raise InputError("nothing is known of the target", fix="Give at least one visit")
        if self.cells[0] < 0:
            raise InputError("a known visit lies in no cell")

    @classmethod
    def fraction(cls, trace: ArrayLike, share: float, rng: np.random.Generator) -> KnownVisits:
        """Know a random share of a trace, rounded up to whole visits."""
        if not 0 < share <= 1:
            raise InputError(f"a share of {share:g} of the visits", fix="Give it within (0, 1]")
        visits = np.asarray(trace)
        # The guard keeps 0.1 * 30 visits at 3 where floating point makes it a little more.
        known = math.ceil(share * visits.size - 1e-9)
        return cls(rng.choice(visits, size=known, replace=False))


@dataclass(frozen=True, eq=False)
class KnownRegions:
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

    @classmethod
    def most_visited(
        cls, trace: ArrayLike, n_epochs: int, *, top: int | None = None, guess: Guess = "greedy"
    ) -> KnownRegions:
        """Know the `top` most visited regions of a trace (default: all), ties by number."""
        regions, visits = np.unique(np.asarray(trace) // n_epochs, return_counts=True)
        order = np.argsort(-visits, kind="stable")[:top]
        return cls(tuple(int(region) for region in regions[order]), guess)

    def guessed_trace(
        self,
        *,
        time_marginal: NDArray[np.float64],
        mean_visits: float,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """Make a trace: sorted cells, int32.

        Parameters
        ----------
        time_marginal
            Probability of each epoch, shape (n_epochs,).
        mean_visits
            Mean number of visits of a user.
        """
        n_epochs = time_marginal.size
        regions = np.array(self.regions)
        if self.guess == "greedy":
            epochs = np.tile(np.arange(n_epochs), regions.size)
            return np.sort(np.repeat(regions, n_epochs) * n_epochs + epochs).astype(np.int32)
        visits = max(1, round(mean_visits / regions.size))
        epochs = rng.choice(n_epochs, size=(regions.size, visits), p=time_marginal)
        return np.unique(regions[:, None] * n_epochs + epochs).astype(np.int32)


Knowledge: TypeAlias = KnownVisits | KnownRegions
