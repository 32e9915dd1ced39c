"""Elements of SVG with everything that comes in escaped, and fields with axes to put them in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

from whosthere.reporting.words import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDTH = 420
"""Of all pictures, in pixels."""
_KEY_HEIGHT = 14
_LETTERS = 48
"""So many fit beside their marks in any usual font."""


@dataclass(frozen=True, eq=False)
class Chart(ABC):
    """What a picture shows; `title` says it for those who cannot see it."""

    title: str

    @abstractmethod
    def draw(self) -> Markup:
        """Return the picture as SVG."""


def element(name: str, *children: str, title: str | None = None, **attributes: object) -> Markup:
    """Return an element; children are escaped unless they are elements.

    The title is what to say where the pointer rests on it. An attribute of None is left out,
    ``class_`` stands for ``class``, and an underscore for a hyphen.
    """
    said = () if title is None else (element("title", title),)
    head = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(escape(child) for child in (*said, *children))
    whole = f"<{name}{head}>{inner}</{name}>" if inner else f"<{name}{head}/>"
    return Markup(whole)  # noqa: S704 - escaped above, and names are our own


def picture(height: float, label: str, *children: str) -> Markup:
    """Return a whole picture, which takes at most its own width and shrinks with the page."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {WIDTH} {_shown(height)}",
        width=WIDTH,
        height=height,
        role="img",
        aria_label=label,
        class_="chart",
    )


def group(*children: str, class_: str | None = None, title: str | None = None) -> Markup:
    """Return children together."""
    return element("g", *children, class_=class_, title=title)


def text(x: float, y: float, words: str, class_: str, *, anchor: str | None = None) -> Markup:
    """Return words, which begin at `x`, unless `anchor` is ``middle`` or ``end``."""
    return element("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line."""
    return element("path", d=f"M{_shown(x1)} {_shown(y1)}L{_shown(x2)} {_shown(y2)}", class_=class_)


def path(points: Iterable[tuple[float, float]], class_: str, *, closed: bool = False) -> Markup:
    """Return a line through points, or the area within."""
    steps = " ".join(f"{_shown(x)} {_shown(y)}" for x, y in points)
    return element("path", d=f"M{steps}{'Z' if closed else ''}", class_=class_)


def area(rings: Iterable[Iterable[tuple[float, float]]], class_: str, title: str) -> Markup:
    """Return an area of several parts; a ring within another one is a hole."""
    drawn = (" ".join(f"{_shown(x)} {_shown(y)}" for x, y in ring) for ring in rings)
    steps = "".join(f"M{ring}Z" for ring in drawn)
    return element("path", d=steps, fill_rule="evenodd", class_=class_, title=title)


def rect(
    x: float, y: float, width: float, height: float, class_: str, *, title: str | None = None
) -> Markup:
    """Return a rectangle."""
    return element("rect", x=x, y=y, width=width, height=height, class_=class_, title=title)


_SHAPES = {
    "circle": "M-{r} 0A{r} {r} 0 1 0 {r} 0A{r} {r} 0 1 0 -{r} 0Z",
    "square": "M-{r} -{r}H{r}V{r}H-{r}Z",
    "diamond": "M0 -{r}L{r} 0L0 {r}L-{r} 0Z",
    "triangle": "M0 -{r}L{r} {r}H-{r}Z",
    "down": "M0 {r}L{r} -{r}H-{r}Z",
    "cross": "M-{r} -{r}L{r} {r}M{r} -{r}L-{r} {r}",
}
SHAPES = tuple(_SHAPES)


def mark(x: float, y: float, shape: str, class_: str = "mark", *, radius: float = 4.5) -> Markup:
    """Return a mark of a shape around a point."""
    drawn, place = _SHAPES[shape].format(r=_shown(radius)), f"translate({_shown(x)} {_shown(y)})"
    return element("path", d=drawn, transform=place, class_=class_)


def _shown(value: object) -> str:
    """Write numbers with one decimal at most, which is a tenth of a pixel."""
    if isinstance(value, float):
        shown = f"{value:.1f}".removesuffix(".0")
        return "0" if shown == "-0" else shown
    return str(value)


@dataclass(frozen=True)
class Linear:
    """Where values lie along one side of a picture, in equal steps.

    `low` and `high` are the values at the ends, `first` and `last` their places in pixels.
    """

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        """Return the place of a value; values beyond the ends lie at the ends."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.first + min(max(share, 0.0), 1.0) * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        """Return a few round values to mark, with their texts."""
        rough = (self.high - self.low) / 5 or 1.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [(i * step, f"{i * step:,.{digits}f}") for i in range(first, last + 1)]


class Logarithmic(Linear):
    """The same in equal factors, for values above 0; 0 lies at the lower end."""

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


class Key(NamedTuple):
    """How a line or, where it has a shape, a mark is drawn, and what it means."""

    words: str
    class_: str
    shape: str = ""


@dataclass(frozen=True)
class Field:
    """The space within the axes, in pixels, below a legend; `room` is for words between them."""

    height: float
    left: float
    right: float
    keys: Sequence[Key] = ()
    room: float = 34

    @property
    def top(self) -> float:
        """Where it begins."""
        return float(_KEY_HEIGHT * len(self.keys) + self.room)

    @property
    def bottom(self) -> float:
        """Where it ends."""
        return self.top + self.height


def plot(
    title: str,
    field: Field,
    marks: Iterable[str],
    *,
    across: tuple[Linear, str],
    up: tuple[Linear, str] | None = None,
) -> Markup:
    """Return a picture: a legend, and marks in a field with axes.

    `across` and `up` are the scales to the right and upwards, with what their values are.
    """
    drawn = [*_legend(field.keys), *_horizontal_axis(field, *across)]
    drawn += [] if up is None else _vertical_axis(field, *up)
    border = rect(field.left, field.top, field.right - field.left, field.height, "border")
    return picture(field.bottom + 42, title, *drawn, border, *marks)


def _horizontal_axis(field: Field, scale: Linear, words: str) -> Iterator[str]:
    """Draw grid lines, values below them, and what they mean."""
    for value, shown in scale.ticks():
        x = scale(value)
        yield line(x, field.top, x, field.bottom, "grid")
        yield text(x, field.bottom + 16, shown, "tick", anchor="middle")
    middle = (field.left + field.right) / 2
    yield text(middle, field.bottom + 34, words, "axis", anchor="middle")


def _vertical_axis(field: Field, scale: Linear, words: str) -> Iterator[str]:
    """Draw grid lines, values left of them, and what they mean above."""
    for value, shown in scale.ticks():
        y = scale(value)
        yield line(field.left, y, field.right, y, "grid")
        yield text(field.left - 6, y + 4, shown, "tick", anchor="end")
    yield text(4, field.top - 10, words, "axis")


def _legend(keys: Sequence[Key]) -> Iterator[str]:
    for i, key in enumerate(keys):
        y = 12.0 + _KEY_HEIGHT * i
        if not key.shape:
            yield line(8, y - 4, 26, y - 4, key.class_)
        else:
            yield group(mark(17, y - 4, key.shape), class_=key.class_)
        yield text(32, y, shortened(key.words, _LETTERS), "key")
