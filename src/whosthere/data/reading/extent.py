"""Where points lie: the box that holds them, and points far away from all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.neighbours import KM_A_DEGREE

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

# Quantiles are found to a ten-thousandth of a degree (11 m), from counts and not from a sort,
# so that memory does not grow with the number of points.
_BINS_A_DEGREE = 10_000
# Strays lie beyond the middle 90 % along an axis by more than three times its width. A little less
# than 90 %, so that one of twenty points may be a stray.
_MIDDLE, _WIDTHS, _LEAST_WIDTH = 0.899, 3.0, 0.1
# Below this factor between the boxes with and without them, strays do no harm.
_HARMLESS = 4.0


@dataclass(frozen=True)
class Box:
    """A rectangle of longitudes and latitudes, in degrees, edges included.

    One that reaches over the antimeridian ends east of 180 degrees.
    """

    west: float = -180.0
    south: float = -90.0
    east: float = 180.0
    north: float = 90.0

    def eastward(self, lon: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return longitudes as they are counted here: up to 360 where the box reaches 180."""
        return lon % 360.0 if self.west >= 0.0 and self.east >= 180.0 else lon

    def holds(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which points lie inside."""
        lon = self.eastward(lon)
        inside: NDArray[np.bool_] = (
            (lon >= self.west) & (lon <= self.east) & (lat >= self.south) & (lat <= self.north)
        )
        return inside

    @property
    def km(self) -> tuple[float, float]:
        """Its size from west to east, in the middle, and from south to north."""
        shrink = np.cos(np.radians((self.north + self.south) / 2))
        wide, high = (self.east - self.west) * shrink, self.north - self.south
        return float(wide * KM_A_DEGREE), float(high * KM_A_DEGREE)


WORLD = Box()


def lon_lat(places: pl.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the longitudes and latitudes of places, degrees."""
    return places["lon"].to_numpy(), places["lat"].to_numpy()


class Extent:
    """The range of points, found in one pass and bounded memory."""

    def __init__(self) -> None:
        self.n = 0
        # Longitudes from -180, and the same ones from 0, which join over the antimeridian.
        self._lon, self._lat = (_Axis(-180, 360), _Axis(0, 360)), _Axis(-90, 180)

    def add(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> None:
        """Take points in."""
        if not lon.size:
            return
        self.n += lon.size
        for axis, degrees in zip((*self._lon, self._lat), (lon, lon % 360.0, lat), strict=True):
            axis.add(degrees)

    @property
    def _axes(self) -> tuple[_Axis, _Axis]:
        """The longitudes in the way in which most are closer together by far, and the latitudes."""
        widths = [high - low for low, high in (axis.middle(_MIDDLE) for axis in self._lon)]
        return self._lon[2 * widths[1] < widths[0]], self._lat

    def box(self, quantile: float | None = None) -> Box:
        """Return the box that holds the middle share of the points along each axis, or all."""
        if not self.n:
            return WORLD
        (west, east), (south, north) = (axis.middle(quantile or 1.0) for axis in self._axes)
        return Box(west, south, east, north)

    def about_strays(self, what: str, *, can_be_left_out: bool) -> str | None:
        """Say how much larger a few points make the box, None where they do not."""
        if not self.n:
            return None
        (west, east, n_along), (south, north, n_up) = (axis.without_strays() for axis in self._axes)
        whole, others = self.box().km, Box(west, south, east, north).km
        if (whole[0] + 1) * (whole[1] + 1) < _HARMLESS * (others[0] + 1) * (others[1] + 1):
            return None
        n = max(n_along, n_up)
        shares = (q for q in (0.999, 0.99, 0.98, 0.95, 0.9) if (1 - q) / 2 > n / self.n)
        leave_out = f", or leave them out (`box_quantile`), such as by {next(shares, 0.8)}"
        return (
            f"far away from all others: {n:,} of {self.n:,} {what}. The grid reaches to them, and "
            f"covers {whole[0]:,.0f} x {whole[1]:,.0f} km instead of {others[0]:,.0f} x "
            f"{others[1]:,.0f} km. Correct their positions{leave_out if can_be_left_out else ''}"
        )


class _Axis:
    """The range of one coordinate, all of it or its middle part."""

    def __init__(self, first: int, n_degrees: int) -> None:
        self._first = first
        self._low, self._high = np.inf, -np.inf
        self._bins = np.zeros(n_degrees * _BINS_A_DEGREE + 1, np.int64)

    def add(self, degrees: NDArray[np.float64]) -> None:
        self._low = min(self._low, float(degrees.min()))
        self._high = max(self._high, float(degrees.max()))
        bins = ((degrees - self._first) * _BINS_A_DEGREE).astype(np.int64)
        # The points of a batch mostly lie in a small part of the world.
        first = int(bins.min())
        found = np.bincount(bins - first)
        self._bins[first : first + found.size] += found

    def middle(self, share: float) -> tuple[float, float]:
        if share == 1.0:
            return self._low, self._high
        cumulated = np.cumsum(self._bins)
        tail = (1 - share) / 2 * cumulated[-1]
        low = np.searchsorted(cumulated, tail, side="right") / _BINS_A_DEGREE + self._first
        high_bin = np.searchsorted(cumulated, cumulated[-1] - tail, side="left") + 1
        high = high_bin / _BINS_A_DEGREE + self._first
        return max(float(low), self._low), min(float(high), self._high)

    def without_strays(self) -> tuple[float, float, int]:
        """Return the range without strays, and how many these are."""
        low, high = self.middle(_MIDDLE)
        reach = _WIDTHS * max(high - low, _LEAST_WIDTH)
        filled = np.flatnonzero(self._bins)
        degrees = filled / _BINS_A_DEGREE + self._first
        near = (degrees >= low - reach) & (degrees <= high + reach)
        first, last = float(degrees[near][0]), float(degrees[near][-1])
        n_strays = int(self._bins[filled[~near]].sum())
        return max(first, self._low), min(last, self._high), n_strays
