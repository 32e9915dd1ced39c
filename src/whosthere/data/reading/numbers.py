"""Numbers as people write them: with decimal commas, and marks between thousands."""

from __future__ import annotations

import polars as pl

from whosthere.errors import RecordsError

# Between thousands; the last two are a narrow and an ordinary space that breaks no line.
_SURE_MARKS = r"[ '\u2019\u202f\u00a0]"
THOUSANDS = (",", ".", " ", "'")


def degrees_of(column: pl.Series) -> pl.Series:
    """Read degrees, with a decimal point or comma; null where there is no number."""
    degrees = column.cast(pl.Float64, strict=False)
    if column.dtype == pl.String and degrees.null_count() > column.null_count():
        text = column.str.strip_chars().str.replace(",", ".", literal=True)
        degrees = text.cast(pl.Float64, strict=False)
    return degrees


def whole_numbers_of(text: pl.Series, thousands: str | None) -> pl.Series:
    """Read whole numbers, Int64; null where there is none.

    A comma or point between thousands can also be one before decimals: ``1,234``. It is taken for
    the former where `thousands` says so, or where a number with two of them proves it, and refused
    otherwise.
    """
    plain = _whole(text)
    if plain.null_count() == text.null_count():
        return plain
    spaced = text.str.replace_all(_SURE_MARKS, "")
    for mark in (",", "."):
        group = rf"^-?\d{{1,3}}(?:\{mark}\d{{3}})+$"
        grouped = spaced.str.contains(group).fill_null(value=False)
        if not grouped.any() or (mark == "." and thousands is None and not _several(spaced, mark)):
            continue
        if thousands != mark and not _several(spaced, mark):
            raise RecordsError(
                f"{text.filter(grouped)[0]!r} can be a whole number with a mark between thousands, "
                "or one with decimals",
                fix="Say that it stands between thousands (`thousands`), or use whole numbers",
            )
        without = spaced.str.replace_all(mark, "", literal=True)
        spaced = without.zip_with(grouped, spaced)
    return _whole(spaced)


def _several(text: pl.Series, mark: str) -> bool:
    return bool(text.str.contains(rf"^-?\d{{1,3}}(?:\{mark}\d{{3}}){{2,}}$").any())


def _whole(text: pl.Series) -> pl.Series:
    numbers = text.cast(pl.Float64, strict=False)
    whole = pl.select(pl.when(numbers == numbers.round()).then(numbers)).to_series()
    return whole.cast(pl.Int64, strict=False)
