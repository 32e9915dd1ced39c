"""The places of a data set."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from whosthere.arrays import Ints32, frozen, own
from whosthere.data.files import for_sheets, new_file
from whosthere.data.neighbours import Neighbours, delaunay, nearest, project
from whosthere.display import Shown
from whosthere.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

Outline = tuple[tuple[float, ...], ...]
"""Closed lines around a region: longitude, latitude, longitude, ... of their corners."""
MOST_OUTLINES = 20_000
"""More regions have no outlines of their own; no map shows so many."""
MOST_DEGREES = 360.0
"""Larger coordinates are not in degrees at all."""
PROJECTED_FIX = "Convert them to longitudes and latitudes in degrees (WGS 84, EPSG:4326)"
# A hundred-thousandth of a degree is a metre.
_DIGITS = 6
# Regions further away than so many others are no neighbours.
_NEAREST = 20


def refuse_position(what: str, lon: float, lat: float) -> None:
    """Refuse a position that is not on Earth."""
    if abs(lon) <= 180.0 and abs(lat) <= 90.0:
        return
    found = f"{what} has no valid position (lon {lon:g}, lat {lat:g})"
    if max(abs(lon), abs(lat)) > MOST_DEGREES:
        raise InputError(f"{found}: the coordinates look projected", fix=PROJECTED_FIX)
    raise InputError(found, fix="Give degrees, -180 to 180 and -90 to 90; are lon and lat swapped?")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Regions(Shown):
    """Places with an id each and, where known, a position and an outline.

    Two are equal whatever their outlines, which are for maps only.

    Parameters
    ----------
    ids
        A distinct text for each region.
    lon, lat
        Degrees (WGS 84), one per region; both or neither.
    outlines
        Around the position of each region, the corners of its parts: degrees east and north of the
        position. A single outline is that of all regions.
    """

    ids: tuple[str, ...]
    lon: NDArray[np.float64] | None
    lat: NDArray[np.float64] | None
    outlines: tuple[Outline, ...] | None

    def __init__(
        self,
        ids: list[str] | tuple[str, ...],
        lon: ArrayLike | None = None,
        lat: ArrayLike | None = None,
        outlines: Iterable[Iterable[Iterable[float]]] | None = None,
    ) -> None:
        object.__setattr__(self, "ids", tuple(ids))
        object.__setattr__(self, "lon", None if lon is None else frozen(lon, np.float64))
        object.__setattr__(self, "lat", None if lat is None else frozen(lat, np.float64))
        object.__setattr__(self, "outlines", None if outlines is None else _rounded(outlines))
        self._check()

    def _check(self) -> None:
        if not self.ids:
            raise InputError("there must be at least one region")
        twice = [region for region, times in Counter(self.ids).items() if times > 1]
        if twice:
            raise InputError(f"region id {twice[0]!r} appears more than once")
        if (self.lon is None) != (self.lat is None):
            raise InputError("regions need both longitude and latitude, or neither")
        if self.lon is None or self.lat is None:
            if self.outlines is not None:
                raise InputError("regions with outlines need positions")
            return
        if not len(self.ids) == self.lon.size == self.lat.size:
            raise InputError(
                f"{len(self.ids)} region ids do not match "
                f"{self.lon.size} longitudes and {self.lat.size} latitudes"
            )
        if self.outlines is not None and len(self.outlines) not in {1, len(self.ids)}:
            raise InputError(f"{len(self.outlines)} outlines do not fit {len(self.ids)} regions")
        outside = ~((np.abs(self.lon) <= 180.0) & (np.abs(self.lat) <= 90.0))
        if outside.any():
            first = int(np.flatnonzero(outside)[0])
            refuse_position(
                f"region {self.ids[first]!r}", float(self.lon[first]), float(self.lat[first])
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Regions):
            return NotImplemented
        return self.ids == other.ids and all(
            np.array_equal(mine, theirs)
            if mine is not None and theirs is not None
            else mine is theirs
            for mine, theirs in ((self.lon, other.lon), (self.lat, other.lat))
        )

    def __hash__(self) -> int:
        return hash(self.ids)

    def _facts(self) -> dict[str, object]:
        positions = "with" if self.have_positions else "without"
        return {"regions": len(self), "positions": f"{positions} positions"}

    @property
    def have_positions(self) -> bool:
        """Whether the regions' longitudes and latitudes are known."""
        return self.lon is not None

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each region id."""
        return {region: i for i, region in enumerate(self.ids)}

    @property
    def degrees(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Longitudes and latitudes, for callers that cannot do without."""
        if self.lon is None or self.lat is None:
            raise InputError(
                "the regions have no positions", fix="Give a regions table with lon and lat"
            )
        return self.lon, self.lat

    @cached_property
    def positions_km(self) -> NDArray[np.float64]:
        """Positions on a plane in km, shape (n, 2)."""
        return own(project(*self.degrees), np.float64)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Delaunay neighbours; defined for any positions, also collinear or coinciding ones."""
        return delaunay(self.positions_km)

    @cached_property
    def nearest(self) -> Ints32:
        """The regions nearest to each, nearest first, shape (n, 20), or (n, n - 1) if fewer."""
        return nearest(self.positions_km, _NEAREST)

    def outline(self, row: int) -> Outline | None:
        """Return the outline of a region in degrees, None where it is not known."""
        if self.outlines is None or self.lon is None or self.lat is None:
            return None
        at = float(self.lon[row]), float(self.lat[row])
        around = self.outlines[row if len(self.outlines) > 1 else 0]
        return tuple(
            tuple(round(at[i % 2] + shift, _DIGITS) for i, shift in enumerate(ring))
            for ring in around
        )

    def select(self, rows: ArrayLike) -> Regions:
        """Return the given regions, in the given order."""
        chosen = np.asarray(rows, dtype=np.int64)
        outlines = self.outlines
        if outlines is not None and len(outlines) > 1:
            outlines = tuple(outlines[i] for i in chosen)
        return Regions(
            [self.ids[i] for i in chosen],
            None if self.lon is None else own(self.lon[chosen], np.float64),
            None if self.lat is None else own(self.lat[chosen], np.float64),
            outlines,
        )

    def merged(self, new: ArrayLike, names: tuple[str, ...] | None = None) -> Regions:
        """Return larger regions, given the number of the new region that each becomes a part of.

        They are numbered from 0 without gaps. A region of several has their ids, joined by ``+``,
        if it is given no name, the mean of their positions, and no outline.
        """
        number = np.asarray(new, dtype=np.int64)
        if number.shape != (len(self),):
            raise InputError(
                f"{number.size} numbers do not say what becomes of {len(self)} regions"
            )
        if number.min() < 0 or (parts := np.bincount(number)).min() == 0:
            raise InputError("the new regions must be numbered from 0 without gaps")
        ids: list[list[str]] = [[] for _ in parts]
        for region, place in zip(self.ids, number.tolist(), strict=True):
            ids[place].append(region)
        positions = (
            None if axis is None else np.bincount(number, axis) / parts
            for axis in (self.lon, self.lat)
        )
        return Regions(names or ["+".join(together) for together in ids], *positions)

    def in_groups_of(self, k: int) -> tuple[int, ...]:
        """Return for `merged` the new number of each region if k neighbours each become one.

        The map is cut into upright strips of whole groups, and each strip into groups from south to
        north, so that a square grid of cells becomes one of larger squares.
        """
        if not 2 <= k <= len(self):
            raise InputError(
                f"{len(self)} regions cannot be merged by groups of {k}",
                fix=f"Give a whole number from 2 to {len(self)}",
            )
        if not self.have_positions:
            raise InputError(
                "regions without positions have no neighbours to be merged with",
                fix="Leave their merging out, or ingest the records with a table of regions that "
                "has lon and lat",
            )
        east, north = self.positions_km.T
        groups = -(-len(self) // k)
        width, height = np.ptp(east), np.ptp(north)
        strips = np.sqrt(groups * width / height) if height else groups
        in_strip = k * -(-groups // int(np.clip(np.rint(strips), 1, groups)))
        # Coordinates of one column of a grid may differ by rounding.
        order = np.lexsort((north, east.round(_DIGITS)))
        strip = np.empty(len(self), np.int64)
        strip[order] = np.arange(len(self)) // in_strip
        new = np.empty(len(self), np.int64)
        new[np.lexsort((east, north.round(_DIGITS), strip))] = np.arange(len(self)) // k
        return tuple(new.tolist())

    def write_csv(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the regions as CSV with columns region and, if known, lon and lat."""
        columns: dict[str, Any] = {"region": for_sheets(pl.Series(self.ids))}
        if self.have_positions:
            columns |= {"lon": self.lon, "lat": self.lat}
        with new_file(Path(path), force=force, public=True) as temporary:
            pl.DataFrame(columns).write_csv(temporary)

    def to_json(self) -> dict[str, Any]:
        """Describe the regions in plain values."""
        described = {
            "ids": list(self.ids),
            "lon": None if self.lon is None else self.lon.tolist(),
            "lat": None if self.lat is None else self.lat.tolist(),
        }
        if self.outlines is None:
            return described
        # As text, which takes the least space, and one line where JSON is indented.
        texts = [[" ".join(map(str, ring)) for ring in outline] for outline in self.outlines]
        return {**described, "outlines": texts}

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Make the regions that `to_json` described."""
        texts = described.get("outlines")
        outlines = texts and [[map(float, ring.split()) for ring in outline] for outline in texts]
        return cls(described["ids"], described["lon"], described["lat"], outlines)


def _rounded(outlines: Iterable[Iterable[Iterable[float]]]) -> tuple[Outline, ...]:
    rounded = tuple(
        tuple(tuple(round(float(v), _DIGITS) for v in ring) for ring in outline)
        for outline in outlines
    )
    rings = [ring for outline in rounded for ring in outline]
    if not all(len(ring) % 2 == 0 and np.isfinite(ring).all() for ring in rings):
        raise InputError("an outline has a corner that is no place")
    return rounded
