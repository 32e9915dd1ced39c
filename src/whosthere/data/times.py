"""Timestamps in any common form, as exact microseconds since 1970 in UTC."""

from __future__ import annotations

import polars as pl

from whosthere.errors import RecordsError

# A number is taken for seconds, milliseconds, microseconds or nanoseconds by its size: each
# bound is the year 5138 in its own unit and 1973 in the next.
_LARGEST_SECONDS = 1e11
_OFFSET = r"\s*(Z|z|[+-]\d{2}:?\d{2})$"
_NAIVE_FIX = "Name the time zone they were recorded in, such as Europe/Rome"


def to_utc_micros(column: pl.Series, timezone: str | None) -> pl.Series:
    """Read a column of times; those that cannot be understood become null.

    Parameters
    ----------
    column
        Datetimes, dates, Unix times as numbers, or ISO 8601 text (or Unix times as text).
    timezone
        IANA name of the zone that times without a zone were recorded in; without it such times
        are refused.

    Returns
    -------
    Int64 series of the same length.
    """
    if column.dtype == pl.String:
        return _from_text(column, timezone)
    if column.dtype.is_numeric():
        return _from_numbers(column)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if not isinstance(column.dtype, pl.Datetime):
        raise RecordsError(
            f"the column of times holds {column.dtype}",
            fix="Give ISO 8601 text, datetimes or Unix seconds",
        )
    if column.dtype.time_zone is None:
        column = _in_zone(column, timezone)
    return column.dt.timestamp("us")


def _from_numbers(column: pl.Series) -> pl.Series:
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
    return numbers.alias("number").to_frame().select(micros.cast(pl.Int64)).to_series()


def _from_text(column: pl.Series, timezone: str | None) -> pl.Series:
    text = column.str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count():
        whole = text.cast(pl.Int64, strict=False)
        return _from_numbers(whole if whole.null_count() == text.null_count() else numbers)

    offset = text.str.extract(_OFFSET)
    clock = text.str.replace(_OFFSET, "").str.replace("T", " ", literal=True)
    moments = clock.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
    for shorter in ("%Y-%m-%d %H:%M", "%Y-%m-%d"):
        missed = moments.is_null()
        if not missed.any():
            break
        moments = moments.zip_with(~missed, _strict_length(clock, shorter))

    zoned = offset.is_not_null() & moments.is_not_null()
    naive = offset.is_null() & moments.is_not_null()
    if zoned.any() and naive.any():
        raise RecordsError(
            "times with and without a time zone are mixed "
            f"({text.filter(zoned)[0]!r} and {text.filter(naive)[0]!r})",
            fix="Write all of them with their offset from UTC, or none",
        )
    if not zoned.any():
        return _in_zone(moments, timezone).dt.timestamp("us")
    shifts = {text: _offset_micros(text) for text in offset.unique().drop_nulls()}
    shift = offset.replace_strict(shifts, default=None, return_dtype=pl.Int64)
    return moments.dt.timestamp("us") - shift


def _strict_length(clock: pl.Series, form: str) -> pl.Series:
    """Parse `form`, which may hold a date alone: polars parses that as a date."""
    if "%H" in form:
        return clock.str.to_datetime(form, strict=False, time_unit="us")
    return clock.str.to_date(form, strict=False).cast(pl.Datetime("us"))


def _offset_micros(offset: str) -> int:
    if offset in {"Z", "z"}:
        return 0
    digits = offset[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return minutes * 60_000_000 * (-1 if offset[0] == "-" else 1)


def _in_zone(moments: pl.Series, timezone: str | None) -> pl.Series:
    """Read naive datetimes as local times; times that a clock change skipped become null."""
    if timezone is None:
        raise RecordsError("the times have no time zone", fix=_NAIVE_FIX)
    return moments.dt.replace_time_zone(timezone, ambiguous="earliest", non_existent="null")
