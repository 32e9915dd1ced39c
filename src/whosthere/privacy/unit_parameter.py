"""How specs name the unit of a noise step: ``unit=user-day, max_visits=10``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whosthere.privacy.units import UNITS, Event, Unit
from whosthere.spec_text import UnreadableError
from whosthere.specs import WHOLE, OneOf, Parameter, fields_of, parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.spec_text import Written

_BOUND = "max_visits"


class _UnitName(OneOf):
    """The name of a unit."""

    def write(self, value: Unit) -> str:
        return value.name


@dataclass(frozen=True)
class _UnitParameter(Parameter):
    """A unit by its name and, where it bounds visits, by how many it lets through."""

    @property
    def keys(self) -> tuple[str, ...]:
        return self.key, _BOUND

    def read(self, given: Mapping[str, Written]) -> Unit:
        name = self.value.read(given[self.key], self.key) if self.key in given else Event.name
        kind: Any = UNITS[name]
        takes_bound = bool(fields_of(kind))
        if not takes_bound and _BOUND in given:
            raise UnreadableError(
                f"{self.key}={name} takes no {_BOUND}",
                place=given[_BOUND].place,
                fix=f"Leave it out, or use {' or '.join(_bounded(self.key))}",
            )
        if takes_bound and _BOUND not in given:
            raise UnreadableError(
                f"the parameter {_BOUND} is missing",
                fix=f"Say how many visits are counted, as in {self.key}={name}, {_BOUND}=10",
            )
        unit: Unit = kind(WHOLE.read(given[_BOUND], _BOUND)) if takes_bound else kind()
        return unit

    def write(self, value: Unit) -> str:
        return str(value)


def _bounded(key: str) -> list[str]:
    return [f"{key}={name}" for name, unit in UNITS.items() if fields_of(unit)]


def unit_parameter() -> Any:  # noqa: ANN401 - stands where a field's default stands
    """Declare the unit of a noise step, an event by default."""
    meaning = (
        f"what is protected: {', '.join(UNITS)}; all but {Event.name} take {_BOUND} as well, how "
        "many visits of a person are counted in a day or in all (unit=user-day, max_visits=10)"
    )
    return parameter(
        _UnitName(tuple(UNITS)),
        meaning,
        default_factory=Event,
        key="unit",
        always=True,
        kind=_UnitParameter,
    )
