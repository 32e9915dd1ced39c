"""The field of a picture, with its axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.svg import element, line, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whosthere.reporting.charts.scales import Scale


@dataclass(frozen=True)
class Field:
    """Where values are drawn, in pixels: the space within the axes."""

    left: float
    top: float
    right: float
    bottom: float


def horizontal_axis(field: Field, scale: Scale, words: str) -> Iterator[str]:
    """Draw grid lines, values below them, and what they mean."""
    for value, shown in scale.ticks():
        x = scale(value)
        yield line(x, field.top, x, field.bottom, "grid")
        yield text(x, field.bottom + 16, shown, class_="tick", anchor="middle")
    middle = (field.left + field.right) / 2
    yield text(middle, field.bottom + 34, words, class_="axis", anchor="middle")


def vertical_axis(field: Field, scale: Scale, words: str) -> Iterator[str]:
    """Draw grid lines, values left of them, and what they mean above."""
    for value, shown in scale.ticks():
        y = scale(value)
        yield line(field.left, y, field.right, y, "grid")
        yield text(field.left - 6, y + 4, shown, class_="tick", anchor="end")
    yield text(4, field.top - 10, words, class_="axis")


def border(field: Field) -> str:
    """Draw the edge of the field."""
    return element(
        "rect",
        x=field.left,
        y=field.top,
        width=field.right - field.left,
        height=field.bottom - field.top,
        class_="border",
    )
