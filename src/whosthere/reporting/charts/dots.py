"""Values with intervals, one row for each protection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.frame import Field, border, horizontal_axis
from whosthere.reporting.charts.legend import Key, legend
from whosthere.reporting.charts.scales import Linear
from whosthere.reporting.charts.svg import SHAPES, group, line, mark, picture, text
from whosthere.reporting.numbers import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from whosthere.auditing.verdict import Decision

_WIDTH = 420
_ROW = 18
_LETTERS = 58
_STYLES = 6


@dataclass(frozen=True)
class Series:
    """What some values have in common: a name, and how it is drawn."""

    name: str
    class_: str
    shape: str


@dataclass(frozen=True)
class Dot:
    """One value, with its interval where it has one."""

    series: Series
    estimate: float
    low: float | None
    high: float | None
    title: str


@dataclass(frozen=True)
class DotRow:
    """The values of one protection, with the two lines that bound attacks."""

    label: str
    dots: tuple[Dot, ...]
    ceiling: float | None = None
    guarantee: float | None = None


@dataclass(frozen=True)
class DotChart:
    """Rows of values on one axis.

    Attributes
    ----------
    title
        What the picture shows, for those who cannot see it.
    axis
        What the values are.
    limit
        The most that the policy allows, None without a limit.
    low, high
        The ends of the axis.
    """

    title: str
    axis: str
    rows: tuple[DotRow, ...]
    limit: float | None
    low: float
    high: float


def numbered_series(names: Sequence[str]) -> dict[str, Series]:
    """Return a way to draw for each name, in the order of the style sheet."""
    return {
        name: Series(name, f"s{i % _STYLES}", SHAPES[i % _STYLES]) for i, name in enumerate(names)
    }


DECISIONS: dict[Decision, Series] = {
    "accept": Series("accept", "accept", "circle"),
    "reject": Series("reject", "reject", "square"),
    "cannot tell": Series("cannot tell", "unsure", "diamond"),
}


def draw_dots(chart: DotChart) -> Markup:
    """Draw the rows one below the other, each below its label."""
    keys = tuple(_keys(chart))
    top = 14.0 * len(keys) + 10
    heights = [24 + _ROW * max(len(row.dots), 1) for row in chart.rows]
    field = Field(8, top, _WIDTH - 12, top + sum(heights) + 6)
    scale = Linear(chart.low, chart.high, field.left + 6, field.right - 6)
    drawn = [*legend(keys, x=8, y=12), *horizontal_axis(field, scale, chart.axis), border(field)]
    if chart.limit is not None:
        x = scale(chart.limit)
        drawn.append(group(line(x, field.top, x, field.bottom, "limit"), title=_limit(chart)))
    y = field.top + 4
    for row, height in zip(chart.rows, heights, strict=True):
        drawn += _row(row, scale, y, height)
        y += height
    return picture(_WIDTH, field.bottom + 42, chart.title, *drawn)


def _row(row: DotRow, scale: Linear, y: float, height: float) -> Iterator[str]:
    yield text(14, y + 14, shortened(row.label, _LETTERS), class_="label")
    for line_of, value in (("ceiling", row.ceiling), ("guarantee", row.guarantee)):
        if value is not None:
            x = scale(value)
            yield group(
                line(x, y + 20, x, y + height - 2, line_of), title=f"{line_of}: {value:.3f}"
            )
    for i, dot in enumerate(row.dots):
        middle = y + 20 + _ROW * (i + 0.5)
        marks = []
        if dot.low is not None and dot.high is not None:
            marks.append(line(scale(dot.low), middle, scale(dot.high), middle, "interval"))
        marks.append(mark(scale(dot.estimate), middle, dot.series.shape, "mark"))
        yield group(*marks, class_=dot.series.class_, title=dot.title)


def _keys(chart: DotChart) -> Iterator[Key]:
    for series in dict.fromkeys(dot.series for row in chart.rows for dot in row.dots):
        yield Key(series.name, series.class_, shape=series.shape)
    if chart.limit is not None:
        yield Key(_limit(chart), "limit")
    if any(row.ceiling is not None for row in chart.rows):
        yield Key("ceiling: the best test, knowing everybody else", "ceiling")
    if any(row.guarantee is not None for row in chart.rows):
        yield Key("guarantee: nobody can exceed this", "guarantee")


def _limit(chart: DotChart) -> str:
    return f"limit of the policy: {chart.limit:g}"
