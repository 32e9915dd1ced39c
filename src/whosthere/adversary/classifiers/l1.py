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

# The first set of cells to work on; later ones hold twice the cells in use.
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

    def fit(self, counts: NDArray[np.unsignedinteger], labels: NDArray[np.bool_]) -> Linear:
        """Find the optimum; counts of shape (n, n_cells), labels of shape (n,)."""
        n, p = counts.shape
        signs = np.where(labels, 1.0, -1.0)
        mean, scale = _moments(n, *kernels.column_sums(counts))
        w = np.zeros(p + 1)  # the last one belongs to the intercept, a feature that is always 1
        margins = np.zeros(n)
        cells = np.zeros(0, dtype=np.int64)
        finest = 0.3 * self.tolerance
        reached = finest
        for _ in range(_MOST_ROUNDS):
            slope = -self.c * signs / (1.0 + np.exp(signs * margins))
            by_cell = kernels.weighted_column_sums(counts, slope.astype(np.float32)).astype(
                np.float64
            )
            gradient = np.append((by_cell - mean * slope.sum()) / scale, slope.sum())
            violation = np.where(
                w == 0, np.maximum(np.abs(gradient) - 1.0, 0.0), np.abs(gradient + np.sign(w))
            )
            # Single precision is enough to rank cells; those worked on are known more exactly.
            violation[cells] = 0.0
            worst = float(violation.max())
            if worst <= self.tolerance and reached <= finest:
                break
            if worst > self.tolerance:
                in_use = np.flatnonzero(w)
                size = min(max(2 * in_use.size, _FIRST_WORKING_SET), p + 1)
                violation[in_use] = np.inf
                cells = np.sort(np.argpartition(-violation, size - 1)[:size])
            features = _standardised(counts, cells, mean, scale)
            weights = w[cells]
            # As long as other cells are missing, there is no use in being much more exact.
            reached = max(finest, _COARSENESS * worst)
            margins = kernels.minimise(features, signs, self.c, weights, reached)
            w[:] = 0.0
            w[cells] = weights
        else:
            warnings.warn("the classifier did not reach its optimum", stacklevel=2)
        objective = np.abs(w).sum() + self.c * np.logaddexp(0.0, -signs * margins).sum()
        return _in_counts(w, mean, scale, float(objective))


def _moments(
    n: int, total: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of each cell; a constant cell gets 1, and so becomes all zero."""
    mean = total / n
    # Whole numbers below 2**53: the variance of a constant cell is exactly zero.
    variance = (n * squares - total * total) / (n * n)
    return mean, np.sqrt(np.where(variance > 0, variance, 1.0))


def _standardised(
    counts: NDArray[np.unsignedinteger],
    cells: NDArray[np.int64],
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the features as rows, shape (n_features, n); number p is the intercept's."""
    p = mean.size
    features = np.ones((cells.size, counts.shape[0]))
    inner = cells[cells < p]
    features[: inner.size] = (counts[:, inner].T - mean[inner, None]) / scale[inner, None]
    return features


def _in_counts(
    w: NDArray[np.float64],
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
    objective: float,
) -> Linear:
    """Turn weights of standardised cells into weights of plain counts."""
    cells = np.flatnonzero(w[:-1])
    weights = w[cells] / scale[cells]
    return Linear(cells, weights, float(w[-1] - weights @ mean[cells]), objective)
