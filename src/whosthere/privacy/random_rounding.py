"""Unbiased random rounding, as statistics offices use it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.privacy.chance_table import ChanceTable, Choices
from whosthere.privacy.maps import BASES, before_rounding
from whosthere.privacy.parameters import check_integer
from whosthere.privacy.step import Pulled, Tabulated
from whosthere.specs import WHOLE, parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# With more ways to round than this, it is quicker to sum over the noise of an earlier step.
_MOST_WAYS = 1000


@dataclass(frozen=True)
class RandomRound(ChanceTable):
    """Counts become one of the multiples of `to` next to them, keeping their mean.

    A count with the remainder r goes up with chance r / to, else down; m is the most it can be.
    """

    to: int = parameter(WHOLE, "what counts become multiples of", ladder=BASES)
    name: ClassVar[str] = "random-round"
    example: ClassVar[str] = "random-round(to=3)"
    summary: ClassVar[str] = "round up or down at random to a multiple, so that the mean is kept"

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", check_integer(self.to, "to", least=1))

    def choices(self, values: NDArray[np.int32], m: int) -> Choices:
        remainder = values % self.to
        below = values - remainder
        # Subtracting first keeps the sum within 32 bits.
        above = below + np.minimum(self.to, m - below)
        up = remainder / self.to
        return Choices(
            np.stack([below, above], axis=-1).astype(np.int32, copy=False),
            np.stack([1 - up, up], axis=-1),
        )

    def pull_back(
        self, lo: NDArray[np.int64], hi: NDArray[np.int64], m: int
    ) -> Iterator[Pulled] | None:
        if self.to > _MOST_WAYS:
            return None
        return (
            Pulled(-math.log(self.to), *before_rounding(lo, hi, m, to=self.to, lift=lift))
            for lift in range(self.to)
        )

    def tabulated(self, m: int) -> Tabulated | None:
        if self.to > _MOST_WAYS:
            return None
        sums = np.arange(m + self.to, dtype=np.int32)
        rounded = np.minimum(sums - sums % self.to, m)
        return Tabulated(0, np.full(self.to, 1 / self.to), rounded)

    @property
    def changes_counts(self) -> bool:
        return self.to > 1

    @property
    def window(self) -> tuple[int, int]:
        return 1 - self.to, self.to - 1

    def describe(self) -> str:
        return (
            f"Counts are rounded at random to one of the multiples of {self.to} next to them, the "
            "nearer one being likelier."
        )
