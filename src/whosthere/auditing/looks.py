"""How the chance of a wrong verdict is spent over several looks at an audit.

Whoever extends an audit until it accepts will find one that does: each look is a chance to be
wrong. So the error that is allowed is spent over looks by a rule that is fixed beforehand: each
look spends half of what is left. The first one has half of it, and all looks together never spend
more than there is, however many they are and whatever decides that there is another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from whosthere.errors import InputError

ERROR = 0.025
"""The chance of a wrong acceptance over all looks at an audit, and that of a wrong rejection."""


def error_of_look(look: int) -> float:
    """Return the part of `ERROR` that a look spends; looks are counted from 1."""
    if look < 1:
        raise InputError(f"looks are counted from 1, not from {look}")
    return ERROR / 2.0**look


@dataclass(frozen=True)
class Errors:
    """The chances of error of the two ends that decide a verdict.

    Attributes
    ----------
    low, high
        The chance that the lower end is above the truth, and that the upper end is below it.
    """

    low: float = error_of_look(1)
    high: float = error_of_look(1)

    @classmethod
    def at(cls, look: int, *, n_judged: int = 1) -> Self:
        """Return the errors of a look.

        To reject, one of the attacks and limits that are judged together is enough, so they share
        the error of the lower end (Bonferroni). To accept, all must be kept, so that each upper end
        may have all of it.
        """
        if n_judged < 1:
            raise InputError(f"at least one limit is judged, not {n_judged}")
        return cls(error_of_look(look) / n_judged, error_of_look(look))


FIRST_LOOK = Errors()
"""Those of the first look, where one attack is judged by one limit."""
