"""Risk against what is left to publish: the picture that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.dots import DECISIONS
from whosthere.reporting.charts.frame import Field, border, horizontal_axis, vertical_axis
from whosthere.reporting.charts.legend import Key, legend
from whosthere.reporting.charts.scales import Linear
from whosthere.reporting.charts.svg import element, group, line, mark, picture, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup

    from whosthere.auditing.verdict import Decision

_WIDTH, _FIELD_HEIGHT = 420, 300


@dataclass(frozen=True)
class TradeOffPoint:
    """One protection: its number in the table, its risk and what it keeps."""

    number: int
    decision: Decision
    risk: float
    low: float | None
    high: float | None
    kept: float
    ceiling: float | None
    guarantee: float | None
    title: str


@dataclass(frozen=True)
class TradeOff:
    """Risk upwards, what is kept to the right; the best place is at the lower right.

    Attributes
    ----------
    title
        What the picture shows, for those who cannot see it.
    risk, kept
        What the axes are.
    limit
        The most risk that the policy allows, None without a limit.
    low, high
        The ends of the axis of risk.
    """

    title: str
    risk: str
    kept: str
    points: tuple[TradeOffPoint, ...]
    limit: float | None
    floor: float | None
    low: float
    high: float


def draw_trade_off(chart: TradeOff) -> Markup:
    """Draw numbered points with intervals, and the lines that bound attacks."""
    keys = tuple(_keys(chart))
    top = 14.0 * len(keys) + 34
    field = Field(44, top, _WIDTH - 14, top + _FIELD_HEIGHT)
    floor = 0.0 if chart.floor is None else chart.floor
    kept = [floor, *(point.kept for point in chart.points)]
    x = Linear(
        max(min(kept) - 0.1, 0.0), min(max(kept) + 0.1, 1.0), field.left + 12, field.right - 14
    )
    y = Linear(chart.low, chart.high, field.bottom - 8, field.top + 10)
    drawn = [*legend(keys, x=8, y=12), *horizontal_axis(field, x, chart.kept)]
    drawn += [*vertical_axis(field, y, chart.risk), border(field)]
    if chart.limit is not None:
        at, edge = y(chart.limit), max(x(floor), field.left)
        drawn += [
            element(
                "rect",
                x=edge,
                y=at,
                width=field.right - edge,
                height=field.bottom - at,
                class_="allowed",
            ),
            line(field.left, at, field.right, at, "limit"),
        ]
    if chart.floor is not None:
        drawn.append(line(x(chart.floor), field.top, x(chart.floor), field.bottom, "limit"))
    for point in chart.points:
        drawn += _point(point, x, y)
    return picture(_WIDTH, field.bottom + 42, chart.title, *drawn)


def _point(point: TradeOffPoint, x: Linear, y: Linear) -> Iterator[str]:
    at = x(point.kept)
    for name, value in (("ceiling", point.ceiling), ("guarantee", point.guarantee)):
        if value is not None:
            level = y(value)
            yield group(
                line(at - 8, level, at + 8, level, name),
                title=f"{name} of {point.number}: {value:.3f}",
            )
    series, marks = DECISIONS[point.decision], []
    if point.low is not None and point.high is not None:
        marks.append(line(at, y(point.low), at, y(point.high), "interval"))
    # A diamond has less room for a number.
    radius = 10 if series.shape == "diamond" else 7.5
    marks.append(mark(at, y(point.risk), series.shape, "mark", radius=radius))
    marks.append(text(at, y(point.risk) + 4, str(point.number), class_="number", anchor="middle"))
    yield group(*marks, class_=series.class_, title=point.title)


def _keys(chart: TradeOff) -> Iterator[Key]:
    for decision in dict.fromkeys(point.decision for point in chart.points):
        series = DECISIONS[decision]
        yield Key(series.name, series.class_, shape=series.shape)
    if chart.limit is not None:
        floor = "" if chart.floor is None else f"; kept at least {chart.floor:g}"
        yield Key(f"limit of the policy: {chart.limit:g}{floor}", "limit")
    if any(point.ceiling is not None for point in chart.points):
        yield Key("ceiling: the best test, knowing everybody else", "ceiling")
    if any(point.guarantee is not None for point in chart.points):
        yield Key("guarantee: nobody can exceed this", "guarantee")
