"""People who belong together: companies or districts that groups are made of, and households."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from whosthere.errors import GroupError
from whosthere.seeds import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

DrawGroup: TypeAlias = "Callable[[np.random.Generator, NDArray[np.int64], int], ArrayLike]"
"""Draws a group: ``draw(rng, people, n)`` returns n different ones of some people, who are rows."""
_TRIES = 100


@dataclass(frozen=True)
class Clusters:
    """Draws whole clusters of people, in random order, until there are enough.

    Of the last one only as many are drawn as fit, at random. `of` has the number of the cluster of
    each row of the traces; two are equal if these are.
    """

    key: str
    of: NDArray[np.int64] = field(compare=False, repr=False)

    @classmethod
    def by(cls, number: NDArray[np.int64]) -> Clusters:
        """Return clusters by the number of each person's."""
        return cls(digest(number), number)

    def __call__(
        self, rng: np.random.Generator, people: NDArray[np.int64], n: int
    ) -> NDArray[np.int64]:
        turn = rng.permutation(int(self.of.max()) + 1)
        shuffled = rng.permutation(people)
        return shuffled[np.argsort(turn[self.of[shuffled]], kind="stable")[:n]]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many people each cluster has."""
        return np.bincount(self.of)

    def members(self, row: int) -> NDArray[np.int64]:
        """Return the rows of somebody's cluster, that person last."""
        own = np.flatnonzero(self.of == self.of[row])
        return np.append(own[own != row], row)

    def are_whole(self, rows: NDArray[np.int64]) -> bool:
        """Tell whether different people are all of their clusters."""
        found = np.bincount(self.of[rows], minlength=self.sizes.size)
        return bool(((found == 0) | (found == self.sizes)).all())

    def at_most(
        self, rng: np.random.Generator, people: NDArray[np.int64], n: int
    ) -> NDArray[np.int64]:
        """Draw whole clusters of some people in random order, and each that still fits into n.

        None of these people may have others in their cluster.
        """
        order = rng.permutation(np.flatnonzero(np.bincount(self.of[people])))
        chosen, left = np.zeros(self.sizes.size, np.bool_), n
        while (order := order[self.sizes[order] <= left]).size:
            # Up to the first that does not fit, after which smaller ones may.
            so_far = np.cumsum(self.sizes[order])
            fit = int(np.searchsorted(so_far, left, side="right"))
            chosen[order[:fit]] = True
            left, order = left - int(so_far[fit - 1]), order[fit:]
        return people[chosen[self.of[people]]]

    def exactly(
        self, rng: np.random.Generator, people: NDArray[np.int64], n: int
    ) -> NDArray[np.int64]:
        """Draw whole clusters like `at_most`, anew until they are n people."""
        for _ in range(_TRIES):
            rows = self.at_most(rng, people, n)
            if rows.size == n:
                return rows
        raise GroupError(
            f"{n} people cannot be drawn as whole households (`together`): of {people.size} people "
            "who are left for it, no sizes add up to that",
            fix="Give a group size (`group_size`) that is a multiple of the usual size of a "
            "household, or leave people in households of rare sizes out of the records",
        )


def draw_group(
    draw: DrawGroup, rng: np.random.Generator, people: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Draw n different people, or refuse what was drawn instead."""
    # It may shuffle what it is given.
    rows = np.asarray(draw(rng, people.copy(), n))
    distinct = np.unique(rows)
    fits = rows.shape == distinct.shape == (n,) and rows.dtype.kind in "iu"
    if not fits or not np.isin(distinct, people).all():
        raise GroupError(
            f"the function that draws groups (`groups`) must return {n} different ones of the "
            f"people that it is given, as rows. It returned {distinct.size} different values in "
            f"an array of {rows.dtype} of shape {rows.shape}"
        )
    return rows.astype(np.int64)
