"""What a noisy count protects: one visit, one person's day, or a whole person.

Two data sets are neighbours when one is the other plus one unit (add or remove). The unit
decides how far apart the counts of neighbours can lie, and so how much noise is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whosthere.arrays import own
from whosthere.data.epochs import DAYS_A_WEEK, format_length
from whosthere.errors import InputError, SpecError
from whosthere.spec_text import UnreadableError, Written
from whosthere.specs import WHOLE, OneOf, Parameter, check_integer, parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.arrays import Ints32, Ints64
    from whosthere.data.epochs import Epochs
    from whosthere.data.traces import Traces


class Unit:
    """What is added or removed between two neighbouring data sets."""

    name: ClassVar[str]
    plain_name: ClassVar[str]
    """What one unit of a person is called in a sentence."""
    question: ClassVar[str]
    """What an attacker would like to know of one unit, as in "the odds that ..."."""
    is_person: ClassVar[bool] = False
    """Whether one unit is all of a person, so that one more or less changes the group's size."""
    bounds_visits: ClassVar[bool] = False
    """Whether visits are dropped where there are too many."""

    @property
    def most_visits(self) -> int:
        """How many visits one unit holds at most, once the traces are bounded."""
        return 1

    @property
    def days(self) -> float:
        """How many local days one unit spans; 0 where it is a single visit."""
        return 0

    @property
    def max_regions(self) -> int | None:
        """To how many regions the visits of one unit are counted, if that is limited."""
        return None

    @property
    def l1_sensitivity(self) -> float:
        """Most that one unit changes all counts together, in visits (sum of absolute changes)."""
        return float(self.most_visits)

    @property
    def l2_sensitivity(self) -> float:
        """The same as the root of the sum of squared changes: nobody visits a cell twice."""
        return math.sqrt(self.most_visits)

    def period(self, epochs: Epochs) -> Ints32 | None:  # noqa: ARG002
        """Return the period of each epoch within which visits are bounded, from 0, if they are.

        An epoch that lies in two periods is refused: its visits could count in either.
        """
        return None

    def bound(self, traces: Traces, rng: np.random.Generator) -> Traces:  # noqa: ARG002
        """Drop visits at random until no unit holds more than its share."""
        return traces

    def within(self, time: timedelta) -> Unit:
        """Return what is bounded where tables of so much time each follow one another.

        Each table is bounded by itself, so a unit that reaches into the next one is refused.
        """
        if self.days and time % timedelta(days=self.days):
            raise InputError(
                f"unit={self.name} spans {self.days:g} days, which do not fit into tables of "
                f"{format_length(time)} each",
                fix="Publish longer tables (`every`), or protect a shorter unit",
            )
        return self

    def describe_bound(self) -> str:
        """Say in one public sentence which visits are dropped; empty where none are."""
        return ""

    def describe_person(self) -> str:
        """Say in one public sentence what this means for a person with many visits."""
        if self.is_person:
            return ""
        return (
            "Whether a person is in the data at all is protected much less: the factor applies up "
            f"to once for each {self.plain_name} of theirs, and of whoever is counted in their "
            "place."
        )

    def contributions(self, traces: Traces) -> tuple[Ints64, Ints64]:
        """Return how many units each person has, and how many visits are counted, (n_users,) each.

        The second is what `bound` leaves of a person's visits, whichever these are.
        """
        period = self.period(traces.epochs)
        if period is None:
            visits = traces.visits_per_user()
            return visits, visits
        by_period = traces.visits_per_period(period)
        counted = np.minimum(by_period, self.most_visits).sum(axis=1)
        return np.asarray((by_period > 0).sum(axis=1)), np.asarray(counted)

    def __str__(self) -> str:
        given = (f"{name}={value}" for name, value in vars(self).items() if value is not None)
        return ", ".join((f"unit={self.name}", *given))


@dataclass(frozen=True)
class Event(Unit):
    """One visit of one person: one region in one epoch."""

    name: ClassVar[str] = "event"
    plain_name: ClassVar[str] = "visit"
    question: ClassVar[str] = "that one visit of a person took place"


@lru_cache(maxsize=64)
def _periods(epochs: Epochs, unit: str, days: float) -> Ints32:
    if math.isinf(days):
        return own(np.zeros(epochs.n), np.int32)
    return own(epochs.slots(timedelta(days=days), f"periods of {{}} (unit={unit})"), np.int32)


@dataclass(frozen=True)
class _Bounded(Unit):
    """A unit of several visits, of which at most `max_visits` are counted.

    With `max_regions`, these are visits to at most so many regions in each unit.
    """

    max_visits: int
    max_regions: int | None = None
    bounds_visits: ClassVar[bool] = True
    _whose: ClassVar[str]

    def __post_init__(self) -> None:
        for name, given in tuple(vars(self).items()):
            if (name, given) != ("max_regions", None):
                object.__setattr__(self, name, check_integer(given, name, least=1))

    @property
    def most_visits(self) -> int:
        return self.max_visits

    def period(self, epochs: Epochs) -> Ints32:
        return _periods(epochs, self.name, self.days)

    def bound(self, traces: Traces, rng: np.random.Generator) -> Traces:
        period = self.period(traces.epochs)
        if self.max_regions is not None:
            traces = traces.bounded_regions(self.max_regions, period, rng)
        return traces.bounded(self.max_visits, period, rng)

    def describe_bound(self) -> str:
        where = "" if self.max_regions is None else f" to at most {self.max_regions} regions"
        return (
            f"At most {self.max_visits} visits{where} of each {self._whose} are counted, chosen at "
            "random where there are more."
        )


