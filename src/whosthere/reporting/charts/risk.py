"""Risk by protection: one row each, or against what is left to publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.axes import WIDTH, Field, Key, Linear, plot
from whosthere.reporting.charts.svg import SHAPES, Chart, element, group, line, mark, text
from whosthere.reporting.words import shortened, with_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from whosthere.auditing.verdict import Decision
    from whosthere.inference.finding import Finding

_ROW = 18
_LETTERS = 58
_STYLES = 6


DECISIONS: dict[Decision, Key] = {
    "accept": Key("accept", "accept", "circle"),
    "reject": Key("reject", "reject", "square"),
    "cannot tell": Key("cannot tell", "unsure", "diamond"),
}


def numbered_keys(names: Sequence[str]) -> dict[str, Key]:
    """Return a way to draw for each name, in the order of the style sheet."""
    return {name: Key(name, f"s{i % _STYLES}", SHAPES[i % _STYLES]) for i, name in enumerate(names)}


@dataclass(frozen=True)
class Dot:
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


@dataclass(frozen=True)
class Protection:
    """The values of one protection.

    Attributes
    ----------
    ceiling, guarantee
        The two lines that bound attacks, None where there is no such bound.
    number
        Of the protection in all tables, from 1.
    kept
        What is left to publish, from 0 to 1; None where that was not measured.
    """

    label: str
    dots: tuple[Dot, ...]
    ceiling: float | None = None
    guarantee: float | None = None
    number: int = 0
    kept: float | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """The lines that bound attacks, by name."""
        known = {"ceiling": self.ceiling, "guarantee": self.guarantee}
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, eq=False)
class DotChart(Chart):
    """Values with intervals on one axis, one row for each protection, below its label.

    Attributes
    ----------
    risk
        What the values are.
    limit
        The most that the policy allows, None without a limit.
    low, high
        The ends of the axis.
    """

    risk: str
    rows: tuple[Protection, ...]
    limit: float | None
    low: float
    high: float

    def draw(self) -> Markup:
        keys = tuple(self._keys())
        heights = [24 + _ROW * max(len(row.dots), 1) for row in self.rows]
        field = Field.below(keys, sum(heights) + 6, left=8, right=WIDTH - 12, room=10)
        scale = Linear(self.low, self.high, field.left + 6, field.right - 6)
        marks: list[str] = []
        if self.limit is not None:
            x = scale(self.limit)
            limit = line(x, field.top, x, field.bottom, "limit")
            marks.append(group(limit, title=self._limit_in_words()))
        y = field.top + 4
        for row, height in zip(self.rows, heights, strict=True):
            marks += _row(row, scale, y, height)
            y += height
        return plot(self.title, field, marks, across=(scale, self.risk), keys=keys)

    def _keys(self) -> Iterator[Key]:
        yield from dict.fromkeys(dot.key for row in self.rows for dot in row.dots)
        if self.limit is not None:
            yield Key(self._limit_in_words(), "limit")
        if any(row.ceiling is not None for row in self.rows):
            yield Key("ceiling: the best test, knowing everybody else", "ceiling")
        if any(row.guarantee is not None for row in self.rows):
            yield Key("guarantee: nobody can exceed this", "guarantee")

    def _limit_in_words(self) -> str:
        return f"limit of the policy: {self.limit:g}"


@dataclass(frozen=True, eq=False)
class TradeOff(DotChart):
    """Risk upwards, what is kept to the right: the best place is at the lower right.

    Attributes
    ----------
    kept
        What is left to publish; each row has one value and what it keeps.
    floor
        The least that the policy asks to keep, None without a floor.
    """

    kept: str
    floor: float | None

    def draw(self) -> Markup:
        keys = tuple(self._keys())
        field = Field.below(keys, 300, left=44, right=WIDTH - 14)
        floor = 0.0 if self.floor is None else self.floor
        kept = [floor, *(row.kept or 0.0 for row in self.rows)]
        least, most = max(min(kept) - 0.1, 0.0), min(max(kept) + 0.1, 1.0)
        x = Linear(least, most, field.left + 12, field.right - 14)
        y = Linear(self.low, self.high, field.bottom - 8, field.top + 10)
        marks: list[str] = []
        if self.limit is not None:
            at, edge = y(self.limit), max(x(floor), field.left)
            width, height = field.right - edge, field.bottom - at
            marks += [
                element("rect", x=edge, y=at, width=width, height=height, class_="allowed"),
                line(field.left, at, field.right, at, "limit"),
            ]
        if self.floor is not None:
            marks.append(line(x(self.floor), field.top, x(self.floor), field.bottom, "limit"))
        for row in self.rows:
            marks += _point(row, x(row.kept or 0.0), y)
        return plot(self.title, field, marks, across=(x, self.kept), up=(y, self.risk), keys=keys)

    def _limit_in_words(self) -> str:
        floor = "" if self.floor is None else f"; kept at least {self.floor:g}"
        return super()._limit_in_words() + floor


def _row(row: Protection, scale: Linear, y: float, height: float) -> Iterator[str]:
    yield text(14, y + 14, shortened(row.label, _LETTERS), class_="label")
    for name, value in row.bounds.items():
        x = scale(value)
        yield group(line(x, y + 20, x, y + height - 2, name), title=f"{name}: {value:.3f}")
    for i, dot in enumerate(row.dots):
        middle = y + 20 + _ROW * (i + 0.5)
        marks = []
        if dot.low is not None and dot.high is not None:
            marks.append(line(scale(dot.low), middle, scale(dot.high), middle, "interval"))
        marks.append(mark(scale(dot.estimate), middle, dot.key.shape, "mark"))
        yield group(*marks, class_=dot.key.class_, title=dot.title)


def _point(row: Protection, x: float, y: Linear) -> Iterator[str]:
    for name, value in row.bounds.items():
        bound = line(x - 8, y(value), x + 8, y(value), name)
        yield group(bound, title=f"{name} of {row.number}: {value:.3f}")
    for dot in row.dots:
        marks = []
        if dot.low is not None and dot.high is not None:
            marks.append(line(x, y(dot.low), x, y(dot.high), "interval"))
        # A diamond has less room for a number.
        radius = 10 if dot.key.shape == "diamond" else 7.5
        marks.append(mark(x, y(dot.estimate), dot.key.shape, "mark", radius=radius))
        marks.append(
            text(x, y(dot.estimate) + 4, str(row.number), class_="number", anchor="middle")
        )
        yield group(*marks, class_=dot.key.class_, title=dot.title)
