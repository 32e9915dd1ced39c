"""What the marks and lines of a picture mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.svg import group, line, mark, text
from whosthere.reporting.numbers import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LETTERS = 48
"""So many fit beside their marks in any usual font."""


@dataclass(frozen=True)
class Key:
    """A line or, where it has a shape, a mark, and what it means."""

    words: str
    class_: str
    shape: str | None = None


def legend(keys: Sequence[Key], *, x: float, y: float) -> Iterator[str]:
    """Draw keys one below the other, the first at a place."""
    for i, key in enumerate(keys):
        at = y + 14 * i
        drawn = (
            line(x, at - 4, x + 18, at - 4, key.class_)
            if key.shape is None
            else group(mark(x + 9, at - 4, key.shape, "mark"), class_=key.class_)
        )
        yield drawn
        yield text(x + 24, at, shortened(key.words, _LETTERS), class_="key")
