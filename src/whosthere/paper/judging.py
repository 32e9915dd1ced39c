"""Whether a statement about means over targets is borne out by what was measured.

A statement may be about several means. It is held if each of them lies where it should, at 95 %
for each: as all must, the chance of a wrong "held" does not grow with their number. It is not held
if any of them lies elsewhere, by intervals that hold for all of them together at 95 % (Bonferroni).
Otherwise the data cannot tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from scipy.special import stdtrit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


class Asked(NamedTuple):
    """What a claim is about: a number of every target, whose mean counts."""

    of: str
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """A mean, and where it should lie.

    Attributes
    ----------
    of, value
        What the mean is of, and the mean.
    alone, together
        The ends of its intervals: at 95 % on each side, and at 95 % for all means of the claim
        together. They are infinite where there are too few targets.
    least, most
        Where it should lie.
    """

    of: str
    value: float
    alone: tuple[float, float]
    together: tuple[float, float]
    least: float = -math.inf
    most: float = math.inf

    @property
    def status(self) -> Status:
        """Whether it lies where it should, elsewhere, or one cannot tell."""
        # Strictly: what makes no difference at all is no gain.
        if self.least < self.alone[0] and self.alone[1] < self.most:
            return Status.HELD
        if self.together[1] < self.least or self.together[0] > self.most:
            return Status.NOT_HELD
        return Status.CANNOT_TELL

    @property
    def shortfall(self) -> float:
        """How far the mean lies beyond its bounds; below 0 where it is within."""
        return max(self.least - self.value, self.value - self.most)

    def __str__(self) -> str:
        low, high = self.alone if self.status is Status.HELD else self.together
        few = "too few targets for an interval"
        interval = few if math.isinf(low) else f"{low:.3f} to {high:.3f}"
        where = f"lie within {self.least:g} and {self.most:g}"
        if math.isinf(self.most):
            where = f"be at least {self.least:g}"
        elif math.isinf(self.least):
            where = f"be at most {self.most:g}"
        return f"{self.of}: {self.value:.3f} ({interval}), should {where}"


@dataclass(frozen=True)
class Judgement:
    """A claim and what became of it.

    Attributes
    ----------
    claim
        What is claimed, in our words.
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
    return Judgement(text, status, f"{worst}{more if len(bounds) > 1 else ''}")


def bounded(
    asked: Iterable[Asked], *, least: float = -math.inf, most: float = math.inf
) -> list[Bound]:
    """Ask that the means of all of these lie within the same bounds."""
    means = [one for one in asked if one.values.size]
    return [
        Bound(
            one.of,
            float(one.values.mean()),
            alone=_interval(one.values, 2 * _LEVEL),
            together=_interval(one.values, _LEVEL / len(means)),
            least=least,
            most=most,
        )
        for one in means
    ]


def _interval(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Return the t interval of a mean, which misses it with this chance on both sides together.

    All that is asked about is a share or a difference of two, so that nothing lies beyond 1. The
    interval is everything where there are too few targets for one.
    """
    n, value = values.size, float(values.mean())
    if n < _FEWEST:
        return -math.inf, math.inf
    error = float(values.std(ddof=1)) / math.sqrt(n)
    reach = float(stdtrit(n - 1, 1 - level / 2)) * error
    return max(value - reach, -1.0), min(value + reach, 1.0)
