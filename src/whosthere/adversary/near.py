"""Cells that lie near one another vary alike: what is counted around a cell moves its rate.

People stay for a while, come back on other days, and live where their neighbours live. What counts
lie above or below fitted rates is therefore alike in the hours around, at the same hour of other
days, and in the regions around, although no component of it stands out. What the neighbours of one
kind say about a common factor of their rates is drawn towards none,

    z = (sum of slopes of log-likelihoods) / (sum of information + 1 / spread^2),

and the logarithm of a cell's rate moves by a sum of z over the kinds. Each kind weighs as much as
makes the published counts most likely, through the mechanism, and never less than nothing: fitted
rates follow each count a little, which its neighbours would otherwise be used to take back.

Neighbours tell only what lies beyond all that is known otherwise, or it would be counted twice:
beyond the factors of hours of the week, and beyond the level that trips between two places share,
which their rates do not know.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.optimize import nnls

from whosthere import kernels
from whosthere.adversary.levels import some
from whosthere.data.flows import Pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whosthere.adversary.rates import Rates, Seen
    from whosthere.arrays import Floats, Floats32, Ints32, Ints64
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.kernels.lines import Scales

    Tables: TypeAlias = tuple[Floats, Floats, Scales]

# Before neighbours are seen, a common factor of their rates is about e^0.7 up or down, and so is
# the level of two places.
_SPREAD = 0.7
# No rate moves by more, as a logarithm. Weights are sure from so many errors on.
_MOST_MOVED, _SURE = 2.5, 2.0
# Weights are found in so many rounds, or until none moves by more than so much of its error;
# levels likewise, or until none moves by more.
_ROUNDS, _STILL, _RIDGE = 6, 0.1, 2.0
_CELLS_TO_FIT, _CELLS_FOR_CURVATURE = 2**17, 2**12
_DAY = timedelta(days=1)


class Kinds(NamedTuple):
    """Kinds of neighbours: some columns of a table of regions, in some epochs around."""

    bounds: Ints64
    """First column of `near` and the one after the last, and the same of `lags`, by kind."""
    near: Ints32
    """Regions around each, -1 where there is none, all kinds one after the other."""
    lags: Ints64
    """How many epochs later, likewise."""

    @classmethod
    def of(cls, regions: Regions, epochs: Epochs) -> Self:
        """Return the kinds of neighbours that the cells of a table have."""
        kinds = list(_kinds(regions, epochs))
        near = [ring for ring, _ in kinds]
        lags = [later[np.abs(later) < epochs.n] for _, later in kinds]
        columns = np.cumsum([0, *(ring.shape[1] for ring in near)])
        later = np.cumsum([0, *(some.size for some in lags)])
        bounds = np.column_stack([columns[:-1], columns[1:], later[:-1], later[1:]])
        return cls(bounds, np.hstack(near), np.concatenate(lags))

    def pulls(self, slopes: tuple[Floats32, Floats32], regions: Ints64) -> Floats32:
        """Return what each kind says at all epochs of some regions, shape (n_cells, n_kinds)."""
        return kernels.pulls(regions, *self, *slopes, _SPREAD**-2)


def _kinds(regions: Regions, epochs: Epochs) -> Iterator[tuple[Ints32, Ints64]]:
    """Yield regions around each, shape (n_regions, n_near), and how much later they count."""
    itself = np.arange(len(regions), dtype=np.int32)[:, None]
    beside: list[Ints32] = []
    if isinstance(regions, Pairs):
        beside = _trips_around(regions)
        yield beside[0], _both(*range(2, 10))
    elif regions.have_positions:
        beside = [regions.nearest[:, :4]]
        yield regions.nearest[:, 4:8], _both(0)
        yield regions.nearest[:, 8:], _both(0)
    for around in ((1,), (2,), (3, 4), range(5, 10)):
        yield itself, _both(*around)
    day = _DAY // epochs.length if _DAY % epochs.length == timedelta(0) else 0
    if day > 1:
        yield itself, _both(day)
        yield itself, _both(day - 1, day + 1)
        yield itself, _both(*(day * n for n in range(2, 8)))
    for ring in beside:
        for later in (0, 1, day) if day > 1 else (0, 1):
            yield ring, _both(later)


def _trips_around(pairs: Pairs) -> list[Ints32]:
    """Return the way back of each pair, and pairs of which one end lies next to its own."""
    grid, begin, end = pairs.grid, pairs.origins, pairs.destinations
    back = np.where(begin == end, -1, grid[end, begin])[:, None]
    if not pairs.places.have_positions:
        return [back]
    near = pairs.places.nearest[:, :4]
    return [back, grid[begin[:, None], near[end]], grid[near[begin], end[:, None]]]


def _both(*lags: int) -> Ints64:
    """Return so many epochs later and earlier."""
    return np.unique([sign * lag for lag in lags for sign in (1, -1)])


def near(seen: Seen, so_far: Rates) -> Rates:
    """Move rates by what is counted around each cell."""
    symbols, tables, regions = seen.symbols, seen.tables.of_slopes, seen.release.regions
    kinds, levels = Kinds.of(regions, seen.release.epochs), np.zeros(len(regions))
    if isinstance(regions, Pairs):
        levels = _levels(regions, symbols, so_far.at_cells, tables)
    slopes = kernels.slopes_by_cell(symbols, so_far.at_cells, levels, *tables)
    size = max(_CELLS_TO_FIT // symbols.shape[1], 1)
    used = some(len(symbols), size)
    log_rates = so_far.at_cells[used] + levels[used, None]
    at = symbols[used].reshape(-1), log_rates.reshape(-1), kinds.pulls(slopes, used)
    weights = _likeliest(*at, tables)
    if not weights.any():
        return so_far
    kept = kinds._replace(bounds=kinds.bounds[weights > 0])
    by_kind = weights[weights > 0].astype(np.float32)
    blocks = np.array_split(np.arange(len(symbols)), -(-len(symbols) // size))
    moved = np.concatenate([kept.pulls(slopes, block) @ by_kind for block in blocks])
    return so_far.moved(np.clip(moved, -_MOST_MOVED, _MOST_MOVED).reshape(symbols.shape))


def _levels(pairs: Pairs, symbols: Ints32, log_rates: Floats, tables: Tables) -> Floats:
    """Return the likeliest level of each pair of places, the same there and back."""
    ends = np.sort([pairs.origins, pairs.destinations], axis=0).astype(np.int64)
    _, line = np.unique(ends[0] * len(pairs.places) + ends[1], return_inverse=True)
    levels = np.zeros(line.max() + 1)
    for _ in range(_ROUNDS):
        at = kernels.slopes_by_cell(symbols, log_rates, levels[line], *tables)
        slope, known = (np.bincount(line, one.sum(axis=1, dtype=np.float64)) for one in at)
        # Levels are normal, and 1 on average.
        step = (slope - levels / _SPREAD**2 - 0.5) / (known + _SPREAD**-2)
        levels += np.clip(step, -_MOST_MOVED, _MOST_MOVED)
        if np.abs(step).max() < _STILL:
            break
    return np.asarray(levels[line])


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
            # Where neighbours tell hardly anything, rounding may leave less than nothing.
            size, axes = np.linalg.eigh(curvature[np.ix_(kept, kept)])
            root = axes * np.sqrt(np.maximum(size, 0) + _RIDGE)
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
