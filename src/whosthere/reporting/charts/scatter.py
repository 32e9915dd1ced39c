"""One thing against another, a point for each target, region or hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.frame import Field, border, horizontal_axis, vertical_axis
from whosthere.reporting.charts.scales import Linear, Logarithmic
from whosthere.reporting.charts.svg import element, group, line, picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from whosthere.reporting.charts.scales import Scale

_WIDTH, _HEIGHT = 420, 220


@dataclass(frozen=True)
class Scatter:
    """Points with what each says.

    Attributes
    ----------
    title
        What the picture shows, for those who cannot see it.
    x_axis, y_axis
        What the axes are.
    points
        x, y and what to say of each, empty where there are too many to say something of each.
    logarithmic
        Whether steps to the right are factors.
    diagonal
        Whether both axes are the same, with a line where they agree.
    """

    title: str
    x_axis: str
    y_axis: str
    points: tuple[tuple[float, float, str], ...]
    logarithmic: bool = False
    diagonal: bool = False


def draw_scatter(chart: Scatter) -> Markup:
    """Draw the points; what is risk lies between 0 and 1."""
    field = Field(60 if chart.diagonal else 44, 34, _WIDTH - 14, 34 + _HEIGHT)
    xs, ys = [p[0] for p in chart.points], [p[1] for p in chart.points]
    if chart.diagonal:
        most = max([*xs, *ys, 1e-9]) * 1.05
        x: Scale = Linear(0, most, field.left, field.right)
        y: Scale = Linear(0, most, field.bottom, field.top)
    else:
        x = _across(xs, field, logarithmic=chart.logarithmic)
        y = Linear(0, 1, field.bottom - 5, field.top + 5)
    drawn = [*horizontal_axis(field, x, chart.x_axis), *vertical_axis(field, y, chart.y_axis)]
    drawn.append(border(field))
    if chart.diagonal:
        drawn.append(line(field.left, field.bottom, field.right, field.top, "guess"))
    marks = (_mark(x(across), y(up), said) for across, up, said in chart.points)
    drawn.append(group(*marks, class_="points"))
    return picture(_WIDTH, field.bottom + 42, chart.title, *drawn)


def _mark(x: float, y: float, said: str) -> Markup:
    title = (element("title", said),) if said else ()
    return element("circle", *title, cx=x, cy=y, r=3.5)


def _across(values: Sequence[float], field: Field, *, logarithmic: bool) -> Scale:
    least, most = min(values, default=0.0), max(values, default=1.0)
    if logarithmic and least > 0:
        return Logarithmic(least / 1.2, most * 1.2, field.left, field.right)
    margin = 0.04 * (most - least) or 0.5
    low = 0.0 if least >= 0 and least < 0.3 * most else least - margin
    return Linear(low, most + margin, field.left + 5, field.right)
