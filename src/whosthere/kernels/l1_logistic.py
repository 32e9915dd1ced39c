"""L1-penalised logistic regression on a few features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_STEPS, _MOST_SWEEPS, _MOST_HALVINGS = 100, 500, 40
# Sweeps that cost less than the products of all pairs of features.
_DIRECT_SWEEPS = 16
# A share of features with a weight from which on hardly any others are expected to get one.
_MOSTLY = 0.8


@njit(cache=True, nogil=True)
def _loss(margins: NDArray[np.float64], signs: NDArray[np.float64], c: float) -> float:
    """Return c times the sum of log(1 + exp(-sign * margin)), without overflow."""
    total = 0.0
    for i in range(margins.size):
        t = -signs[i] * margins[i]
        total += max(t, 0.0) + np.log1p(np.exp(-abs(t)))
    return c * total


@njit(cache=True, nogil=True)
def _slopes(
    margins: NDArray[np.float64],
    signs: NDArray[np.float64],
    c: float,
    slope: NDArray[np.floating],
    curvature: NDArray[np.floating],
) -> None:
    """Fill in the first and second derivative of the loss by each margin."""
    for i in range(margins.size):
        chance = 1.0 / (1.0 + np.exp(signs[i] * margins[i]))
        slope[i] = -c * signs[i] * chance
        curvature[i] = max(c * chance * (1.0 - chance), 1e-12)


@njit(cache=True, nogil=True)
def _worst_violation(w: NDArray[np.float64], gradient: NDArray[np.float64]) -> float:
    """Return how far the weights are from optimal; 0 at the optimum."""
    worst = 0.0
    for j in range(w.size):
        if w[j] == 0.0:
            worst = max(worst, abs(gradient[j]) - 1.0)
        else:
            worst = max(worst, abs(gradient[j] + np.sign(w[j])))
    return worst


@njit(cache=True, nogil=True, fastmath=True)
def _dot(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    # Written out, so that no library wakes its threads for so little.
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i] * b[i]
    return float(total)


@njit(cache=True, nogil=True, fastmath=True)
def _products(x: NDArray[np.floating], weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the weighted products of all pairs of rows."""
    k, n = x.shape
    products = np.empty((k, k), x.dtype)
    zero = x.dtype.type(0)
    for j in range(k):
        weighted = x[j] * weights
        # Four at a time, so that each number is fetched less often.
        in_fours = (j + 1) - (j + 1) % 4
        for i in range(0, in_fours, 4):
            x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
            s0, s1, s2, s3 = zero, zero, zero, zero
            for t in range(n):
                s0 += weighted[t] * x0[t]
                s1 += weighted[t] * x1[t]
                s2 += weighted[t] * x2[t]
                s3 += weighted[t] * x3[t]
            products[j, i], products[j, i + 1] = s0, s1
            products[j, i + 2], products[j, i + 3] = s2, s3
        for i in range(in_fours, j + 1):
            products[j, i] = _dot(weighted, x[i])
        for i in range(j):
            products[i, j] = products[j, i]
    return products


@njit(cache=True, nogil=True)
def _shrunk(weight: float, slope: float, radius: float) -> float:
    """Return the best weight of a feature; `radius` is one over the curvature of the loss."""
    free = weight - slope * radius
    if free > radius:
        return free - radius
    return free + radius if free < -radius else 0.0


@njit(cache=True, nogil=True)
def _descend(
    x: NDArray[np.floating],
    w: NDArray[np.float64],
    slope: NDArray[np.floating],
    curvature: NDArray[np.floating],
    tolerance: float,
) -> float:
    """Improve weights by a few sweeps over the penalised quadratic model, in place.

    The slopes follow the weights. Returns how much the last sweep still had to change, which is
    within the tolerance if the model is at its minimum.
    """
    n = slope.size
    radii = np.empty(w.size)
    for j in range(w.size):
        radii[j] = 1.0 / (_dot(x[j] * curvature, x[j]) + 1e-12)
    largest = np.inf
    for _ in range(_DIRECT_SWEEPS):
        largest = 0.0
        for j in range(w.size):
            feature = x[j]
            new = _shrunk(w[j], _dot(feature, slope), radii[j])
            change = new - w[j]
            if change != 0.0:
                w[j] = new
                step = x.dtype.type(change)
                for i in range(n):
                    slope[i] += step * curvature[i] * feature[i]
                largest = max(largest, abs(change) / radii[j])
        if largest <= tolerance:
            break
    return largest


