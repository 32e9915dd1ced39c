"""Cells that lie near one another vary alike: what is counted around a cell moves its rate.

People stay for a while, come back on other days, and live where their neighbours live. What counts
lie above or below fitted rates is therefore alike in the hours around, at the same hour of other
days, and in the regions around, although no component of it stands out. What the neighbours of one
kind say about a common factor of their rates is drawn towards none,

    z = (sum of slopes of log-likelihoods) / (sum of information + 1 / spread^2),

and the logarithm of a cell's rate moves by a sum of z over the kinds. Each kind weighs as much as
makes the published counts most likely, through the mechanism, and never less than nothing: fitted
rates follow each count a little, which its neighbours would otherwise be used to take back.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import nnls

from whosthere import kernels
from whosthere.arrays import Bools, Floats, Floats32, Ints32, Ints64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whosthere.adversary.rates import Rates, Seen
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.kernels.lines import Scales

    Tables: TypeAlias = tuple[Floats, Floats, Scales]

# Before neighbours are seen, a common factor of their rates is about e^0.7 up or down.
_SPREAD = 0.7
_RIDGE, _ROUNDS, _STILL, _SURE = 2.0, 6, 0.1, 2.0
_MOST_MOVED = 2.5
_CELLS_TO_FIT, _CELLS_FOR_CURVATURE = 2**17, 2**14
_DAY = timedelta(days=1)


class Kinds(NamedTuple):
    """Kinds of neighbours: some columns of a table of regions, in some epochs around."""

    bounds: Ints64
    """First column of `near` and the one after the last, and the same of `lags`, by kind."""
    bounds: Ints64
    """First column of `near` and the one after the last, and the same of `lags`, by kind."""
    near: Ints32
    """Regions around each, -1 where there is none."""
    lags: Ints64
    """How many epochs later, all kinds one after the other."""

    @classmethod
    def of(cls, regions: Regions, epochs: Epochs) -> Kinds:
        """Return the kinds of neighbours that the cells of a table have."""
        rings = _rings(regions)
        last = np.cumsum([ring.shape[1] for ring in rings.values()])
        columns = dict(zip(rings, zip([0, *last], last, strict=False), strict=True))
        bounds, lags = [], []
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
    if regions.have_positions:
        nearest = np.split(regions.nearest, (4, 8), axis=1)
        rings |= dict(zip(("next to it", "near it", "around it"), nearest, strict=True))
    return {name: ring for name, ring in rings.items() if ring.size}


def _kinds(epochs: Epochs) -> Iterator[tuple[str, list[int]]]:
    """Yield where neighbours lie, and the epochs around in which they count."""
    for around in ((1,), (2,), (3, 4), range(5, 10)):
        yield "itself", _both(*around)
    day = _DAY // epochs.length if _DAY % epochs.length == timedelta(0) else 1
    if day > 1:
        yield "itself", _both(day)
        yield "itself", _both(day - 1, day + 1)
        yield "itself", _both(*(day * n for n in range(2, 8)))
        yield "next to it", _both(day)
    for ring in ("next to it", "near it", "around it"):
        yield ring, [0]
    yield "next to it", _both(1)


def _both(*lags: int) -> list[int]:
    return [sign * lag for lag in lags for sign in (1, -1)]


def near(seen: Seen, so_far: Rates) -> Rates:
    """Move rates by what is counted around each cell."""
    symbols, base = seen.symbols, so_far.base
    kinds = Kinds.of(seen.release.regions, seen.release.epochs)
    tables = seen.tables.of_slopes
    slopes = kernels.slopes_by_cell(symbols, base, *tables)
    n_regions, n_epochs = base.shape
    size = max(_CELLS_TO_FIT // n_epochs, 1)
    used = np.linspace(0, n_regions - 1, min(size, n_regions)).astype(np.int64)
    pulled = kinds.pulls(slopes, used)
    weights = _likeliest(symbols[used].reshape(-1), base[used].reshape(-1), pulled, tables)
    if not weights.any():
        return so_far
    moved = np.empty(base.shape)
    moved[used] = _moved(pulled, weights).reshape(-1, n_epochs)
    rest, kinds = np.setdiff1d(np.arange(n_regions), used), kinds.only(weights > 0)
    for part in np.array_split(rest, -(-rest.size // size)) if rest.size else ():
        pulled = kinds.pulls(slopes, part)
        moved[part] = _moved(pulled, weights[weights > 0]).reshape(-1, n_epochs)
    return so_far.moved(moved)


def _moved(pulled: Floats32, weights: Floats) -> Floats32:
    """Return what the logarithms of rates move by."""
    return np.clip(pulled @ weights.astype(np.float32), -_MOST_MOVED, _MOST_MOVED)


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
            before = weights[kept]
            step = np.linalg.solve(root, slope[kept] - _RIDGE * before)
            weights[kept], _ = nnls(root.T, root.T @ before + step)
            errors = 1 / np.linalg.norm(root, axis=1)
            if (np.abs(weights[kept] - before) < _STILL * errors).all():
                break
        sure = weights[kept] > _SURE * errors
        if sure.all():
            break
        weights[kept[~sure]] = 0.0
        kept = kept[sure]
    return weights
