"""The steps of a mechanism that involve no chance: suppression and rounding."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.privacy.parameters import check_integer
from whosthere.privacy.step import Correction, Draw, Outcomes, Pulled, Step, Tabulated
from whosthere.specs import WHOLE, parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

BASES = (2, 3, 5, 10, 15, 20, 30, 50, 100)
"""Numbers that a search tries to round to, from the weakest protection to the strongest."""
_THRESHOLDS = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 75, 100)


class Map(Step):
    """A step without chance that never reverses the order of two counts.

    So the counts that it sends into an interval are an interval themselves. It keeps 0.
    """

    is_random: ClassVar[bool] = False

    @abstractmethod
    def apply(self, values: NDArray[np.int32], m: int) -> NDArray[np.int32]:
        """Return the counts after this step; the given array stays as it is."""

    @abstractmethod
    def preimage(
        self, lo: NDArray[np.int64], hi: NDArray[np.int64], m: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the interval of counts that this step sends into lo..hi, where 0 <= hi.

        It is empty where its low end is above its high end, which may be at ``m + 1``.
        """

    def publish(self, values: NDArray[np.int32], draw: Draw, m: int) -> NDArray[np.int32]:  # noqa: ARG002
        return self.apply(values, m)

    def log_landing(
        self,
        values: NDArray[np.integer],
        lo: NDArray[np.integer],
        hi: NDArray[np.integer],
        m: int,
    ) -> NDArray[np.float64]:
        mapped = self.apply(values.astype(np.int32, copy=False), m)
        return np.where((lo <= mapped) & (mapped <= hi), 0.0, -np.inf)

    def split(self, values: NDArray[np.int32], m: int, *, block: int) -> Iterator[Outcomes]:  # noqa: ARG002
        mapped = self.apply(values, m)[..., None]
        yield Outcomes(mapped, np.zeros(mapped.shape))

    def pull_back(self, lo: NDArray[np.int64], hi: NDArray[np.int64], m: int) -> Iterator[Pulled]:
        yield Pulled(0.0, *self.preimage(lo, hi, m))

    def tabulated(self, m: int) -> Tabulated:
        counts = np.arange(m + 1, dtype=np.int32)
        return Tabulated(0, np.ones(1), self.apply(counts, m).astype(np.int32, copy=False))


@dataclass(frozen=True)
class Suppress(Map):
    """Counts of `k` or fewer become 0."""

    k: int = parameter(WHOLE, "largest count that is published as 0", ladder=_THRESHOLDS)
    name: ClassVar[str] = "suppress"
    example: ClassVar[str] = "suppress(k=1)"
    summary: ClassVar[str] = "publish 0 for counts of k or fewer"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_integer(self.k, "k", least=0))

    def apply(self, values: NDArray[np.int32], m: int) -> NDArray[np.int32]:  # noqa: ARG002
        # A product is several times faster than np.where.
        return values * (values > self.k)

    def preimage(
        self, lo: NDArray[np.int64], hi: NDArray[np.int64], m: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = np.where(lo <= 0, 0, np.maximum(lo, self.k + 1))
        return first, np.minimum(np.maximum(hi, self.k), m)

    @property
    def changes_counts(self) -> bool:
        return self.k > 0

    @property
    def correction(self) -> Correction:
        return Correction.COMPRESS if self.changes_counts else Correction.NONE

    @property
    def window(self) -> tuple[int, int]:
        return -self.k, 0

    def describe(self) -> str:
        return f"Counts of {self.k} or fewer are published as 0."


@dataclass(frozen=True)
class Round(Map):
    """Counts become the nearest multiple of `to`, upwards from the middle, m at most."""

    to: int = parameter(WHOLE, "what counts become multiples of", ladder=BASES)
    name: ClassVar[str] = "round"
    example: ClassVar[str] = "round(to=5)"
    summary: ClassVar[str] = "round to the nearest multiple, upwards from the middle"

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", check_integer(self.to, "to", least=1))

    def apply(self, values: NDArray[np.int32], m: int) -> NDArray[np.int32]:
        return np.minimum((values + self.to // 2) // self.to * self.to, m)

    def preimage(
        self, lo: NDArray[np.int64], hi: NDArray[np.int64], m: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return before_rounding(lo, hi, m, to=self.to, lift=self.to // 2)

    @property
    def changes_counts(self) -> bool:
        return self.to > 1

    @property
    def window(self) -> tuple[int, int]:
        return -((self.to - 1) // 2), self.to // 2

    def describe(self) -> str:
        return f"Counts are rounded to the nearest multiple of {self.to}."


def before_rounding(
    lo: NDArray[np.int64], hi: NDArray[np.int64], m: int, *, to: int, lift: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the interval of counts n with lo <= min((n + lift) // to * to, m) <= hi."""
    first = -(-lo // to) * to - lift
    last = (hi // to + 1) * to - lift - 1
    last = np.where(hi >= m, m, np.minimum(last, m))
    # What is cut off at m belongs to m, but not to an interval that was empty already.
    return np.maximum(first, 0), np.where(lo > hi, -1, last)
