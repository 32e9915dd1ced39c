"""Finding out how times are written, and refusing what can be read in two ways."""

from __future__ import annotations

import re
from collections import Counter
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
    from collections.abc import Iterable

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
# Dates in digits, with how messages write them.
_COMPACT = {
    "%Y%m%d": "%Y-%m-%d",
    "%Y%m%d%H": "%Y-%m-%d %H:00",
    "%Y%m%d%H%M": "%Y-%m-%d %H:%M",
    "%Y%m%d%H%M%S": "%Y-%m-%d %H:%M:%S",
}
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


def decided(parts: Iterable[pl.Series]) -> str:
    """Return which part of dates such as 01/02/2024 is the day, from all of them.

    Returns `DAY_FIRST` or `MONTH_FIRST`. Dates that prove neither or both are refused.
    """
    example = day_first = month_first = None
    for part in parts:
        text = part.cast(pl.String).str.strip_chars()
        groups = text.str.extract_groups(r"^(\d{1,2})[/.\-](\d{1,2})[/.\-]\d{4}").struct.unnest()
        first, second = (groups[name].cast(pl.Int32, strict=False) for name in groups.columns)
        example = example or _first(text, first.is_not_null())
        day_first = day_first or _first(text, (first > 12) & (second <= 12))
        month_first = month_first or _first(text, (second > 12) & (first <= 12))
        if day_first is not None and month_first is not None:
            raise RecordsError(
                f"has dates with the day first ({day_first!r}) and with the month first "
                f"({month_first!r})",
                fix="Write all dates alike",
            )
    if day_first is None and month_first is None:
        raise RecordsError(
            f"the date {example!r} can be read with the day or with the month first, and no "
            "other date decides",
            fix=f"{_OPTION_FIX}: {DAY_FIRST} or {MONTH_FIRST}",
        )
    return MONTH_FIRST if day_first is None else DAY_FIRST


def _refuse_doubtful_numbers(numbers: pl.Series) -> None:
    if not len(numbers):
        return
    micros = from_numbers(
        numbers if numbers.dtype.is_numeric() else numbers.cast(pl.Float64, strict=False)
    )
    example = numbers[0]
    written = f"{example:.0f}" if isinstance(example, float) else str(example)
    as_unix = _moment(micros[0])
    pattern, date = _in_digits(numbers)
    if pattern is not None:
        raise RecordsError(
            f"the times are numbers that can be read in two ways: {written} is {as_unix} as a Unix "
            f"time and {date} as a date in digits",
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


def _in_digits(numbers: pl.Series) -> tuple[str | None, str]:
    """Return the pattern of dates in digits that all numbers follow, if any, and the first date."""
    whole = numbers.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
    text = whole.cast(pl.String)
    years = text.str.slice(0, 4).cast(pl.Int32, strict=False)
    for n_digits, (pattern, shown) in zip((8, 10, 12, 14), _COMPACT.items(), strict=True):
        alike = (text.str.len_bytes() == n_digits) & years.is_between(1900, 2099)
        dates = (text + "0" * (14 - n_digits)).str.to_datetime("%Y%m%d%H%M%S", strict=False)
        if alike.all() and not dates.null_count():
            return pattern, f"{dates[0]:{shown}}"
    return None, ""


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
