"""Elements of SVG, with everything that comes in escaped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, eq=False)
class Chart(ABC):
    """What a picture shows; `title` says it for those who cannot see it."""

    title: str

    @abstractmethod
    def draw(self) -> Markup:
        """Return the picture as SVG."""


def element(name: str, *children: str, **attributes: object) -> Markup:
    """Return an element; children are escaped unless they are elements.

    An attribute of None is left out, ``class_`` stands for ``class``, and an underscore for a
    hyphen.
    """
    head = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(escape(child) for child in children)
    whole = f"<{name}{head}>{inner}</{name}>" if inner else f"<{name}{head}/>"
    return Markup(whole)  # noqa: S704 - escaped above, and names are our own


def picture(width: float, height: float, label: str, *children: str, class_: str = "") -> Markup:
    """Return a whole picture, which takes at most its own width and shrinks with the page."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {_shown(width)} {_shown(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        class_=f"chart {class_}".strip(),
    )


def group(*children: str, class_: str | None = None, title: str | None = None) -> Markup:
    """Return children together, with what to say where the pointer rests on one of them."""
    said = () if title is None else (element("title", title),)
    return element("g", *said, *children, class_=class_)


def text(x: float, y: float, words: str, *, class_: str, anchor: str = "start") -> Markup:
    """Return words; `anchor` tells which end of them stands at `x`."""
    ends = None if anchor == "start" else anchor
    return element("text", words, x=x, y=y, class_=class_, text_anchor=ends)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line."""
    return element("path", d=f"M{_shown(x1)} {_shown(y1)}L{_shown(x2)} {_shown(y2)}", class_=class_)


def path(points: Iterable[tuple[float, float]], class_: str, *, closed: bool = False) -> Markup:
    """Return a line through points, or the area within."""
    steps = " ".join(f"{_shown(x)} {_shown(y)}" for x, y in points)
    return element("path", d=f"M{steps}{'Z' if closed else ''}", class_=class_)


_SHAPES = {
    "circle": "M-{r} 0A{r} {r} 0 1 0 {r} 0A{r} {r} 0 1 0 -{r} 0Z",
    "square": "M-{r} -{r}H{r}V{r}H-{r}Z",
    "diamond": "M0 -{r}L{r} 0L0 {r}L-{r} 0Z",
    "triangle": "M0 -{r}L{r} {r}H-{r}Z",
    "down": "M0 {r}L{r} -{r}H-{r}Z",
    "cross": "M-{r} -{r}L{r} {r}M{r} -{r}L-{r} {r}",
}
SHAPES = tuple(_SHAPES)


def mark(x: float, y: float, shape: str, class_: str, *, radius: float = 4.5) -> Markup:
    """Return a mark of a shape around a point."""
    return element(
        "path",
        d=_SHAPES[shape].format(r=_shown(radius)),
        transform=f"translate({_shown(x)} {_shown(y)})",
        class_=class_,
    )


def _shown(value: object) -> str:
    """Write numbers with one decimal at most, which is a tenth of a pixel."""
    if isinstance(value, float):
        shown = f"{value:.1f}".removesuffix(".0")
        return "0" if shown == "-0" else shown
    return str(value)
