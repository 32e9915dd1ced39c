"""Discrete Gaussian noise, whose budget is one of zero-concentrated differential privacy.

P(Z = z) is proportional to exp(-z^2 / (2 variance)), for whole z. With a variance of S / (2 rho),
for an l2 sensitivity whose square is S, adding Z to all counts is rho-zCDP (Canonne, Kamath and
Steinke, 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import log_ndtr

from whosthere.privacy.exact_noise import Randomness, discrete_normal
from whosthere.privacy.lattice import discrete_shift
from whosthere.privacy.noise import BUDGETS, PrivateNoise
from whosthere.privacy.units import Guarantee, Unit, unit_parameter
from whosthere.specs import CHANCE, POSITIVE, parameter

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from whosthere.privacy.trade_off import TradeOff

    Floats = NDArray[np.float64]

# Below this deviation tails are summed up, to so many deviations. Above it, they are those of a
# normal variable with three corrections (Euler and Maclaurin), right to 12 digits or more.
_SMOOTH, _FAR = 64.0, 45.0
# Above this one, nobody can tell it from a rounded normal number: chances differ by 2e-7 of them.
_WIDE = 4096.0


@dataclass(frozen=True)
class DiscreteGaussian(PrivateNoise):
    """Discrete Gaussian noise that gives `rho`-zCDP to one `unit`."""

    rho: float = parameter(
        POSITIVE, "budget of zero-concentrated privacy that one unit may spend", ladder=BUDGETS
    )
    delta: float = parameter(
        CHANCE, "chance that is left out where an eps is told of it", default=1e-6
    )
    unit: Unit = unit_parameter()  # noqa: RUF009 - a field

    name: ClassVar[str] = "discrete-gaussian"
    example: ClassVar[str] = "discrete-gaussian(rho=0.5, unit=event)"
    summary: ClassVar[str] = "add whole-number normal noise that is rho-zCDP"
    _kind: ClassVar[str] = "Discrete Gaussian noise"
    randomness: ClassVar[Randomness] = Randomness.EXACT
    _reach: ClassVar[float] = 8.9

    @cached_property
    def eps(self) -> float:  # type: ignore[override]
        """What rho and delta come to."""
        return self.trade_off(self.unit.most_visits).eps_at(self.delta)

    @property
    def guarantee(self) -> Guarantee:
        return replace(super().guarantee, rho=self.rho)

    @property
    def scale(self) -> float:
        return math.sqrt(self.unit.l2_sensitivity**2 / (2 * self.rho))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int32]:
        if self.scale > _WIDE:
            return np.rint(rng.normal(0, self.scale, shape)).astype(np.int32)
        place = np.searchsorted(self._cumulated, rng.random(shape), side="right")
        return np.asarray(place + self.window[0], np.int32)

    def draw_securely(self, shape: tuple[int, ...]) -> NDArray[np.int32]:
        variance = self.unit.most_visits / (2 * Fraction(repr(self.rho)))
        return discrete_normal(math.prod(shape), variance).reshape(shape)

    def trade_off(self, differing: int) -> TradeOff:
        return discrete_shift(self.unit.most_visits / (2 * self.rho), differing)

    def log_cdf(self, z: ArrayLike) -> Floats:
        return self.log_sf(-np.asarray(z, np.float64) - 1)

    def log_sf(self, z: ArrayLike) -> Floats:
        z = np.asarray(z, np.float64)
        # All of it less the other tail, where that is the smaller one.
        tail = self._log_tail(np.where(z < 0, -1 - z, z))
        with np.errstate(divide="ignore"):
            return np.where(z < 0, np.log1p(-np.exp(tail)), tail)

    def _log_tail(self, z: Floats) -> Floats:
        """Return log P(Z > z), for z of 0 or more."""
        if self.scale >= _SMOOTH:
            return _log_smooth_tail(z, self.scale)
        summed = self._log_tails
        place = np.minimum(z, summed.size - 1)
        # Further out, one term is all that matters.
        further = self._log_weight(z + 1) - self._log_weight(place + 1)
        beyond = np.where(np.isinf(z), -np.inf, further)
        return np.asarray(summed[place.astype(np.int64)] + np.where(z > place, beyond, 0.0))

    def _log_weight(self, z: Floats) -> Floats:
        return np.asarray(-(z**2) / (2 * self.scale**2))

    @cached_property
    def _log_tails(self) -> Floats:
        """Log P(Z > z) for z from 0 on, summed from the far end."""
        weights = self._log_weight(np.arange(1, math.ceil(_FAR * self.scale) + 2.0))
        tails = np.logaddexp.accumulate(weights[::-1])[::-1]
        return np.asarray(tails - np.logaddexp(0.0, math.log(2) + tails[0]))

    @cached_property
    def _cumulated(self) -> Floats:
        lowest, highest = self.window
        return np.exp(self.log_cdf(np.arange(lowest, highest)))


def _log_smooth_tail(z: Floats, sigma: float) -> Floats:
    """Return log P(Z > z), for z of 0 or more and a large sigma."""
    # Infinite ends give no number on the way, and are put right in the end.
    with np.errstate(invalid="ignore"):
        x = (z + 0.5) / sigma
        # The derivatives of exp(-x^2 / 2) are Hermite polynomials times itself.
        corrections = (
            x / (24 * sigma)
            - 7 * (x**3 - 3 * x) / (5760 * sigma**3)
            + 31 * (x**5 - 10 * x**3 + 15 * x) / (967680 * sigma**5)
        )
        tail = log_ndtr(-x)
        density = np.exp(-(x**2) / 2 - tail) / (sigma * math.sqrt(2 * math.pi))
        return np.where(np.isinf(z), -np.inf, tail + np.log1p(-corrections * density))
