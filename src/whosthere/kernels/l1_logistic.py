"""L1-penalised logistic regression on a few features.

Loops are written out: numba takes seconds to compile whole arrays added, chosen from or assigned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Floats, Ints64

_MOST_STEPS, _MOST_SWEEPS, _MOST_HALVINGS = 100, 500, 40
# Sweeps that cost less than the products of all pairs of features.
_DIRECT_SWEEPS = 16
# A share of features with a weight from which on hardly any others are expected to get one.
_MOSTLY = 0.8


@part()
def _loss(margins: Floats, length: float, moved: Floats, signs: Floats, c: float) -> float:
    """Return c times the sum of log(1 + exp(-sign * margin)) after a move, without overflow."""
    total = 0.0
    for i in range(margins.size):
        t = -signs[i] * (margins[i] + length * moved[i])
        total += max(t, 0.0) + np.log1p(np.exp(-abs(t)))
    return c * total


@part()
def _slopes(
    margins: Floats,
    signs: Floats,
    c: float,
    slope: NDArray[np.floating],
    curvature: NDArray[np.floating],
) -> None:
    """Fill in the first and second derivative of the loss by each margin."""
    for i in range(margins.size):
        chance = 1.0 / (1.0 + np.exp(signs[i] * margins[i]))
        slope[i] = -c * signs[i] * chance
        curvature[i] = max(c * chance * (1.0 - chance), 1e-12)


@part()
def _worst_violation(w: Floats, gradient: Floats) -> float:
    """Return how far the weights are from optimal; 0 at the optimum."""
    worst = 0.0
    for j in range(w.size):
        if w[j] == 0.0:
            worst = max(worst, abs(gradient[j]) - 1.0)
        else:
            worst = max(worst, abs(gradient[j] + np.sign(w[j])))
    return worst


@part()
def _size(start: Floats, length: float, step: Floats) -> float:
    """Return the sum of the absolute weights after a step."""
    total = 0.0
    for j in range(start.size):
        total += abs(start[j] + length * step[j])
    return total


@part()
def _combined(weights: Floats, x: NDArray[np.floating], n: int) -> Floats:
    """Return the sum of the features by their weights, shape (n,)."""
    total = np.zeros(n)
    for j in range(weights.size):
        weight, feature = weights[j], x[j]
        if weight != 0.0:
            for i in range(n):
                total[i] += weight * feature[i]
    return total


@part()
def _rows(x: NDArray[np.floating], chosen: Ints64) -> NDArray[np.floating]:
    """Copy the chosen rows."""
    rows = np.empty((chosen.size, x.shape[1]), x.dtype)
    for j in range(chosen.size):
        feature, copy = x[chosen[j]], rows[j]
        for i in range(copy.size):
            copy[i] = feature[i]
    return rows


@part(fastmath=True)
def _dot(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    # Written out, so that no library wakes its threads for so little.
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i] * b[i]
    return float(total)


@part(fastmath=True)
def _products(x: NDArray[np.floating], weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the weighted products of all pairs of rows."""
    k, n = x.shape
    products, weighted = np.empty((k, k), x.dtype), np.empty(n, x.dtype)
    zero = x.dtype.type(0)
    for j in range(k):
        feature = x[j]
        for t in range(n):
            weighted[t] = feature[t] * weights[t]
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


@part()
def _shrunk(weight: float, slope: float, radius: float) -> float:
    """Return the best weight of a feature; `radius` is one over the curvature of the loss."""
    free = weight - slope * radius
    if free > radius:
        return free - radius
    return free + radius if free < -radius else 0.0


@part()
def _descend(
    x: NDArray[np.floating],
    w: Floats,
    slope: NDArray[np.floating],
    curvature: NDArray[np.floating],
    tolerance: float,
) -> float:
    """Improve weights by a few sweeps over the penalised quadratic model, in place.

    The slopes follow the weights. Returns how much the last sweep still had to change, which is
    within the tolerance if the model is at its minimum.
    """
    n = slope.size
    radii, curved = np.empty(w.size), np.empty(n, x.dtype)
    for j in range(w.size):
        feature = x[j]
        for i in range(n):
            curved[i] = feature[i] * curvature[i]
        radii[j] = 1.0 / (_dot(curved, feature) + 1e-12)
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


