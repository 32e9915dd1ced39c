"""Checks of a mechanism's parameters: what was found, and what would be right."""

from __future__ import annotations

import math
from numbers import Integral, Real

from whosthere.errors import SpecError
from whosthere.specs import format_number

# Counts, group sizes and noise all stay below this, so that their sums fit 32-bit integers.
MOST_COUNT = 2**30
_MOST_SHOWN = 10**20


def check_integer(value: object, name: str, *, least: int) -> int:
    """Return a parameter as an int, or refuse it."""
    # Python counts True as an integer; here it is a slip.
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SpecError(f"{name} must be a whole number, not {value!r}", fix=f"Use {least} or more")
    found = int(value)
    if not least <= found <= MOST_COUNT:
        shown = found if abs(found) < _MOST_SHOWN else "a number that large"
        raise SpecError(
            f"{name} must lie between {least} and {MOST_COUNT}, not {shown}",
            fix=f"Use {least} or more",
        )
    return found


def check_positive(value: object, name: str, *, below: float = math.inf) -> float:
    """Return a parameter that lies strictly between 0 and `below` as a float, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SpecError(f"{name} must be a number, not {value!r}")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not 0 < found < below:
        right = "positive and finite" if below == math.inf else f"between 0 and {below}"
        raise SpecError(
            f"{name} must be {right}, not {format_number(found)}",
            fix="Use a number such as 1" if below == math.inf else "Use a number such as 1e-6",
        )
    return found
