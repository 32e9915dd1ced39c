"""A first look over records: when they begin and end, and where they lie."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.reading.partition.base import WORLD, Box, lon_lat
from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.reading.batches import Batch

# Quantiles are found to a ten-thousandth of a degree (11 m), from counts and not from a sort,
# so that memory does not grow with the number of records.
_BINS_A_DEGREE = 10_000


@dataclass(frozen=True)
class Window:
    """A span of time, microseconds since 1970 UTC, from `first` up to but without `end`."""

    first: int | None = None
    end: int | None = None

    def holds(self, micros: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which moments lie inside."""
        inside = np.ones(micros.size, dtype=bool)
        if self.first is not None:
            inside &= micros >= self.first
        if self.end is not None:
            inside &= micros < self.end
        return inside


class Survey:
    """The range of the records in the time window, found in one pass and bounded memory.

    Parameters
    ----------
    window
        Only records inside it count.
    box_quantile
        Share of the records along each axis that the box holds, around the middle; None for all.

    Attributes
    ----------
    first, last
        The earliest and latest moment, microseconds since 1970 UTC.
    n_usable, n_inside
        How many records were valid, and how many of these lie in the window.
    invalid
        How many rows were not valid, by reason.
    """

    def __init__(self, window: Window, box_quantile: float | None) -> None:
        if box_quantile is not None and not 0 < box_quantile <= 1:
            raise InputError(
                f"the box cannot hold a share of {box_quantile:g}", fix="Give a share such as 0.99"
            )
        self.first, self.last = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        self.n_usable = self.n_inside = 0
        self.invalid: Counter[str] = Counter()
        self._window = window
        self._box_quantile = box_quantile
        self._axes: list[_Axis] = []

    def add(self, batch: Batch) -> None:
        """Take a batch in."""
        self.invalid.update(batch.invalid)
        self.n_usable += len(batch)
        inside = self._window.holds(batch.micros)
        if not inside.any():
            return
        kept = slice(None) if inside.all() else inside
        micros = batch.micros[kept]
        self.n_inside += micros.size
        self.first = min(self.first, int(micros.min()))
        self.last = max(self.last, int(micros.max()))
        if "lon" in batch.records.columns:
            self._axes = self._axes or [_Axis(limit, self._box_quantile) for limit in (180, 90)]
            for axis, degrees in zip(self._axes, lon_lat(batch.records), strict=True):
                axis.add(degrees[kept])

    @property
    def box(self) -> Box:
        """The box that holds the records; the world where they name regions."""
        if not self._axes:
            return WORLD
        (west, east), (south, north) = (axis.range() for axis in self._axes)
        return Box(west, south, east, north)


class _Axis:
    """The range of one coordinate, all of it or its middle part."""

    def __init__(self, limit: int, quantile: float | None) -> None:
        self._limit = limit
        self._quantile = quantile
        self._low, self._high = np.inf, -np.inf
        self._bins = np.zeros(0 if quantile is None else 2 * limit * _BINS_A_DEGREE + 1, np.int64)

    def add(self, degrees: NDArray[np.float64]) -> None:
        self._low = min(self._low, float(degrees.min()))
        self._high = max(self._high, float(degrees.max()))
        if self._quantile is not None:
            bins = ((degrees + self._limit) * _BINS_A_DEGREE).astype(np.int64)
            # The records of a batch mostly lie in a small part of the world.
            first = int(bins.min())
            found = np.bincount(bins - first)
            self._bins[first : first + found.size] += found

    def range(self) -> tuple[float, float]:
        if self._quantile is None:
            return self._low, self._high
        cumulated = np.cumsum(self._bins)
        tail = (1 - self._quantile) / 2 * cumulated[-1]
        low = np.searchsorted(cumulated, tail, side="right") / _BINS_A_DEGREE - self._limit
        high_bin = np.searchsorted(cumulated, cumulated[-1] - tail, side="left") + 1
        high = high_bin / _BINS_A_DEGREE - self._limit
        return max(float(low), self._low), min(float(high), self._high)
