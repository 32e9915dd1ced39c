"""L1 logistic regression at its converged optimum, over all cells at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere import kernels, specs
from whosthere.adversary.classifiers.base import Classifier, Decision
from whosthere.privacy.parameters import check_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.count_matrix import CountMatrix

# Cells that join the set to work on each time, at least; later on as many as are in use.
_FIRST_WORKING_SET = 128
_MOST_ROUNDS = 60
# How exact the working set is solved, as a share of the worst violation outside of it.
_COARSENESS = 0.3


@dataclass(frozen=True, eq=False)
class Linear(Decision):
    """A weighted sum of a few cells.

    Attributes
    ----------
    cells
        The cells with a weight, shape (k,).
    weights
        Weight of one person more in each of them.
    offset
        The sum where all of them are empty.
    objective
        Value of what was minimised, at the weights found.
    """

    cells: NDArray[np.int64]
    weights: NDArray[np.float64]
    offset: float
    objective: float

    def __call__(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return a score for each row of the counts of its cells, shape (n, k) -> (n,)."""
        return np.asarray(counts.astype(np.float64) @ self.weights + self.offset)


@dataclass(frozen=True)
class ExactL1(Classifier):
    """Minimise  ||w||_1 + |b| + C * sum log(1 + exp(-y (x w + b)))  over standardised cells.

    The objective is that of liblinear, which penalises the intercept b too. The optimum has no
    more weights than there are aggregates, so only a growing set of promising cells is worked
    on; one pass over all cells then shows which ones were missing.

    Parameters
    ----------
    c
        Weight of the loss against the penalty.
    tolerance
        Largest violation of the optimality conditions (the penalty's slope is 1).
    """

    c: float = specs.parameter(specs.NUMBER, "weight of the loss", default=1.0)
    tolerance: float = specs.parameter(specs.NUMBER, "largest violation allowed", default=1e-3)
    name: ClassVar[str] = "l1"
    summary: ClassVar[str] = "logistic regression with an L1 penalty, at its optimum"

    def __post_init__(self) -> None:
        for name in ("c", "tolerance"):
            object.__setattr__(self, name, check_positive(getattr(self, name), name))

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_]) -> Linear:
        """Find the optimum for the counts of n groups and labels of shape (n,)."""
        n, p = counts.shape
        signs = np.where(labels, 1.0, -1.0)
        mean, scale = _moments(n, *counts.sums())
        coarse_mean, coarse_scale = mean.astype(np.float32), scale.astype(np.float32)
        # Weights of the cells worked on. The last one is the intercept's, a feature always 1.
        cells, weights = np.array([p]), np.zeros(1)
        margins = np.zeros(n)
        finest = 0.3 * self.tolerance
        reached = np.inf
        for _ in range(_MOST_ROUNDS):
            slope = -self.c * signs / (1.0 + np.exp(signs * margins))
            gradient = np.abs(counts.standardised_sums(slope, coarse_mean, coarse_scale))
            # Single precision is enough to rank cells; those worked on are known more exactly.
            gradient[cells[:-1]] = 0.0
            missing = np.flatnonzero(gradient > 1.0 + self.tolerance)
            if not missing.size and reached <= finest:
                break
            if missing.size:
                cells, weights = _working_set(cells, weights, missing, gradient[missing])
            # As long as other cells are missing, there is no use in being much more exact.
            worst = float(gradient[missing].max(initial=1.0)) - 1.0
            reached = max(finest, _COARSENESS * worst)
            features = _standardised(counts, cells, mean, scale)
            margins = kernels.minimise(features, signs, self.c, weights, reached)
        else:
            warnings.warn("the classifier did not reach its optimum", stacklevel=2)
        objective = np.abs(weights).sum() + self.c * np.logaddexp(0.0, -signs * margins).sum()
        return _in_counts(cells[:-1], weights, mean, scale, float(objective))


def _working_set(
    cells: NDArray[np.int64],
    weights: NDArray[np.float64],
    missing: NDArray[np.int64],
    gradient: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the cells to work on next, ascending, and the weights that they have so far.

    All cells in use stay, and the intercept, which comes last; those that miss a weight most, by
    the size of their gradients, join.
    """
    in_use = weights != 0
    in_use[-1] = True
    kept, kept_weights = cells[in_use], weights[in_use]
    room = max(kept.size, _FIRST_WORKING_SET)
    if missing.size > room:
        missing = missing[np.argpartition(-gradient, room)[:room]]
    joined = np.concatenate([kept, missing])
    order = np.argsort(joined)
    return joined[order], np.concatenate([kept_weights, np.zeros(missing.size)])[order]


def _moments(
    n: int, total: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of each cell; a constant cell gets 1, and so becomes all zero."""
    mean = total / n
    # Whole numbers below 2**53: the variance of a constant cell is exactly zero.
    variance = (n * squares - total * total) / (n * n)
    return mean, np.sqrt(np.where(variance > 0, variance, 1.0))


def _standardised(
    counts: CountMatrix,
    cells: NDArray[np.int64],
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the features as rows, shape (n_features, n); the last is the intercept's."""
    inner = cells[:-1]
    features = (counts.columns(inner) - mean[inner, None]) / scale[inner, None]
    return np.concatenate([features, np.ones((1, counts.shape[0]))])


def _in_counts(
    cells: NDArray[np.int64],
    w: NDArray[np.float64],
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
    objective: float,
) -> Linear:
    """Turn weights of standardised cells, the intercept's last, into weights of plain counts."""
    used = np.flatnonzero(w[:-1])
    cells = cells[used]
    weights = w[used] / scale[cells]
    return Linear(cells, weights, float(w[-1] - weights @ mean[cells]), objective)
