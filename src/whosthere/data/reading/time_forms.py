"""Finding out how times are written, and refusing what can be read in two ways."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from whosthere.data.epochs import from_micros
from whosthere.data.reading.times import (
    DAY_FIRST,
    ISO,
    MONTH_FIRST,
    PLAUSIBLE_YEARS,
    UNIX,
    from_numbers,
    plausible,
)
from whosthere.errors import RecordsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SAMPLE_ROWS = 1_000
DAY_OR_MONTH = "day or month first"
"""The form of dates such as 01/02/2024 until it is known which part is the day."""

_SHAPES = {
    UNIX: r"^[+-]?\d+(?:\.\d*)?$",
    ISO: r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|^\d{8}[T ]\d",
    DAY_OR_MONTH: r"^\d{1,2}[/.\-]\d{1,2}[/.\-]\d{4}\b",
}
_CLOCK = r"^\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?$"
_DATE = r"^(?:\d{4}[-/.]?\d{1,2}[-/.]?\d{1,2}|\d{1,2}[/.\-]\d{1,2}[/.\-]\d{4})$"
_HOUR = r"^(?:[01]?\d|2[0-4])$"
_COMPACT = {8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_OPTION_FIX = "Say how times are written (`time_format`)"


def shape_of(sample: pl.Series) -> str:
    """Return how most times of a sample are written: `ISO`, `UNIX` or `DAY_OR_MONTH`.

    Numbers that can be read in two ways, or only as times of another age, are refused.
    """
    if sample.dtype.is_numeric():
        _refuse_doubtful_numbers(sample.drop_nulls())
        return UNIX
    if sample.dtype != pl.String:
        return ISO
    text = sample.str.strip_chars().drop_nulls()
    found = Counter({name: int(text.str.contains(form).sum()) for name, form in _SHAPES.items()})
    shape, n = found.most_common(1)[0]
    if not n:
        return ISO
    if shape == UNIX:
        numbers = text.filter(text.str.contains(_SHAPES[UNIX]))
        _refuse_doubtful_numbers(numbers)
    return shape


def looks_like_time(text: str) -> bool:
    """Tell whether a name is a time or date, other than a bare number."""
    return any(re.match(_SHAPES[form], text.strip()) for form in (ISO, DAY_OR_MONTH))


def holds_clocks(sample: pl.Series) -> bool:
    """Tell whether a column holds times of day without a date: 10:15, or hours from 0 to 24."""
    if sample.dtype == pl.Time:
        return True
    if sample.dtype.is_integer():
        return _mostly(sample.drop_nulls().is_between(0, 24))
    if sample.dtype != pl.String:
        return False
    text = sample.str.strip_chars().drop_nulls()
    return _mostly(text.str.contains(_CLOCK)) or _mostly(text.str.contains(_HOUR))


def holds_dates(sample: pl.Series) -> bool:
    """Tell whether a column holds dates without a time of day."""
    if sample.dtype == pl.Date:
        return True
    if sample.dtype.is_integer():
        sample = sample.cast(pl.String)
    if sample.dtype != pl.String:
        return False
    return _mostly(sample.str.strip_chars().drop_nulls().str.contains(_DATE))


def _mostly(marked: pl.Series) -> bool:
    """Tell whether nearly all are marked; a few may be damaged."""
    return bool(len(marked)) and float(marked.sum()) >= 0.9 * len(marked)


@dataclass
class DayOrMonth:
    """What dates such as 01/02/2024 prove about their order, in one pass over them."""

    day_first: str | None = field(default=None)
    month_first: str | None = field(default=None)
    example: str | None = field(default=None)

    def look_at(self, texts: pl.Series) -> None:
        """Take a part of the column in."""
        text = texts.cast(pl.String).str.strip_chars()
        parts = text.str.extract_groups(r"^(\d{1,2})[/.\-](\d{1,2})[/.\-]\d{4}").struct.unnest()
        first, second = (parts[name].cast(pl.Int32, strict=False) for name in parts.columns)
        if self.example is None:
            known = text.filter(first.is_not_null())
            self.example = known[0] if len(known) else None
        self.day_first = self.day_first or _first(text, (first > 12) & (second <= 12))
        self.month_first = self.month_first or _first(text, (second > 12) & (first <= 12))

    def form(self) -> str:
        """Return `DAY_FIRST` or `MONTH_FIRST`, and refuse dates that prove neither or both."""
        if self.day_first is not None and self.month_first is not None:
            raise RecordsError(
                f"has dates with the day first ({self.day_first!r}) and with the month first "
                f"({self.month_first!r})",
                fix="Write all dates alike",
            )
        if self.day_first is not None:
            return DAY_FIRST
        if self.month_first is not None:
            return MONTH_FIRST
        raise RecordsError(
            f"the date {self.example!r} can be read with the day or with the month first, and no "
            "other date decides",
            fix=f"{_OPTION_FIX}: {DAY_FIRST} or {MONTH_FIRST}",
        )


def decided(parts: Iterable[pl.Series]) -> str:
    """Return which part of dates such as 01/02/2024 is the day, from all of them."""
    proof = DayOrMonth()
    for part in parts:
        proof.look_at(part)
        if proof.day_first is not None and proof.month_first is not None:
            break
    return proof.form()


def _refuse_doubtful_numbers(numbers: pl.Series) -> None:
    if not len(numbers):
        return
    micros = from_numbers(
        numbers if numbers.dtype.is_numeric() else numbers.cast(pl.Float64, strict=False)
    )
    example = numbers[0]
    written = f"{example:.0f}" if isinstance(example, float) else str(example)
    as_unix = _moment(micros[0])
    pattern = next(_compact_patterns(numbers), None)
    if pattern is not None:
        raise RecordsError(
            f"the times are numbers that can be read in two ways: {written} is {as_unix} as a Unix "
            f"time and {_as_date(written, pattern)} as a date in digits",
            fix=f"{_OPTION_FIX}: {UNIX}, or the pattern '{pattern}'",
        )
    strange = ~plausible(micros).fill_null(value=True)
    if strange.any():
        index = strange.arg_max() or 0
        raise RecordsError(
            f"the times are numbers, and as a Unix time {numbers[index]} is "
            f"{_moment(micros[index])}, outside {PLAUSIBLE_YEARS}",
            fix=f"{_OPTION_FIX}: {UNIX} if that is right, else a pattern such as '%Y%m%d%H%M'",
        )


def _compact_patterns(numbers: pl.Series) -> Iterator[str]:
    """Yield the patterns of dates in digits that all numbers follow."""
    whole = numbers.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
    if whole.null_count():
        return
    text = whole.cast(pl.String)
    years = text.str.slice(0, 4).cast(pl.Int32, strict=False)
    for length, pattern in _COMPACT.items():
        if not ((text.str.len_bytes() == length) & years.is_between(1900, 2099)).all():
            continue
        padded = text + "0" * (14 - length)
        moments = padded.str.to_datetime("%Y%m%d%H%M%S", strict=False)
        if not moments.null_count():
            yield pattern


def _as_date(digits: str, pattern: str) -> str:
    length = next(n for n, known in _COMPACT.items() if known == pattern)
    parts = [digits[:4], digits[4:6], digits[6:8]]
    clock = [digits[i : i + 2] for i in range(8, length, 2)]
    time = "" if not clock else " " + ":".join(clock if len(clock) > 1 else [*clock, "00"])
    return "-".join(parts) + time


def _moment(micros: int | None) -> str:
    if micros is None:
        return "no time"
    try:
        return f"{from_micros(micros):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return "beyond the year 9999"


def _first(text: pl.Series, mask: pl.Series) -> str | None:
    found = text.filter(mask.fill_null(value=False))
    return found[0] if len(found) else None
