"""Suppression, floors, rounding and scaling, as publishers of statistics use them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from whosthere.errors import SpecError
from whosthere.privacy.shapes import ChanceTable, Choices, Map
from whosthere.privacy.step import (
    Correction,
    Counts,
    Floats,
    Span,
    Step,
    Tabulated,
)
from whosthere.specs import (
    MOST_COUNT,
    POSITIVE,
    WHOLE,
    OneOf,
    Text,
    at_least,
    check_integer,
    format_number,
    parameter,
)

BASES = (2, 3, 5, 10, 15, 20, 30, 50, 100)
"""Numbers that a search tries to round to, from the weakest protection to the strongest."""
_THRESHOLDS = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 75, 100)
# With more ways to round than this, no table is made.
_MOST_WAYS = 1000

CHANCES = Text(
    "chances such as 0.2:0.4:0.6:0.8",
    lambda text: tuple(float(Fraction(one)) for one in text.split(":")),
    lambda chances: ":".join(map(format_number, chances)),
)
"""Chances as specs write them; 1/3 is read as well."""

Shown: TypeAlias = Literal["zero", "mark"]
_SHOWN: tuple[str, ...] = get_args(Shown)


@dataclass(frozen=True)
class Suppress(Map):
    """Counts of `k` or fewer become 0 or, if `shown` as a mark, are withheld.

    `zeros` says whether, with marks, a cell with nobody in it is withheld as well.
    """

    k: int = parameter(at_least(0), "largest count that is not published", ladder=_THRESHOLDS)
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
        super().__post_init__()
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
class Floor(Map):
    """Counts of `drop` or fewer become 0, other ones of less than `at` become `at`."""

    at: int = parameter(WHOLE, "least count that is shown, for counts above `drop`")
    drop: int = parameter(at_least(0), "largest count that is published as 0", default=0)
    name: ClassVar[str] = "floor"
    example: ClassVar[str] = "floor(at=4, drop=1)"
    summary: ClassVar[str] = "drop the smallest counts, and show other small ones as one number"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "at", check_integer(self.at, "at", least=self.drop + 1))

    def apply(self, values: Counts, within: Span) -> Counts:
        shown = np.maximum(values, np.int32(min(self.at, within.highest)))
        return np.where(values > self.drop, shown, np.minimum(values, 0))

    @property
    def changes_counts(self) -> bool:
        return self.at > 1

    @property
    def correction(self) -> Correction:
        return Correction.COMPRESS if self.drop else Correction.NONE

    def describe(self) -> str:
        dropped = f"Counts of {self.drop} or fewer are published as 0. " if self.drop else ""
        return f"{dropped}Counts of {self.drop + 1} to {self.at} are published as {self.at}."


@dataclass(frozen=True)
class _ToMultiples(Step):
    """A step after which counts are multiples of a number, m at most."""

    to: int = parameter(at_least(1), "what counts become multiples of", ladder=BASES)

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

    def describe(self) -> str:
        return f"Counts are rounded to the nearest multiple of {self.to}."


@dataclass(frozen=True)
class RandomRound(_ToMultiples, ChanceTable):
    """Counts become one of the multiples of `to` next to them, m at most.

    A count with the remainder r goes up with the r-th chance of `up`, else down; by default with
    chance r / to, so that the mean is kept. The same law results if one of the numbers 0 to
    `to` - 1 is added, with chances of their own, and the sum is rounded down.
    """

    up: tuple[float, ...] | None = parameter(
        CHANCES,
        "chance to go up for each remainder from 1 to `to` - 1, rising; keeping the mean if absent",
        default=None,
    )

    name: ClassVar[str] = "random-round"
    example: ClassVar[str] = "random-round(to=3)"
    summary: ClassVar[str] = "round up or down at random to a multiple"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.up is None:
            return
        object.__setattr__(self, "up", tuple(map(float, self.up)))
        if len(self.up) != self.to - 1:
            raise SpecError(
                f"{len(self.up)} chances do not fit the {self.to - 1} remainders of {self.to}",
                fix="Give one for each, such as up=1/3:2/3 with to=3, or leave them out",
            )
        if not all(a <= b for a, b in pairwise((0.0, *self.up, 1.0))):
            raise SpecError(
                "the chances to go up must rise from remainder to remainder, within 0 and 1"
            )

    def choices(self, values: Counts, within: Span) -> Choices:
        remainder = values % self.to
        below = values - remainder
        # Subtracting first keeps the sum within 32 bits.
        above = below + np.minimum(self.to, within.highest - below)
        up = remainder / self.to if self.up is None else np.array((0.0, *self.up))[remainder]
        results = np.stack([np.maximum(below, within.lowest), above], axis=-1)
        return Choices(results.astype(np.int32, copy=False), np.stack([1 - up, up], axis=-1))

    def tabulated(self, within: Span) -> Tabulated | None:
        if self.to > _MOST_WAYS:
            return None
        sums = np.arange(within.lowest, within.highest + self.to, dtype=np.int32)
        return Tabulated(0, self._chances_of_added, self._rounded_down(sums, within))

    @property
    def _chances_of_added(self) -> Floats:
        """The chances of the numbers from 0 on, one of which is added before rounding down."""
        if self.up is None:
            return np.full(self.to, 1 / self.to)
        return np.diff((0.0, *self.up, 1.0))[::-1]

    def _rounded_down(self, sums: Counts, within: Span) -> Counts:
        return np.asarray(np.clip(sums - sums % self.to, *within))

    def describe(self) -> str:
        how = (
            "the nearer one being likelier"
            if self.up is None
            else f"upwards with a chance of {CHANCES.write(self.up)} by what is left over"
        )
        return (
            f"Counts are rounded at random to one of the multiples of {self.to} next to them, "
            f"{how}."
        )


Bands: TypeAlias = tuple[tuple[int, int], ...]


def _read_bands(text: str) -> Bands:
    pairs = (band.split("/") for band in text.split(":"))
    return tuple((int(least), int(to)) for least, to in pairs)


@dataclass(frozen=True)
class RoundBySize(Map):
    """Counts become the nearest multiple of a number that grows with them, m at most.

    Each of the `bands` is a least count and what counts from there on become multiples of, halves
    to the even one. Counts below the first band stay.
    """

    bands: Bands = parameter(
        Text(
            "bands such as 15/10:100/50",
            _read_bands,
            lambda bands: ":".join(f"{least}/{to}" for least, to in bands),
        ),
        "from which count on to round to what, such as 15/10:100/50",
    )
    name: ClassVar[str] = "round-by-size"
    example: ClassVar[str] = "round-by-size(bands=15/10:100/50:1000/100)"
    summary: ClassVar[str] = "round larger counts more coarsely, halves to even"

    def __post_init__(self) -> None:
        checked = tuple(
            (check_integer(least, "a band", least=1), check_integer(to, "a band", least=1))
            for least, to in self.bands
        )
        object.__setattr__(self, "bands", checked)
        if not checked or any(a[0] >= b[0] for a, b in pairwise(checked)):
            raise SpecError("the bands must rise", fix="Write them like 15/10:100/50:1000/100")
        before = np.array([[least - 1, least] for least, _ in checked], np.int32)
        low, high = self.apply(before, Span(0, MOST_COUNT)).T
        if (low > high).any():
            raise SpecError(f"{self} would reverse the order of two counts", fix="Change a band")

    def apply(self, values: Counts, within: Span) -> Counts:
        leasts, multiples = np.array(((0, 1), *self.bands), np.int64).T
        to = multiples[np.searchsorted(leasts, values, side="right") - 1]
        # Whole numbers this small, and their halves, are exact.
        return np.asarray(np.clip(np.rint(values / to) * to, *within), np.int32)

    def describe(self) -> str:
        said = ", ".join(f"from {least:,} on to {to:,}" for least, to in self.bands)
        return f"Counts are rounded to multiples that grow with them, {said}."


@dataclass(frozen=True)
class Scale(Map):
    """Counts are multiplied, and rounded to the nearest whole number, upwards from the middle."""

    by: float = parameter(POSITIVE, "what counts are multiplied by")
    name: ClassVar[str] = "scale"
    example: ClassVar[str] = "scale(by=5.13)"
    summary: ClassVar[str] = "multiply counts, and round to whole numbers"

    def apply(self, values: Counts, within: Span) -> Counts:
        if within.highest * self.by > MOST_COUNT:
            raise SpecError(
                f"{self} takes counts of {within.highest:,} beyond {MOST_COUNT:,}",
                fix="Scale by less, or count fewer people",
            )
        return np.asarray(np.floor(values * self.by + 0.5), np.int32)

    def span(self, within: Span) -> Span:
        return self.lands(within, within)

    @property
    def slope(self) -> float:
        return self.by

    @property
    def changes_counts(self) -> bool:
        return self.by != 1

    def describe(self) -> str:
        return f"Counts are multiplied by {format_number(self.by)} and rounded."