@njit(cache=True, nogil=True)
def _descend_by_products(
    x: NDArray[np.floating],
    w: NDArray[np.float64],
    slope: NDArray[np.floating],
    curvature: NDArray[np.floating],
    tolerance: float,
) -> None:
    """Do the same in many sweeps, by the products of all pairs of features."""
    k = w.size
    hessian, by_feature, radii = _products(x, curvature), np.empty(k, x.dtype), np.empty(k)
    for j in range(k):
        by_feature[j] = _dot(x[j], slope)
        hessian[j, j] += 1e-12
        radii[j] = 1.0 / hessian[j, j]
    for _ in range(_MOST_SWEEPS):
        largest = 0.0
        for j in range(k):
            new = _shrunk(w[j], by_feature[j], radii[j])
            change = new - w[j]
            if change != 0.0:
                w[j] = new
                step, products = x.dtype.type(change), hessian[j]
                for i in range(k):
                    by_feature[i] += step * products[i]
                largest = max(largest, abs(change) * hessian[j, j])
        if largest <= tolerance:
            break


@njit(cache=True, nogil=True)
def _newton_target(
    x: NDArray[np.floating],
    w: NDArray[np.float64],
    slope: NDArray[np.floating],
    curvature: NDArray[np.floating],
    tolerance: float,
) -> NDArray[np.float64]:
    """Return the weights that minimise the penalised quadratic model, by coordinate descent.

    A few sweeps over all features show which ones get a weight; if that is not enough, these
    alone go on, for which all products are worth having. If most had a weight before, all do.
    """
    new, slopes = w.copy(), slope.copy()
    if np.count_nonzero(w) > _MOSTLY * w.size:
        _descend_by_products(x, new, slopes, curvature, tolerance)
    elif _descend(x, new, slopes, curvature, tolerance) > tolerance:
        in_use = np.flatnonzero(new)
        few = new[in_use]
        _descend_by_products(x[in_use], few, slopes, curvature, tolerance)
        new[in_use] = few
    return new


@njit(cache=True, nogil=True)
def minimise(
    x: NDArray[np.floating],
    signs: NDArray[np.float64],
    c: float,
    w: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.float64]:
    """Minimise ``sum |w| + c * loss`` over the weights of a few features, in place.

    Newton steps on the smooth part, each shortened until the objective falls enough. Returns the
    margins, shape (n_samples,).

    Parameters
    ----------
    x
        Features as rows, shape (n_features, n_samples). All sums over samples are done in their
        precision: single precision knows a violation to about 1e-5.
    signs
        +1 or -1 for each sample.
    w
        Where to start, shape (n_features,); the result when done.
    tolerance
        Largest violation of the optimality conditions, which are about 1 in size.
    """
    n = signs.size
    margins = np.zeros(n)
    for j in range(w.size):
        if w[j] != 0.0:
            margins += w[j] * x[j]
    slope, curvature = np.empty(n, x.dtype), np.empty(n, x.dtype)
    gradient = np.empty(w.size)
    for _ in range(_MOST_STEPS):
        _slopes(margins, signs, c, slope, curvature)
        for j in range(w.size):
            gradient[j] = _dot(x[j], slope)
        worst = _worst_violation(w, gradient)
        if worst <= tolerance:
            break
        # Features that are far from getting a weight stay out of this step.
        active = np.flatnonzero((w != 0.0) | (np.abs(gradient) > 1.0 - 0.5 * min(worst, 1.0)))
        features, start = x[active], w[active]
        enough = max(0.1 * min(worst, worst**2), 0.4 * tolerance)
        step = _newton_target(features, start, slope, curvature, enough) - start
        moved = np.zeros(n)
        for j in range(step.size):
            if step[j] != 0.0:
                moved += step[j] * features[j]

        before = np.abs(start).sum() + _loss(margins, signs, c)
        promised = (gradient[active] * step).sum()
        promised += np.abs(start + step).sum() - np.abs(start).sum()
        length = 1.0
        for _halving in range(_MOST_HALVINGS):
            after = np.abs(start + length * step).sum() + _loss(margins + length * moved, signs, c)
            if after <= before + 1e-4 * length * promised + 1e-13 * abs(before):
                break
            length *= 0.5
        w[active] = start + length * step
        margins += length * moved
    return margins
