"""Risk by protection: one row each, or against what is left to publish."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from whosthere.inference.vocabulary import CEILING, GUARANTEE
from whosthere.reporting.charts import svg
from whosthere.reporting.charts.svg import WIDTH, Chart, Field, Key, Linear, plot
from whosthere.reporting.words import shortened, with_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from markupsafe import Markup

    from whosthere.inference.finding import Finding

_ROW = 18
_LETTERS = 58
OUTCOMES = {
    "accept": Key("accept", "accept", "circle"),
    "reject": Key("reject", "reject", "square"),
    "cannot tell": Key("cannot tell", "unsure", "diamond"),
    "useless": Key("useless: safe, but too little is left", "useless", "down"),
}
BOUNDS = {
    CEILING: Key("ceiling: the best test, knowing everybody else", CEILING),
    GUARANTEE: Key("guarantee: nobody can exceed this", GUARANTEE),
}
"""The lines that bound all attacks."""


def numbered_keys(names: Sequence[str]) -> dict[str, Key]:
    """Return a way to draw for each name, in the order of the style sheet."""
    n = len(svg.SHAPES)
    return {name: Key(name, f"s{i % n}", svg.SHAPES[i % n]) for i, name in enumerate(names)}


class Dot(NamedTuple):
    """One value, with its interval where it has one."""

    key: Key
    estimate: float
    low: float | None
    high: float | None
    title: str

    @classmethod
    def of(cls, key: Key, finding: Finding | None, said: str) -> tuple[Dot, ...]:
        """Return a finding, nothing where there is no value; `said` stands before the value."""
        if finding is None or finding.estimate is None:
            return ()
        title = f"{said} {with_interval(finding)}"
        return (cls(key, finding.estimate, finding.low, finding.high, title),)

    def draw(
        self, place: Callable[[float], tuple[float, float]], number: str = "", radius: float = 4.5
    ) -> Markup:
        """Return the value at its place, with a number in it."""
        x, y = place(self.estimate)
        marks = [svg.mark(x, y, self.key.shape, radius=radius)]
        if self.low is not None and self.high is not None:
            marks.insert(0, svg.line(*place(self.low), *place(self.high), "interval"))
        if number:
            marks.append(svg.text(x, y + 4, number, "number", anchor="middle"))
        return svg.group(*marks, class_=self.key.class_, title=self.title)


@dataclass(frozen=True)
class Protection:
    """The values of one protection.

    `bounds` are the lines that bound attacks, by name; `number` is that of the protection in all
    tables, from 1; and `kept` what is left to publish, from 0 to 1, where that was measured.
    """

    label: str
    dots: tuple[Dot, ...]
    bounds: Mapping[str, float] = field(default_factory=dict)
    number: int = 0
    kept: float | None = None


@dataclass(frozen=True, eq=False)
class DotChart(Chart):
    """Values with intervals on one axis, one row for each protection, below its label.

    `risk` is what the values are, `limit` the most that the policy allows, if it has a limit, and
    `low` and `high` are the ends of the axis.
    """

    risk: str
    rows: tuple[Protection, ...]
    limit: float | None
    low: float
    high: float

    def draw(self) -> Markup:
        heights = [24 + _ROW * max(len(row.dots), 1) for row in self.rows]
        field = Field(sum(heights) + 6, 8, WIDTH - 12, tuple(self._keys()), room=10)
        scale = Linear(self.low, self.high, field.left + 6, field.right - 6)
        marks: list[str] = []
        if self.limit is not None:
            x = scale(self.limit)
            limit = svg.line(x, field.top, x, field.bottom, "limit")
            marks.append(svg.group(limit, title=self._limit_in_words()))
        y = field.top + 4
        for row, height in zip(self.rows, heights, strict=True):
            marks += _row(row, scale, y, height)
            y += height
        return plot(self.title, field, marks, across=(scale, self.risk))

    def _keys(self) -> Iterator[Key]:
        yield from dict.fromkeys(dot.key for row in self.rows for dot in row.dots)
        if self.limit is not None:
            yield Key(self._limit_in_words(), "limit")
        for name, key in BOUNDS.items():
            if any(name in row.bounds for row in self.rows):
                yield key

    def _limit_in_words(self) -> str:
        return f"limit of the policy: {self.limit:g}"


@dataclass(frozen=True, eq=False)
class TradeOff(DotChart):
    """Risk upwards, what is kept to the right: the best place is at the lower right.

    `kept` is what is left to publish; each row has one value and what it keeps. `floor` is the
    least that the policy asks to keep, None without a floor. `front` has the numbers of those that
    no other one beats, from the least risk to the most: all others are faint.
    """

    kept: str
    floor: float | None
    front: tuple[int, ...] = ()

    def draw(self) -> Markup:
        field = Field(300, 44, WIDTH - 14, tuple(self._keys()))
        floor = 0.0 if self.floor is None else self.floor
        kept = [floor, *(row.kept or 0.0 for row in self.rows)]
        least, most = max(min(kept) - 0.1, 0.0), min(max(kept) + 0.1, 1.0)
        x = Linear(least, most, field.left + 12, field.right - 14)
        y = Linear(self.low, self.high, field.bottom - 8, field.top + 10)
        marks: list[str] = []
        if self.limit is not None:
            at, edge = y(self.limit), max(x(floor), field.left)
            marks += [
                svg.rect(edge, at, field.right - edge, field.bottom - at, "allowed"),
                svg.line(field.left, at, field.right, at, "limit"),
            ]
        if self.floor is not None:
            marks.append(svg.line(x(self.floor), field.top, x(self.floor), field.bottom, "limit"))
        places = {row.number: (x(row.kept or 0.0), y(row.dots[0].estimate)) for row in self.rows}
        if self.front:
            marks.append(svg.path([places[one] for one in self.front], "front"))
        # What nothing beats is drawn last, and so lies on top.
        for row in sorted(self.rows, key=lambda row: row.number in self.front):
            point = _point(row, x(row.kept or 0.0), y)
            faint = self.front and row.number not in self.front
            marks += [svg.group(*point, class_="beaten")] if faint else point
        return plot(self.title, field, marks, across=(x, self.kept), up=(y, self.risk))

    def _keys(self) -> Iterator[Key]:
        yield from super()._keys()
        if self.front:
            yield Key("front: no other (faint) is better in both", "front")

    def _limit_in_words(self) -> str:
        floor = "" if self.floor is None else f"; kept at least {self.floor:g}"
        return super()._limit_in_words() + floor


def _row(row: Protection, scale: Linear, y: float, height: float) -> Iterator[str]:
    yield svg.text(14, y + 14, shortened(row.label, _LETTERS), "label")
    for name, value in row.bounds.items():
        x = scale(value)
        yield svg.group(svg.line(x, y + 20, x, y + height - 2, name), title=f"{name}: {value:.3f}")
    for i, dot in enumerate(row.dots):

        def place(value: float, middle: float = y + 20 + _ROW * (i + 0.5)) -> tuple[float, float]:
            return scale(value), middle

        yield dot.draw(place)


def _point(row: Protection, x: float, y: Linear) -> Iterator[str]:
    for name, value in row.bounds.items():
        bound = svg.line(x - 8, y(value), x + 8, y(value), name)
        yield svg.group(bound, title=f"{name} of {row.number}: {value:.3f}")
    for dot in row.dots:
        # Some shapes have less room for a number.
        radius = 10 if dot.key.shape in {"diamond", "down"} else 7.5
        yield dot.draw(lambda value: (x, y(value)), str(row.number), radius)
