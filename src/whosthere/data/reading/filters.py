"""Which records are kept: a time window, a box, and what every user must have."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.epochs import to_micros, zone
from whosthere.data.reading.extent import Box, Extent, lon_lat
from whosthere.errors import InputError

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from whosthere.data.reading.batches import Batch


@dataclass(frozen=True)
class Window:
    """A span of time, microseconds since 1970 UTC, from `first` up to but without `end`."""

    first: int | None = None
    end: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are given."""
        return self.first is not None and self.end is not None

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

    From `first` to `last`, microseconds since 1970 UTC, and a box that holds the share
    `box_quantile` of the records along each axis, around the middle; None for all of them.
    """

    def __init__(self, window: Window, box_quantile: float | None) -> None:
        if box_quantile is not None and not 0 < box_quantile <= 1:
            raise InputError(
                f"the box cannot hold a share of {box_quantile:g}", fix="Give a share such as 0.99"
            )
        self.first, self.last = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        self.n_usable = 0
        self.invalid: Counter[str] = Counter()
        self._window = window
        self._box_quantile = box_quantile
        self._extent = Extent()

    def add(self, batch: Batch) -> None:
        """Take a batch in."""
        self.invalid.update(batch.invalid)
        self.n_usable += len(batch)
        inside = self._window.holds(batch.micros)
        if not inside.any():
            return
        kept = slice(None) if inside.all() else inside
        micros = batch.micros[kept]
        self.first = min(self.first, int(micros.min()))
        self.last = max(self.last, int(micros.max()))
        if "lon" in batch.records.columns:
            lon, lat = lon_lat(batch.records)
            self._extent.add(lon[kept], lat[kept])

    @property
    def box(self) -> Box:
        """The box that holds the records; the world where they name regions."""
        return self._extent.box(self._box_quantile)

    @property
    def strays(self) -> str | None:
        """What is to be said of points far away from all others, unless a box leaves them out."""
        if self._box_quantile is not None:
            return None
        return self._extent.about_strays("records", can_be_left_out=True)


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which records and users to keep.

    Parameters
    ----------
    start, end
        The time window, `end` not included; without a zone they are local times. Where one is
        missing, the records' own range is taken.
    box_quantile
        Keep the middle box that holds this share of the records along each axis.
    min_visits
        Drop users with fewer visits in all.
    min_weekly_visits
        Drop users with fewer visits in any whole week (in sevens of days from the first).
    mostly_inside
        Drop users with half or more of their records outside the box or the regions.
    """

    start: datetime | None = None
    end: datetime | None = None
    box_quantile: float | None = None
    min_visits: int = 1
    min_weekly_visits: int = 0
    mostly_inside: bool = False

    def window(self, timezone: str) -> Window:
        """Return the time window in UTC."""

        def micros(edge: datetime | None) -> int | None:
            if edge is not None and edge.tzinfo is None:
                edge = edge.replace(tzinfo=zone(timezone))
            return None if edge is None else to_micros(edge)

        return Window(micros(self.start), micros(self.end))