@dataclass(frozen=True)
class UserDay(_Bounded):
    """All visits of one person on one local day, at most `max_visits` of them counted."""

    name: ClassVar[str] = "user-day"
    plain_name: ClassVar[str] = "day with a visit"
    question: ClassVar[str] = "that a person was there on one day, whatever they did that day,"
    _whose: ClassVar[str] = "person and day"
    days = 1


@dataclass(frozen=True)
class UserWeek(_Bounded):
    """All visits of one person in seven local days, counted from the first day of the release."""

    name: ClassVar[str] = "user-week"
    plain_name: ClassVar[str] = "week with a visit"
    question: ClassVar[str] = "that a person was there in one week, whatever they did that week,"
    _whose: ClassVar[str] = "person and week"
    days = DAYS_A_WEEK


@dataclass(frozen=True)
class UserPeriod(_Bounded):
    """All visits of one person in so many local `days`, from the first day of the release."""

    days: int = 1

    name: ClassVar[str] = "user-period"
    plain_name: ClassVar[str] = "period with a visit"
    question: ClassVar[str] = "that a person was there in one period, whatever they did in it,"

    @property
    def _whose(self) -> str:  # type: ignore[override]
        return f"person and {self.days} days"


@dataclass(frozen=True)
class User(_Bounded):
    """All visits of one person, at most `max_visits` of them counted."""

    name: ClassVar[str] = "user"
    plain_name: ClassVar[str] = "person"
    question: ClassVar[str] = "that a person is in the data"
    is_person: ClassVar[bool] = True
    days = math.inf
    _whose: ClassVar[str] = "person"

    def within(self, time: timedelta) -> Unit:
        days, rest = divmod(time, timedelta(days=1))
        if rest or not days:
            raise InputError(
                f"unit={self.name} needs tables of whole days, not of {format_length(time)} each",
                fix="Publish tables of whole days (`every`), or protect single visits",
            )
        return UserPeriod(self.max_visits, self.max_regions, days)


UNITS: Mapping[str, type[Unit]] = MappingProxyType(
    {unit.name: unit for unit in (Event, UserDay, UserWeek, UserPeriod, User)}
)
"""The kinds of unit by name, from the narrowest to the widest."""


@dataclass(frozen=True)
class Guarantee:
    """(eps, delta) differential privacy for adding or removing one unit; and rho-zCDP, if so."""

    eps: float
    delta: float
    unit: Unit
    rho: float | None = None


# What specs say of a unit besides its name: unit=user-day, max_visits=10.
_BOUND, _REGIONS, _DAYS = "max_visits", "max_regions", "days"


class _UnitName(OneOf):
    def write(self, value: Unit) -> str:
        return value.name

    def check(self, value: object, key: str) -> object:  # noqa: ARG002
        if not isinstance(value, Unit):
            raise SpecError(f"the unit must be Event, UserDay or User, not {value!r}")
        return value


def _taken_by(kind: Any) -> list[str]:  # noqa: ANN401 - a class of units
    return [one.name for one in fields(kind)]


@dataclass(frozen=True)
class _UnitParameter(Parameter):
    @property
    def keys(self) -> tuple[str, ...]:
        return self.key, _BOUND, _REGIONS, _DAYS

    def read(self, given: Mapping[str, Written]) -> Unit:
        name = self.value.read(given[self.key], self.key) if self.key in given else Event.name
        kind: Any = UNITS[name]
        takes = _taken_by(kind)
        for key in (_BOUND, _REGIONS, _DAYS):
            if key in given and key not in takes:
                others = [f"{self.key}={one}" for one in UNITS if key in _taken_by(UNITS[one])]
                raise UnreadableError(
                    f"{self.key}={name} takes no {key}",
                    place=given[key].place,
                    fix=f"Leave it out, or use {' or '.join(others)}",
                )
        for key in set(takes) & {_BOUND, _DAYS} - set(given):
            raise UnreadableError(
                f"the parameter {key} is missing",
                fix=f"Give it, as in {self.key}={name}, {_BOUND}=10"
                + (f", {_DAYS}=3" if _DAYS in takes else ""),
            )
        unit: Unit = kind(**{key: WHOLE.read(given[key], key) for key in takes if key in given})
        return unit

    def write(self, value: Unit) -> str:
        return str(value)


def unit_parameter() -> Any:  # noqa: ANN401 - stands where a field's default stands
    """Declare the unit of a noise step, an event by default."""
    meaning = (
        f"what is protected: {', '.join(UNITS)}; all but {Event.name} take {_BOUND} as well, how "
        "many visits of a person are counted in a day or in all (unit=user-day, max_visits=10), "
        f"and may take {_REGIONS}, to how many regions; {UserPeriod.name} takes {_DAYS}"
    )
    return parameter(
        _UnitName(tuple(UNITS)),
        meaning,
        default_factory=Event,
        key="unit",
        always=True,
        kind=_UnitParameter,
    )
