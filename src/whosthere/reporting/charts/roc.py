"""ROC curves: people found against false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.axes import Field, Key, Linear, Logarithmic, plot
from whosthere.reporting.charts.svg import Chart, element, mark, path

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from markupsafe import Markup
    from numpy.typing import NDArray

    from whosthere.reporting.charts.axes import Scale

_SIDE = 320


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
class RocChart(Chart):
    """The curves of one protection with their bands, and the diagonal of guessing.

    Attributes
    ----------
    guaranteed
        The most people whom anybody can find at 1 % false alarms; None without a guarantee.
    smallest
        The smallest rate that is shown on logarithmic axes; None for linear axes.
    """

    curves: tuple[Curve, ...]
    guaranteed: float | None
    smallest: float | None

    def draw(self) -> Markup:
        keys = [*(Key(curve.name, curve.class_) for curve in self.curves), Key("guessing", "guess")]
        if self.guaranteed is not None:
            keys.append(Key("guarantee at 1 % false alarms", "guaranteed", shape="cross"))
        field = Field.below(keys, _SIDE, left=52, right=52 + _SIDE)
        x, y = self._scale(field.left, field.right), self._scale(field.bottom, field.top)
        least = self.smallest or 0.0
        marks: list[str] = [path(((x(v), y(v)) for v in (least, 1.0)), "guess")]
        marks += [part for curve in self.curves for part in _curve(curve, x, y, least)]
        if self.guaranteed is not None:
            marks.append(mark(x(0.01), y(self.guaranteed), "cross", "guaranteed"))
        across, up = (x, "false alarms (FPR)"), (y, "people found (TPR)")
        return plot(self.title, field, marks, across=across, up=up, keys=keys)

    def _scale(self, first: float, last: float) -> Scale:
        if self.smallest is None:
            return Linear(0, 1, first, last)
        return Logarithmic(self.smallest, 1, first, last)


def _curve(curve: Curve, x: Scale, y: Scale, least: float) -> Iterator[str]:
    shown = curve.fpr >= least * 0.999
    fpr = curve.fpr[shown]
    lower, middle, upper = (
        _thinned([(x(f), y(v)) for f, v in zip(fpr, values[shown], strict=True)])
        for values in (curve.low, curve.tpr, curve.high)
    )
    band = path(upper + lower[::-1], f"band {curve.class_}", closed=True)
    name, line = element("title", curve.name), path(middle, curve.class_)
    yield element("g", name, band, line, data_attack=curve.name)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out points on a straight line between their neighbours."""
    kept = points[:1]
    for i in range(1, len(points) - 1):
        (x0, y0), (x1, y1), (x2, y2) = kept[-1], points[i], points[i + 1]
        if abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)) > 0.5:
            kept.append(points[i])
    return kept + points[1:][-1:]
