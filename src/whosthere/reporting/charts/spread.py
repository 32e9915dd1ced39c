"""How risk is spread over people: a histogram with a mark for everybody below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.display import counted
from whosthere.reporting.charts.frame import Field, border, horizontal_axis, vertical_axis
from whosthere.reporting.charts.scales import Linear
from whosthere.reporting.charts.svg import element, group, line, picture, text

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDTH, _HEIGHT, _BINS = 420, 150, 20


@dataclass(frozen=True)
class Spread:
    """The risk of each target, from 0 to 1, and values to mark by name."""

    title: str
    axis: str
    values: tuple[float, ...]
    marked: tuple[tuple[str, float], ...]


def draw_spread(chart: Spread) -> Markup:
    """Draw the histogram, and percentiles as lines through it."""
    counts = [0] * _BINS
    for value in chart.values:
        # 0.95 is a little less in binary, and belongs to the bin that begins with it.
        counts[min(int(value * _BINS + 1e-9), _BINS - 1)] += 1
    field = Field(44, 58, _WIDTH - 12, 58 + _HEIGHT)
    x = Linear(0, 1, field.left, field.right)
    y = Linear(0, max(*counts, 4), field.bottom, field.top)
    drawn = [*horizontal_axis(field, x, chart.axis), *vertical_axis(field, y, "targets")]
    drawn.append(border(field))
    for i, count in enumerate(counts):
        if count:
            bar = element(
                "rect",
                x=x(i / _BINS) + 1,
                y=y(count),
                width=x((i + 1) / _BINS) - x(i / _BINS) - 2,
                height=field.bottom - y(count),
                class_="bar",
            )
            span = f"{i / _BINS:.2f} to {(i + 1) / _BINS:.2f}"
            drawn.append(
                group(bar, title=f"{count} of {counted(len(chart.values), 'target')}: {span}")
            )
    for i, (name, value) in enumerate(chart.marked):
        at, level = x(value), 14.0 + 13 * i
        drawn.append(line(at, level, at, field.bottom, "marked"))
        ends = "end" if value > 0.5 else "start"
        shift = -4 if value > 0.5 else 4
        drawn.append(text(at + shift, level + 4, f"{name} {value:.2f}", class_="tick", anchor=ends))
    return picture(_WIDTH, field.bottom + 42, chart.title, *drawn)
