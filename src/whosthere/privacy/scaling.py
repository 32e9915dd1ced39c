"""Counts scaled up to a population, as publishers do whose data are of some of the people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.errors import SpecError
from whosthere.privacy.shapes import Map
from whosthere.specs import MOST_COUNT, POSITIVE, format_number, parameter

if TYPE_CHECKING:
    from whosthere.privacy.step import Counts, Span


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
