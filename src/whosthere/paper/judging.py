"""Whether a statement about means over targets is borne out by what was measured.

It is held if the data bear it out at 95 %, not held if they contradict it at 95 %, and else the
data cannot tell. A statement about several means together gets intervals that hold for all of them
together (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from scipy.special import stdtrit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

_LEVEL = 0.05
# Fewer targets than this tell nothing, however alike they are.
_FEWEST = 10


class Status(Enum):
    """What became of a claim."""

    HELD = "held"
    NOT_HELD = "not held"
    CANNOT_TELL = "cannot tell"


class Mean(NamedTuple):
    """A mean over targets with its interval, and what it is of."""

    of: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"{self.of}: {self.value:.3f} (too few targets for an interval)"
        return f"{self.of}: {self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


class Bound(NamedTuple):
    """A mean, and where it should lie."""

    mean: Mean
    least: float = -math.inf
    most: float = math.inf

    @property
    def status(self) -> Status:
        """Whether all, none or some of the interval lies where it should."""
        if self.least <= self.mean.low and self.mean.high <= self.most:
            return Status.HELD
        if self.mean.high < self.least or self.mean.low > self.most:
            return Status.NOT_HELD
        return Status.CANNOT_TELL

    @property
    def shortfall(self) -> float:
        """How far the mean lies beyond its bounds; below 0 where it is within."""
        return max(self.least - self.mean.value, self.mean.value - self.most)


@dataclass(frozen=True)
class Judgement:
    """A claim and what became of it.

    Attributes
    ----------
    claim
        What the paper says, in our words.
    status
        What the data say.
    test
        What was compared, with the numbers that decided.
    """

    claim: str
    status: Status
    test: str


def judge(text: str, bounds: Sequence[Bound]) -> Judgement:
    """Judge a claim by all of its bounds: one that is broken breaks it."""
    found = {bound.status for bound in bounds}
    order = (Status.NOT_HELD, Status.CANNOT_TELL, Status.HELD)
    status = next(one for one in order if one in found)
    # The one that comes closest to breaking it, or breaks it most.
    worst = max((b for b in bounds if b.status is status), key=lambda bound: bound.shortfall)
    more = f"; {sum(b.status is status for b in bounds)} of {len(bounds)} {status.value}"
    where = _where(worst)
    return Judgement(text, status, f"{worst.mean}, {where}{more if len(bounds) > 1 else ''}")


def _where(bound: Bound) -> str:
    if math.isinf(bound.most):
        return f"should be at least {bound.least:g}"
    if math.isinf(bound.least):
        return f"should be at most {bound.most:g}"
    return f"should lie within {bound.least:g} and {bound.most:g}"


def mean(of: str, values: NDArray[np.float64], *, together: int = 1) -> Mean:
    """Return the mean over targets with its t interval, at 95 % for so many means together.

    The interval is everything where there are too few targets for one.
    """
    n, value = values.size, float(values.mean())
    if n < _FEWEST:
        return Mean(of, value, -math.inf, math.inf)
    error = float(values.std(ddof=1)) / math.sqrt(n)
    reach = float(stdtrit(n - 1, 1 - _LEVEL / (2 * together))) * error
    return Mean(of, value, value - reach, value + reach)
