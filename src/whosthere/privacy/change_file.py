"""Tables by which the cell-key method changes counts, as publishers have them in files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from whosthere.arrays import own
from whosthere.errors import FileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.privacy.step import Counts

# Rows of a table are right if their chances add up to 1 within this.
_ROUNDING = 1e-6
_MOST_CHANGE, _MOST_COUNT = 1000, 10_000


class Changes(NamedTuple):
    """Changes of counts from the least to the largest, and the chance of each, a row for a count.

    Row 0 belongs to empty cells. Counts beyond the last row have the last `again` ones once more,
    in turns.
    """

    least: int
    chances: NDArray[np.float64]
    again: int = 1

    @property
    def largest(self) -> int:
        """The largest change."""
        return self.least + int(self.chances.shape[1]) - 1

    def row(self, counts: Counts) -> NDArray[np.int64]:
        """Return which row each count has."""
        n, wide = len(self.chances), counts.astype(np.int64)
        return np.where(wide < n, wide, n - self.again + (wide - n) % self.again)


@dataclass(frozen=True)
class TableFile:
    """A table of changes that was read from a file; what it holds says which one it is."""

    path: str = field(compare=False)
    """The file, as it was named."""
    changes: Changes = field(compare=False)
    """What it holds."""
    digest: str

    @classmethod
    def of(cls, written: str | os.PathLike[str]) -> TableFile:
        """Return what a step was given, read if it was not."""
        return written if isinstance(written, TableFile) else cls.read(written)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> TableFile:
        """Read a table as the R package ptable or the Python package cell_key_perturbation has it.

        The first has columns i (count), v (change) and p (its chance). The second has pcv (count),
        ckey (key) and pvalue (change), a row for each key.
        """
        try:
            content = Path(path).read_bytes()
            # With semicolons, commas stand before decimals.
            apart = content.replace(b",", b".").replace(b";", b",")
            frame = pl.read_csv(apart if b";" in content[:500] else content)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise FileError(f"cannot be read as a table of changes ({error})", where=path) from None
        rows = _rows_by_chance(frame, path)
        return cls(os.fspath(path), _changes(rows, path), hashlib.sha256(content).hexdigest())

    def __repr__(self) -> str:
        return f"table {self.digest[:16]}"

    def __fspath__(self) -> str:
        return self.path

    __str__ = __fspath__


def _rows_by_chance(frame: pl.DataFrame, path: str | os.PathLike[str]) -> pl.DataFrame:
    """Return columns count, change and chance."""
    if {"i", "v", "p"} <= set(frame.columns):
        named = frame.select(count="i", change="v", chance="p")
    elif {"pcv", "ckey", "pvalue"} <= set(frame.columns):
        named = frame.select(count="pcv", change="pvalue", chance=1 / pl.len().over("pcv"))
    else:
        raise FileError(
            "has neither the columns i, v and p (ptable) nor pcv, ckey and pvalue",
            where=path,
            fix="Name the columns so: count, change, chance as i, v, p",
        )
    try:
        rows = named.filter(~pl.all_horizontal(pl.all().is_null())).cast(pl.Float64)
    except pl.exceptions.PolarsError:
        raise FileError("holds what is no number", where=path) from None
    whole = rows.select("count", "change").to_numpy()
    if not np.isfinite(rows.to_numpy()).all() or (whole % 1).any():
        raise FileError("holds counts or changes that are no whole numbers", where=path)
    return rows.group_by("count", "change").agg(pl.col("chance").sum())


def _changes(rows: pl.DataFrame, path: str | os.PathLike[str]) -> Changes:
    count, change, chance = (rows[name].to_numpy() for name in ("count", "change", "chance"))
    inside = (count >= 0) & (count <= _MOST_COUNT) & (np.abs(change) <= _MOST_CHANGE)
    if not count.size or not inside.all():
        problem = f"needs counts of 0 to {_MOST_COUNT:,}, and changes within {_MOST_CHANGE:,}"
        raise FileError(problem, where=path)
    if (chance < 0).any():
        raise FileError("has a chance below 0", where=path)
    count, change = count.astype(np.int64), change.astype(np.int64)
    least = min(int(change.min()), 0)
    table = np.zeros((int(count.max()) + 1, max(int(change.max()), 0) - least + 1))
    table[count, change - least] = chance
    if not table[0].any():
        table[0, -least] = 1
    sums = table.sum(axis=1)
    if (np.abs(sums - 1) > _ROUNDING).any():
        wrong = int(np.argmax(np.abs(sums - 1)))
        problem = f"has chances that add up to {sums[wrong]:g} for a count of {wrong}, not to 1"
        raise FileError(problem, where=path, fix="Give a row for each count from 1 on")
    table /= sums[:, None]
    if (table * (np.arange(len(table))[:, None] + np.arange(table.shape[1]) + least < 0)).any():
        raise FileError("takes counts below 0", where=path)
    if table[0].max() < 1:
        raise FileError("changes empty cells by chance: nobody's keys are in them", where=path)
    return Changes(least, own(table, np.float64))
