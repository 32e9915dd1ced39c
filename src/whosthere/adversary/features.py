"""What a classifier sees of published groups: counts, and whether they are withheld."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whosthere import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.kernels.count_matrix import CountMatrix


class Features(NamedTuple):
    """What a classifier sees of a group: its symbols, which are counts as long as none is withheld.

    Where counts may be withheld, there are two features for each cell: the count, 0 if withheld,
    and after those of all cells whether it is withheld.
    """

    n_cells: int
    withholds: bool

    def matrix(self, symbols: CountMatrix) -> CountMatrix:
        """Return all features of groups, given the symbols of all cells."""
        if not self.withholds:
            return symbols
        base, copies, bounds, changed, changes = symbols
        pair = np.repeat(np.arange(base.shape[1]), np.diff(bounds))
        before = base[changed, pair].astype(np.int32)
        # Counts and then marks of all changed cells, in the order of their pairs again.
        after = _both(before + changes) - _both(before)
        order = np.argsort(np.tile(pair, 2), kind="stable")
        twice = np.concatenate([changed, changed + self.n_cells]).astype(np.int32)
        return kernels.CountMatrix(_both(base), copies, 2 * bounds, twice[order], after[order])

    def cells(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cells that some features are of, in ascending order."""
        return np.unique(chosen % self.n_cells) if self.withholds else chosen

    def of(self, symbols: NDArray[np.integer], chosen: NDArray[np.int64]) -> NDArray[np.integer]:
        """Return some features, shape (n, k), given the symbols of their `cells`."""
        if not self.withholds:
            return symbols
        place = np.searchsorted(self.cells(chosen), chosen % self.n_cells)
        both = np.stack([_counts(symbols), symbols == 0], axis=-1)
        return both[:, place, chosen // self.n_cells]


def _counts(symbols: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return counts above the lowest, 0 where withheld, given symbols that may be withheld."""
    return np.asarray(symbols - (symbols > 0).astype(symbols.dtype))


def _both(symbols: NDArray[np.integer]) -> NDArray[Any]:
    """Return counts, and whether each is withheld, one after the other along the first axis."""
    return np.concatenate([_counts(symbols), (symbols == 0).astype(symbols.dtype)])


class FeaturesOfTables(NamedTuple):
    """What a classifier sees of a group in several tables: the features of one after the other."""

    tables: tuple[Features, ...]

    def matrix(self, symbols: Sequence[CountMatrix]) -> CountMatrix:
        """Return all features of groups, given the symbols of all cells of each table."""
        pairs = zip(self.tables, symbols, strict=True)
        return _stacked([one.matrix(counts) for one, counts in pairs])

    def cells(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the cells of each table that some features are of, in ascending order."""
        parts = zip(self.tables, self._split(chosen), strict=True)
        return [one.cells(part) for one, part in parts]

    def of(
        self, symbols: Sequence[NDArray[np.integer]], chosen: NDArray[np.int64]
    ) -> NDArray[np.integer]:
        """Return some features, shape (n, k), given the symbols of their `cells` in each table."""
        parts = zip(self.tables, symbols, self._split(chosen), strict=True)
        return np.concatenate([one.of(some, part) for one, some, part in parts], axis=1)

    def _split(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return features, which are in ascending order, by table and as numbered there."""
        sizes = [one.n_cells * (1 + one.withholds) for one in self.tables]
        starts = np.cumsum([0, *sizes[:-1]])
        parts = np.split(chosen, np.searchsorted(chosen, starts[1:]))
        return [part - start for part, start in zip(parts, starts, strict=True)]


def _stacked(parts: Sequence[CountMatrix]) -> CountMatrix:
    """Put matrices of the same groups below one another."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part.base) for part in parts[:-1])])
    pair = np.concatenate([np.repeat(np.arange(p.base.shape[1]), np.diff(p.bounds)) for p in parts])
    order = np.argsort(pair, kind="stable")
    changed = [part.changed + start for part, start in zip(parts, starts, strict=True)]
    return kernels.CountMatrix(
        np.concatenate([part.base for part in parts]),
        parts[0].copies,
        np.asarray(sum(part.bounds for part in parts)),
        np.concatenate(changed).astype(np.int32)[order],
        np.concatenate([part.changes for part in parts])[order],
    )
