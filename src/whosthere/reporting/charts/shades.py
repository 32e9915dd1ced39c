"""Where and when people are found: a map of regions, and the hours of a week."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from whosthere.reporting.charts.axes import WIDTH
from whosthere.reporting.charts.svg import Chart, element, picture, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

SHADES = 5
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Place:
    """A region: position, its shade from 0 to 4 (None: too few targets), and what it says."""

    lon: float
    lat: float
    shade: int | None
    title: str


@dataclass(frozen=True, eq=False)
class RegionMap(Chart):
    """Regions by position, north up, a circle each."""

    places: tuple[Place, ...]

    def draw(self) -> Markup:
        # A degree of longitude is shorter away from the equator.
        shrink = math.cos(math.radians(median(place.lat for place in self.places)))
        spots = [(place.lon * shrink, -place.lat) for place in self.places]
        left, top = min(x for x, _ in spots), min(y for _, y in spots)
        wide, high = max(x for x, _ in spots) - left, max(y for _, y in spots) - top
        room = WIDTH - 40.0
        scale = room / max(wide, high, 1e-9)
        radius = min(max(0.45 * _spacing(spots) * scale, 2.5), 18)
        drawn = [
            element(
                "circle",
                element("title", place.title),
                cx=20 + (x - left) * scale + (room - wide * scale) / 2,
                cy=20 + (y - top) * scale,
                r=radius,
                class_="none" if place.shade is None else f"q{place.shade}",
            )
            for (x, y), place in zip(spots, self.places, strict=True)
        ]
        height = high * scale + 40
        return picture(WIDTH, height + 26, self.title, *drawn, *_shades(height + 12))


@dataclass(frozen=True, eq=False)
class Week(Chart):
    """Shades from 0 to 4 of the 168 hours from Monday 00:00, with what each says."""

    hours: tuple[tuple[int | None, str], ...]

    def draw(self) -> Markup:
        side, left, top = 16, 34, 18
        drawn = [
            text(left + side * hour + side / 2, 12, str(hour), class_="tick", anchor="middle")
            for hour in range(0, 24, 3)
        ]
        for i, (level, said) in enumerate(self.hours):
            day, hour = divmod(i, 24)
            if hour == 0:
                drawn.append(text(2, top + side * day + 12, DAYS[day], class_="tick"))
            drawn.append(
                element(
                    "rect",
                    element("title", said),
                    x=left + side * hour,
                    y=top + side * day,
                    width=side - 1,
                    height=side - 1,
                    class_="none" if level is None else f"q{level}",
                )
            )
        below = top + side * 7 + 6
        return picture(WIDTH, below + 22, self.title, *drawn, *_shades(below + 6))


def shade(value: float, largest: float) -> int:
    """Return how dark a value is drawn, from 0 to 4, by its share of the largest."""
    if largest <= 0 or value <= 0:
        return 0
    return min(int(value / largest * SHADES), SHADES - 1)


def _spacing(spots: Sequence[tuple[float, float]]) -> float:
    """Return how far a usual region is from the one next to it, from some of them."""
    some = spots[:: max(1, len(spots) // 100)]
    nearest = [
        min((math.dist(spot, other) for other in spots if other != spot), default=0.0)
        for spot in some
    ]
    return median(nearest) if nearest else 0.0


def _shades(y: float) -> Iterator[str]:
    """Draw what the shades mean."""
    yield text(2, y + 10, "little", class_="tick")
    for level in range(SHADES):
        yield element("rect", x=40 + 20 * level, y=y, width=19, height=12, class_=f"q{level}")
    yield text(40 + 20 * SHADES + 4, y + 10, "much", class_="tick")
    yield element("rect", x=200, y=y, width=19, height=12, class_="none")
    yield text(223, y + 10, "too few targets to show", class_="tick")