@part(once=True)
def _descend_by_products(
    x: NDArray[np.floating],
    w: Floats,
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


@part(once=True)
def _newton_target(
    x: NDArray[np.floating],
    w: Floats,
    slope: NDArray[np.floating],
    curvature: NDArray[np.floating],
    tolerance: float,
) -> Floats:
    """Return the weights that minimise the penalised quadratic model, by coordinate descent.

    A few sweeps over all features show which ones get a weight; if that is not enough, these
    alone go on, for which all products are worth having. If most had a weight before, all do.
    """
    new, slopes, in_use = w.copy(), slope.copy(), np.empty(w.size, np.int64)
    k = 0
    for j in range(w.size):
        in_use[j] = j
        k += w[j] != 0.0
    if k > _MOSTLY * w.size:
        k = w.size
    elif _descend(x, new, slopes, curvature, tolerance) <= tolerance:
        return new
    else:
        k = 0
        for j in range(w.size):
            in_use[k] = j
            k += new[j] != 0.0
    few = np.empty(k)
    for j in range(k):
        few[j] = new[in_use[j]]
    _descend_by_products(_rows(x, in_use[:k]), few, slopes, curvature, tolerance)
    for j in range(k):
        new[in_use[j]] = few[j]
    return new


@kernel()
def minimise(
    x: NDArray[np.floating], signs: Floats, c: float, w: Floats, tolerance: float
) -> Floats:
    """Minimise ``sum |w| + c * loss`` over the weights of a few features, in place.

    Newton steps on the smooth part, each shortened until the objective falls enough. Features are
    the rows of `x`, shape (n_features, n_samples). All sums over samples are done in their
    precision: single precision knows a violation to about 1e-5. `signs` are +1 or -1, and `w` is
    where to start, and the result when done. Optimality conditions, which are about 1 in size, are
    violated by the tolerance at most. Returns the margins, shape (n_samples,).
    """
    n = signs.size
    margins = _combined(w, x, n)
    slope, curvature = np.empty(n, x.dtype), np.empty(n, x.dtype)
    gradient, active = np.empty(w.size), np.empty(w.size, np.int64)
    for _ in range(_MOST_STEPS):
        _slopes(margins, signs, c, slope, curvature)
        for j in range(w.size):
            gradient[j] = _dot(x[j], slope)
        worst = _worst_violation(w, gradient)
        if worst <= tolerance:
            break
        # Features that are far from getting a weight stay out of this step.
        k = 0
        for j in range(w.size):
            if w[j] != 0.0 or abs(gradient[j]) > 1.0 - 0.5 * min(worst, 1.0):
                active[k] = j
                k += 1
        start = np.empty(k)
        for j in range(k):
            start[j] = w[active[j]]
        features = _rows(x, active[:k])
        enough = max(0.1 * min(worst, worst**2), 0.4 * tolerance)
        step = _newton_target(features, start, slope, curvature, enough)
        gain = 0.0
        for j in range(k):
            step[j] -= start[j]
            gain += gradient[active[j]] * step[j]
        moved = _combined(step, features, n)

        before = _size(start, 0.0, step) + _loss(margins, 0.0, moved, signs, c)
        promised = gain + (_size(start, 1.0, step) - _size(start, 0.0, step))
        length = 1.0
        for _halving in range(_MOST_HALVINGS):
            after = _size(start, length, step) + _loss(margins, length, moved, signs, c)
            if after <= before + 1e-4 * length * promised + 1e-13 * abs(before):
                break
            length *= 0.5
        for j in range(k):
            w[active[j]] = start[j] + length * step[j]
        for i in range(n):
            margins[i] += length * moved[i]
    return margins
