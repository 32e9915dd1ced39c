"""Flows: the regions of an origin-destination table are ordered pairs of places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from whosthere.arrays import Ints32, own
from whosthere.data.regions import Regions
from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

BETWEEN = " > "
"""Between the ids of an origin and a destination."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Pairs(Regions):
    """Ordered pairs of places, as the regions of a table of flows.

    A pair has no position, so no map shows it and none has neighbours. Places may have some: they
    decide which places are merged, at both ends.

    Parameters
    ----------
    places
        Where trips begin and end.
    origins, destinations
        The rows of the places of each pair; by default all pairs, by origin.
    """

    places: Regions
    origins: Ints32
    destinations: Ints32

    def __init__(
        self,
        places: Regions,
        origins: ArrayLike | None = None,
        destinations: ArrayLike | None = None,
    ) -> None:
        n = len(places)
        if origins is None or destinations is None:
            origins, destinations = np.divmod(np.arange(n * n), n)
        ends = np.asarray(origins), np.asarray(destinations)
        if ends[0].shape != ends[1].shape or any(
            one.size and not 0 <= one.min() <= one.max() < n for one in ends
        ):
            raise InputError(f"these are no pairs of {n} places")
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "origins", own(ends[0].copy(), np.int32))
        object.__setattr__(self, "destinations", own(ends[1].copy(), np.int32))
        ids = places.ids
        named = zip(ends[0].tolist(), ends[1].tolist(), strict=True)
        super().__init__([f"{ids[a]}{BETWEEN}{ids[b]}" for a, b in named])

    def _facts(self) -> dict[str, object]:
        return {"pairs": len(self), "places": len(self.places)}

    @property
    def grid(self) -> Ints32:
        """The row of the pair of each origin and destination, -1 where there is none.

        Shape (n_places, n_places).
        """
        rows = np.full((len(self.places), len(self.places)), -1, np.int32)
        rows[self.origins, self.destinations] = np.arange(len(self))
        return rows

    def select(self, rows: ArrayLike) -> Pairs:
        """Return the given pairs, in the given order."""
        chosen = np.asarray(rows, dtype=np.int64)
        return Pairs(self.places, self.origins[chosen], self.destinations[chosen])

    def joined(self, new: ArrayLike) -> tuple[int, ...]:
        """Return for `merged` the new number of each pair if places become parts of larger ones.

        `new` is the number of the larger place that each becomes a part of.
        """
        number = np.asarray(new, dtype=np.int64)
        pair = number[self.origins] * (number.max() + 1) + number[self.destinations]
        return tuple(np.unique(pair, return_inverse=True)[1].tolist())

    def names(self, new: ArrayLike, of_places: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the pairs that `joined` makes, given those of the larger places."""
        number = np.asarray(new, dtype=np.int64)
        _, first = np.unique(self.joined(number), return_index=True)
        ends = number[self.origins[first]].tolist(), number[self.destinations[first]].tolist()
        return tuple(f"{of_places[a]}{BETWEEN}{of_places[b]}" for a, b in zip(*ends, strict=True))

    def in_groups_of(self, k: int) -> tuple[int, ...]:
        """Return for `merged` the new number of each pair if k neighbouring places become one."""
        return self.joined(self.places.in_groups_of(k))

    def merged(self, new: ArrayLike, names: tuple[str, ...] | None = None) -> Regions:
        """Return larger regions: pairs of larger places, where pairs were merged by their ends.

        Places belong together where pairs that begin (or end) at them became one. Pairs that were
        merged in another way become regions without ends. Names are those of pairs.
        """
        from scipy.sparse import coo_array  # noqa: PLC0415 - slow to import
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - slow to import

        plain = super().merged(new, names)
        number, n = np.asarray(new, dtype=np.int64), len(self.places)
        _, first = np.unique(number, return_index=True)
        here = np.concatenate([self.origins, self.destinations])
        there = np.concatenate([one[first[number]] for one in (self.origins, self.destinations)])
        together = coo_array((np.ones(here.size, bool), (here, there)), shape=(n, n))
        place = connected_components(together, directed=False)[1].astype(np.int64)
        ends = place[self.origins] * (place.max() + 1) + place[self.destinations]
        if np.unique(ends).size < first.size or (ends != ends[first[number]]).any():
            return plain
        begin, end = place[self.origins[first]], place[self.destinations[first]]
        called = None
        if names is not None:
            ends_of = [name.split(BETWEEN, 1) for name in names]
            by_place = dict(zip(begin.tolist(), (one[0] for one in ends_of), strict=True))
            by_place |= dict(zip(end.tolist(), (one[-1] for one in ends_of), strict=True))
            ids = self.places.merged(place).ids
            called = tuple(by_place.get(i, ids[i]) for i in range(len(ids)))
        return Pairs(self.places.merged(place, called), begin, end)

    def to_json(self) -> dict[str, Any]:
        """Describe the pairs in plain values; all pairs are not listed."""
        listed = {"origins": self.origins.tolist(), "destinations": self.destinations.tolist()}
        n = len(self.places)
        is_all = len(self) == n * n and (self.grid.ravel() == np.arange(n * n)).all()
        return {"places": self.places.to_json(), **({} if is_all else listed)}

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Make the pairs that `to_json` described."""
        places = Regions.from_json(described["places"])
        return cls(places, described.get("origins"), described.get("destinations"))


def regions_from_json(described: dict[str, Any]) -> Regions:
    """Make the regions, or pairs of places, that `to_json` described."""
    kind = Pairs if "places" in described else Regions
    return kind.from_json(described)
