"""Synthetic people: traces from the unicity model, made of nothing but a release's marginals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from whosthere import kernels
from whosthere.adversary.activity import even_shares
from whosthere.arrays import frozen, own
from whosthere.data.traces import Traces
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from whosthere.adversary.activity import Activity
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.kernels.unicity import People

Variant: TypeAlias = Literal["adapted", "original"]
Haunts: TypeAlias = Literal["anywhere", "connected", "scattered"]

# As the kernel numbers them.
_HAUNTS: Mapping[str, int] = MappingProxyType({"anywhere": 0, "connected": 1, "scattered": 2})
# Visits drawn for each one that is needed, where it is not known yet how many will be.
_ROOM = 2.0
_NO_GRAPH = frozen([0], np.int32), frozen([], np.int32)


def usual_haunts(regions: Regions) -> Haunts:
    """Return the best kind of haunts that the regions allow: connected ones need positions."""
    return "connected" if regions.have_positions else "scattered"


@dataclass(frozen=True, eq=False)
class UnicityModel:
    """People who have a few regions of their own and visit them at independent times.

    A visit that falls into a cell twice counts once, so traces hold somewhat fewer visits than
    the activity says where people make many.

    Parameters
    ----------
    space
        Weight of each region, shape (n_regions,); kept as probabilities.
    time
        Weight of each epoch, shape (n_epochs,); kept as probabilities.
    activity
        Number of visits of a person.
    regions, epochs
        What the cells mean.
    n_rois
        How many regions a person has at most.
    variant
        "adapted": the first region follows `space`, and several visits may share an epoch.
        "original": the first region is uniform, and no two visits of a person share an epoch.
    haunts
        "connected": regions that hang together on the Delaunay graph, grown from the first one;
        needs positions. "scattered": regions drawn by `space`, distinct, the first one among
        them. "anywhere": all regions, for everybody.
    """

    space: NDArray[np.float64]
    time: NDArray[np.float64]
    activity: Activity
    regions: Regions
    epochs: Epochs
    n_rois: int = 10
    variant: Variant = "adapted"
    haunts: Haunts = "connected"

    def __post_init__(self) -> None:
        for name, n in (("space", len(self.regions)), ("time", self.epochs.n)):
            object.__setattr__(self, name, _probabilities(getattr(self, name), n, name))
        if self.n_rois < 1:
            raise InputError(f"a person needs at least one region, not {self.n_rois}")
        _check_choice("variant", self.variant, get_args(Variant))
        _check_choice("haunts", self.haunts, get_args(Haunts))
        if self.haunts == "connected" and not self.regions.have_positions:
            raise InputError(
                "connected places need the regions' positions, which are not known",
                fix="Give a regions table with lon and lat, or use scattered places",
            )

    @property
    def most_cells(self) -> int:
        """How many cells a person can visit at most."""
        n_regions = len(self.regions)
        own = n_regions if self.haunts == "anywhere" else min(self.n_rois, n_regions)
        return own * self.epochs.n

    def generate(self, n: int, rng: np.random.Generator, *, evenly: bool = False) -> Traces:
        """Make the traces of `n` people; some may have no visit.

        The same generator makes the same people whatever their activity's mean: with a larger
        one they visit more cells beside those that they visit anyway.

        Parameters
        ----------
        evenly
            Whether numbers of visits are drawn evenly from the activity's law.
        """
        visits = self.activity.draw(n, rng, evenly=evenly)
        indptr, cells = kernels.draw_traces(self.people, visits, _key(rng), in_order=False)
        return Traces(
            _names(n), own(indptr, np.int64), own(cells, np.int32), self.regions, self.epochs
        )

    @cached_property
    def people(self) -> People:
        """The model as the kernel takes it."""
        graph = _NO_GRAPH
        if self.haunts == "connected":
            neighbours = self.regions.neighbours
            graph = neighbours.indptr, neighbours.indices
        original = self.variant == "original"
        return kernels.People(
            self.space, self.time, *graph, _HAUNTS[self.haunts], self.n_rois, original
        )


class SamePeople:
    """Synthetic people whose numbers of visits are drawn evenly, counted with any mean.

    They are those whom `UnicityModel.generate` makes of the same generator, evenly. Their visits
    are drawn once, in the order in which they are made; with a larger mean, people make more of
    them.

    Parameters
    ----------
    model
        The people; of their activity only the shape is used.
    n
        How many they are.
    """

    def __init__(self, model: UnicityModel, n: int, rng: np.random.Generator) -> None:
        self._model = model
        self._shares = even_shares(n, rng)
        self._key = _key(rng)
        self._n_drawn = np.zeros(n, np.int64)
        self._bounds, self._cells = np.zeros(n + 1, np.int64), np.empty(0, np.int32)

    def counts(self, mean: float) -> NDArray[np.int32]:
        """Count people with this mean in each cell, shape (n_regions, n_epochs)."""
        activity = self._model.activity
        n_visits = activity.with_mean(mean).at(self._shares)
        if (n_visits > self._n_drawn).any():
            # More than is needed now, so that the next mean hardly asks for more.
            self._n_drawn = activity.with_mean(_ROOM * mean).at(self._shares)
            self._bounds, self._cells = kernels.draw_traces(
                self._model.people, self._n_drawn, self._key, in_order=True
            )
        n_regions, n_epochs = self._model.space.size, self._model.time.size
        # One cell more, which stands for none.
        counts = np.zeros(n_regions * n_epochs + 1, np.int32)
        kernels.add_first_visits(self._bounds, self._cells, n_visits, counts)
        return counts[:-1].reshape(n_regions, n_epochs)


def _key(rng: np.random.Generator) -> np.uint64:
    return rng.integers(0, 2**64, dtype=np.uint64)


@lru_cache(maxsize=2)
def _names(n: int) -> tuple[str, ...]:
    """Return ids of `n` people, sorted; the same number is asked for again and again."""
    digits = len(str(n))
    return tuple(f"s{i:0{digits}}" for i in range(n))


def _probabilities(weights: NDArray[np.float64], n: int, name: str) -> NDArray[np.float64]:
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (n,):
        raise InputError(f"a {name} marginal of shape {found.shape} does not fit {n} of them")
    if not np.isfinite(found).all() or found.min() < 0 or found.sum() <= 0:
        raise InputError(f"the {name} marginal must hold finite weights from 0, not all of them 0")
    return frozen(found / found.sum(), np.float64)


def _check_choice(what: str, found: str, known: tuple[str, ...]) -> None:
    if found not in known:
        raise InputError(f"{found!r} is not a kind of {what}", fix=suggestion(found, known))
