"""Rows that cannot be used: refused with their place, or dropped and counted by reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.reading.source import CONTROL, RAGGED
from whosthere.data.reading.times import (
    IMPLAUSIBLE,
    PLAUSIBLE_YEARS,
    SKIPPED,
    TWICE,
    Moments,
    TimeReader,
)
from whosthere.errors import InputError, RecordsError, quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from whosthere.data.reading.source import Source
    from whosthere.data.reading.table_columns import Layout

_DROP_FIX = "Correct it, or have invalid rows dropped (`drop_invalid`)"
_CLOCK_FIX = "Say how to read hours of a clock change (`at_clock_change`): earlier, later or drop"


class Rejects:
    """The rows of one batch that cannot be used: refused at once, or collected to be dropped.

    Parameters
    ----------
    source, layout
        The table that the batch is from, and what its columns hold.
    frame
        The batch.
    first_row
        Index in the table of its first row.
    drop
        Whether rows are dropped, and counted in `reasons`, instead of refused.
    """

    def __init__(
        self, source: Source, layout: Layout, frame: pl.DataFrame, first_row: int, *, drop: bool
    ) -> None:
        self.reasons: Counter[str] = Counter()
        self._source = source
        self._layout = layout
        self._frame = frame
        self._first_row = first_row
        self._drops = drop
        self._bad = np.zeros(frame.height, dtype=bool)

    @property
    def good(self) -> NDArray[np.bool_] | None:
        """Which rows are left, None for all."""
        return ~self._bad if self._bad.any() else None

    def add(
        self,
        role: str,
        marked: pl.Series,
        reason: str,
        problem: str,
        *,
        fix: str = _DROP_FIX,
        drop: bool = False,
    ) -> None:
        """Note the marked rows as bad; those that are bad already keep their first reason."""
        if not marked.any():
            return
        bad = marked.fill_null(value=True).to_numpy() & ~self._bad
        if not bad.any():
            return
        if not (drop or self._drops):
            index = int(np.argmax(bad))
            value = self._frame[role][index]
            raise RecordsError(
                f"column {self._layout.names[role]!r}: {_complaint(value, problem)}",
                where=self._source.place(self._first_row + index),
                fix=fix,
            )
        self._drop(marked, reason)

    def add_ragged(self) -> None:
        """Note rows that hold nothing, and rows that could not be split into fields."""
        if RAGGED in self._frame.columns:
            ragged = self._frame[RAGGED]
            broken = ragged.is_not_null()
            if broken.any() and not self._drops:
                index = broken.arg_max() or 0
                raise RecordsError(
                    ragged[index],
                    where=self._source.place(self._first_row + index),
                    fix=_DROP_FIX,
                )
            self._drop(ragged.eq_missing(CONTROL), "with a control character")
            self._drop(broken, "with too many fields or an open quote")
        if self._source.row_word != "line":
            return
        roles = list(self._layout.exprs)
        if all(self._frame[role].null_count() for role in roles):
            empty = self._frame.select(pl.all_horizontal(pl.col(roles).is_null())).to_series()
            self._drop(empty, "empty lines")

    def add_time(self, problem: str, marked: pl.Series, times: TimeReader) -> None:
        """Note times that could be understood, but not used."""
        zone = times.timezone
        if problem == IMPLAUSIBLE:
            words = f"is a Unix time outside {PLAUSIBLE_YEARS}"
            self.add("time", marked, "at an implausible time", words)
            return
        reason, words = {
            SKIPPED: ("at a local time that does not exist", f"does not exist in {zone}: clocks "
                      "were put forward"),
            TWICE: ("at a local time that exists twice", f"exists twice in {zone}: clocks were "
                    "put back"),
        }[problem]  # fmt: skip
        dropped = times.at_clock_change == "drop"
        self.add("time", marked, reason, words, fix=_CLOCK_FIX, drop=dropped)

    def explained(self, read: Callable[[], Moments]) -> Moments:
        """Read a column, naming the file if it cannot be understood at all."""
        try:
            return read()
        except InputError as error:
            where = self._source.path
            raise RecordsError(error.problem, where=where, fix=error.fix) from error

    def _drop(self, marked: pl.Series, reason: str) -> None:
        bad = marked.fill_null(value=True).to_numpy() & ~self._bad
        if bad.any():
            self.reasons[reason] += int(bad.sum())
            self._bad |= bad


def _complaint(value: object, problem: str) -> str:
    if value is None:
        return "is empty"
    if isinstance(value, bytes):
        return f"a value {problem}"
    return f"{quote(value)} {problem}" if isinstance(value, str) else f"{value} {problem}"
