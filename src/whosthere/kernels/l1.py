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

_MOST_STEPS, _MOST_SWEEPS, _MOST_HALVINGS = 100, 300, 40


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
) -> None:
    """Improve weights by sweeps over the penalised quadratic model, in place.

    The slopes follow the weights. It ends when a sweep has hardly anything to change.
    """
    n = slope.size
    radii, curved = np.empty(w.size), np.empty(n, x.dtype)
    for j in range(w.size):
        feature = x[j]
        for i in range(n):
            curved[i] = feature[i] * curvature[i]
        radii[j] = 1.0 / (_dot(curved, feature) + 1e-12)
    for _ in range(_MOST_SWEEPS):
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
        step, slopes = start.copy(), slope.copy()
        _descend(features, step, slopes, curvature, enough)
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
