"""Suppression and rounding, as publishers of statistics use them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from whosthere.errors import SpecError, suggestion
from whosthere.privacy.shapes import ChanceTable, Choices, Map, sent_into
from whosthere.privacy.step import Correction, Counts, Ends, Pulled, Span, Step, Tabulated
from whosthere.specs import WHOLE, OneOf, check_integer, parameter

if TYPE_CHECKING:
    from collections.abc import Iterator


BASES = (2, 3, 5, 10, 15, 20, 30, 50, 100)
"""Numbers that a search tries to round to, from the weakest protection to the strongest."""
_THRESHOLDS = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 75, 100)
# With more ways to round than this, it is quicker to sum over the noise of an earlier step.
_MOST_WAYS = 1000

Shown: TypeAlias = Literal["zero", "mark"]
_SHOWN: tuple[str, ...] = get_args(Shown)


@dataclass(frozen=True)
class Suppress(Map):
    """Counts of `k` or fewer become 0 or, if `shown` as a mark, are withheld.

    `zeros` says whether, with marks, a cell with nobody in it is withheld as well.
    """

    k: int = parameter(WHOLE, "largest count that is not published", ladder=_THRESHOLDS)
    shown: Shown = parameter(
        OneOf(_SHOWN), "what such counts are published as: 0, or a mark", default="zero"
    )
    zeros: Shown = parameter(
        OneOf(_SHOWN), "with marks: what empty cells are published as", default="zero"
    )
    name: ClassVar[str] = "suppress"
    example: ClassVar[str] = "suppress(k=1)"
    summary: ClassVar[str] = "publish 0, or a mark, for counts of k or fewer"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_integer(self.k, "k", least=0))
        for key, found in (("shown", self.shown), ("zeros", self.zeros)):
            if found not in _SHOWN:
                raise SpecError(f"there is no {key} {found!r}", fix=suggestion(str(found), _SHOWN))
        if self.zeros == "mark" and self.shown == "zero":
            raise SpecError("zeros=mark needs shown=mark", fix="Add shown=mark")

    @property
    def withheld(self) -> Span | None:
        lowest = 0 if self.zeros == "mark" else 1
        return Span(lowest, self.k) if self.shown == "mark" and lowest <= self.k else None

    def apply(self, values: Counts, within: Span) -> Counts:  # noqa: ARG002
        if self.shown == "mark":
            return values.copy()
        # A product is several times faster than np.where.
        return values * (values > self.k)

    @property
    def changes_counts(self) -> bool:
        return self.k > 0 or self.withheld is not None

    @property
    def correction(self) -> Correction:
        # Where zeros are shown, a mark tells that somebody was there.
        hides_people = self.changes_counts and (self.shown == "zero" or self.zeros == "mark")
        return Correction.COMPRESS if hides_people else Correction.NONE

    @property
    def window(self) -> tuple[int, int]:
        return -self.k, 0

    def describe(self) -> str:
        if not self.changes_counts:
            return "The counts are published unchanged."
        if self.shown == "zero":
            which = f"{self.k} or fewer" if self.k > 1 else "1"
            return f"Counts of {which} are published as 0."
        least = "1 to " if self.k > 1 else ""
        which = f"{self.k} or fewer" if self.zeros == "mark" else f"{least}{self.k}"
        shown = "" if self.zeros == "mark" else " Cells with nobody in them are published as 0."
        return f"Counts of {which} are withheld.{shown}"


@dataclass(frozen=True)
class _ToMultiples(Step):
    """A step after which counts are multiples of a number, m at most."""

    to: int = parameter(WHOLE, "what counts become multiples of", ladder=BASES)

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", check_integer(self.to, "to", least=1))

    @property
    def changes_counts(self) -> bool:
        return self.to > 1


@dataclass(frozen=True)
class Round(_ToMultiples, Map):
    """Counts become the nearest multiple of `to`, upwards from the middle, m at most."""

    name: ClassVar[str] = "round"
    example: ClassVar[str] = "round(to=5)"
    summary: ClassVar[str] = "round to the nearest multiple, upwards from the middle"

    def apply(self, values: Counts, within: Span) -> Counts:
        return np.clip((values + self.to // 2) // self.to * self.to, *within)

    @property
    def window(self) -> tuple[int, int]:
        return -((self.to - 1) // 2), self.to // 2

    def describe(self) -> str:
        return f"Counts are rounded to the nearest multiple of {self.to}."


@dataclass(frozen=True)
class RandomRound(_ToMultiples, ChanceTable):
    """Counts become one of the multiples of `to` next to them, keeping their mean.

    A count with the remainder r goes up with chance r / to, else down; m is the most it can be.
    The same law results if one of the numbers 0 to `to` - 1 is added, each as likely as any other,
    and the sum is rounded down.
    """

    name: ClassVar[str] = "random-round"
    example: ClassVar[str] = "random-round(to=3)"
    summary: ClassVar[str] = "round up or down at random to a multiple, so that the mean is kept"

    def choices(self, values: Counts, within: Span) -> Choices:
        remainder = values % self.to
        below = values - remainder
        # Subtracting first keeps the sum within 32 bits.
        above = below + np.minimum(self.to, within.highest - below)
        up = remainder / self.to
        results = np.stack([np.maximum(below, within.lowest), above], axis=-1)
        return Choices(results.astype(np.int32, copy=False), np.stack([1 - up, up], axis=-1))

    def pull_back(self, lo: Ends, hi: Ends, within: Span) -> Iterator[Pulled] | None:
        if self.to > _MOST_WAYS:
            return None
        sums = within._replace(highest=within.highest + self.to - 1)
        first, last = sent_into(lambda values: self._rounded_down(values, within), lo, hi, sums)
        return (
            Pulled(
                -math.log(self.to),
                np.maximum(first - added, within.lowest),
                np.minimum(last - added, within.highest),
            )
            for added in range(self.to)
        )

    def tabulated(self, within: Span) -> Tabulated | None:
        if self.to > _MOST_WAYS:
            return None
        sums = np.arange(within.lowest, within.highest + self.to, dtype=np.int32)
        return Tabulated(0, np.full(self.to, 1 / self.to), self._rounded_down(sums, within))

    def _rounded_down(self, sums: Counts, within: Span) -> Counts:
        rounded: Counts = np.clip(sums - sums % self.to, *within)
        return rounded

    @property
    def window(self) -> tuple[int, int]:
        return 1 - self.to, self.to - 1

    def describe(self) -> str:
        return (
            f"Counts are rounded at random to one of the multiples of {self.to} next to them, the "
            "nearer one being likelier."
        )
