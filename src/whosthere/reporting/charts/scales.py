"""From values to places in a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol


class Scale(Protocol):
    """Where values lie along one side of a picture."""

    def __call__(self, value: float) -> float:
        """Return the place of a value; values beyond the ends lie at the ends."""

    def ticks(self) -> list[tuple[float, str]]:
        """Return values to mark, with their texts."""


@dataclass(frozen=True)
class Linear:
    """Equal steps.

    Parameters
    ----------
    low, high
        The values at the ends.
    first, last
        Their places, in pixels.
    """

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.first + min(max(share, 0.0), 1.0) * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        """Return about five round values."""
        step = _round_step((self.high - self.low) / 5)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [(i * step, f"{i * step:,.{digits}f}") for i in range(first, last + 1)]


@dataclass(frozen=True)
class Logarithmic:
    """Equal factors; the parameters are those of `Linear`, all values above 0."""

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        """Return the place of a value; 0 lies at the lower end."""
        if value <= self.low or self.high <= self.low:
            return self.first
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.first + min(share, 1.0) * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the powers of ten, and 2 and 5 times them where there are few."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        factors = (1, 2, 5) if self.high / self.low < 200 else (1,)
        values = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        within = [v for v in values if self.low * 0.999 <= v <= self.high * 1.001]
        return [(value, f"{value:,.10g}") for value in within]


def _round_step(rough: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least as large as a rough step."""
    if rough <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
