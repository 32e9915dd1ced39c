"""How the chance of a wrong verdict is spent over several looks at an audit.

Whoever extends an audit until it accepts will find one that does: each look is a chance to be
wrong. So the error that is allowed is spent over looks by a rule that is fixed beforehand: each
look spends half of what is left. The first one has half of it, and all looks together never spend
more than there is, however many they are and whatever decides that there is another one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

ERROR = 0.025
"""The chance of a wrong acceptance over all looks at an audit, and that of a wrong rejection."""


@dataclass(frozen=True)
class Look:
    """One time at which scores are judged; its number counts from 1.

    Its error is shared by verdicts of which the best is chosen: the confirmations of a search. An
    audit gives a verdict on each of its settings, none of which is chosen.
    """

    number: int = 1
    shared: int = 1

    @property
    def spends(self) -> float:
        """The part of `ERROR` that the look spends: half of what is left."""
        return ERROR / 2.0**self.number

    @property
    def error(self) -> float:
        """The chance of error of one verdict."""
        return self.spends / self.shared

    @property
    def next(self) -> Look:
        """The look that would follow."""
        return replace(self, number=self.number + 1)


FIRST_LOOK = Look()


@dataclass(frozen=True)
class Errors:
    """The chances that the lower end that decides is above the truth, and the upper one below."""

    low: float = FIRST_LOOK.error
    high: float = FIRST_LOOK.error

    @classmethod
    def at(cls, look: Look, *, n_judged: int = 1) -> Self:
        """Return the errors of a verdict at a look.

        To reject, one of the attacks and limits that are judged together is enough, so they share
        the error of the lower end (Bonferroni). To accept, all must be kept, so that each upper end
        may have all of it.
        """
        return cls(look.error / n_judged, look.error)


FIRST_ERRORS = Errors()
"""Those of the first look, where one attack is judged by one limit."""
