"""From values to places in a picture: scales, the field with its axes, and the legend."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.svg import element, group, line, mark, picture, text
from whosthere.reporting.words import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markupsafe import Markup

WIDTH = 420
"""Of all pictures, in pixels."""
_KEY_HEIGHT = 14
_LETTERS = 48
"""So many fit beside their marks in any usual font."""


@dataclass(frozen=True)
class Scale(ABC):
    """Where values lie along one side of a picture.

    Attributes
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

    @abstractmethod
    def __call__(self, value: float) -> float:
        """Return the place of a value; values beyond the ends lie at the ends."""

    @abstractmethod
    def ticks(self) -> list[tuple[float, str]]:
        """Return a few round values to mark, with their texts."""


class Linear(Scale):
    """Equal steps."""

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.first + min(max(share, 0.0), 1.0) * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        step = _round_step((self.high - self.low) / 5)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [(i * step, f"{i * step:,.{digits}f}") for i in range(first, last + 1)]


class Logarithmic(Scale):
    """Equal factors, of values above 0; 0 lies at the lower end."""

    def __call__(self, value: float) -> float:
        if value <= self.low or self.high <= self.low:
            return self.first
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.first + min(share, 1.0) * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        # The powers of ten, and 2 and 5 times them where there are few.
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


@dataclass(frozen=True)
class Field:
    """Where values are drawn, in pixels: the space within the axes."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def below(
        cls, keys: Sequence[Key], height: float, *, left: float, right: float, room: float = 34
    ) -> Field:
        """Return a field of a height below a legend; `room` is for the words between them."""
        top = float(_KEY_HEIGHT * len(keys) + room)
        return cls(left, top, right, top + height)


@dataclass(frozen=True)
class Key:
    """How a line or, where it has a shape, a mark is drawn, and what it means."""

    words: str
    class_: str
    shape: str = ""


def plot(
    title: str,
    field: Field,
    marks: Iterable[str],
    *,
    across: tuple[Scale, str],
    up: tuple[Scale, str] | None = None,
    keys: Sequence[Key] = (),
) -> Markup:
    """Return a picture: a legend, and marks in a field with axes.

    Parameters
    ----------
    title
        What the picture shows, for those who cannot see it.
    across, up
        The scales to the right and upwards, with what their values are.
    """
    drawn = [*_legend(keys), *_horizontal_axis(field, *across)]
    drawn += [] if up is None else _vertical_axis(field, *up)
    width, height = field.right - field.left, field.bottom - field.top
    border = element("rect", x=field.left, y=field.top, width=width, height=height, class_="border")
    return picture(WIDTH, field.bottom + 42, title, *drawn, border, *marks)


def _horizontal_axis(field: Field, scale: Scale, words: str) -> Iterator[str]:
    """Draw grid lines, values below them, and what they mean."""
    for value, shown in scale.ticks():
        x = scale(value)
        yield line(x, field.top, x, field.bottom, "grid")
        yield text(x, field.bottom + 16, shown, class_="tick", anchor="middle")
    middle = (field.left + field.right) / 2
    yield text(middle, field.bottom + 34, words, class_="axis", anchor="middle")


def _vertical_axis(field: Field, scale: Scale, words: str) -> Iterator[str]:
    """Draw grid lines, values left of them, and what they mean above."""
    for value, shown in scale.ticks():
        y = scale(value)
        yield line(field.left, y, field.right, y, "grid")
        yield text(field.left - 6, y + 4, shown, class_="tick", anchor="end")
    yield text(4, field.top - 10, words, class_="axis")


def _legend(keys: Sequence[Key]) -> Iterator[str]:
    """Draw keys one below the other."""
    for i, key in enumerate(keys):
        y = 12.0 + _KEY_HEIGHT * i
        if not key.shape:
            yield line(8, y - 4, 26, y - 4, key.class_)
        else:
            yield group(mark(17, y - 4, key.shape, "mark"), class_=key.class_)
        yield text(32, y, shortened(key.words, _LETTERS), class_="key")
