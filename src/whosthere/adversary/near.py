"""Cells that lie near one another vary alike: what is counted around a cell moves its rate.

People stay for a while, come back on other days, and live where their neighbours live. What counts
lie above or below fitted rates is therefore alike in the hours around, at the same hour of other
days, and in the regions around, although no component of it stands out. What the neighbours of one
kind say about a common factor of their rates is drawn towards none,

    z = (sum of slopes of log-likelihoods) / (sum of information + 1 / spread^2),

and the logarithm of a cell's rate moves by a sum of z over the kinds. Each kind weighs as much as
makes the published counts most likely, through the mechanism, and never less than nothing: fitted
rates follow each count a little, which its neighbours would otherwise be used to take back.

Trips between two places share a level that rates do not know (see `levels`). Neighbours tell only
what lies beyond it, or the level would be counted twice.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.optimize import nnls

from whosthere import kernels
from whosthere.adversary.levels import Levels, Lines, some
from whosthere.data.flows import Pairs

if TYPE_CHECKING:
    from whosthere.adversary.rates import Rates, Seen
    from whosthere.arrays import Bools, Floats, Floats32, Ints32, Ints64
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.kernels.lines import Scales

    Tables: TypeAlias = tuple[Floats, Floats, Scales]

# Before neighbours are seen, a common factor of their rates is about e^0.7 up or down.
_SPREAD = 0.7
# No rate moves by more, as a logarithm. Weights are sure from so many errors on.
_MOST_MOVED, _SURE = 2.5, 2.0
# Weights are found in so many rounds, or until none moves by more than so much of its error.
_ROUNDS, _STILL, _RIDGE = 6, 0.1, 2.0
_CELLS_TO_FIT, _CELLS_FOR_CURVATURE = 2**17, 2**12
_DAY = timedelta(days=1)


class Kinds(NamedTuple):
    """Kinds of neighbours: some columns of a table of regions, in some epochs around."""

    bounds: Ints64
    """First column of `near` and the one after the last, and the same of `lags`, by kind."""
    near: Ints32
    """Regions around each, -1 where there is none."""
    lags: Ints64
    """How many epochs later, all kinds one after the other."""

    @classmethod
    def of(cls, regions: Regions, epochs: Epochs) -> Self:
        """Return the kinds of neighbours that the cells of a table have."""
        rings = _rings(regions)
        ends = np.cumsum([0, *(ring.shape[1] for ring in rings.values())])
        columns = dict(zip(rings, pairwise(ends), strict=True))
        bounds, lags = [], list[int]()
        for ring, around in _kinds(epochs):
            used = [lag for lag in around if abs(lag) < epochs.n]
            if used and ring in rings:
                bounds.append((*columns[ring], len(lags), len(lags) + len(used)))
                lags += used
        by_kind = np.array(bounds, np.int64).reshape(-1, 4)
        return cls(by_kind, np.hstack(list(rings.values())), np.array(lags, np.int64))

    def only(self, kept: Bools) -> Kinds:
        """Return some of the kinds."""
        return self._replace(bounds=self.bounds[kept])

    def pulls(self, slopes: tuple[Floats32, Floats32], regions: Ints64) -> Floats32:
        """Return what each kind says at all epochs of some regions, shape (n_cells, n_kinds)."""
        return kernels.pulls(regions, *self, *slopes, _SPREAD**-2)


def _rings(regions: Regions) -> dict[str, Ints32]:
    """Return regions around each, by how they lie, shapes (n_regions, n_near)."""
    rings = {"itself": np.arange(len(regions), dtype=np.int32)[:, None]}
    if isinstance(regions, Pairs):
        grid, begin, end = regions.grid, regions.origins, regions.destinations
        rings["way back"] = np.where(begin == end, -1, grid[end, begin])[:, None]
        if regions.places.have_positions:
            nearest = regions.places.nearest[:, :4]
            rings["to next to it"] = grid[begin[:, None], nearest[end]]
            rings["from next to it"] = grid[nearest[begin], end[:, None]]
    elif regions.have_positions:
        by_ring = np.split(regions.nearest, (4, 8), axis=1)
        rings |= dict(zip(("next to it", "near it", "around it"), by_ring, strict=True))
    return {name: ring for name, ring in rings.items() if ring.size}


def _kinds(epochs: Epochs) -> list[tuple[str, list[int]]]:
    """Return where neighbours lie, and the epochs around in which they count."""
    kinds = [("itself", _both(*around)) for around in ((1,), (2,), (3, 4), range(5, 10))]
    beside = ("next to it", "to next to it", "from next to it", "way back")
    kinds += [(ring, lags) for ring in beside for lags in ([0], _both(1))]
    kinds += [("near it", [0]), ("around it", [0]), ("way back", _both(*range(2, 10)))]
    day = _DAY // epochs.length
    if day > 1 and _DAY % epochs.length == timedelta(0):
        days = (_both(day), _both(day - 1, day + 1), _both(*(day * n for n in range(2, 8))))
        kinds += [("itself", lags) for lags in days] + [(ring, _both(day)) for ring in beside]
    return kinds


def _both(*lags: int) -> list[int]:
    """Return so many epochs later and earlier."""
    return [sign * lag for lag in lags for sign in (1, -1)]


def near(seen: Seen, so_far: Rates) -> Rates:
    """Move rates by what is counted around each cell."""
    symbols, log_rates, tables = seen.symbols, _with_levels(seen, so_far), seen.tables.of_slopes
    kinds = Kinds.of(seen.release.regions, seen.release.epochs)
    slopes = kernels.slopes_by_cell(symbols, log_rates, *tables)
    size = max(_CELLS_TO_FIT // symbols.shape[1], 1)
    used = some(len(symbols), size)
    at = symbols[used].reshape(-1), log_rates[used].reshape(-1), kinds.pulls(slopes, used)
    weights = _likeliest(*at, tables)
    kept = weights > 0
    blocks = np.array_split(np.arange(len(symbols)), -(-len(symbols) // size))
    found = [kinds.only(kept).pulls(slopes, block) @ weights[kept] for block in blocks]
    moved = np.clip(np.concatenate(found), -_MOST_MOVED, _MOST_MOVED)
    return so_far.moved(moved.reshape(symbols.shape)) if kept.any() else so_far


def _with_levels(seen: Seen, so_far: Rates) -> Floats:
    """Return logarithms of rates by cell, with what is known of the levels of trips."""
    shape = seen.symbols.shape
    lines = Lines.of(seen.release.regions, shape)
    if not lines.are_relative:
        return so_far.base
    at = lines.take(seen.symbols, -1), lines.take(so_far.base), seen.tables
    levels = Levels.of(*at, relative=True)
    means = (np.exp(levels.log_weight) * levels.nodes).sum(axis=1, keepdims=True)
    by_cell = lines.put(np.broadcast_to(means, lines.cells.shape), shape)
    return np.asarray(so_far.base + by_cell)


def _likeliest(symbols: Ints32, log_rates: Floats, pulled: Floats32, tables: Tables) -> Floats:
    """Return the weights of kinds that make symbols most likely, by Newton's method.

    None is negative, and none is such that chance alone may make it.
    """
    every = max(symbols.size // _CELLS_FOR_CURVATURE, 1)
    weights, kept = np.zeros(pulled.shape[1]), np.arange(pulled.shape[1])
    while kept.size:
        for _ in range(_ROUNDS):
            slope, curvature = kernels.slope_by_weights(
                symbols, log_rates, pulled, weights, _MOST_MOVED, every, *tables
            )
            root = np.linalg.cholesky(curvature[np.ix_(kept, kept)] + _RIDGE * np.eye(kept.size))
            before, errors = weights[kept], 1 / np.linalg.norm(root, axis=1)
            step = np.linalg.solve(root, slope[kept] - _RIDGE * before)
            weights[kept], _ = nnls(root.T, root.T @ before + step)
            if (np.abs(weights[kept] - before) < _STILL * errors).all():
                break
        sure = weights[kept] > _SURE * errors
        if sure.all():
            break
        weights[kept[~sure]] = 0.0
        kept = kept[sure]
    return weights
