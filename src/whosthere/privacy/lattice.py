"""Best tests of noise in many cells whose log likelihood ratios are points of a lattice.

So are their sums over independent cells, whose law is a power of one characteristic function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import expit

from whosthere.arrays import own
from whosthere.privacy.trade_off import SLACK, Budget, Concentrated, Least, TradeOff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Floats

# Beyond so many points a sum takes too long, and the whole budget is used.
_MOST_STEPS = 1 << 20
_SLACK_PER_CELL = 4e-15
# e to this power is still a number.
_LARGEST = 700.0
# Discrete normal numbers, and sums of them, are hardly ever so many deviations away: 1e-17.
_FAR = 9.0


@dataclass(frozen=True, eq=False)
class Lattice(TradeOff):
    """Many independent cells whose log likelihood ratios add up to points of a lattice.

    The points are `between` apart, as many below 0 as above. `law` has the chances of the sum with
    the person in, ascending. Without the person, it is the law of the sum with the other sign.
    """

    between: float
    law: Floats
    slack: float
    """More than rounding errors can take away: a bound must not be too low."""

    @classmethod
    def of(cls, between: float, law: Floats, n: int) -> Lattice:
        """Return the curve of a law of n cells that was computed with rounding errors."""
        sums = _sums_above(law.size, between)
        # Chances below 0 follow from those above, e^sum times as large, which errors hide less.
        law[: sums.size] = (law[law.size - sums.size :] * np.exp(-sums))[::-1]
        return cls(between, own(law, np.float64), _SLACK_PER_CELL * n)

    @property
    def auc(self) -> float:
        law_out = self.law[::-1]
        area = float(np.dot(self.law, np.cumsum(law_out) - law_out / 2))
        return max(area, 0.5) + self.slack

    def _tpr(self, rates: Floats) -> Floats:
        fpr, tpr = self._curve
        return np.minimum(np.interp(rates, fpr, tpr) + self.slack, 1.0)

    def eps_at(self, delta: float) -> float:
        sums, with_person, without = self._beyond
        room = delta - self.slack
        at_sums = with_person[1:] - np.exp(np.minimum(sums, _LARGEST)) * without[1:]
        place = int(np.searchsorted(-at_sums, -room))
        # Where only the largest sum lies beyond, somewhat less would hold and mostly be exceeded.
        if room <= 0 or place >= sums.size - 1 or sums[place] > _LARGEST:
            return math.inf
        return math.log(max((with_person[place] - room) / without[place], 1.0)) + SLACK

    def delta_at(self, eps: Floats) -> Floats:
        sums, with_person, without = self._beyond
        place = np.searchsorted(sums, eps, side="right")
        delta = with_person[place] - np.exp(np.minimum(eps, _LARGEST)) * without[place]
        return np.asarray(np.maximum(delta, 0.0) + self.slack)

    @cached_property
    def _beyond(self) -> tuple[Floats, Floats, Floats]:
        """All sums above 0, and the chances of each or more with the person and without, then 0."""
        sums = _sums_above(self.law.size, self.between)
        law = self.law[self.law.size - sums.size :]
        with_person, without = (
            np.append(np.cumsum(one[::-1])[::-1], 0.0) for one in (law, law * np.exp(-sums))
        )
        return sums, with_person, without

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        laws = self.law, self.law[::-1]
        fpr, tpr = (np.append(0.0, np.minimum(np.cumsum(law), 1)) for law in laws)
        return np.append(fpr, 1.0), np.append(tpr, 1.0)


def _sums_above(size: int, between: float) -> Floats:
    """Return the points above 0 of a lattice of so many, around 0."""
    return np.arange(0.5 if size % 2 == 0 else 1.0, size / 2) * between


@lru_cache(maxsize=8)
def walk(eps: float, still: float, n: int) -> TradeOff:
    """Return the curve of n cells that each move the log likelihood ratio by +eps, 0 or -eps.

    The steps are independent. With the person in, a step goes up with a chance of
    (1 - still) / (1 + e^-eps) and down with e^-eps times that chance; without the person it is
    the other way around. Noise whose law falls by a factor of e^eps from one whole number to the
    next does exactly this to counts that differ by one: discrete Laplace noise with still = 0,
    Laplace noise that was rounded down with still = (1 - e^-eps) / 2. Where the walk is too long,
    its whole budget is the curve.
    """
    whole = Budget(n * eps)
    if n > _MOST_STEPS:
        return whole
    step = np.array([(1 - still) * expit(-eps), still, (1 - still) * expit(eps)])
    return Least((Lattice.of(eps, _sum_of(step, n, 2 * n + 1), n), whole))


@lru_cache(maxsize=8)
def discrete_shift(variance: float, n: int) -> TradeOff:
    """Return the curve of discrete normal noise in n cells against the same plus one in each.

    With y the noise in a cell, less one if the person adds it, the log of the likelihood ratio is
    (2 y + 1) / (2 variance). So all of them together are (n + 2 S) / (2 variance), where S is the
    sum of n discrete normal numbers. Where S reaches too far, the whole budget is the curve.
    """
    whole = Concentrated(n / (2 * variance))
    if max(n, _FAR * math.sqrt(n * variance)) > _MOST_STEPS:
        return whole
    one, all_together = (math.ceil(_FAR * math.sqrt(many * variance)) + 1 for many in (1, n))
    weights = np.exp(-(np.arange(-one, one + 1.0) ** 2) / (2 * variance))
    sums = _sum_of(weights / weights.sum(), n, 2 * all_together + 1)
    return Least((Lattice.of(1 / variance, np.append(np.zeros(n), sums), n + 1), whole))


def _sum_of(law: Floats, n: int, size: int) -> Floats:
    """Return the law of a sum of n draws, of values around 0: its middle part of an odd size.

    By powers of the characteristic function. Its absolute error is about n times 1e-16.
    """
    step = np.zeros(next_fast_len(max(size, law.size), real=True))
    step[: law.size] = law
    powers = _power(rfft(np.roll(step, -(law.size // 2))), n)
    found = np.maximum(np.roll(irfft(powers, step.size), size // 2)[:size], 0)
    return np.asarray(found / found.sum())


def _power(values: NDArray[np.complex128], n: int) -> NDArray[np.complex128]:
    """Return the n-th power by repeated squaring, which is several times as fast as `**`."""
    product = np.ones_like(values)
    while n:
        if n % 2:
            product = product * values
        values, n = values * values, n // 2
    return product
