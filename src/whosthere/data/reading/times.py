"""Times in any common form: finding out how they are written, and reading them exactly.

What can be read in two ways is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from whosthere.data.epochs import from_micros, to_micros, zone
from whosthere.errors import InputError, RecordsError, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

# A number is taken for seconds, milliseconds, microseconds or nanoseconds by its size: each
# bound is the year 5138 in its own unit and 1973 in the next.
_LARGEST_SECONDS = 1e11
# Python has no datetimes beyond, in whatever zone.
_FIRST_DATABLE = to_micros(datetime(1, 1, 2, tzinfo=UTC))
_LAST_DATABLE = to_micros(datetime(9999, 12, 31, tzinfo=UTC))
# Unix times outside these years are more likely something else, such as a date without dashes.
_FIRST_PLAUSIBLE, _END_OF_PLAUSIBLE = 631_152_000_000_000, 4_102_444_800_000_000
PLAUSIBLE_YEARS = "1990 to 2099"
_OFFSET = r"\s*(Z|z|[+-]\d{2}:?\d{2})$"
_NAIVE_FIX = "Name the time zone they were recorded in (`timezone`), such as Europe/Rome"
_HOUR = 3_600_000_000
_DAY_AND_MONTH = r"^(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4})"
# How times are written once the offset is cut off and a space stands in place of T.
_USUAL = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
_WITH_AM_AND_PM = ("%Y-%m-%d %I:%M:%S %p", "%Y-%m-%d %I:%M %p", "%Y-%m-%d %I:%M:%S%p")
_EXAMPLE = datetime(2024, 12, 30, 10, 15, 20, tzinfo=UTC)

ISO, UNIX, DAY_FIRST, MONTH_FIRST = "iso", "unix", "day-first", "month-first"
FORMS = (ISO, UNIX, DAY_FIRST, MONTH_FIRST)

ClockChange = Literal["refuse", "earlier", "later", "drop"]
CLOCK_CHANGES: tuple[ClockChange, ...] = get_args(ClockChange)

SKIPPED, TWICE, IMPLAUSIBLE = "skipped", "twice", "implausible"

SAMPLE_ROWS = 1_000
DAY_OR_MONTH = "day or month first"
"""The form of dates such as 01/02/2024 until it is known which part is the day."""

_SHAPES = {
    UNIX: r"^[+-]?\d+(?:\.\d*)?$",
    ISO: r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|^\d{8}[T ]\d",
    DAY_OR_MONTH: r"^\d{1,2}[/.\-]\d{1,2}[/.\-]\d{4}\b",
}
# Hours such as 0h; and from one to the next, such as 0h-1h and 00:00-01:00.
_SPAN = r"^(\d{1,2}(?::\d{2})?)[hH]?\s*(?:-|\u2013|\u2014|to)\s*(\d{1,2}(?::\d{2})?)[hH]?$"
_HOUR_WITH_MARK = r"^(\d{1,2})\s?[hH](\d{2})?$"
_CLOCK = r"^\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?$"
_DATE = r"^(?:\d{4}[-/.]?\d{1,2}[-/.]?\d{1,2}|\d{1,2}[/.\-]\d{1,2}[/.\-]\d{4})$"
_HOUR_OF_DAY = r"^(?:[01]?\d|2[0-4])$"
# Dates in digits, by the number of these.
_COMPACT = {8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_OPTION_FIX = "Say how times are written (`time_format`)"


def clock_change_of(text: str) -> ClockChange:
    """Read how the hours of a clock change are to be taken."""
    if text not in CLOCK_CHANGES:
        raise InputError(
            f"{text!r} is no way to read a clock change", fix=suggestion(text, CLOCK_CHANGES)
        )
    return text


def time_form(text: str) -> str:
    """Check a form of times: one of `FORMS`, or a pattern such as ``%d/%m/%Y %H:%M``."""
    if text in FORMS:
        return text
    if "%" not in text:
        raise InputError(
            f"{text!r} is no form of times",
            fix=f"Use {', '.join(FORMS)}, or a pattern such as '%d/%m/%Y %H:%M'",
        )
    try:
        read = _by_pattern(pl.Series([_EXAMPLE.strftime(text)]), text)[0]
    except (pl.exceptions.PolarsError, ValueError):
        read = None
    if read is None or (read.year, read.month, read.day) != (2024, 12, 30):
        raise InputError(f"{text!r} is no pattern of times", fix="Write it like '%Y%m%d%H%M%S'")
    return text


@dataclass(frozen=True, eq=False)
class Moments:
    """Times in microseconds since 1970 UTC, null where one cannot be understood or used.

    `problems` marks those that could be understood: local times that a change of the clock
    `SKIPPED` or repeated (`TWICE`), and `IMPLAUSIBLE` Unix times, of another age. `resolved` marks
    the local times of a clock change that were read nevertheless.
    """

    micros: pl.Series
    problems: dict[str, pl.Series] = field(default_factory=dict)
    resolved: dict[str, pl.Series] = field(default_factory=dict)


@dataclass(frozen=True)
class TimeReader:
    """How times are read.

    Those without a zone are local times of `timezone`, and refused without one. `form` is one of
    `FORMS`, or a pattern as `strftime` has it; datetimes and dates need none. Local times that do
    not exist or exist twice are read as the `earlier` or `later` of the two possible moments, or
    made null (`refuse` and `drop`). Unix times must be plausible unless `any_age`.
    """

    timezone: str | None = None
    form: str = ISO
    clock_change: ClockChange = "refuse"
    any_age: bool = False

    def read(self, column: pl.Series) -> Moments:
        """Read a column of datetimes, dates, numbers or text."""
        if "%" in self.form:
            whole = column.cast(pl.Int64, strict=False) if column.dtype.is_float() else column
            text = whole.cast(pl.String).str.strip_chars()
            return self._read_datetimes(_by_pattern(text, self.form))
        if column.dtype == pl.String:
            return self._read_text(column.str.strip_chars())
        if column.dtype.is_numeric():
            return self._read_numbers(column)
        if column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime):
            return self._read_datetimes(column)
        raise RecordsError(
            f"the column of times holds {column.dtype}",
            fix="Give ISO 8601 text, datetimes or Unix seconds",
        )

    def _read_datetimes(self, column: pl.Series) -> Moments:
        column = _null_where(column, ~datable(column))
        if isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone is not None:
            return Moments(column.dt.timestamp("us"))
        return self._local(column.cast(pl.Datetime("us")))

    def _read_text(self, text: pl.Series) -> Moments:
        if self.form == UNIX:
            whole = text.cast(pl.Int64, strict=False)
            exact = whole.null_count() == text.null_count()
            return self._read_numbers(whole if exact else text.cast(pl.Float64, strict=False))
        turned = {DAY_FIRST: "$3-$2-$1", MONTH_FIRST: "$3-$1-$2"}.get(self.form)
        return self._read_iso(text.str.replace(_DAY_AND_MONTH, turned) if turned else text)

    def _read_numbers(self, column: pl.Series) -> Moments:
        if self.form != UNIX:
            raise RecordsError(
                "the times are numbers",
                fix=f"Say how times are written (`time_format`): {UNIX}, or a pattern like %Y%m%d",
            )
        micros = from_numbers(column)
        strange = ~plausible(micros).fill_null(value=True)
        if self.any_age or not strange.any():
            return Moments(micros)
        return Moments(_null_where(micros, strange), {IMPLAUSIBLE: strange})

    def _read_iso(self, text: pl.Series) -> Moments:
        offset = text.str.extract(_OFFSET)
        clock = text.str.replace(_OFFSET, "").str.replace("T", " ", literal=True)
        moments = _by_any(clock, _USUAL)
        if moments.null_count() > clock.null_count():
            unusual = _by_any(_tidied(clock), (*_USUAL, *_WITH_AM_AND_PM))
            moments = moments.zip_with(moments.is_not_null(), unusual)
        zoned = offset.is_not_null() & moments.is_not_null()
        naive = offset.is_null() & moments.is_not_null()
        if zoned.any() and naive.any():
            raise RecordsError(
                "times with and without a time zone are mixed "
                f"({text.filter(zoned)[0]!r} and {text.filter(naive)[0]!r})",
                fix="Write all of them with their offset from UTC, or none",
            )
        if not zoned.any():
            return self._local(moments)
        shifts = {text: _offset_micros(text) for text in offset.unique().drop_nulls()}
        shift = offset.replace_strict(shifts, default=None, return_dtype=pl.Int64)
        return Moments(moments.dt.timestamp("us") - shift)

    def _local(self, moments: pl.Series) -> Moments:
        """Read naive datetimes as local times of the zone."""
        if self.timezone is None and moments.null_count() == len(moments):
            return Moments(moments.cast(pl.Int64))
        if self.timezone is None:
            raise RecordsError("the times have no time zone", fix=_NAIVE_FIX)
        zoned = moments.dt.replace_time_zone(self.timezone, ambiguous="null", non_existent="null")
        micros = zoned.dt.timestamp("us")
        if micros.null_count() == moments.null_count():
            return Moments(micros)
        earliest, latest = (_placed(moments, self.timezone, end) for end in ("earliest", "latest"))
        changed = micros.is_null() & moments.is_not_null()
        twice = changed & earliest.is_not_null()
        skipped = changed & earliest.is_null()
        found = {name: mask for name, mask in ((SKIPPED, skipped), (TWICE, twice)) if mask.any()}
        if self.clock_change not in {"earlier", "later"}:
            return Moments(micros, found)
        # A skipped time is read with the offset after the change, which is the earlier moment,
        # or with that before it.
        early = self.clock_change == "earlier"
        away = 3 if early else -3
        beyond = _placed(moments.dt.offset_by(f"{away}h"), self.timezone, "earliest")
        micros = micros.zip_with(~twice, earliest if early else latest)
        micros = micros.zip_with(~skipped, beyond - away * _HOUR)
        return Moments(micros, {}, found)


def to_utc_micros(column: pl.Series, timezone: str | None) -> pl.Series:
    """Read a column of times that we or an attacker wrote: ISO 8601 text, datetimes or Unix times.

    Times that cannot be understood become null, and so do local times that a change of the clock
    skipped. Of two moments with the same local time the earlier is meant.
    """
    if timezone is not None:
        zone(timezone)
    is_unix = column.dtype.is_numeric()
    if column.dtype == pl.String:
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
        is_unix = numbers.null_count() == column.null_count()
    reader = TimeReader(
        timezone, form=UNIX if is_unix else ISO, clock_change="earlier", any_age=True
    )
    moments = reader.read(column)
    skipped = moments.resolved.get(SKIPPED)
    return moments.micros if skipped is None else _null_where(moments.micros, skipped)


def from_numbers(column: pl.Series) -> pl.Series:
    """Read Unix times, whose size decides whether they are seconds or parts of a second."""
    number = pl.col("number")
    size = number.abs()
    micros = (
        pl.when(size < _LARGEST_SECONDS)
        .then(number * 1_000_000)
        .when(size < 1e3 * _LARGEST_SECONDS)
        .then(number * 1_000)
        .when(size < 1e6 * _LARGEST_SECONDS)
        .then(number)
        .otherwise(number // 1_000)
    )
    if column.dtype.is_integer():
        numbers = column.cast(pl.Int64, strict=False)
    else:
        numbers = column.cast(pl.Float64, strict=False)
        micros = pl.when(number.is_finite()).then(micros).round()
    return (
        numbers.alias("number").to_frame().select(micros.cast(pl.Int64, strict=False)).to_series()
    )


def plausible(micros: pl.Series) -> pl.Series:
    """Tell which moments lie within `PLAUSIBLE_YEARS`."""
    return micros.is_between(_FIRST_PLAUSIBLE, _END_OF_PLAUSIBLE, closed="left")


def _tidied(clock: pl.Series) -> pl.Series:
    """Write dates with other marks between the parts, or none, in the usual way."""
    text = clock.str.replace(r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})", "$1-$2-$3")
    text = text.str.replace(r"^(\d{4})(\d{2})(\d{2}) ", "$1-$2-$3 ")
    text = text.str.replace(r" (\d{2})(\d{2})(\d{2}(?:[.,]\d+)?)?$", " $1:$2:${3}")
    return text.str.replace(r":$", "").str.replace(r",(\d+)$", ".$1")


def _by_any(text: pl.Series, patterns: tuple[str, ...]) -> pl.Series:
    """Read each text by the first pattern that fits."""
    moments = _by_pattern(text, patterns[0])
    for pattern in patterns[1:]:
        if moments.null_count() == text.null_count():
            break
        moments = moments.zip_with(moments.is_not_null(), _by_pattern(text, pattern))
    return moments


def _by_pattern(text: pl.Series, pattern: str) -> pl.Series:
    if not any(part in pattern for part in ("%H", "%I", "%T", "%R", "%X", "%c", "%s")):
        return text.str.to_date(pattern, strict=False).cast(pl.Datetime("us"))
    if not any(part in pattern for part in ("%M", "%T", "%R", "%X", "%c", "%s")):
        # An hour without minutes is no time to polars.
        text, pattern = text + "|00", f"{pattern}|%M"
    if "%z" in pattern or "%Z" in pattern or "%:z" in pattern:
        return text.str.to_datetime(pattern, strict=False, time_unit="us", time_zone="UTC")
    return text.str.to_datetime(pattern, strict=False, time_unit="us")


def _offset_micros(offset: str) -> int:
    if offset in {"Z", "z"}:
        return 0
    digits = offset[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return minutes * 60_000_000 * (-1 if offset[0] == "-" else 1)


def _placed(moments: pl.Series, timezone: str, end: Literal["earliest", "latest"]) -> pl.Series:
    return moments.dt.replace_time_zone(timezone, ambiguous=end, non_existent="null").dt.timestamp(
        "us"
    )


def _null_where(values: pl.Series, mask: pl.Series) -> pl.Series:
    return pl.select(pl.when(~mask).then(values)).to_series()


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


def datable(column: pl.Series) -> pl.Series:
    """Tell which datetimes or dates, of those that are there, lie in the years 1 to 9999."""
    moments = column.dt.timestamp("us").is_between(_FIRST_DATABLE, _LAST_DATABLE)
    return moments.fill_null(value=False) | column.is_null()


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
    text = clocks_of(sample).drop_nulls()
    return _mostly(text.str.contains(_CLOCK))


def clocks_of(text: pl.Series) -> pl.Series:
    """Write times of day as 8:00: an hour alone, with its mark, or the first of a span of them."""
    return text.to_frame("clock").select(clock_text(pl.col("clock"))).to_series()


def clock_text(text: pl.Expr) -> pl.Expr:
    """Return the same as an expression over a column of text."""
    first = text.str.strip_chars().str.replace(_SPAN, "$1")
    marked = first.str.replace(_HOUR_WITH_MARK, "$1:${2}").str.replace(":$", ":00")
    clock = marked.str.replace(rf"({_HOUR_OF_DAY[:-1]})$", "$1:00")
    # A date without a time of day is not one at midnight.
    return pl.when(clock != "").then(clock)


def span_of(texts: pl.Series) -> timedelta | None:
    """Return how long spans such as 0h-1h last, None where there are none; they must agree."""
    ends = texts.str.strip_chars().str.extract_groups(_SPAN).struct.unnest().drop_nulls()
    if ends.is_empty():
        return None
    first, last = (
        clocks_of(ends[name]).str.split(":").list.eval(pl.element().cast(pl.Int64)).list
        for name in ends.columns
    )
    minutes = last.get(0) * 60 + last.get(1) - first.get(0) * 60 - first.get(1)
    # To midnight is to 24:00.
    minutes = pl.select(pl.when(minutes > 0).then(minutes).otherwise(minutes + 24 * 60)).to_series()
    if minutes.n_unique() != 1:
        raise RecordsError(
            "its hours are spans of different lengths", fix="Give hours of one length"
        )
    return timedelta(minutes=minutes[0])


def looks_like_clock(text: str) -> bool:
    """Tell whether a name is a time of day, or an hour from 0 to 23."""
    forms = (_CLOCK, _SPAN, _HOUR_WITH_MARK, _HOUR_OF_DAY)
    return any(re.match(form, text.strip()) for form in forms)


def holds_dates(sample: pl.Series) -> bool:
    """Tell whether a column holds dates without a time of day."""
    if sample.dtype == pl.Date:
        return True
    if sample.dtype.is_integer():
        sample = sample.cast(pl.String)
    if sample.dtype != pl.String:
        return False
    text = sample.str.strip_chars().drop_nulls()
    return _mostly(text.filter(text != "").str.contains(_DATE))


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
    for n_digits, pattern in _COMPACT.items():
        alike = (text.str.len_bytes() == n_digits) & years.is_between(1900, 2099)
        dates = (text + "0" * (14 - n_digits)).str.to_datetime("%Y%m%d%H%M%S", strict=False)
        if alike.all() and not dates.null_count():
            return pattern, str(dates[0])
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
