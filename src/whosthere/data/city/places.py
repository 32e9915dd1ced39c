"""The places of a simulated city: where they lie and what draws people to them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

from whosthere.arrays import Floats, Ints32, own
from whosthere.data.neighbours import KM_A_DEGREE
from whosthere.data.regions import Regions
from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.city.models import CityModel

# Antennas stand on distinct squares of a lattice with this many squares per antenna, which
# keeps them apart a little, as planning does.
_SITES_PER_ANTENNA = 8
# Distance of the further centres from the middle, as shares of the city's radius.
_FURTHER_CENTRES = (0.3, 0.8)


class Choices:
    """Rows of weights, ready to be drawn from: not negative, shape (n_rows, n_columns)."""

    def __init__(self, weights: Floats) -> None:
        shares = np.cumsum(weights, axis=1)
        shares /= shares[:, -1:]
        # Row i's cumulative shares lie in (i, i + 1], so one sorted array serves all rows.
        shares += np.arange(len(weights))[:, None]
        self._bounds: Floats = shares.reshape(-1)
        self._last: int = weights.shape[1] - 1

    def draw(self, rows: NDArray[np.integer], rng: np.random.Generator) -> Ints32:
        """Draw one column for each of the given rows, by the weights of that row."""
        found = np.searchsorted(self._bounds, rows + rng.random(rows.size), side="right")
        # A draw just below 1 can be rounded up into the next row.
        return np.minimum(found - rows * (self._last + 1), self._last).astype(np.int32)


@dataclass(frozen=True, eq=False, repr=False)
class CityPlaces:
    """The regions of a city, with what people choose among them by.

    `half_width` is half the width and height of a region in degrees of longitude and latitude,
    zeros where a region is a point. `homes` has one row; `jobs` and `leisure` have one for each
    region that a place is seen from. `nearest` holds the nearest regions of each region, itself
    left out, shape (n_regions, at most ``stray_regions``).
    """

    regions: Regions
    half_width: tuple[float, float]
    homes: Choices
    jobs: Choices
    leisure: Choices
    nearest: Ints32


def make_places(model: CityModel, n_regions: int, rng: np.random.Generator) -> CityPlaces:
    """Lay the regions out and give each its attractions."""
    centres = _centres(model, rng)
    if model.layout == "grid":
        ids, at_km, half_km = _grid(model, n_regions)
    else:
        ids, at_km, half_km = _antennas(model, n_regions, centres, rng)
    km_a_degree_east = KM_A_DEGREE * np.cos(np.radians(model.lat))
    lon = model.lon + at_km[:, 0] / km_a_degree_east
    lat = model.lat + at_km[:, 1] / KM_A_DEGREE
    if model.layout == "antennas":
        # To about 10 cm; more digits of an antenna's position would be noise.
        lon, lat = np.round(lon, 6), np.round(lat, 6)
    apart = _distances(at_km, at_km)
    from_centres = _distances(at_km, centres)

    def attraction(km: float, spread: float) -> Floats:
        return _around(from_centres, km) * rng.lognormal(sigma=spread, size=n_regions)

    homes = attraction(model.homes_km, model.homes_spread)
    jobs = attraction(model.jobs_km, model.jobs_spread)
    leisure = attraction(model.leisure_km, model.leisure_spread)
    return CityPlaces(
        regions=Regions(ids, lon, lat),
        half_width=(half_km / km_a_degree_east, half_km / KM_A_DEGREE),
        homes=Choices(homes[None, :]),
        jobs=Choices(jobs * (1.0 + apart / model.commute_km) ** -model.distance_power),
        leisure=Choices(leisure * (1.0 + apart / model.leisure_trip_km) ** -model.distance_power),
        nearest=_nearest(apart, model.stray_regions),
    )


def check_regions(model: CityModel, n_regions: int) -> None:
    """Refuse a number of regions that the city's layout cannot have."""
    side = isqrt(n_regions)
    if model.layout == "grid" and side**2 != n_regions:
        raise InputError(
            f"{n_regions} regions do not fill the square grid of {model.name}",
            fix=f"Use {side**2} ({side} x {side}) or {(side + 1) ** 2} ({side + 1} x {side + 1})",
        )


def _centres(model: CityModel, rng: np.random.Generator) -> Floats:
    """Positions in km from the middle, shape (n_centres, 2); the first is the middle."""
    radius = sqrt(model.area_km2 / pi)
    away = radius * rng.uniform(*_FURTHER_CENTRES, size=model.centres)
    away[0] = 0.0
    angle = rng.uniform(0.0, 2 * pi, size=model.centres)
    return np.column_stack([away * np.cos(angle), away * np.sin(angle)])


def _grid(model: CityModel, n_regions: int) -> tuple[list[str], Floats, float]:
    """Equal squares, row by row from the south-west: ids, middles and half a square's side."""
    side = isqrt(n_regions)
    width = sqrt(model.area_km2) / side
    row, column = np.divmod(np.arange(n_regions), side)
    digits = max(2, len(str(side - 1)))
    ids = [f"r{r:0{digits}d}c{c:0{digits}d}" for r, c in zip(row, column, strict=True)]
    middle = (side - 1) / 2
    return ids, np.column_stack([column - middle, row - middle]) * width, width / 2


def _antennas(
    model: CityModel, n_regions: int, centres: Floats, rng: np.random.Generator
) -> tuple[list[str], Floats, float]:
    """Points in a disc, denser around the centres: ids, positions and a half width of zero."""
    radius = sqrt(model.area_km2 / pi)
    side = ceil(sqrt(_SITES_PER_ANTENNA * n_regions * 4 / pi)) + 1
    width = 2 * radius / side
    line = (np.arange(side) + 0.5) * width - radius
    sites = np.column_stack([np.tile(line, side), np.repeat(line, side)])
    sites = sites[np.hypot(sites[:, 0], sites[:, 1]) <= radius]
    density = _around(_distances(sites, centres), model.centre_km)
    chosen = rng.choice(len(sites), size=n_regions, replace=False, p=density / density.sum())
    shift = rng.uniform(-width / 2, width / 2, size=(n_regions, 2))
    digits = max(4, len(str(n_regions)))
    ids = [f"a{number:0{digits}d}" for number in range(1, n_regions + 1)]
    return ids, sites[np.sort(chosen)] + shift, 0.0


def _distances(a: Floats, b: Floats) -> Floats:
    """Distance in km from each point of `a` to each of `b`, shape (len(a), len(b))."""
    return np.hypot(a[:, None, 0] - b[None, :, 0], a[:, None, 1] - b[None, :, 1])


def _around(from_centres: Floats, km: float) -> Floats:
    """Density at points by their distance from the centres, of which each is half the last."""
    size = 0.5 ** np.arange(from_centres.shape[1])
    return np.asarray((np.exp(-from_centres / km) * size).sum(axis=1))


def _nearest(apart: Floats, most: int) -> Ints32:
    if len(apart) == 1:
        return own(np.array([[0]]), np.int32)
    order = np.argsort(apart, axis=1, kind="stable")
    return own(order[:, 1 : most + 1], np.int32)
