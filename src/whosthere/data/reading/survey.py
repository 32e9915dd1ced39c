"""A first look over records: when they begin and end, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.reading.partition.base import WORLD, Box
from whosthere.errors import EmptyError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

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


@dataclass(frozen=True)
class Survey:
    """What a first look found, over the records inside the time window."""

    first: int
    last: int
    box: Box


def survey(batches: Iterable[Batch], *, window: Window, box_quantile: float | None) -> Survey:
    """Look over records once, in bounded memory.

    Parameters
    ----------
    batches
        All records.
    window
        Only records inside it count.
    box_quantile
        Share of the records along each axis that the box holds, around the middle; None for all.
    """
    first, last = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    axes: list[_Axis] = []
    for batch in batches:
        inside = window.holds(batch.micros)
        if not inside.any():
            continue
        kept = slice(None) if inside.all() else inside
        micros = batch.micros[kept]
        first, last = min(first, int(micros.min())), max(last, int(micros.max()))
        if batch.places.lon is not None:
            axes = axes or [_Axis(180, box_quantile), _Axis(90, box_quantile)]
            for axis, degrees in zip(axes, batch.places.points, strict=True):
                axis.add(degrees[kept])
    if last < first:
        raise EmptyError(
            "no record lies in the time window", fix="Check its start and end, and the time zone"
        )
    if not axes:
        return Survey(first, last, WORLD)
    (west, east), (south, north) = (axis.range() for axis in axes)
    return Survey(first, last, Box(west, south, east, north))


class _Axis:
    """The range of one coordinate, all of it or its middle part."""

    def __init__(self, limit: int, quantile: float | None) -> None:
        if quantile is not None and not 0 < quantile <= 1:
            raise InputError(
                f"the box cannot hold a share of {quantile:g}", fix="Give a share such as 0.99"
            )
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
