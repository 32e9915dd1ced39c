"""How many visits people make: the distributions that an attacker may assume."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import ndtri

from whosthere.errors import InputError, quote, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Activity(ABC):
    """A distribution of the number of visits of one person.

    Parameters
    ----------
    mean
        Mean number of visits, before they are rounded to whole ones.
    """

    mean: float

    def __post_init__(self) -> None:
        if not 0 <= self.mean < math.inf:
            raise InputError(f"a mean of {self.mean:g} visits", fix="Give a finite number from 0")

    def with_mean(self, mean: float) -> Self:
        """Return the same shape with another mean."""
        return replace(self, mean=mean)

    @abstractmethod
    def at(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the visits of a person whom such shares of all people visit less than.

        Shares from 0 to just below 1; whole numbers from 0 of the same shape, which never fall
        as the share or the mean grows.
        """

    def draw(self, n: int, rng: np.random.Generator, *, evenly: bool = False) -> NDArray[np.int64]:
        """Draw the visits of `n` people: whole numbers from 0, shape (n,).

        Evenly, one person is drawn from each n-th of all people, in ascending order: everybody is
        as likely as before, and there is much less chance in the total.
        """
        return self.at(even_shares(n, rng) if evenly else rng.random(n))


def even_shares(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return one random number within each n-th of the range from 0 to 1, shape (n,)."""
    return (np.arange(n) + rng.random(n)) / n


@dataclass(frozen=True)
class Exponential(Activity):
    """Exponential visits: what is assumed where nothing but the mean is known."""

    def at(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        return _nearest(-self.mean * np.log1p(-shares))


@dataclass(frozen=True)
class Constant(Activity):
    """The same number of visits for everybody."""

    def at(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.floor(self.mean + shares).astype(np.int64)


@dataclass(frozen=True)
class Lognormal(Activity):
    """Log-normal visits: a heavy tail, as people's activity has.

    Parameters
    ----------
    mean
        Mean number of visits.
    sigma
        Standard deviation of the logarithm of the visits: 0 is constant, above 1 very uneven.
    """

    sigma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        # Beyond a spread of 5 the mean hangs on people rarer than any population can show.
        if not 0 <= self.sigma <= 5:
            raise InputError(f"a log-normal spread of {self.sigma:g}", fix="Give it within 0 to 5")

    def at(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.mean == 0:
            return np.zeros(shares.shape, dtype=np.int64)
        location = math.log(self.mean) - self.sigma**2 / 2
        # Nobody is at share 0, where the log-normal has minus infinity.
        return _nearest(np.exp(location + self.sigma * ndtri(np.maximum(shares, 2.0**-54))))


def parse_activity(text: str, mean: float) -> Activity:
    """Return the activity that an option names, with the given mean.

    Known are ``exponential``, ``constant`` and ``lognormal:SIGMA``, such as ``lognormal:1.2``.
    """
    name, colon, number = text.strip().lower().partition(":")
    if name == "lognormal":
        try:
            sigma = float(number)
        except ValueError:
            raise InputError(
                f"activity {quote(text)} has no spread", fix="Write it like lognormal:1.2"
            ) from None
        return Lognormal(mean, sigma)
    if name not in _PLAIN:
        known = [*_PLAIN, "lognormal:SIGMA"]
        raise InputError(f"{quote(text)} is not a known activity", fix=suggestion(name, known))
    if colon:
        raise InputError(f"activity {name} takes no number", fix=f"Write {name} alone")
    return _PLAIN[name](mean)


_PLAIN: Mapping[str, Callable[[float], Activity]] = {
    "exponential": Exponential,
    "constant": Constant,
}


def _nearest(visits: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(visits).astype(np.int64)
