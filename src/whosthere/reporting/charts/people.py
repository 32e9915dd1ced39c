"""Who is found, where and when: risk over targets, ROC curves, a map, and the hours of a week."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from whosthere.data.neighbours import KM_A_DEGREE
from whosthere.display import counted
from whosthere.reporting.charts import svg
from whosthere.reporting.charts.svg import WIDTH, Chart, Field, Key, Linear, Logarithmic, plot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from whosthere.arrays import Floats

_BINS = 20
_NEAR_AN_END = 0.3
_SIDE = 320
_SHADES = 5
_BAR = 100.0
"""The longest scale bar, in pixels."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


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
        field = Field(150, 44, WIDTH - 12, room=58)
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
                bar = svg.rect(x(low) + 1, y(count), width, height, "bar")
                yield svg.group(bar, title=f"{count} of {total}: {low:.2f} to {high:.2f}")

    def _lines(self, x: Linear, bottom: float) -> Iterator[str]:
        # A name is beside its own line, and above where the next one's begins.
        left = all(value > _NEAR_AN_END for _, value in self.marked)
        ordered = sorted(self.marked, key=lambda one: one[1], reverse=left)
        for i, (name, value) in enumerate(ordered):
            at, level = x(value), 14.0 + 13 * i
            yield svg.line(at, level, at, bottom, "marked")
            anchor, shift = ("end", -4) if left or value > 1 - _NEAR_AN_END else (None, 4)
            yield svg.text(at + shift, level + 4, f"{name} {value:.2f}", "tick", anchor=anchor)


@dataclass(frozen=True, eq=False)
class Scatter(Chart):
    """One thing against another, a point for each target, region or hour.

    `points` are x, y and what to say of each, empty where there are too many to say something of
    each. What is risk lies between 0 and 1. If `diagonal`, both axes are the same, with a line
    where they agree.
    """

    x_axis: str
    y_axis: str
    points: tuple[tuple[float, float, str], ...]
    logarithmic: bool = False
    diagonal: bool = False

    def draw(self) -> Markup:
        field = Field(220, 60 if self.diagonal else 44, WIDTH - 14)
        xs, ys = [p[0] for p in self.points], [p[1] for p in self.points]
        marks: list[str] = []
        if self.diagonal:
            most = max([*xs, *ys, 1e-9]) * 1.05
            x = Linear(0, most, field.left, field.right)
            y = Linear(0, most, field.bottom, field.top)
            marks.append(svg.line(field.left, field.bottom, field.right, field.top, "guess"))
        else:
            x = _across(xs, field, logarithmic=self.logarithmic)
            y = Linear(0, 1, field.bottom - 5, field.top + 5)
        points = (
            svg.element("circle", cx=x(across), cy=y(up), r=3.5, title=said or None)
            for across, up, said in self.points
        )
        marks.append(svg.group(*points, class_="points"))
        return plot(self.title, field, marks, across=(x, self.x_axis), up=(y, self.y_axis))


def _across(values: Sequence[float], field: Field, *, logarithmic: bool) -> Linear:
    least, most = min(values, default=0.0), max(values, default=1.0)
    if logarithmic and least > 0:
        return Logarithmic(least / 1.2, most * 1.2, field.left, field.right)
    margin = 0.04 * (most - least) or 0.5
    low = 0.0 if least >= 0 and least < 0.3 * most else least - margin
    return Linear(low, most + margin, field.left + 5, field.right)


class Curve(NamedTuple):
    """One attack, or the ceiling.

    False alarms in ascending order, people found, and the band around them, shape (n,) each.
    """

    key: Key
    fpr: Floats
    tpr: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class RocChart(Chart):
    """The curves of one protection with their bands, and the diagonal of guessing.

    `guaranteed` is the most people whom anybody can find at 1 % false alarms, if anything is
    guaranteed, and `smallest` the smallest rate on logarithmic axes; None for linear axes.
    """

    curves: tuple[Curve, ...]
    guaranteed: float | None
    smallest: float | None

    def draw(self) -> Markup:
        keys = [*(curve.key for curve in self.curves), Key("guessing", "guess")]
        if self.guaranteed is not None:
            keys.append(Key("guarantee at 1 % false alarms", "guaranteed", shape="cross"))
        field = Field(_SIDE, 52, 52 + _SIDE, keys)
        x, y = self._scale(field.left, field.right), self._scale(field.bottom, field.top)
        least = self.smallest or 0.0
        marks: list[str] = [svg.path(((x(v), y(v)) for v in (least, 1.0)), "guess")]
        marks += [_curve(curve, x, y, least) for curve in self.curves]
        if self.guaranteed is not None:
            marks.append(svg.mark(x(0.01), y(self.guaranteed), "cross", "guaranteed"))
        across, up = (x, "false alarms (FPR)"), (y, "people found (TPR)")
        return plot(self.title, field, marks, across=across, up=up)

    def _scale(self, first: float, last: float) -> Linear:
        if self.smallest is None:
            return Linear(0, 1, first, last)
        return Logarithmic(self.smallest, 1, first, last)


