"""The steps of a mechanism that add noise to the counts.

Counts are whole numbers, so rounding a noisy count down is the same as adding noise that was
rounded down. The noise here is that whole number Z; the sum is then limited to 0..m.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from whosthere.errors import SpecError
from whosthere.privacy.exact_noise import Randomness, discrete_laplace, rounded_laplace
from whosthere.privacy.lattice import walk
from whosthere.privacy.shapes import AddedNoise
from whosthere.privacy.trade_off import NormalShift, TradeOff, gaussian_sigma
from whosthere.privacy.units import Guarantee, Unit, unit_parameter
from whosthere.specs import CHANCE, POSITIVE, parameter

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from whosthere.arrays import Floats, Ints32

# Below this scale noise is never seen; above it, noise and counts outgrow 32-bit integers.
_LEAST_SCALE, _MOST_SCALE = 1e-6, 1e7
_DECADE = (1, 1.5, 2, 3, 5, 7)
BUDGETS = sorted((float(f"{x}e{e}") for e in (-2, -1, 0, 1) for x in _DECADE), reverse=True)
"""What a search tries, from the weakest protection to the strongest."""


def _budget() -> Any:  # noqa: ANN401 - stands where a field's default stands
    return parameter(
        POSITIVE, "budget that one unit may spend; less of it is more noise", ladder=BUDGETS
    )


class PrivateNoise(AddedNoise):
    """Noise that spends a privacy budget on a unit."""

    eps: float
    unit: Unit
    _kind: ClassVar[str]
    _reach: ClassVar[float]
    """Scales beyond which less than 1e-18 of the mass lies, on both sides together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _LEAST_SCALE <= self.scale <= _MOST_SCALE:
            raise SpecError(
                f"{self} adds noise of scale {self.scale:.3g}, which whole counts cannot show",
                fix=f"Choose a scale between {_LEAST_SCALE} and {_MOST_SCALE:g} by its budget",
            )

    @property
    @abstractmethod
    def scale(self) -> float:
        """Size of the noise, in people."""

    @property
    def delta(self) -> float:
        """Chance that is left out of the guarantee."""
        return 0.0

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.eps, self.delta, self.unit)

    @property
    def window(self) -> tuple[int, int]:
        reach = math.ceil(self._reach * self.scale)
        return -reach - 1, reach

    def describe(self) -> str:
        return (
            f"{self._kind} of scale {self.scale:.4g} is added to every count, and the sum is kept "
            "between 0 and the size of the group."
        )


@dataclass(frozen=True)
class _TwoSidedGeometric(PrivateNoise):
    """Z or -1 - Z is geometric from 0, with ratio exp(-1 / scale) on both sides."""

    eps: float = _budget()
    unit: Unit = unit_parameter()  # noqa: RUF009 - a field

    randomness: ClassVar[Randomness] = Randomness.EXACT
    _reach: ClassVar[float] = 41.5
    _fair_sides: ClassVar[bool]
    """Whether Z < 0 has a chance of one half."""

    @property
    def scale(self) -> float:
        return self.unit.l1_sensitivity / self.eps

    @property
    def _log_sides(self) -> tuple[float, float]:
        """Logs of P(Z < 0) and P(Z >= 0)."""
        if self._fair_sides:
            return -math.log(2), -math.log(2)
        above = -math.log1p(math.exp(-1 / self.scale))
        return above - 1 / self.scale, above

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Ints32:
        # An exponential variable rounded down is geometric, and drawn much faster than one.
        magnitude = rng.exponential(self.scale, shape).astype(np.int32)
        if self._fair_sides:
            below = rng.integers(0, 2, shape, dtype=np.bool_)
        else:
            below = rng.random(shape) < math.exp(self._log_sides[0])
        # x ^ -1 is -1 - x and x ^ 0 is x: the side costs one pass and no branch.
        return np.bitwise_xor(magnitude, -below.view(np.int8), out=magnitude)

    def draw_securely(self, shape: tuple[int, ...]) -> Ints32:
        rate = Fraction(repr(self.eps)) / self.unit.most_visits
        drawn = rounded_laplace if self._fair_sides else discrete_laplace
        return drawn(math.prod(shape), rate).reshape(shape)

    def trade_off(self, differing: int) -> TradeOff:
        still = -math.expm1(-1 / self.scale) / 2 if self._fair_sides else 0.0
        return walk(1 / self.scale, still, differing)

    def log_cdf(self, z: ArrayLike) -> Floats:
        below, above = self._log_sides
        return _log_tail(below, above, (np.asarray(z, np.float64) + 1) / self.scale)

    def log_sf(self, z: ArrayLike) -> Floats:
        below, above = self._log_sides
        return _log_tail(above, below, -(np.asarray(z, np.float64) + 1) / self.scale)


def _log_tail(own: float, other: float, steps: Floats) -> Floats:
    """Return the log chance of one side up to some steps beyond 0, given those of both sides."""
    with np.errstate(divide="ignore"):
        beyond = np.log1p(-np.exp(other - np.maximum(steps, 0)))
    return np.where(steps <= 0, own + steps, beyond)


@dataclass(frozen=True)
class Laplace(_TwoSidedGeometric):
    """Laplace noise of scale sensitivity / eps, rounded down."""

    name: ClassVar[str] = "laplace"
    example: ClassVar[str] = "laplace(eps=1, unit=event)"
    summary: ClassVar[str] = "add Laplace noise, rounded down"
    _kind: ClassVar[str] = "Rounded-down Laplace noise"
    _fair_sides: ClassVar[bool] = True


@dataclass(frozen=True)
class DiscreteLaplace(_TwoSidedGeometric):
    """The two-sided geometric: P(Z = z) falls by exp(-eps / sensitivity) with each step from 0."""

    name: ClassVar[str] = "discrete-laplace"
    example: ClassVar[str] = "discrete-laplace(eps=1, unit=event)"
    summary: ClassVar[str] = "add whole-number noise, symmetric about 0"
    _kind: ClassVar[str] = "Discrete Laplace noise"
    _fair_sides: ClassVar[bool] = False


@dataclass(frozen=True)
class Gaussian(PrivateNoise):
    """Normal noise, rounded down, with the least sigma that gives (eps, delta) to one `unit`.

    It is for audits and trials: no release of it states a guarantee, as its noise is not drawn
    exactly. Publishers have `DiscreteGaussian`.
    """

    eps: float = _budget()
    delta: float = parameter(
        CHANCE, "chance that is left out of the guarantee", default=1e-6, always=True
    )
    unit: Unit = unit_parameter()  # noqa: RUF009 - a field

    name: ClassVar[str] = "gaussian"
    example: ClassVar[str] = "gaussian(eps=1, delta=1e-6, unit=event)"
    summary: ClassVar[str] = "add normal noise, rounded down, that is (eps, delta)-private"
    _kind: ClassVar[str] = "Rounded-down Gaussian noise"
    _reach: ClassVar[float] = 8.9

    @cached_property
    def scale(self) -> float:
        return gaussian_sigma(self.eps, self.delta, self.unit.l2_sensitivity)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Ints32:
        noise = rng.normal(0, self.scale, shape)
        return np.floor(noise, out=noise).astype(np.int32)

    def trade_off(self, differing: int) -> NormalShift:
        return NormalShift(math.sqrt(differing) / self.scale)

    def log_cdf(self, z: ArrayLike) -> Floats:
        return np.asarray(log_ndtr((np.asarray(z, np.float64) + 1) / self.scale))

    def log_sf(self, z: ArrayLike) -> Floats:
        return np.asarray(log_ndtr(-(np.asarray(z, np.float64) + 1) / self.scale))
