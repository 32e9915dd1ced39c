"""What attacks reach: risk over targets, what it goes with, and people found by false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.display import counted
from whosthere.reporting.charts.axes import WIDTH, Field, Key, Linear, Logarithmic, plot
from whosthere.reporting.charts.svg import Chart, element, group, line, mark, path, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from markupsafe import Markup
    from numpy.typing import NDArray

    from whosthere.reporting.charts.axes import Scale

_BINS = 20
_SIDE = 320


@dataclass(frozen=True, eq=False)
class Spread(Chart):
    """A histogram of the risk of each target, from 0 to 1, and values to mark by name."""

    axis: str
    values: tuple[float, ...]
    marked: tuple[tuple[str, float], ...]

    def draw(self) -> Markup:
        counts = [0] * _BINS
        for value in self.values:
            # 0.95 is a little less in binary, and belongs to the bin that begins with it.
            counts[min(int(value * _BINS + 1e-9), _BINS - 1)] += 1
        field = Field.below((), 150, left=44, right=WIDTH - 12, room=58)
        x = Linear(0, 1, field.left, field.right)
        y = Linear(0, max(*counts, 4), field.bottom, field.top)
        marks = [*self._bars(counts, x, y), *self._lines(x, field.bottom)]
        return plot(self.title, field, marks, across=(x, self.axis), up=(y, "targets"))

    def _bars(self, counts: list[int], x: Linear, y: Linear) -> Iterator[str]:
        total = counted(len(self.values), "target")
        for i, count in enumerate(counts):
            if count:
                low, high = i / _BINS, (i + 1) / _BINS
                width, height = x(high) - x(low) - 2, y(0) - y(count)
                bar = element(
                    "rect", x=x(low) + 1, y=y(count), width=width, height=height, class_="bar"
                )
                yield group(bar, title=f"{count} of {total}: {low:.2f} to {high:.2f}")

    def _lines(self, x: Linear, bottom: float) -> Iterator[str]:
        for i, (name, value) in enumerate(self.marked):
            at, level = x(value), 14.0 + 13 * i
            yield line(at, level, at, bottom, "marked")
            anchor, shift = ("end", -4) if value > 0.5 else ("start", 4)
            words = f"{name} {value:.2f}"
            yield text(at + shift, level + 4, words, class_="tick", anchor=anchor)


@dataclass(frozen=True, eq=False)
class Scatter(Chart):
    """One thing against another, a point for each target, region or hour.

    Attributes
    ----------
    x_axis, y_axis
        What the axes are.
    points
        x, y and what to say of each, empty where there are too many to say something of each.
        What is risk lies between 0 and 1.
    logarithmic
        Whether steps to the right are factors.
    diagonal
        Whether both axes are the same, with a line where they agree.
    """

    x_axis: str
    y_axis: str
    points: tuple[tuple[float, float, str], ...]
    logarithmic: bool = False
    diagonal: bool = False

    def draw(self) -> Markup:
        field = Field.below((), 220, left=60 if self.diagonal else 44, right=WIDTH - 14)
        xs, ys = [p[0] for p in self.points], [p[1] for p in self.points]
        marks: list[str] = []
        if self.diagonal:
            most = max([*xs, *ys, 1e-9]) * 1.05
            x: Scale = Linear(0, most, field.left, field.right)
            y: Scale = Linear(0, most, field.bottom, field.top)
            marks.append(line(field.left, field.bottom, field.right, field.top, "guess"))
        else:
            x = _across(xs, field, logarithmic=self.logarithmic)
            y = Linear(0, 1, field.bottom - 5, field.top + 5)
        points = (_circle(x(across), y(up), said) for across, up, said in self.points)
        marks.append(group(*points, class_="points"))
        return plot(self.title, field, marks, across=(x, self.x_axis), up=(y, self.y_axis))


def _circle(x: float, y: float, said: str) -> Markup:
    title = (element("title", said),) if said else ()
    return element("circle", *title, cx=x, cy=y, r=3.5)


def _across(values: Sequence[float], field: Field, *, logarithmic: bool) -> Scale:
    least, most = min(values, default=0.0), max(values, default=1.0)
    if logarithmic and least > 0:
        return Logarithmic(least / 1.2, most * 1.2, field.left, field.right)
    margin = 0.04 * (most - least) or 0.5
    low = 0.0 if least >= 0 and least < 0.3 * most else least - margin
    return Linear(low, most + margin, field.left + 5, field.right)


@dataclass(frozen=True, eq=False)
class Curve:
    """One attack, or the ceiling.

    Attributes
    ----------
    fpr, tpr, low, high
        False alarms in ascending order, people found, and the band around them, shape (n,) each.
    """

    key: Key
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
        keys = [*(curve.key for curve in self.curves), Key("guessing", "guess")]
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
    name, style = curve.key.words, curve.key.class_
    band = path(upper + lower[::-1], f"band {style}", closed=True)
    yield element("g", element("title", name), band, path(middle, style), data_attack=name)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out points on a straight line between their neighbours."""
    kept = points[:1]
    for i in range(1, len(points) - 1):
        (x0, y0), (x1, y1), (x2, y2) = kept[-1], points[i], points[i + 1]
        if abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)) > 0.5:
            kept.append(points[i])
    return kept + points[1:][-1:]
