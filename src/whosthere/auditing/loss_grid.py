"""The law of the sum of the log ratios of many cells, on a grid.

Each log ratio is moved to the grid points around it, in the parts that keep its chance under
both IN and OUT. This is a spread of the likelihood ratio about its mean: an attacker who sees
the grid point knows a little more than one who sees the count. So a result on the grid never
falls below the exact one, and the sums of many cells follow from Fourier transforms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from whosthere.auditing.log_ratios import CellLaws

# Chance of a sum outside the grid, on either side.
_OUTSIDE = 1e-12
# A log ratio this close to a grid point, in steps of the grid, is taken to be there.
_SNAP = 1e-6
# Chances that agree to this many digits are the same.
_DIGITS = 14
# How many grid points are taken: for one cell, at least, and in the transforms of all kinds.
_POINTS_PER_ROOT, _LEAST_POINTS, _POINTS_TO_TRANSFORM = 3000, 2**15, 2**26
# How many numbers of transforms are held at a time.
_BLOCK = 2**23


@dataclass(frozen=True, eq=False)
class Sum:
    """The law of the sum over a set of cells.

    Attributes
    ----------
    step, first
        Distance of the grid points, and the first one in steps from 0.
    p_out, p_in
        Chance of each grid point under OUT and IN, ascending, shape (n_points,).
    proof_out, proof_in
        Chance of a proof of OUT under OUT, of IN under IN: sums of minus and plus infinity.
    spread
        Sum over the cells of the squared widths over which their log ratios were spread.
    moved
        Sum over the cells of the widest move of a log ratio to a grid point right next to it.
    inexact
        Chance of all else that is not as it should be.
    """

    step: float
    first: int
    p_out: NDArray[np.float64]
    p_in: NDArray[np.float64]
    proof_out: float
    proof_in: float
    spread: float
    moved: float
    inexact: float

    def mixed(self, other: Sum, *, share: float) -> Sum:
        """Return the law where a given share of the sums, on the same grid, is the other one."""
        kept = 1 - share
        return Sum(
            step=self.step,
            first=self.first,
            p_out=kept * self.p_out + share * other.p_out,
            p_in=kept * self.p_in + share * other.p_in,
            proof_out=kept * self.proof_out + share * other.proof_out,
            proof_in=kept * self.proof_in + share * other.proof_in,
            spread=max(self.spread, other.spread),
            moved=max(self.moved, other.moved),
            inexact=max(self.inexact, other.inexact),
        )


@dataclass(frozen=True, eq=False)
class _Grid:
    """Points at whole multiples of `step`, from `first` on."""

    step: float
    first: int
    n_points: int


@dataclass(frozen=True, eq=False)
class _Law:
    """The law of one cell on the grid: distinct places, ascending, and their chances."""

    place: NDArray[np.int64]
    p_out: NDArray[np.float64]
    p_in: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _OnGrid:
    """The laws of all kinds of cell on the grid, each bin's mass at two of the points.

    `kind` to `p_in` have shape (2 n_bins,), the widths of the spread and of what was moved
    without it (n_kinds,).
    """

    kind: NDArray[np.int64]
    place: NDArray[np.int64]
    p_out: NDArray[np.float64]
    p_in: NDArray[np.float64]
    spread: NDArray[np.float64]
    moved: NDArray[np.float64]


def sum_over_cells(laws: CellLaws, cells: NDArray[np.int64]) -> Iterator[Sum]:
    """Yield the law of the sum over each set of cells, all on the same grid.

    Parameters
    ----------
    cells
        How many cells of each kind each set holds, shape (n_sets, n_kinds).
    """
    grid = _grid_for(laws, cells)
    on_grid = _put_on_grid(laws, grid)
    distinct = _distinct(on_grid, laws.n_kinds)
    spread, moved = cells @ on_grid.spread, cells @ on_grid.moved
    inexact = cells @ laws.neglected + 4 * _OUTSIDE
    proof_out, proof_in = (_any(cells, proof) for proof in (laws.proof_out, laws.proof_in))
    block = max(1, _BLOCK // grid.n_points)
    for start in range(0, len(cells), block):
        chances = _convolved(distinct, grid, cells[start : start + block])
        for i, (p_out, p_in) in enumerate(chances, start):
            yield Sum(
                step=grid.step,
                first=grid.first,
                p_out=p_out,
                p_in=p_in,
                proof_out=float(proof_out[i]),
                proof_in=float(proof_in[i]),
                spread=float(spread[i]),
                moved=float(moved[i]),
                inexact=float(inexact[i]),
            )


def _convolved(
    distinct: list[tuple[_Law, list[int]]], grid: _Grid, cells: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the chances of the sum's grid points under OUT and IN, (n_sets, 2, n_points)."""
    transforms = np.ones((len(cells), 2, grid.n_points // 2 + 1), np.complex128)
    for law, kinds in distinct:
        transform = _transform(law, grid.n_points)
        times = cells[:, kinds].sum(axis=1)
        for i in np.flatnonzero(times):
            _multiply(transforms[i], transform, int(times[i]))
    chances = irfft(transforms, grid.n_points, axis=2)
    return np.asarray(np.maximum(np.roll(chances, -grid.first, axis=2), 0.0))


def _grid_for(laws: CellLaws, cells: NDArray[np.int64]) -> _Grid:
    """Choose a grid that holds the sums of all sets, and the largest log ratio of a cell."""
    largest = float(np.abs(laws.middle).max(initial=0.0))
    if largest == 0 or not cells.any():
        return _Grid(1.0, -1, 4)
    top = _reach(laws, laws.p_in, laws.high, cells)
    bottom = _reach(laws, laws.p_out, -laws.low, cells)
    multiples = np.concatenate([laws.low, laws.high]) / largest
    if np.all(np.abs(multiples - np.rint(multiples)) < _SNAP):
        # Laplace noise away from the edges: the log ratios are a lattice already.
        parts = 1
    else:
        # The spreads of many cells add up, but only as the root of their number.
        points = _POINTS_PER_ROOT * math.sqrt(cells.sum(axis=1).max())
        points = max(min(points, _POINTS_TO_TRANSFORM / laws.n_kinds), _LEAST_POINTS)
        parts = max(1, int(largest * points / (top + bottom)))
    step = largest / parts
    # Spreading moves the ends a little further out.
    first, last = -math.ceil(1.01 * bottom / step) - 2, math.ceil(1.01 * top / step) + 2
    return _Grid(step, first, next_fast_len(last - first + 1, real=True))


def _reach(
    laws: CellLaws, p: NDArray[np.float64], ratio: NDArray[np.float64], cells: NDArray[np.int64]
) -> float:
    """Return what no set's sum of `ratio` exceeds but with a chance of `_OUTSIDE` (Chernoff)."""
    reach = cells @ _most(ratio, laws)
    deviation = np.sqrt((cells @ np.bincount(laws.kind, p * ratio**2, laws.n_kinds)).max())
    for power in range(-3, 8):
        theta = 2.0**power / deviation
        if theta * ratio.max() < 700:
            moments = np.bincount(laws.kind, p * np.exp(theta * ratio), laws.n_kinds)
            # Kinds without any bin have no moment.
            logs = cells @ np.log(np.maximum(moments, 1.0))
            reach = np.minimum(reach, (logs - math.log(_OUTSIDE)) / theta)
    return max(float(reach.max()), 0.0)


def _put_on_grid(laws: CellLaws, grid: _Grid) -> _OnGrid:
    """Split each bin's mass between the grid points around its log ratios."""
    low, high = laws.low / grid.step, laws.high / grid.step
    below, above = np.floor(low + _SNAP), np.ceil(high - _SNAP)
    above = np.maximum(below, above)
    moved = np.maximum(np.maximum(below - low, high - above), 0.0) * grid.step
    span = (above - below) * grid.step
    past = np.clip(laws.middle - below * grid.step, 0.0, span)
    with np.errstate(invalid="ignore"):
        share_in = np.nan_to_num(np.expm1(-past) / np.expm1(-span), nan=0.0)
    share_out = share_in * np.exp(past - span)
    return _OnGrid(
        kind=np.concatenate([laws.kind, laws.kind]),
        place=np.concatenate([below, above]).astype(np.int64),
        p_out=np.concatenate([laws.p_out * (1 - share_out), laws.p_out * share_out]),
        p_in=np.concatenate([laws.p_in * (1 - share_in), laws.p_in * share_in]),
        spread=_most(span, laws) ** 2,
        moved=_most(moved, laws),
    )


def _distinct(on_grid: _OnGrid, n_kinds: int) -> list[tuple[_Law, list[int]]]:
    """Return the distinct laws of one cell, each with the kinds that have it."""
    first = on_grid.place.min(initial=0)
    width = on_grid.place.max(initial=0) - first + 1
    key, inverse = np.unique(on_grid.kind * width + (on_grid.place - first), return_inverse=True)
    place = key % width + first
    p_out = np.asarray(np.bincount(inverse, on_grid.p_out, key.size), np.float64)
    p_in = np.asarray(np.bincount(inverse, on_grid.p_in, key.size), np.float64)
    marks = place, p_out.round(_DIGITS), p_in.round(_DIGITS)
    ends = np.searchsorted(key, np.arange(n_kinds + 1) * width)
    kinds_of: dict[tuple[bytes, ...], list[int]] = {}
    for kind, (start, end) in enumerate(pairwise(ends)):
        mark = tuple(values[start:end].tobytes() for values in marks)
        kinds_of.setdefault(mark, []).append(kind)
    slices = [slice(ends[kinds[0]], ends[kinds[0] + 1]) for kinds in kinds_of.values()]
    laws = [_Law(place[part], p_out[part], p_in[part]) for part in slices]
    return list(zip(laws, kinds_of.values(), strict=True))


def _transform(law: _Law, n_points: int) -> NDArray[np.complex128]:
    """Return the transforms of a law under OUT and IN, shape (2, n_points // 2 + 1)."""
    # The grid is a circle: what lies below its first point comes in at the other end.
    place = law.place % n_points
    return np.asarray(
        rfft(np.stack([np.bincount(place, p, n_points) for p in (law.p_out, law.p_in)]))
    )


def _multiply(product: NDArray[np.complex128], factor: NDArray[np.complex128], times: int) -> None:
    """Multiply `product` in place by a power of `factor`; np.power is far slower."""
    while times:
        if times % 2:
            product *= factor
        times //= 2
        if times:
            factor = factor * factor


def _most(values: NDArray[np.float64], laws: CellLaws) -> NDArray[np.float64]:
    """Return the largest of the bins' values of each kind, at least 0, shape (n_kinds,)."""
    most = np.zeros(laws.n_kinds)
    np.maximum.at(most, laws.kind, values)
    return most


def _any(cells: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance of something in any cell of each set, given that in each kind."""
    sure = chance >= 1
    some = -np.expm1(cells @ np.log1p(-np.where(sure, 0.0, chance)))
    return np.where((cells[:, sure] > 0).any(axis=1), 1.0, some)
