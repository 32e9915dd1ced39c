"""The cell-key method: counts change by a table, and the same people get the same change again.

Each person has a secret key. The keys of the people in a cell, added up, decide which change of the
count's row is taken. So nothing is learnt from asking for the same cell twice, and somebody who is
alone in thirty cells draws once, and not thirty times.

Here keys are fractions of 1, added up modulo 1, and drawn anew for each publication, once for all
of its tables: an attacker knows none of them.
"""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import root
from scipy.special import softmax

from whosthere.arrays import own
from whosthere.errors import FileError, SpecError
from whosthere.privacy.exact_noise import fair_words
from whosthere.privacy.shapes import ChanceTable, Choices
from whosthere.privacy.step import Span
from whosthere.specs import POSITIVE, Spelled, at_least, parameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Group
    from whosthere.privacy.step import Counts, Draw

# Keys have so many bits that sums over two million people in a cell are exact as floats.
_KEYS = 2**32
# Rows of a table are right if their chances add up to 1 within this.
_ROUNDING = 1e-6
_MOST_CHANGE, _MOST_COUNT = 1000, 10_000
# No publisher is near this, and far beyond it rows of the largest entropy are hard to find.
_MOST_D = 100


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


def people_keys(n: int, rng: np.random.Generator | None) -> NDArray[np.integer]:
    """Draw the secret keys of n people; without a generator, securely."""
    return fair_words(n) >> np.uint64(32) if rng is None else rng.integers(0, _KEYS, n)


class KeyedTable(ChanceTable):
    """A step whose chances are drawn by the keys of the people in a cell."""

    noise_of: ClassVar[Literal["cell", "people"]] = "people"

    @property
    def changes(self) -> Changes:
        """What counts change by."""
        raise NotImplementedError

    def span(self, within: Span) -> Span:
        return Span(within.lowest, within.highest + max(self.changes.largest, 0))

    def choices(self, values: Counts, within: Span) -> Choices:
        least, chances, _ = changes = self.changes
        by = np.arange(least, changes.largest + 1, dtype=np.int32)
        results = np.maximum(values[..., None] + by, within.lowest)
        return Choices(results.astype(np.int32), chances[changes.row(values)])

    def draw_for(
        self, people: Group, shape: tuple[int, ...], rng: np.random.Generator | None
    ) -> Draw:
        keys = people_keys(people.n_users, rng) if people.keys is None else people.keys
        at, sizes = people.visits()
        cells = people.everybody.cells[at]
        sums = np.bincount(cells, np.repeat(keys.astype(np.float64), sizes), math.prod(shape))
        return np.asarray(np.fmod(sums, _KEYS) / _KEYS).reshape(shape)


@dataclass(frozen=True)
class CellKey(KeyedTable):
    """Counts change by up to `d`, by chance and with the mean and variance that are asked for.

    The chances of each row have the largest entropy of all with mean 0 and a variance of at most
    `v` that leave no result from 1 to `js`, as the R package ptable makes them. 0 stays 0.
    """

    d: int = parameter(at_least(1), "largest change of a count")
    v: float = parameter(POSITIVE, "variance of the change")
    js: int = parameter(at_least(0), "no result from 1 to this number", default=0)

    name: ClassVar[str] = "cell-key"
    example: ClassVar[str] = "cell-key(d=5, v=3, js=2)"
    summary: ClassVar[str] = "change counts by keys of the people in a cell, keeping the mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d > _MOST_D:
            raise SpecError(f"d must be at most {_MOST_D}, not {self.d}")
        if self.js >= self.d:
            raise SpecError("js must be below d", fix="Use a larger d, or a smaller js")
        # A count n of 1 to js goes down by n or up by js + 1 - n, or by more.
        least = (self.js + 1) ** 2 // 4
        if self.v < least:
            raise SpecError(
                f"no chances without results from 1 to {self.js} have a variance of {self.v:g}",
                fix=f"Use a variance (v) of {least} or more",
            )

    @cached_property
    def changes(self) -> Changes:
        return _of_largest_entropy(self.d, self.v, self.js)

    def describe(self) -> str:
        without = f", never to one from 1 to {self.js}" if self.js else ""
        return (
            f"Counts change at random by up to {self.d}, with a variance of at most "
            f"{self.v:g}{without}. The same people in a cell get the same change every time."
        )


@lru_cache(maxsize=16)
def _of_largest_entropy(d: int, v: float, js: int) -> Changes:
    by = np.arange(-d, d + 1)
    chances = np.zeros((d + js + 2, by.size))
    chances[0, d] = 1
    for n in range(1, len(chances)):
        # Beyond d + js all rows are alike.
        result = n + by
        allowed = (result == 0) | (result > js)
        chances[n, allowed] = _row_of_largest_entropy(by[allowed].astype(np.float64), v)
    return Changes(-d, own(chances, np.float64))


def _row_of_largest_entropy(by: NDArray[np.float64], v: float) -> NDArray[np.float64]:
    """Return chances of changes with mean 0 and a variance of at most v, of the largest entropy.

    They are proportional to exp(a x + b x^2), with b = 0 where the variance stays below v by
    itself.
    """
    below, above = by[by <= 0].max(), by[by >= 0].min()
    least = -below * above
    if v <= least * (1 + 1e-9):
        pair = np.where(by == below, above, np.where(by == above, -below, 0))
        return np.asarray(pair / (above - below))
    scaled = by / by[-1]
    free = _with_means_of_0(scaled[:, None])
    if free @ by**2 <= v:
        return free
    return _with_means_of_0(np.column_stack([scaled, scaled**2 - v / by[-1] ** 2]))


def _with_means_of_0(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return chances proportional to exp(moments @ w) with which all moments have mean 0."""

    def means(w: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        chances = softmax(moments @ w)
        mean = chances @ moments
        return mean, (moments - mean).T @ ((moments - mean) * chances[:, None])

    found = root(means, np.zeros(moments.shape[1]), jac=True, method="lm", tol=1e-15)
    return np.asarray(softmax(moments @ found.x))


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


@dataclass(frozen=True)
class Ptable(KeyedTable):
    """Counts change by a table that a publisher has made.

    Counts beyond its last row have the last `again` rows once more, in turns.
    """

    file: str | os.PathLike[str] = parameter(
        Spelled("a file of changes", TableFile.of), "the table, a CSV file", bare=True
    )
    again: int = parameter(at_least(1), "how many rows serve counts beyond the last one", default=1)

    name: ClassVar[str] = "ptable"
    example: ClassVar[str] = "ptable(changes.csv)"
    summary: ClassVar[str] = "change counts by a table of a file, and keys of the people in a cell"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "file", TableFile.of(self.file))
        if self.again >= len(self.changes.chances):
            raise SpecError(f"the table has too few rows to repeat {self.again} of them")

    @property
    def changes(self) -> Changes:
        return TableFile.of(self.file).changes._replace(again=self.again)

    def describe(self) -> str:
        return (
            "Counts change at random, by a table of the publisher. The same people in a cell get "
            "the same change every time."
        )
