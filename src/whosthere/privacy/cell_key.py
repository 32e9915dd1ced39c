"""The cell-key method: counts change by a table, and the same people get the same change again.

Each person has a secret key. The keys of the people in a cell, added up, decide which change of the
count's row is taken. So nothing is learnt from asking for the same cell twice, and somebody who is
alone in thirty cells draws once, and not thirty times.

Here keys are fractions of 1, added up modulo 1, and drawn anew for each publication, once for all
of its tables: an attacker knows none of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from scipy.optimize import root
from scipy.special import softmax

from whosthere.arrays import own
from whosthere.errors import SpecError
from whosthere.privacy.change_file import Changes, TableFile
from whosthere.privacy.exact_noise import fair_words
from whosthere.privacy.shapes import ChanceTable, Choices
from whosthere.privacy.step import Span
from whosthere.specs import POSITIVE, Spelled, at_least, parameter

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from whosthere.data.traces import Group
    from whosthere.privacy.step import Counts, Draw

# Keys have so many bits that sums over two million people in a cell are exact as floats.
_KEYS = 2**32
# No publisher is near this, and far beyond it rows of the largest entropy are hard to find.
_MOST_D = 100


def people_keys(n: int, rng: np.random.Generator | None) -> NDArray[np.integer]:
    """Draw the secret keys of n people; without a generator, securely."""
    return fair_words(n) >> np.uint64(32) if rng is None else rng.integers(0, _KEYS, n)


class KeyedTable(ChanceTable):
    """A step whose chances are drawn by the keys of the people in a cell."""

    noise_of: ClassVar[Literal["cell", "people"]] = "people"

    @property
    def changes(self) -> Changes:
        """What counts change by."""
        raise NotImplementedError

    def span(self, within: Span) -> Span:
        return Span(within.lowest, within.highest + max(self.changes.largest, 0))

    def choices(self, values: Counts, within: Span) -> Choices:
        least, chances, _ = changes = self.changes
        by = np.arange(least, changes.largest + 1, dtype=np.int32)
        results = np.maximum(values[..., None] + by, within.lowest)
        return Choices(results.astype(np.int32), chances[changes.row(values)])

    def draw_for(
        self, people: Group, shape: tuple[int, ...], rng: np.random.Generator | None
    ) -> Draw:
        keys = people_keys(people.n_users, rng) if people.keys is None else people.keys
        at, sizes = people.visits()
        cells = people.everybody.cells[at]
        sums = np.bincount(cells, np.repeat(keys.astype(np.float64), sizes), math.prod(shape))
        return np.asarray(np.fmod(sums, _KEYS) / _KEYS).reshape(shape)


@dataclass(frozen=True)
class CellKey(KeyedTable):
    """Counts change by up to `d`, by chance and with the mean and variance that are asked for.

    The chances of each row have the largest entropy of all with mean 0 and a variance of at most
    `v` that leave no result from 1 to `js`, as the R package ptable makes them. 0 stays 0.
    """

    d: int = parameter(at_least(1), "largest change of a count")
    v: float = parameter(POSITIVE, "variance of the change")
    js: int = parameter(at_least(0), "no result from 1 to this number", default=0)

    name: ClassVar[str] = "cell-key"
    example: ClassVar[str] = "cell-key(d=5, v=3, js=2)"
    summary: ClassVar[str] = "change counts by keys of the people in a cell, keeping the mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d > _MOST_D:
            raise SpecError(f"d must be at most {_MOST_D}, not {self.d}")
        if self.js >= self.d:
            raise SpecError("js must be below d", fix="Use a larger d, or a smaller js")
        # A count n of 1 to js goes down by n or up by js + 1 - n, or by more.
        least = (self.js + 1) ** 2 // 4
        if self.v < least:
            raise SpecError(
                f"no chances without results from 1 to {self.js} have a variance of {self.v:g}",
                fix=f"Use a variance (v) of {least} or more",
            )

    @cached_property
    def changes(self) -> Changes:
        return _of_largest_entropy(self.d, self.v, self.js)

    def describe(self) -> str:
        without = f", never to one from 1 to {self.js}" if self.js else ""
        return (
            f"Counts change at random by up to {self.d}, with a variance of at most "
            f"{self.v:g}{without}. The same people in a cell get the same change every time."
        )


@lru_cache(maxsize=16)
def _of_largest_entropy(d: int, v: float, js: int) -> Changes:
    by = np.arange(-d, d + 1)
    chances = np.zeros((d + js + 2, by.size))
    chances[0, d] = 1
    for n in range(1, len(chances)):
        # Beyond d + js all rows are alike.
        result = n + by
        allowed = (result == 0) | (result > js)
        chances[n, allowed] = _row_of_largest_entropy(by[allowed].astype(np.float64), v)
    return Changes(-d, own(chances, np.float64))


def _row_of_largest_entropy(by: NDArray[np.float64], v: float) -> NDArray[np.float64]:
    """Return chances of changes with mean 0 and a variance of at most v, of the largest entropy.

    They are proportional to exp(a x + b x^2), with b = 0 where the variance stays below v by
    itself.
    """
    below, above = by[by <= 0].max(), by[by >= 0].min()
    least = -below * above
    if v <= least * (1 + 1e-9):
        pair = np.where(by == below, above, np.where(by == above, -below, 0))
        return np.asarray(pair / (above - below))
    scaled = by / by[-1]
    free = _with_means_of_0(scaled[:, None])
    if free @ by**2 <= v:
        return free
    return _with_means_of_0(np.column_stack([scaled, scaled**2 - v / by[-1] ** 2]))


def _with_means_of_0(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return chances proportional to exp(moments @ w) with which all moments have mean 0."""

    def means(w: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        chances = softmax(moments @ w)
        mean = chances @ moments
        return mean, (moments - mean).T @ ((moments - mean) * chances[:, None])

    found = root(means, np.zeros(moments.shape[1]), jac=True, method="lm", tol=1e-15)
    return np.asarray(softmax(moments @ found.x))


@dataclass(frozen=True)
class Ptable(KeyedTable):
    """Counts change by a table that a publisher has made.

    Counts beyond its last row have the last `again` rows once more, in turns.
    """

    file: str | os.PathLike[str] = parameter(
        Spelled("a file of changes", TableFile.of), "the table, a CSV file", bare=True
    )
    again: int = parameter(at_least(1), "how many rows serve counts beyond the last one", default=1)

    name: ClassVar[str] = "ptable"
    example: ClassVar[str] = "ptable(changes.csv)"
    summary: ClassVar[str] = "change counts by a table of a file, and keys of the people in a cell"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "file", TableFile.of(self.file))
        if self.again >= len(self.changes.chances):
            raise SpecError(f"the table has too few rows to repeat {self.again} of them")

    @property
    def changes(self) -> Changes:
        return TableFile.of(self.file).changes._replace(again=self.again)

    def describe(self) -> str:
        return (
            "Counts change at random, by a table of the publisher. The same people in a cell get "
            "the same change every time."
        )
