"""The steps of a mechanism that involve no chance: suppression and rounding.

They take counts in 0..m to counts in 0..m, each cell by itself; m is the group size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.privacy.parameters import check_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Map(ABC):
    """A step without chance that never reverses the order of two counts.

    So the counts that it sends into an interval are an interval themselves. It keeps 0.
    """

    name: ClassVar[str]

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

    @abstractmethod
    def describe(self) -> str:
        """Say in one public sentence what this step does."""


@dataclass(frozen=True)
class Suppress(Map):
    """Counts of `k` or fewer become 0."""

    k: int
    name: ClassVar[str] = "suppress"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_integer(self.k, "k", least=0))

    def apply(self, values: NDArray[np.int32], m: int) -> NDArray[np.int32]:  # noqa: ARG002
        """Return the counts, 0 in place of those up to `k`."""
        # A product is several times faster than np.where.
        return values * (values > self.k)

    def preimage(
        self, lo: NDArray[np.int64], hi: NDArray[np.int64], m: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the interval of counts that end up in lo..hi."""
        first = np.where(lo <= 0, 0, np.maximum(lo, self.k + 1))
        return first, np.minimum(np.maximum(hi, self.k), m)

    def describe(self) -> str:
        """Say in one public sentence what this step does."""
        return f"Counts of {self.k} or fewer are published as 0."

    def __str__(self) -> str:
        return f"{self.name}(k={self.k})"


@dataclass(frozen=True)
class Round(Map):
    """Counts become the nearest multiple of `to`, upwards from the middle, m at most."""

    to: int
    name: ClassVar[str] = "round"

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", check_integer(self.to, "to", least=1))

    def apply(self, values: NDArray[np.int32], m: int) -> NDArray[np.int32]:
        """Return the rounded counts."""
        return np.minimum((values + self.to // 2) // self.to * self.to, m)

    def preimage(
        self, lo: NDArray[np.int64], hi: NDArray[np.int64], m: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the interval of counts that end up in lo..hi."""
        first = -(-lo // self.to) * self.to - self.to // 2
        last = (hi // self.to + 1) * self.to - self.to // 2 - 1
        last = np.where(hi >= m, m, np.minimum(last, m))
        # What is cut off at m belongs to m, but not to an interval that was empty already.
        return np.maximum(first, 0), np.where(lo > hi, -1, last)

    def describe(self) -> str:
        """Say in one public sentence what this step does."""
        return f"Counts are rounded to the nearest multiple of {self.to}."

    def __str__(self) -> str:
        return f"{self.name}(to={self.to})"
