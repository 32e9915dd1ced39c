"""Curves that bound every test between two data sets: the best true-positive rate at each FPR.

A curve belongs to a pair of laws, what is published with a person and without. Whatever is done
to published counts afterwards (rounding, limiting, suppressing) can only lower it. So can mixing
over anything that is drawn alike in both cases, such as who the other people are.

All curves here stay the same if "with" and "without" are exchanged. So a curve is the lowest of the
lines TPR = delta(eps) + e^eps FPR and their mirror images TPR = 1 - e^-eps (1 - delta(eps) - FPR),
for all eps of 0 or more, where delta(eps) is the least delta that holds with eps.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import expit, log_ndtr, ndtr, ndtri

from whosthere.arrays import own
from whosthere.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from whosthere.arrays import Floats

# Beyond so many visits a walk takes too long, and the curve of the whole budget is used.
_MOST_STEPS = 1 << 20
MOST_EPS = 40.0
"""Lines beyond this eps change no area and no rate by more than e^-40 = 4e-18."""
# Lines this close together, and eight in a standard deviation of the loss, describe a smooth curve
# to about 1e-5 of its height.
_BETWEEN_LINES, _LINES_A_DEVIATION = 1 / 64, 8
# Normal noise per unit of sensitivity is searched between these, as logarithms to base e.
_LEAST_RATIO, _MOST_RATIO = math.log(1e-9), math.log(1e12)
# More than rounding errors can take away from a pooled curve: a bound must not be too low.
_SLACK = 1e-12
# e to this power is still a number.
_LARGEST = 700.0
# Discrete normal numbers, and sums of them, are hardly ever so many deviations away: 1e-17.
_FAR = 9.0
# How many smaller eps are tried for a bound of the chance that one is exceeded.
_TRIED = 4096


class TradeOff(ABC):
    """The best that any test reaches."""

    @property
    @abstractmethod
    def auc(self) -> float:
        """The best area under the ROC curve."""

    def tpr(self, fpr: ArrayLike) -> Floats:
        """Return the best true-positive rates at given false-positive rates, in their shape."""
        rates = np.asarray(fpr, np.float64)
        if not np.all((rates >= 0) & (rates <= 1)):
            raise InputError("false-positive rates must lie between 0 and 1")
        return np.asarray(self._tpr(rates), np.float64)

    @property
    def least_delta(self) -> float:
        """The delta without which no eps holds, if none holds with less."""
        return 0.0

    @abstractmethod
    def eps_at(self, delta: float) -> float:
        """Return an eps that holds together with a given delta, infinite if there is none."""

    @abstractmethod
    def delta_at(self, eps: Floats) -> Floats:
        """Return the least delta that holds together with each eps of 0 or more, in their shape."""

    @property
    @abstractmethod
    def bends(self) -> Floats:
        """The eps from 0 to `MOST_EPS` whose lines make up the curve, or come close to it."""

    def chance_of_more(self, eps: float) -> float:
        """Return a bound of the chance that the odds rise by a factor of more than e^eps.

        This is not delta: (eps, delta) differential privacy allows a small excess of a factor to be
        much more frequent than delta. If the odds rise by more than e^eps with chance p, then any
        smaller t has p (1 - e^(t - eps)) <= delta(t). As whatever is done to published counts only
        lowers delta(t), the bound also holds afterwards, which the chance itself does not.
        """
        smaller = np.linspace(0, eps, _TRIED, endpoint=False)
        with np.errstate(divide="ignore"):
            bounds = self.delta_at(smaller) / -np.expm1(smaller - eps)
        return float(min(bounds.min(), 1.0))

    @abstractmethod
    def _tpr(self, rates: Floats) -> Floats:
        """Return the best true-positive rates at rates between 0 and 1."""


@dataclass(frozen=True)
class Budget(TradeOff):
    """Everything that (eps, delta) differential privacy allows.

    The curve min(1, delta + e^eps f, 1 - e^-eps (1 - delta - f)) is made of three straight lines.
    The area above it is (1 - delta)^2 / (1 + e^eps). One mechanism reaches all of it. An infinite
    eps stands for no protection.
    """

    eps: float
    delta: float = 0.0

    @property
    def auc(self) -> float:
        return float(1 - (1 - self.delta) ** 2 * expit(-self.eps))

    @property
    def least_delta(self) -> float:
        return self.delta

    def eps_at(self, delta: float) -> float:
        return self.eps if delta >= self.delta else math.inf

    def delta_at(self, eps: Floats) -> Floats:
        excess = -np.expm1(np.minimum(eps - self.eps, 0.0))
        return np.asarray(self.delta + (1 - self.delta) * expit(self.eps) * excess)

    @property
    def bends(self) -> Floats:
        return np.array([min(self.eps, MOST_EPS)])

    def _tpr(self, rates: Floats) -> Floats:
        positive = rates > 0
        # Above 0 the line is above 1 in any case, and exp would overflow.
        exponent = np.minimum(np.log(np.where(positive, rates, 1.0)) + self.eps, 0.0)
        steep = self.delta + np.where(positive, np.exp(exponent), 0.0)
        flat = 1 - math.exp(-self.eps) * (1 - self.delta - rates)
        return np.asarray(np.minimum(np.minimum(steep, flat), 1.0))


@dataclass(frozen=True)
class Least(TradeOff):
    """What several bounds of the same tests allow together."""

    parts: tuple[TradeOff, ...]

    @property
    def auc(self) -> float:
        return min(one.auc for one in self.parts)

    @property
    def least_delta(self) -> float:
        return min(one.least_delta for one in self.parts)

    def eps_at(self, delta: float) -> float:
        return min(one.eps_at(delta) for one in self.parts)

    def delta_at(self, eps: Floats) -> Floats:
        return np.asarray(np.min([one.delta_at(eps) for one in self.parts], axis=0))

    @property
    def bends(self) -> Floats:
        return np.unique(np.concatenate([one.bends for one in self.parts]))

    def _tpr(self, rates: Floats) -> Floats:
        return np.asarray(np.min([one.tpr(rates) for one in self.parts], axis=0))


@dataclass(frozen=True)
class NormalShift(TradeOff):
    """Telling normal variables apart whose means differ by `mu` deviations (Dong et al., 2022)."""

    mu: float

    @property
    def auc(self) -> float:
        return float(ndtr(self.mu / math.sqrt(2)))

    def eps_at(self, delta: float) -> float:
        return gaussian_eps(delta, self.mu)

    def delta_at(self, eps: Floats) -> Floats:
        if self.mu in {0.0, math.inf}:
            return np.full(eps.shape, float(self.mu > 0))
        high, low = self.mu / 2 - eps / self.mu, -self.mu / 2 - eps / self.mu
        return np.asarray(np.maximum(ndtr(high) - np.exp(eps + log_ndtr(low)), 0.0))

    @property
    def bends(self) -> Floats:
        between = _power_of_two(min(self.mu / _LINES_A_DEVIATION, _BETWEEN_LINES))
        largest = min(self.mu**2 / 2 + 9 * self.mu, MOST_EPS)
        return np.arange(0, largest + between, between)

    def _tpr(self, rates: Floats) -> Floats:
        inner = (rates > 0) & (rates < 1)
        best = ndtr(ndtri(np.where(inner, rates, 0.5)) + self.mu)
        ends = 1.0 if self.mu == math.inf else rates
        return np.asarray(np.where(inner, best, ends))


@dataclass(frozen=True)
class Concentrated(TradeOff):
    """Everything that `rho`-zCDP allows, or a little more.

    By the best order a of Renyi divergence, delta(eps) is at most
    exp((a - 1) (a rho - eps)) (1 - 1 / a)^a / (a - 1) (Canonne, Kamath and Steinke, 2020).
    Each order is a bound by itself, so trying only some of them is safe.
    """

    rho: float

    def eps_at(self, delta: float) -> float:
        if delta == 0:
            return math.inf
        extra = _ORDERS * np.log1p(-1 / _ORDERS) - np.log(_ORDERS - 1)
        by_order = _ORDERS * self.rho + (extra - math.log(delta)) / (_ORDERS - 1)
        return max(float(by_order.min()), 0.0)

    def delta_at(self, eps: NDArray[np.float64]) -> NDArray[np.float64]:
        extra = _ORDERS * np.log1p(-1 / _ORDERS) - np.log(_ORDERS - 1)
        base = (_ORDERS - 1) * _ORDERS * self.rho + extra
        log_deltas = base - np.multiply.outer(eps, _ORDERS - 1)
        return np.asarray(np.exp(np.minimum(log_deltas.min(axis=-1), 0.0)))

    @property
    def bends(self) -> NDArray[np.float64]:
        # As for normal noise, which comes close to it.
        return NormalShift(math.sqrt(2 * self.rho)).bends

    @property
    def auc(self) -> float:
        return self._curve.auc

    def _tpr(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.vectorize(self._curve.tpr, otypes=[np.float64])(rates))

    @cached_property
    def _curve(self) -> PooledCurve:
        return PooledCurve.through(self.bends, self.delta_at(self.bends))


# Orders of Renyi divergence that are tried.
_ORDERS = 1 + np.logspace(-4, 7, 700)


class Lattice(TradeOff):
    """Many independent cells whose log likelihood ratios add up to points of a lattice.

    The sum with the person in has the law of the sum without, the sign exchanged.
    """

    @property
    @abstractmethod
    def _between(self) -> float:
        """How far points are apart."""

    @property
    @abstractmethod
    def _law(self) -> Floats:
        """Chances of sums with the person in, ascending, as many points below 0 as above."""

    @property
    @abstractmethod
    def _whole(self) -> TradeOff:
        """A bound that is looser, and has no rounding errors."""

    @property
    @abstractmethod
    def _slack(self) -> float:
        """More than rounding errors can take away: a bound must not be too low."""

    @property
    def auc(self) -> float:
        law_out = self._law[::-1]
        area = float(np.dot(self._law, np.cumsum(law_out) - law_out / 2))
        return min(max(area, 0.5) + self._slack, self._whole.auc)

    def _tpr(self, rates: Floats) -> Floats:
        fpr, tpr = self._curve
        return np.minimum(np.interp(rates, fpr, tpr) + self._slack, self._whole.tpr(rates))

    def eps_at(self, delta: float) -> float:
        sums, with_person, without = self._beyond
        room = delta - self._slack
        at_sums = with_person[1:] - np.exp(np.minimum(sums, _LARGEST)) * without[1:]
        place = int(np.searchsorted(-at_sums, -room))
        # Where only the largest sum lies beyond, somewhat less would hold and mostly be exceeded.
        if room <= 0 or place >= sums.size - 1 or sums[place] > _LARGEST:
            return self._whole.eps_at(delta)
        left = max((with_person[place] - room) / without[place], 1.0)
        return min(math.log(left) + _SLACK, self._whole.eps_at(delta))

    def delta_at(self, eps: Floats) -> Floats:
        sums, with_person, without = self._beyond
        place = np.searchsorted(sums, eps, side="right")
        delta = with_person[place] - np.exp(np.minimum(eps, _LARGEST)) * without[place]
        return np.minimum(np.maximum(delta, 0.0) + self._slack, self._whole.delta_at(eps))

    @property
    def bends(self) -> Floats:
        sums, between = self._beyond[0], self._between
        deviation = math.sqrt(sums.size) / _LINES_A_DEVIATION
        stride = int(max(_power_of_two(min(deviation, _BETWEEN_LINES / between)), 1))
        largest = min(sums.size, math.ceil(MOST_EPS / between) + stride)
        return np.append(0.0, np.minimum(sums[stride - 1 : largest : stride], MOST_EPS))

    @cached_property
    def _beyond(self) -> tuple[Floats, Floats, Floats]:
        """All sums above 0, and the chances of each or more with the person and without, then 0."""
        sums = _sums_above(self._law.size, self._between)
        law = self._law[self._law.size - sums.size :]
        with_person, without = (
            np.append(np.cumsum(one[::-1])[::-1], 0.0) for one in (law, law * np.exp(-sums))
        )
        return sums, with_person, without

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        laws = self._law, self._law[::-1]
        fpr, tpr = (np.append(0.0, np.minimum(np.cumsum(law), 1)) for law in laws)
        return np.append(fpr, 1.0), np.append(tpr, 1.0)


@dataclass(frozen=True)
class Walk(Lattice):
    """Many cells that each move the log of the likelihood ratio by +eps, 0 or -eps.

    The steps are independent. With the person in, a step goes up with a chance of
    (1 - still) / (1 + e^-eps) and down with e^-eps times that chance; without the person it is
    the other way around. Noise whose law falls by a factor of e^eps from one whole number to the
    next does exactly this to counts that differ by one: discrete Laplace noise with still = 0,
    Laplace noise that was rounded down with still = (1 - e^-eps) / 2. There are n cells.
    """

    eps: float
    still: float
    n: int

    @property
    def _between(self) -> float:
        return self.eps

    @property
    def _law(self) -> Floats:
        return _law_of_walk(self.eps, self.still, self.n)

    @property
    def _whole(self) -> Budget:
        return Budget(self.n * self.eps)

    @property
    def _slack(self) -> float:
        return 4e-15 * self.n


def walk(eps: float, still: float, n: int) -> TradeOff:
    """Return the curve of a walk, or of its whole budget where the walk is too long."""
    return Walk(eps, still, n) if n <= _MOST_STEPS else Budget(n * eps)


@lru_cache(maxsize=8)
def _law_of_walk(eps: float, still: float, n: int) -> Floats:
    step = np.array([(1 - still) * expit(-eps), still, (1 - still) * expit(eps)])
    return _balanced(_sum_of(step, n, 2 * n + 1), eps)


@dataclass(frozen=True)
class DiscreteShift(Lattice):
    """Telling discrete normal noise in n cells from the same noise plus one in each.

    With y the noise in a cell, less one if the person adds it, the log of the likelihood ratio is
    (2 y + 1) / (2 variance). So all of them together are (n + 2 S) / (2 variance), where S is the
    sum of n discrete normal numbers.
    """

    variance: float
    n: int

    @property
    def _between(self) -> float:
        return 1 / self.variance

    @property
    def _law(self) -> Floats:
        return _law_of_discrete_shift(self.variance, self.n)

    @property
    def _whole(self) -> Concentrated:
        return Concentrated(self.n / (2 * self.variance))

    @property
    def _slack(self) -> float:
        return 4e-15 * (self.n + 1)


def discrete_shift(variance: float, n: int) -> TradeOff:
    """Return the curve of discrete normal noise, or of its budget where sums reach too far."""
    reach = _FAR * math.sqrt(n * variance)
    near = max(n, reach) <= _MOST_STEPS
    return DiscreteShift(variance, n) if near else Concentrated(n / (2 * variance))


@lru_cache(maxsize=8)
def _law_of_discrete_shift(variance: float, n: int) -> Floats:
    one, all_together = (math.ceil(_FAR * math.sqrt(many * variance)) + 1 for many in (1, n))
    weights = np.exp(-(np.arange(-one, one + 1.0) ** 2) / (2 * variance))
    sums = _sum_of(weights / weights.sum(), n, 2 * all_together + 1)
    return _balanced(np.append(np.zeros(n), sums), 1 / variance)


def _sum_of(law: Floats, n: int, size: int) -> Floats:
    """Return the law of a sum of n draws, of values around 0: its middle part of an odd size.

    By powers of the characteristic function. Its absolute error is about n times 1e-16.
    """
    step = np.zeros(next_fast_len(max(size, law.size), real=True))
    step[: law.size] = law
    powers = _power(rfft(np.roll(step, -(law.size // 2))), n)
    found = np.maximum(np.roll(irfft(powers, step.size), size // 2)[:size], 0)
    return np.asarray(found / found.sum())


def _sums_above(size: int, between: float) -> Floats:
    """Return the points above 0 of a lattice of so many, around 0."""
    return np.arange(0.5 if size % 2 == 0 else 1.0, size / 2) * between


def _balanced(law: Floats, between: float) -> Floats:
    """Put chances below 0 right by those above, e^sum times as large, which errors hide less."""
    sums = _sums_above(law.size, between)
    law[: sums.size] = (law[law.size - sums.size :] * np.exp(-sums))[::-1]
    return own(law, np.float64)


def _power_of_two(value: float) -> float:
    """Return the largest power of two up to a value, so that lines of several curves coincide."""
    return 2.0 ** math.floor(math.log2(value)) if value > 0 else 1.0


def _power(values: NDArray[np.complex128], n: int) -> NDArray[np.complex128]:
    """Return the n-th power by repeated squaring, which is several times as fast as `**`."""
    product = np.ones_like(values)
    while n:
        if n % 2:
            product = product * values
        values, n = values * values, n // 2
    return product


@dataclass(frozen=True, eq=False)
class PooledCurve:
    """The best that any test of many people reaches, by one threshold.

    Metrics over everybody allow a mean rate of false alarms, not the same rate for each person. The
    best attacker names whom a release speaks for by a likelihood ratio above one threshold (Neyman
    and Pearson, with the person as a part of what is seen). At a common slope e^eps of all curves,
    person i gives TPR_i - e^eps FPR_i = delta_i(eps), so that

        mean TPR <= mean of delta_i(eps) + e^eps (mean FPR)      for every eps,

    and the best eps reaches it. Each line is a bound by itself: leaving some out only raises the
    curve.
    """

    # Of lines TPR = intercept + slope * FPR, steepest first, the last one TPR = 1.
    slopes: Floats
    intercepts: Floats
    mean_auc: float
    """The mean of the best areas under the ROC curves of single people."""

    @classmethod
    def of(cls, people: Mapping[TradeOff, int]) -> Self:
        """Return the curve of a group in which so many people have each of some curves."""
        total = sum(people.values())
        eps = np.unique(np.concatenate([[0.0], *(curve.bends for curve in people)]))
        delta, mean_auc = np.zeros_like(eps), 0.0
        for curve, many in people.items():
            delta += many / total * curve.delta_at(eps)
            mean_auc += many / total * curve.auc
        return cls.through(eps, delta, min(mean_auc, 1.0))

    @classmethod
    def through(
        cls, eps: NDArray[np.float64], delta: NDArray[np.float64], mean_auc: float = 1.0
    ) -> Self:
        """Return the curve under the lines of some eps, from 0 on, with a delta each."""
        flat = np.exp(-eps)
        return cls(
            np.concatenate([np.exp(eps[::-1]), flat[1:], [0.0]]),
            np.concatenate([delta[::-1], (1 - flat * (1 - delta))[1:], [1.0]]),
            mean_auc,
        )

    def tpr(self, fpr: float) -> float:
        """Return the best mean true-positive rate at a mean false-positive rate."""
        return float(min(np.min(self.intercepts + self.slopes * fpr) + _SLACK, 1.0))

    @property
    def auc(self) -> float:
        """The best area under the one ROC curve of all of them together."""
        # Each line holds from where the one before it ends.
        ends = np.diff(self.intercepts) / -np.diff(self.slopes)
        fpr = np.concatenate([[0.0], np.maximum.accumulate(np.clip(ends, 0.0, 1.0)), [1.0]])
        widths, middles = np.diff(fpr), (fpr[1:] + fpr[:-1]) / 2
        area = float(np.dot(widths, self.intercepts + self.slopes * middles))
        return min(max(area, 0.5) + _SLACK, 1.0)


def gaussian_sigma(eps: float, delta: float, sensitivity: float) -> float:
    """Return the least standard deviation of normal noise that gives (eps, delta) privacy.

    By the exact condition of Balle and Wang (2018), for an l2 `sensitivity`. The result is rounded
    to the side that keeps the guarantee.
    """
    target = math.log(delta)
    log_ratio = _least(
        lambda one: log_delta(eps, math.exp(one)) <= target, _LEAST_RATIO, _MOST_RATIO
    )
    return math.exp(log_ratio) * sensitivity


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least number for which something holds that does at `high`, rounded up."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def log_delta(eps: float, ratio: float) -> float:
    """Return the log of the least delta of Gaussian noise, `ratio` = sigma / sensitivity.

    The exact condition is delta = P(N < a) - e^eps P(N < b) with N standard normal,
    a = 1 / (2 ratio) - eps ratio and b = a - 1 / ratio. Both terms can be far below the least
    float and nearly equal, hence the logs.
    """
    a = 0.5 / ratio - eps * ratio
    b = -0.5 / ratio - eps * ratio
    log_a = float(log_ndtr(a))
    gap = eps + float(log_ndtr(b)) - log_a
    return log_a + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def gaussian_eps(delta: float, distance: float) -> float:
    """Return the least eps of Gaussian noise, rounded up, for data so many deviations apart."""
    if distance == 0:
        return 0.0
    if delta == 0 or distance == math.inf:
        return math.inf
    ratio, target = 1 / distance, math.log(delta)
    if log_delta(0.0, ratio) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while log_delta(high, ratio) > target:
        low, high = high, 2 * high
    return _least(lambda eps: log_delta(eps, ratio) <= target, low, high)
