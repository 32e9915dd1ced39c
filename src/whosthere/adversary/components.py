"""Structure of a release beyond region times epoch: as many components as stand out of its noise.

Completed counts less base rates, in deviations, are a matrix whose entries vary independently, each
with a variance of at most 1. Its largest singular value is then hardly above

    edge = sqrt(largest sum of variances in a row) + sqrt(largest sum in a column)

(Bandeira and van Handel, 2016). What is larger is structure. Noise makes singular values too large;
they are shrunk by the rule that is optimal for independent noise of equal variance (Gavish and
Donoho, 2017).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.linalg import eigh

from whosthere.arrays import own

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.completion import Completion

    Components: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]
    Base: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

# Deviations by which a singular value must be above the edge: the largest one of noise varies by
# less than one, but where nearly all counts are alike single visits stand out of the others.
_BEYOND = 2.0
_LEAST_VARIANCE = 1e-9
# Components beyond a base rate leave at least this share of it.
_LEAST_SHARE = 0.05


def no_components(symbols: NDArray[np.int32]) -> Components:
    """Return factors of nothing, shapes (n_regions, 0) and (n_epochs, 0)."""
    n_regions, n_epochs = symbols.shape
    return np.zeros((n_regions, 0), np.float32), np.zeros((n_epochs, 0), np.float32)


def find_components(
    symbols: NDArray[np.int32], base: Base, completion: Completion, rounds: int
) -> Components:
    """Return what rates differ by from base rates, in deviations, as two factors.

    Parameters
    ----------
    symbols
        Published, shape (n_regions, n_epochs).
    base
        Logarithms of base rates by row, by column and by cell.
    rounds
        How often hidden counts are completed by the rates found so far.
    """
    found, moved, relative = no_components(symbols), np.zeros((1, 1), np.float32), None
    for round_ in range(rounds):
        residuals = completion.residuals(symbols, base, moved)
        largest = float(residuals.by_row.max()), float(residuals.by_column.max())
        edge = math.sqrt(largest[0]) + math.sqrt(largest[1]) + _BEYOND
        variance = max(float(residuals.by_row.sum()) / symbols.size, _LEAST_VARIANCE)
        found = _leading(residuals.values, edge, variance)
        if not found[0].shape[1] or round_ == rounds - 1:
            break
        if relative is None:
            relative = completion.relative_deviations(base)
        left, right = found
        moved = log_share(left @ right.T, relative)
    return found


def log_share(extra: NDArray[np.float32], relative: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the logarithm of how many times larger rates are with components than without.

    Parameters
    ----------
    extra
        What the components add, in deviations.
    relative
        Deviations over base rates, same shape.
    """
    share = extra * relative
    share += 1
    return np.asarray(np.log(np.maximum(share, _LEAST_SHARE, out=share), out=share))


def _leading(matrix: NDArray[np.float32], edge: float, variance: float) -> Components:
    """Return the part of a matrix that stands out of noise, as two factors.

    The singular values are roots of the eigenvalues of the matrix times itself. Single precision
    tells apart all that is not smaller than the largest by a factor of a thousand.
    """
    flat = matrix.shape[0] > matrix.shape[1]
    wide = matrix.T if flat else matrix
    squares, vectors = eigh(
        wide @ wide.T, subset_by_value=(edge**2, np.inf), check_finite=False, overwrite_a=True
    )
    n, p = wide.shape
    scaled = squares / variance
    kept = np.sqrt(np.maximum((scaled - n - p) ** 2 - 4 * n * p, 0)) / scaled
    left, right = own(vectors, np.float32), own(wide.T @ (vectors * kept), np.float32)
    return (right, left) if flat else (left, right)
