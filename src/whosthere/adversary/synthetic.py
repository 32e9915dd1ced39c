"""Synthetic people: traces from the unicity model, made of nothing but a release's marginals."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from whosthere import kernels
from whosthere.arrays import Floats, Ints32, Ints64, frozen, own
from whosthere.data.traces import Traces
from whosthere.errors import InputError, quote, suggestion

if TYPE_CHECKING:
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.kernels.unicity import People

# How many regions a person has at most, as in the paper.
_MOST_REGIONS = 10
# Visits drawn for each one that is needed, where it is not known yet how many will be.
_ROOM = 2.0
_NO_GRAPH = frozen([0], np.int32), frozen([], np.int32)


@dataclass(frozen=True)
class Activity(ABC):
    """A distribution of the number of visits of one person.

    `mean` is that of the visits before they are rounded to whole ones.
    """

    mean: float

    def __post_init__(self) -> None:
        if not 0 <= self.mean < math.inf:
            raise InputError(f"a mean of {self.mean:g} visits", fix="Give a finite number from 0")

    @abstractmethod
    def at(self, shares: Floats) -> Ints64:
        """Return the visits of a person whom such shares of all people visit less than.

        Shares from 0 to just below 1; whole numbers from 0 of the same shape, which never fall
        as the share or the mean grows.
        """


@dataclass(frozen=True)
class Exponential(Activity):
    """Exponential visits: what is assumed where nothing but the mean is known."""

    def at(self, shares: Floats) -> Ints64:
        return np.rint(-self.mean * np.log1p(-shares)).astype(np.int64)


@dataclass(frozen=True)
class Constant(Activity):
    """The same number of visits for everybody."""

    def at(self, shares: Floats) -> Ints64:
        return np.floor(self.mean + shares).astype(np.int64)


@dataclass(frozen=True)
class Lognormal(Activity):
    """Log-normal visits: a heavy tail, as people's activity has.

    `sigma` is the deviation of the logarithm of the visits: 0 is constant, above 1 very uneven.
    """

    sigma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        # Beyond a spread of 5 the mean hangs on people rarer than any population can show.
        if not 0 <= self.sigma <= 5:
            raise InputError(f"a log-normal spread of {self.sigma:g}", fix="Give it within 0 to 5")

    def at(self, shares: Floats) -> Ints64:
        if self.mean == 0:
            return np.zeros(shares.shape, dtype=np.int64)
        location = math.log(self.mean) - self.sigma**2 / 2
        # Nobody is at share 0, where the log-normal has minus infinity.
        visits = np.exp(location + self.sigma * ndtri(np.maximum(shares, 2.0**-54)))
        return np.rint(visits).astype(np.int64)


def parse_activity(text: str, mean: float) -> Activity:
    """Return the activity that an option names, with the given mean.

    Known are ``exponential``, ``constant`` and ``lognormal:SIGMA``, such as ``lognormal:1.2``.
    """
    name, colon, number = text.strip().lower().partition(":")
    if name == "lognormal":
        try:
            sigma = float(number)
        except ValueError:
            fix = "Write it like lognormal:1.2"
            raise InputError(f"activity {quote(text)} has no spread", fix=fix) from None
        return Lognormal(mean, sigma)
    plain = {"exponential": Exponential, "constant": Constant}
    if name not in plain:
        known = [*plain, "lognormal:SIGMA"]
        raise InputError(f"{quote(text)} is not a known activity", fix=suggestion(name, known))
    if colon:
        raise InputError(f"activity {name} takes no number", fix=f"Write {name} alone")
    return plain[name](mean)


@dataclass(frozen=True, eq=False)
class UnicityModel:
    """People who have a few regions of their own and visit them at independent times.

    The first region of a person follows `space`. Where positions are known, all of them hang
    together on the Delaunay graph, grown from the first one; otherwise they are drawn by `space`,
    distinct. A visit that falls into a cell twice counts once, so traces hold somewhat fewer visits
    than the activity says where people make many.
    """

    space: Floats
    """Weight of each region, shape (n_regions,); kept as probabilities."""
    time: Floats
    """Weight of each epoch, shape (n_epochs,); kept as probabilities."""
    activity: Activity
    """Number of visits of a person."""
    regions: Regions
    epochs: Epochs
    """What the cells mean."""

    def __post_init__(self) -> None:
        for name in ("space", "time"):
            found = np.asarray(getattr(self, name), dtype=np.float64)
            if not np.isfinite(found).all() or found.min() < 0 or found.sum() <= 0:
                raise InputError(f"the {name} marginal must be finite weights from 0, not all 0")
            object.__setattr__(self, name, frozen(found / found.sum(), np.float64))

    @property
    def most_cells(self) -> int:
        """How many cells a person can visit at most."""
        return min(_MOST_REGIONS, len(self.regions)) * self.epochs.n

    def generate(self, n: int, rng: np.random.Generator, *, evenly: bool = False) -> Traces:
        """Make the traces of `n` people; some may have no visit.

        The same generator makes the same people whatever their activity's mean: with a larger
        one they visit more cells beside those that they visit anyway. Evenly, one person is drawn
        from each n-th of the activity's law, in ascending order: everybody is as likely as before,
        and there is much less chance in the total.
        """
        visits = self.activity.at(_even_shares(n, rng) if evenly else rng.random(n))
        indptr, cells = kernels.draw_traces(self.people, visits, _key(rng), in_order=False)
        return Traces(
            _names(n), own(indptr, np.int64), own(cells, np.int32), self.regions, self.epochs
        )

    @cached_property
    def people(self) -> People:
        """The model as the kernel takes it."""
        graph, connected = _NO_GRAPH, self.regions.have_positions
        if connected:
            graph = self.regions.neighbours.indptr, self.regions.neighbours.indices
        return kernels.People(self.space, self.time, *graph, connected, _MOST_REGIONS)


class SamePeople:
    """`n` synthetic people whose numbers of visits are drawn evenly, counted with any mean.

    They are those whom `UnicityModel.generate` makes of the same generator, evenly. Their visits
    are drawn once, in the order in which they are made; with a larger mean, people make more of
    them. Of the model's activity only the shape is used.
    """

    def __init__(self, model: UnicityModel, n: int, rng: np.random.Generator) -> None:
        self._model = model
        self._shares = _even_shares(n, rng)
        self._key = _key(rng)
        self._n_drawn = np.zeros(n, np.int64)
        self._bounds, self._cells = np.zeros(n + 1, np.int64), np.empty(0, np.int32)

    def counts(self, mean: float) -> Ints32:
        """Count people with this mean in each cell, shape (n_regions, n_epochs)."""
        n_visits = self._visits(mean)
        if (n_visits > self._n_drawn).any():
            # More than is needed now, so that the next mean hardly asks for more.
            self._n_drawn = self._visits(_ROOM * mean)
            self._bounds, self._cells = kernels.draw_traces(
                self._model.people, self._n_drawn, self._key, in_order=True
            )
        n_regions, n_epochs = self._model.space.size, self._model.time.size
        # One cell more, which stands for none.
        counts = np.zeros(n_regions * n_epochs + 1, np.int32)
        kernels.add_first_visits(self._bounds, self._cells, n_visits, counts)
        return counts[:-1].reshape(n_regions, n_epochs)

    def _visits(self, mean: float) -> Ints64:
        return replace(self._model.activity, mean=mean).at(self._shares)


def _even_shares(n: int, rng: np.random.Generator) -> Floats:
    """Return one random number within each n-th of the range from 0 to 1, shape (n,)."""
    return (np.arange(n) + rng.random(n)) / n


def _key(rng: np.random.Generator) -> np.uint64:
    return rng.integers(0, 2**64, dtype=np.uint64)


@lru_cache(maxsize=2)
def _names(n: int) -> tuple[str, ...]:
    """Return ids of `n` people, sorted; the same number is asked for again and again."""
    digits = len(str(n))
    return tuple(f"s{i:0{digits}}" for i in range(n))
