"""Noise that only a study needs: as the authors' code adds it, and without limits.

No specs name these steps. Nobody should publish with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.privacy.noise import Laplace, PrivateNoise
from whosthere.privacy.units import Guarantee, Unit, unit_parameter
from whosthere.specs import NUMBER, parameter

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from whosthere.arrays import Floats, Ints32

_LOWEST, _HIGHEST = -128, 127


@dataclass(frozen=True)
class EightBitLaplace(PrivateNoise):
    """Laplace noise that is cut toward 0 and kept in 8 bits, beyond which it starts anew.

    So noise of 130.7 is 130 and then -126. It is not differentially private: noise of 0 is too
    likely, and large noise comes out small.
    """

    eps: float = parameter(NUMBER, "budget that the noise was meant for")
    unit: Unit = unit_parameter()  # noqa: RUF009 - a field

    name: ClassVar[str] = "laplace-8-bit"
    _kind: ClassVar[str] = "Laplace noise, cut to 8-bit numbers,"

    @property
    def scale(self) -> float:
        return self.unit.l1_sensitivity / self.eps

    @property
    def guarantee(self) -> Guarantee | None:  # type: ignore[override]
        return None

    @property
    def window(self) -> tuple[int, int]:
        return _LOWEST, _HIGHEST

    @cached_property
    def _chances(self) -> Floats:
        """Chance of each number from the lowest to the highest, shape (256,).

        Cut toward 0, n is what lies in [n, n + 1) above 0, and as much below 0 for -n. Numbers that
        are 256 apart come out as the same.
        """
        rate, width = 1 / self.scale, _HIGHEST - _LOWEST + 1
        numbers = np.arange(_LOWEST, _HIGHEST + 1)
        reach = math.ceil(41.5 * self.scale / width) + 1
        away = np.abs(numbers[:, None] + width * np.arange(-reach, reach + 1))
        each = 0.5 * np.exp(-rate * away) * -math.expm1(-rate)
        return np.asarray(np.where(away == 0, 2 * each, each).sum(axis=1))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Ints32:
        cut = np.trunc(rng.laplace(0, self.scale, shape)).astype(np.int64)
        return cut.astype(np.int8).astype(np.int32)

    def log_cdf(self, z: ArrayLike) -> Floats:
        return self.log_between(-np.inf, z)

    def log_sf(self, z: ArrayLike) -> Floats:
        return self.log_between(np.asarray(z, np.float64) + 1, np.inf)

    def log_between(self, lo: ArrayLike, hi: ArrayLike) -> Floats:
        below = np.append(0.0, np.cumsum(self._chances))
        above = np.append(np.cumsum(self._chances[::-1])[::-1], 0.0)
        first, end = np.broadcast_arrays(
            np.clip(np.asarray(lo, np.float64), _LOWEST, _HIGHEST + 1) - _LOWEST,
            np.clip(np.asarray(hi, np.float64), _LOWEST - 1, _HIGHEST) + 1 - _LOWEST,
        )
        i, j = first.astype(np.intp), np.maximum(end, first).astype(np.intp)
        mass = np.where(i >= -_LOWEST, above[i] - above[j], below[j] - below[i])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(mass, 0.0)))


@dataclass(frozen=True)
class UnlimitedLaplace(Laplace):
    """Laplace noise, rounded down, whose sums are not limited to 0.

    Published counts cannot be negative. So a public number, `lift`, is added to every sum; it is
    so large that no sum is below 0 or, in groups of enough people, above their number. Who
    subtracts it has the sums as they were.
    """

    name: ClassVar[str] = "laplace-unlimited"
    _kind: ClassVar[str] = "Rounded-down Laplace noise, lifted above 0,"

    @property
    def lift(self) -> int:
        """What is added to every sum."""
        return 1 - super().window[0]

    @property
    def window(self) -> tuple[int, int]:
        lowest, highest = super().window
        return lowest + self.lift, highest + self.lift

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Ints32:
        return super().draw(shape, rng) + np.int32(self.lift)

    def draw_securely(self, shape: tuple[int, ...]) -> Ints32:
        return super().draw_securely(shape) + np.int32(self.lift)

    def log_cdf(self, z: ArrayLike) -> Floats:
        return super().log_cdf(np.asarray(z, np.float64) - self.lift)

    def log_sf(self, z: ArrayLike) -> Floats:
        return super().log_sf(np.asarray(z, np.float64) - self.lift)

    def log_between(self, lo: ArrayLike, hi: ArrayLike) -> Floats:
        plain = Laplace(self.eps, self.unit)
        return plain.log_between(
            np.asarray(lo, np.float64) - self.lift, np.asarray(hi, np.float64) - self.lift
        )
