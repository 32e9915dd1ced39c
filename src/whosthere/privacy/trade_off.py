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
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, ndtri

from whosthere.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from whosthere.arrays import Floats

# Lines beyond this eps change no area and no rate by more than e^-40 = 4e-18.
_MOST_EPS = 40.0
# Lines this close together, and eight in a standard deviation of the loss, describe a smooth curve
# to about 1e-5 of its height.
_BETWEEN_LINES, _LINES_A_DEVIATION = 1 / 64, 8
# Normal noise per unit of sensitivity is searched between these, as logarithms to base e.
_LEAST_RATIO, _MOST_RATIO = math.log(1e-9), math.log(1e12)
SLACK = 1e-12
"""More than rounding errors can take away: a bound must not be too low."""
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

    def _tpr(self, rates: Floats) -> Floats:
        inner = (rates > 0) & (rates < 1)
        best = ndtr(ndtri(np.where(inner, rates, 0.5)) + self.mu)
        ends = 1.0 if self.mu == math.inf else rates
        return np.asarray(np.where(inner, best, ends))


# Orders of Renyi divergence that are tried.
_ORDERS = 1 + np.logspace(-4, 7, 700)


@dataclass(frozen=True)
class Concentrated(TradeOff):
    """Everything that `rho`-zCDP allows, or a little more.

    By the best order a of Renyi divergence, delta(eps) is at most
    exp((a - 1) (a rho - eps)) (1 - 1 / a)^a / (a - 1) (Canonne, Kamath and Steinke, 2020).
    Each order is a bound by itself, so trying only some of them is safe, and so are only some of
    the lines that make up the curve.
    """

    rho: float

    def eps_at(self, delta: float) -> float:
        if delta == 0:
            return math.inf
        extra = _ORDERS * np.log1p(-1 / _ORDERS) - np.log(_ORDERS - 1)
        by_order = _ORDERS * self.rho + (extra - math.log(delta)) / (_ORDERS - 1)
        return max(float(by_order.min()), 0.0)

    def delta_at(self, eps: Floats) -> Floats:
        extra = _ORDERS * np.log1p(-1 / _ORDERS) - np.log(_ORDERS - 1)
        base = (_ORDERS - 1) * _ORDERS * self.rho + extra
        log_deltas = base - np.multiply.outer(eps, _ORDERS - 1)
        return np.asarray(np.exp(np.minimum(log_deltas.min(axis=-1), 0.0)))

    @property
    def auc(self) -> float:
        slopes, intercepts = self._lines
        # Each line holds from where the one before it ends.
        ends = np.diff(intercepts) / -np.diff(slopes)
        fpr = np.concatenate([[0.0], np.maximum.accumulate(np.clip(ends, 0.0, 1.0)), [1.0]])
        widths, middles = np.diff(fpr), (fpr[1:] + fpr[:-1]) / 2
        area = float(np.dot(widths, intercepts + slopes * middles))
        return min(max(area, 0.5) + SLACK, 1.0)

    def _tpr(self, rates: Floats) -> Floats:
        slopes, intercepts = self._lines
        best = [np.min(intercepts + slopes * rate) for rate in rates.ravel()]
        return np.minimum(np.reshape(best, rates.shape) + SLACK, 1.0)

    @cached_property
    def _lines(self) -> tuple[Floats, Floats]:
        """Slopes and intercepts of lines, steepest first, the last one TPR = 1."""
        # As close together as normal noise, which comes close to it, needs them.
        deviation = math.sqrt(2 * self.rho)
        closest = min(deviation / _LINES_A_DEVIATION, _BETWEEN_LINES)
        between = 2.0 ** math.floor(math.log2(closest)) if closest else 1.0
        largest = min(self.rho + 9 * deviation, _MOST_EPS)
        eps = np.arange(0, largest + between, between)
        delta, flat = self.delta_at(eps), np.exp(-eps)
        return (
            np.concatenate([np.exp(eps[::-1]), flat[1:], [0.0]]),
            np.concatenate([delta[::-1], (1 - flat * (1 - delta))[1:], [1.0]]),
        )


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
