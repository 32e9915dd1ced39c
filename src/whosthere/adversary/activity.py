"""How many visits people make: the distributions that an attacker may assume."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from whosthere.arrays import frozen
from whosthere.errors import InputError, quote, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


class Activity(ABC):
    """A distribution of the number of visits of one person.

    Attributes
    ----------
    mean
        Mean number of visits, before they are rounded to whole ones.
    """

    mean: float

    @abstractmethod
    def with_mean(self, mean: float) -> Activity:
        """Return the same shape with another mean."""

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

    mean: float

    def __post_init__(self) -> None:
        _check_mean(self.mean)

    def with_mean(self, mean: float) -> Exponential:
        return Exponential(mean)

    def at(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        return _nearest(-self.mean * np.log1p(-shares))


@dataclass(frozen=True)
class Constant(Activity):
    """The same number of visits for everybody."""

    mean: float

    def __post_init__(self) -> None:
        _check_mean(self.mean)

    def with_mean(self, mean: float) -> Constant:
        return Constant(mean)

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

    mean: float
    sigma: float

    def __post_init__(self) -> None:
        _check_mean(self.mean)
        # Beyond a spread of 5 the mean hangs on people rarer than any population can show.
        if not 0 <= self.sigma <= 5:
            raise InputError(f"a log-normal spread of {self.sigma:g}", fix="Give it within 0 to 5")

    def with_mean(self, mean: float) -> Lognormal:
        return replace(self, mean=mean)

    def at(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.mean == 0:
            return np.zeros(shares.shape, dtype=np.int64)
        location = math.log(self.mean) - self.sigma**2 / 2
        # Nobody is at share 0, where the log-normal has minus infinity.
        return _nearest(np.exp(location + self.sigma * ndtri(np.maximum(shares, 2.0**-54))))


@dataclass(frozen=True, eq=False)
class Sampled(Activity):
    """Visits drawn with replacement from those of known people.

    Parameters
    ----------
    values
        Visits of each known person, shape (n_known,), not negative.
    """

    values: NDArray[np.float64]
    mean: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values, np.float64))
        if not self.values.size:
            raise InputError("an activity sample needs at least one person's visits")
        if not (np.isfinite(self.values).all() and self.values.min() >= 0):
            raise InputError("an activity sample must hold finite numbers from 0")
        object.__setattr__(self, "mean", float(self.values.mean()))

    def with_mean(self, mean: float) -> Sampled:
        _check_mean(mean)
        if self.mean == 0:
            raise InputError("an activity sample without any visit cannot get another mean")
        return Sampled(self.values * (mean / self.mean))

    def at(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        places = (shares * self.values.size).astype(np.int64)
        return _nearest(np.sort(self.values)[places])


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


def _check_mean(mean: float) -> None:
    if not 0 <= mean < math.inf:
        raise InputError(f"a mean of {mean:g} visits", fix="Give a finite number from 0")


def _nearest(visits: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(visits).astype(np.int64)
