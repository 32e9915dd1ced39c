"""ROC curves: people found against false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.reporting.charts.frame import Field, border, horizontal_axis, vertical_axis
from whosthere.reporting.charts.legend import Key, legend
from whosthere.reporting.charts.scales import Linear, Logarithmic
from whosthere.reporting.charts.svg import element, mark, path, picture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup
    from numpy.typing import NDArray

    from whosthere.reporting.charts.scales import Scale

_WIDTH, _SIDE = 420, 320


@dataclass(frozen=True, eq=False)
class Curve:
    """One attack, or the ceiling.

    Attributes
    ----------
    fpr, tpr, low, high
        False alarms in ascending order, people found, and the band around them, shape (n,) each.
    class_
        Its style.
    """

    name: str
    class_: str
    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RocChart:
    """The curves of one protection.

    Attributes
    ----------
    title
        What the picture shows, for those who cannot see it.
    guaranteed
        The most people whom anybody can find at 1 % false alarms; None without a guarantee.
    smallest
        The smallest rate that is shown on logarithmic axes; None for linear axes.
    """

    title: str
    curves: tuple[Curve, ...]
    guaranteed: float | None
    smallest: float | None


def draw_roc(chart: RocChart) -> Markup:
    """Draw curves with their bands, and the diagonal of guessing."""
    keys = (*(Key(curve.name, curve.class_) for curve in chart.curves), Key("guessing", "guess"))
    if chart.guaranteed is not None:
        keys = (*keys, Key("guarantee at 1 % false alarms", "guaranteed", shape="cross"))
    top = 14.0 * len(keys) + 34
    field = Field(52, top, 52 + _SIDE, top + _SIDE)
    x, y = _scales(chart, field)
    diagonal = np.geomspace(chart.smallest, 1, 2) if chart.smallest else np.array([0.0, 1.0])
    drawn = [*legend(keys, x=8, y=12)]
    drawn += horizontal_axis(field, x, "false alarms (FPR)")
    drawn += [*vertical_axis(field, y, "people found (TPR)"), border(field)]
    drawn.append(path(((x(v), y(v)) for v in diagonal), "guess"))
    drawn += [part for curve in chart.curves for part in _curve(curve, x, y, chart.smallest)]
    if chart.guaranteed is not None:
        drawn.append(mark(x(0.01), y(chart.guaranteed), "cross", "guaranteed"))
    return picture(_WIDTH, field.bottom + 42, chart.title, *drawn)


def _scales(chart: RocChart, field: Field) -> tuple[Scale, Scale]:
    if chart.smallest is None:
        return (
            Linear(0, 1, field.left, field.right),
            Linear(0, 1, field.bottom, field.top),
        )
    return (
        Logarithmic(chart.smallest, 1, field.left, field.right),
        Logarithmic(chart.smallest, 1, field.bottom, field.top),
    )


def _curve(curve: Curve, x: Scale, y: Scale, smallest: float | None) -> Iterator[str]:
    shown = slice(None) if smallest is None else curve.fpr >= smallest * 0.999
    fpr = curve.fpr[shown]
    upper = [(x(f), y(v)) for f, v in zip(fpr, curve.high[shown], strict=True)]
    lower = [(x(f), y(v)) for f, v in zip(fpr, curve.low[shown], strict=True)]
    middle = [(x(f), y(v)) for f, v in zip(fpr, curve.tpr[shown], strict=True)]
    band = path(_thinned(upper) + _thinned(lower)[::-1], f"band {curve.class_}", closed=True)
    yield element(
        "g",
        element("title", curve.name),
        band,
        path(_thinned(middle), curve.class_),
        data_attack=curve.name,
    )


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out points on a straight line between their neighbours."""
    kept = points[:1]
    for i in range(1, len(points) - 1):
        (x0, y0), (x1, y1), (x2, y2) = kept[-1], points[i], points[i + 1]
        if abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)) > 0.5:
            kept.append(points[i])
    return kept + points[1:][-1:]
