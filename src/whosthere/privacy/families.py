"""Mechanisms that differ in one parameter, for searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from whosthere.errors import SpecError
from whosthere.privacy.catalogue import MECHANISMS
from whosthere.privacy.mechanism import Mechanism
from whosthere.specs import OPEN

_EXAMPLE = f"laplace(eps={OPEN}, unit=event)"


class Member(NamedTuple):
    """A mechanism of a family, and what sets it apart, such as ``k=3``."""

    choice: str
    mechanism: Mechanism


@dataclass(frozen=True)
class Family:
    """Mechanisms that differ in one parameter.

    Parameters
    ----------
    template
        A mechanism's spec with ``?`` for the parameter, such as ``suppress(k=?)``.
    """

    template: str

    def __post_init__(self) -> None:
        self.members()

    @property
    def parameter(self) -> str:
        """The name of the open parameter."""
        return self._open()[0]

    def members(self) -> tuple[Member, ...]:
        """Return its mechanisms, from the weakest to the strongest."""
        key, ladder = self._open()
        return tuple(Member(f"{key}={value:g}", self._with(f"{value:g}")) for value in ladder)

    def _open(self) -> tuple[str, tuple[float, ...]]:
        """Return the open parameter, and the values that it takes."""
        found = [
            (part.name, key)
            for part in MECHANISMS.read_chain(self.template)
            for key, value in part.arguments or ()
            if key and value.name == OPEN and value.arguments is None
        ]
        if len(found) != 1 or self.template.count(OPEN) != 1:
            raise self._no_family()
        [(name, key)] = found
        kind = MECHANISMS.kinds.get(name)
        if kind is None or key not in kind.keys:
            # Any value will do to be told what is wrong.
            self._with("1")
            raise self._no_family()
        ladder = next((one.ladder for one in kind.parameters if one.key == key), ())
        if not ladder:
            raise self._no_family()
        return key, ladder

    def _with(self, value: str) -> Mechanism:
        return Mechanism.parse(self.template.replace(OPEN, value))

    def _no_family(self) -> SpecError:
        keys = {
            parameter.key: None
            for kind in MECHANISMS.kinds.values()
            for parameter in kind.parameters
            if parameter.ladder
        }
        return SpecError(
            "a family needs one open parameter",
            where=repr(self.template),
            fix=f"Write one {OPEN} for {' or '.join(keys)}, as in {_EXAMPLE!r}",
        )
