"""Groups that are not drawn uniformly: by a function, or as whole companies, districts, ages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from whosthere.errors import GroupError
from whosthere.seeds import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

DrawGroup: TypeAlias = "Callable[[np.random.Generator, NDArray[np.int64], int], ArrayLike]"
"""Draws a group: ``draw(rng, people, n)`` returns n different ones of some people, who are rows."""


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
