"""What all steps of a mechanism have in common.

A step takes counts in 0..m to counts in 0..m, each cell by itself; m is the size of the group.
Whatever else needs to know about a step asks it here, so that a new kind of step is one new class.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from whosthere.arrays import own
from whosthere.privacy.exact_sampling import Randomness
from whosthere.specs import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from whosthere.privacy.trade_off import TradeOff
    from whosthere.privacy.units import Guarantee, Unit

Draw: TypeAlias = "NDArray[Any]"
"""The random numbers of one step, one for each cell."""
NO_DRAW: Draw = own(np.empty(0), np.float64)
"""What a step without chance is given."""


class Correction(Enum):
    """What undoes a step's effect on the shares of regions and epochs, roughly."""

    NONE = "none"
    COMPRESS = "compress"
    """Visits are taken from quiet regions and epochs: the shares become too uneven."""
    STRETCH = "stretch"
    """About the same is added everywhere: the shares become too even."""


class Pulled(NamedTuple):
    """An interval of counts before a step, and the log of the chance that it is the right one."""

    log_chance: float
    lo: NDArray[np.int64]
    hi: NDArray[np.int64]


class Outcomes(NamedTuple):
    """Counts that a step can make of others, and the logs of their chances, shape (..., j)."""

    values: NDArray[np.int32]
    log_chances: NDArray[np.float64]


class Tabulated(NamedTuple):
    """A step that adds a random whole number to a count and looks the result up.

    Attributes
    ----------
    lowest
        The lowest value of the number.
    chances
        Chance of each of its values from there on; they sum up to 1 within 1e-12.
    results
        What sums from 0 on become, int32, at least for all counts in 0..m. Sums below are taken
        for 0, and those above for the last.
    """

    lowest: int
    chances: NDArray[np.float64]
    results: NDArray[np.int32]


class Step(ABC):
    """One thing that is done to counts.

    Subclass `Map` for steps without chance, `IntegerNoise` for added noise, and `ChanceTable` for
    steps that choose between a few results.
    """

    name: ClassVar[str]
    """What specs call it."""
    example: ClassVar[str]
    """How it is written."""
    summary: ClassVar[str]
    """One line for lists."""

    is_random: ClassVar[bool]
    """Whether anything is left to chance."""
    unit: Unit | None = None
    """What the step's noise protects, if it is meant to protect one of the units."""

    # What the step does to counts

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Draw:  # noqa: ARG002
        """Draw the random numbers of this step for an array of cells."""
        return NO_DRAW

    def draw_securely(self, shape: tuple[int, ...]) -> Draw:
        """Draw the same for a real publication, so that nobody can predict it.

        `randomness` says how good that is.
        """
        return self.draw(shape, np.random.default_rng(secrets.randbits(256)))

    @property
    def randomness(self) -> Randomness:
        """Where the random numbers of `draw_securely` come from."""
        return Randomness.SYSTEM if self.is_random else Randomness.NONE

    @abstractmethod
    def publish(self, values: NDArray[np.int32], draw: Draw, m: int) -> NDArray[np.int32]:
        """Return the counts after this step, as a new array.

        Counts and random numbers broadcast against each other. A larger count never gives a
        smaller result with the same random number, if any coupling can do that.
        """

    @abstractmethod
    def describe(self) -> str:
        """Say in one public sentence what this step does."""

    @property
    def changes_counts(self) -> bool:
        """Whether anything is done at all; rounding to 1 is nothing."""
        return True

    @property
    def correction(self) -> Correction:
        """What an attacker may do about this step's effect on the shares of regions and epochs."""
        return Correction.NONE

    @property
    def guarantee(self) -> Guarantee | None:
        """The differential privacy that this step gives to true counts, if any."""
        return None

    def trade_off(self, differing: int) -> TradeOff | None:  # noqa: ARG002
        """Return the best test between true counts that differ by one in some cells.

        None where only eps and delta are known, or nothing.

        Parameters
        ----------
        differing
            How many cells differ.
        """
        return None

    # The chances of its results

    @abstractmethod
    def log_landing(
        self,
        values: NDArray[np.integer],
        lo: NDArray[np.integer],
        hi: NDArray[np.integer],
        m: int,
    ) -> NDArray[np.float64]:
        """Return the log of the chance to land in lo..hi, where 0 <= hi; all arrays broadcast."""

    @abstractmethod
    def split(self, values: NDArray[np.int32], m: int, *, block: int) -> Iterator[Outcomes]:
        """Yield all results for each count, about `block` of them at a time, shape (..., j).

        Results may be left out as long as their chances sum up to less than 1e-18.
        """

    def pull_back(
        self,
        lo: NDArray[np.int64],  # noqa: ARG002
        hi: NDArray[np.int64],  # noqa: ARG002
        m: int,  # noqa: ARG002
    ) -> Iterator[Pulled] | None:
        """Return the counts that this step sends into lo..hi, where that is an interval.

        A map that keeps the order of counts yields one interval. A step that chooses at random
        between such maps yields one for each. All others give None. An interval is empty where its
        low end is above its high end, which may be at ``m + 1``.
        """
        return None

    def tabulated(self, m: int) -> Tabulated | None:  # noqa: ARG002
        """Return the step as tables, by which many counts are published at once; None if it is not.

        A step that gives none is as good as any other, only slower. A larger sum must never give
        a smaller result.
        """
        return None

    # Where its results lie

    @property
    @abstractmethod
    def window(self) -> tuple[int, int]:
        """Lowest and highest change of a count; beyond lies less than 1e-18 of the chance."""

    @property
    def scale(self) -> float:
        """Width of noise that can publish any count, in people; 0 where only some are possible.

        Chances hardly differ between counts that are much less than a scale apart.
        """
        return 0.0

    def __str__(self) -> str:
        return write(self)
