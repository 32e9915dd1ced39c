"""Risk against time: a line for each protection of a table that is published again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from whosthere.inference.vocabulary import GUARANTEE
from whosthere.reporting.charts import svg
from whosthere.reporting.charts.risk import BOUNDS, Dot, numbered_keys
from whosthere.reporting.charts.svg import WIDTH, Chart, Field, Key, Linear, Logarithmic, plot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from whosthere.inference.finding import Finding


class Course(NamedTuple):
    """The risk under one protection by how often its table is published, and what bounds it."""

    name: str
    risk: Mapping[int, Finding]
    guaranteed: Mapping[int, float]


@dataclass(frozen=True)
class Times(Logarithmic):
    """How often a table is published, in equal factors; each number that was tried is marked."""

    tried: tuple[int, ...] = ()

    def ticks(self) -> list[tuple[float, str]]:
        return [(float(times), f"{times:,}") for times in self.tried]


@dataclass(frozen=True, eq=False)
class TimeChart(Chart):
    """Risk upwards, time to the right; `limit` is the most that the policy allows, if anything."""

    axis: str
    time: str
    courses: tuple[Course, ...]
    limit: float | None
    low: float
    high: float

    def draw(self) -> Markup:
        keys = numbered_keys([one.name for one in self.courses])
        lines = [] if self.limit is None else [Key(f"limit of the policy: {self.limit:g}", "limit")]
        if any(one.guaranteed for one in self.courses):
            lines.append(BOUNDS[GUARANTEE])
        field = Field(230, 44, WIDTH - 14, (*keys.values(), *lines))
        tried = tuple(sorted({times for one in self.courses for times in one.risk}))
        x = Times(tried[0], tried[-1], field.left + 12, field.right - 14, tried)
        y = Linear(self.low, self.high, field.bottom - 8, field.top + 10)
        marks: list[str] = []
        if self.limit is not None:
            at = y(self.limit)
            width, height = field.right - field.left, field.bottom - at
            marks += [
                svg.rect(field.left, at, width, height, "allowed"),
                svg.line(field.left, at, field.right, at, "limit"),
            ]
        for one in self.courses:
            key = keys[one.name]
            places = [(x(times), y(found.estimate or 0.0)) for times, found in one.risk.items()]
            marks.append(svg.path(places, key.class_))
            bound = [(x(times), y(value)) for times, value in one.guaranteed.items()]
            if bound:
                line = svg.path(bound, GUARANTEE)
                marks.append(svg.group(line, title=f"{GUARANTEE} of {one.name}"))
            for times, found in one.risk.items():

                def place(value: float, at: float = float(times)) -> tuple[float, float]:
                    return x(at), y(value)

                dots = Dot.of(key, found, f"{one.name}, {times}: {self.axis}")
                marks += [dot.draw(place) for dot in dots]
        return plot(self.title, field, marks, across=(x, self.time), up=(y, self.axis))
