"""L1-penalised logistic regression on a few features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_STEPS, _MOST_SWEEPS, _MOST_HALVINGS = 100, 500, 40


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
    slope: NDArray[np.float64],
    curvature: NDArray[np.float64],
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


@njit(cache=True, nogil=True)
def _newton_step(
    w: NDArray[np.float64],
    gradient: NDArray[np.float64],
    hessian: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.float64]:
    """Return the step that minimises the penalised quadratic model, by coordinate descent."""
    k = w.size
    step, slope = np.zeros(k), gradient.copy()
    for _ in range(_MOST_SWEEPS):
        largest = 0.0
        for j in range(k):
            curvature = hessian[j, j]
            old = w[j] + step[j]
            free = old - slope[j] / curvature
            new = np.sign(free) * max(abs(free) - 1.0 / curvature, 0.0)
            change = new - old
            if change != 0.0:
                step[j] += change
                for i in range(k):
                    slope[i] += change * hessian[j, i]
                largest = max(largest, abs(change) * curvature)
        if largest <= tolerance:
            break
    return step


@njit(cache=True, nogil=True)
def minimise(
    x: NDArray[np.float64],
    signs: NDArray[np.float64],
    c: float,
    w: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.float64]:
    """Minimise ``sum |w| + c * loss`` over the weights of a few features, in place.

    Newton steps on the smooth part, each shortened until the objective falls enough.

    Parameters
    ----------
    x
        Features as rows, shape (n_features, n_samples).
    signs
        +1 or -1 for each sample.
    w
        Where to start, shape (n_features,); the result when done.
    tolerance
        Largest violation of the optimality conditions, which are about 1 in size.

    Returns
    -------
    The margins, shape (n_samples,).
    """
    n = signs.size
    margins = w @ x
    slope, curvature = np.empty(n), np.empty(n)
    for _ in range(_MOST_STEPS):
        _slopes(margins, signs, c, slope, curvature)
        gradient = x @ slope
        worst = _worst_violation(w, gradient)
        if worst <= tolerance:
            break
        # Features that are far from getting a weight stay out of this step.
        active = np.flatnonzero((w != 0.0) | (np.abs(gradient) > 1.0 - 0.5 * min(worst, 1.0)))
        features, start, slopes = x[active], w[active], gradient[active]
        hessian = (features * curvature) @ features.T
        for j in range(active.size):
            hessian[j, j] += 1e-12
        enough = max(0.1 * min(worst, worst**2), 0.1 * tolerance)
        step = _newton_step(start, slopes, hessian, enough)
        moved = step @ features

        before = np.abs(start).sum() + _loss(margins, signs, c)
        promised = slopes @ step + np.abs(start + step).sum() - np.abs(start).sum()
        length = 1.0
        for _halving in range(_MOST_HALVINGS):
            after = np.abs(start + length * step).sum() + _loss(margins + length * moved, signs, c)
            if after <= before + 1e-4 * length * promised + 1e-13 * abs(before):
                break
            length *= 0.5
        w[active] = start + length * step
        margins += length * moved
    return margins
