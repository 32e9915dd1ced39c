"""Rows that cannot be used: refused with their place, or dropped and counted by reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import polars as pl

from whosthere.data.reading.source import CONTROL, RAGGED
from whosthere.data.reading.times import IMPLAUSIBLE, PLAUSIBLE_YEARS, SKIPPED, TWICE
from whosthere.errors import RecordsError, quote

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.reading.layout import Layout
    from whosthere.data.reading.times import Moments, TimeReader

_DROP_FIX = "Correct it, or have invalid rows dropped (`drop_invalid`)"
_TIME_FIX = (
    "Correct it, say how times are written (`time_format`), or have invalid rows dropped "
    "(`drop_invalid`)"
)
_CLOCK_FIX = "Say how to read hours of a clock change (`at_clock_change`): earlier, later or drop"
# Times that could be understood, but not used: why a row is dropped, and what is wrong with one.
_TIMES = {
    IMPLAUSIBLE: ("at an implausible time", f"is a Unix time outside {PLAUSIBLE_YEARS}"),
    SKIPPED: (
        "at a local time that does not exist",
        "does not exist in {zone}: clocks were put forward",
    ),
    TWICE: ("at a local time that exists twice", "exists twice in {zone}: clocks were put back"),
}


class Rejects:
    """The rows of one batch that cannot be used: refused at once, or collected to be dropped.

    Parameters
    ----------
    layout
        What the columns of the table hold that the batch is from.
    frame
        The batch.
    first_row
        Index in the table of its first row.
    drop
        Whether rows are dropped, and counted in `reasons`, instead of refused.
    """

    def __init__(self, layout: Layout, frame: pl.DataFrame, first_row: int, *, drop: bool) -> None:
        self.reasons: Counter[str] = Counter()
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
        bad = self._newly_bad(marked)
        if bad is None:
            return
        if not (drop or self._drops):
            index = int(np.argmax(bad))
            complaint = _complaint(self._frame[role][index], problem)
            self._refuse(index, f"column {self._layout.names[role]!r}: {complaint}", fix)
        self._drop(marked, reason)

    def add_ragged(self) -> None:
        """Note rows that hold nothing, and rows that could not be split into fields."""
        if RAGGED in self._frame.columns:
            ragged = self._frame[RAGGED]
            broken = ragged.is_not_null()
            if broken.any() and not self._drops:
                index = broken.arg_max() or 0
                self._refuse(index, ragged[index], _DROP_FIX)
            self._drop(ragged.eq_missing(CONTROL), "with a control character")
            self._drop(broken, "with too many fields or an open quote")
        roles = list(self._layout.exprs)
        lines = self._layout.source.row_word == "line"
        if lines and all(self._frame[role].null_count() for role in roles):
            empty = self._frame.select(pl.all_horizontal(pl.col(roles).is_null())).to_series()
            self._drop(empty, "empty lines")

    def add_times(self, moments: Moments, times: TimeReader) -> None:
        """Note times that could not be understood, or not be used."""
        for problem, marked in moments.problems.items():
            reason, words = _TIMES[problem]
            fix = _DROP_FIX if problem == IMPLAUSIBLE else _CLOCK_FIX
            drop = problem != IMPLAUSIBLE and times.at_clock_change == "drop"
            self.add("time", marked, reason, words.format(zone=times.timezone), fix=fix, drop=drop)
        missing = moments.micros.is_null()
        self.add("time", missing, "without a valid time", "is not a time", fix=_TIME_FIX)

    def _newly_bad(self, marked: pl.Series) -> NDArray[np.bool_] | None:
        """Return the marked rows that were good so far, None where there is none."""
        if not marked.any() and not marked.null_count():
            return None
        bad: NDArray[np.bool_] = marked.fill_null(value=True).to_numpy() & ~self._bad
        return bad if bad.any() else None

    def _drop(self, marked: pl.Series, reason: str) -> None:
        bad = self._newly_bad(marked)
        if bad is not None:
            self.reasons[reason] += int(bad.sum())
            self._bad |= bad

    def _refuse(self, index: int, problem: str, fix: str) -> NoReturn:
        where = self._layout.source.place(self._first_row + index)
        raise RecordsError(problem, where=where, fix=fix)


def _complaint(value: object, problem: str) -> str:
    if value is None:
        return "is empty"
    if isinstance(value, bytes):
        return f"a value {problem}"
    return f"{quote(value)} {problem}" if isinstance(value, str) else f"{value} {problem}"