def _curve(curve: Curve, x: Linear, y: Linear, least: float) -> Markup:
    shown = curve.fpr >= least * 0.999
    fpr = curve.fpr[shown]
    lower, middle, upper = (
        _thinned([(x(f), y(v)) for f, v in zip(fpr, values[shown], strict=True)])
        for values in (curve.low, curve.tpr, curve.high)
    )
    name, style = curve.key.words, curve.key.class_
    band = svg.path(upper + lower[::-1], f"band {style}", closed=True)
    return svg.element("g", band, svg.path(middle, style), data_attack=name, title=name)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out points on a straight line between their neighbours."""
    kept = points[:1]
    for i in range(1, len(points) - 1):
        (x0, y0), (x1, y1), (x2, y2) = kept[-1], points[i], points[i + 1]
        if abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)) > 0.5:
            kept.append(points[i])
    return kept + points[1:][-1:]


class Place(NamedTuple):
    """A region: its position, its `shade`, what it says, and its outline where it is known.

    An outline has a list for each of its parts: longitude, latitude, longitude, ...
    """

    lon: float
    lat: float
    shade: str
    title: str
    outline: Sequence[Sequence[float]] = ()


@dataclass(frozen=True, eq=False)
class RegionMap(Chart):
    """Regions on a map, north up: their outlines, or a circle each."""

    places: tuple[Place, ...]

    def draw(self) -> Markup:
        # A degree of longitude is shorter away from the equator.
        shrink = math.cos(math.radians(median(place.lat for place in self.places)))
        spots = [(place.lon * shrink, -place.lat) for place in self.places]
        areas = [
            [[(x * shrink, -y) for x, y in zip(ring[::2], ring[1::2], strict=True)] for ring in one]
            for one in (place.outline for place in self.places)
        ]
        every = [*spots, *(corner for rings in areas for ring in rings for corner in ring)]
        left, top = min(x for x, _ in every), min(y for _, y in every)
        wide, high = max(x for x, _ in every) - left, max(y for _, y in every) - top
        room = WIDTH - 40.0
        scale = room / max(wide, high, 1e-9)
        radius = min(max(0.45 * _spacing(spots) * scale, 2.5), 18)

        def at(spot: tuple[float, float]) -> tuple[float, float]:
            x, y = spot
            return 20 + (x - left) * scale + (room - wide * scale) / 2, 20 + (y - top) * scale

        drawn = []
        for spot, rings, place in zip(spots, areas, self.places, strict=True):
            said = {"class_": place.shade, "title": place.title}
            if rings:
                drawn.append(svg.area((map(at, ring) for ring in rings), **said))
            else:
                cx, cy = at(spot)
                drawn.append(svg.element("circle", cx=cx, cy=cy, r=radius, **said))
        height = high * scale + 40
        if max(wide, high) > 0:
            drawn += _scale_bar(scale / KM_A_DEGREE, height + 6)
        return svg.picture(height + 40, self.title, *drawn, *_shades(height + 26))


def _scale_bar(pixels_a_km: float, y: float) -> Iterator[Markup]:
    """Draw a line of a round number of km, at the right."""
    power = 10.0 ** math.floor(math.log10(_BAR / pixels_a_km))
    km = max(factor * power for factor in (1, 2, 5) if factor * power * pixels_a_km <= _BAR)
    left, right = WIDTH - 20 - km * pixels_a_km, WIDTH - 20.0
    yield svg.path(((left, y - 4), (left, y), (right, y), (right, y - 4)), "scale")
    yield svg.text(left - 6, y + 1, f"{km:,g} km", "tick", anchor="end")


@dataclass(frozen=True, eq=False)
class Week(Chart):
    """The `shade` of each of the 168 hours from Monday 00:00, with what each says."""

    hours: tuple[tuple[str, str], ...]

    def draw(self) -> Markup:
        side, left, top = 16, 34, 18
        drawn = [
            svg.text(left + side * hour + side / 2, 12, str(hour), "tick", anchor="middle")
            for hour in range(0, 24, 3)
        ]
        for i, (level, said) in enumerate(self.hours):
            day, hour = divmod(i, 24)
            if hour == 0:
                drawn.append(svg.text(2, top + side * day + 12, DAYS[day], "tick"))
            x, y = left + side * hour, top + side * day
            drawn.append(svg.rect(x, y, side - 1, side - 1, level, title=said))
        below = top + side * 7 + 6
        return svg.picture(below + 22, self.title, *drawn, *_shades(below + 6))


def shade(value: float | None, largest: float) -> str:
    """Return how dark a value is drawn, from q0 to q4 by its share of the largest, or none."""
    if value is None:
        return "none"
    share = value / largest if largest > 0 and value > 0 else 0.0
    return f"q{min(int(share * _SHADES), _SHADES - 1)}"


def _spacing(spots: Sequence[tuple[float, float]]) -> float:
    """Return how far a usual region is from the one next to it, from some of them."""
    some = spots[:: max(1, len(spots) // 100)]
    return median(
        min((math.dist(spot, other) for other in spots if other != spot), default=0.0)
        for spot in some
    )


def _shades(y: float) -> Iterator[str]:
    """Draw what the shades mean."""
    yield svg.text(2, y + 10, "little", "tick")
    for level in range(_SHADES):
        yield svg.rect(40 + 20 * level, y, 19, 12, f"q{level}")
    yield svg.text(40 + 20 * _SHADES + 4, y + 10, "much", "tick")
    yield svg.rect(200, y, 19, 12, "none")
    yield svg.text(223, y + 10, "too few people to show", "tick")
