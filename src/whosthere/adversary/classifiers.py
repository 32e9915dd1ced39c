"""What learns membership from labelled groups, and the classifier that is ours.

L1 logistic regression is solved at its optimum, over all cells at once. Hundreds of aggregates over
hundreds of thousands of cells would be gigabytes as standardised floats. So the gradient of all
cells is one weighted column sum of the integer counts, standardised afterwards: (sum of slope *
count - mean * sum of slopes) / deviation. An optimum exists with no more weights than aggregates,
so only a working set of cells is copied out as floats and solved. One pass over all cells then
shows which were missing; it ends when none violates the optimality conditions by more than the
tolerance.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere import kernels, specs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.kernels.count_matrix import CountMatrix

# Cells that join the set to work on each time, at least; later on as many as are in use.
_LEAST_ROOM = 128
_MOST_ROUNDS = 60
# How exact the working set is solved, as a share of the worst violation outside of it.
_COARSENESS = 0.3
# Tolerances from which on single precision is far more exact than needed.
_FINE = 3e-4


class Decision(ABC):
    """A fitted classifier: higher scores mean that the target is more likely in.

    `cells` are those that it looks at, shape (k,); it never needs any other.
    """

    cells: NDArray[np.int64]

    @abstractmethod
    def __call__(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return a score for each row of the counts of its cells, shape (n, k) -> (n,)."""


@dataclass(frozen=True)
class Classifier(ABC):
    """A way to learn from labelled aggregates."""

    name: ClassVar[str]
    summary: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the parameters."""
        specs.check_parameters(self)

    def __str__(self) -> str:
        return specs.write(self)

    @abstractmethod
    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_], seed: int = 0) -> Decision:
        """Learn from the counts of n groups and labels of shape (n,)."""


@dataclass(frozen=True, eq=False)
class Linear(Decision):
    """A weighted sum of the counts of a few cells, and an offset.

    `objective` is the value of what was minimised, at the weights found.
    """

    cells: NDArray[np.int64]
    weights: NDArray[np.float64]
    offset: float
    objective: float

    def __call__(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        return np.asarray(counts.astype(np.float64) @ self.weights + self.offset)


@dataclass(frozen=True)
class L1(Classifier):
    """Minimise  ||w||_1 + |b| + C * sum log(1 + exp(-y (x w + b)))  over the cells.

    The objective is that of liblinear, which penalises the intercept b too. The tolerance is the
    largest violation of the optimality conditions (the penalty's slope is 1). Standardised counts
    are deviations from the mean of their cell, so that the penalty treats quiet and busy cells
    alike.
    """

    c: float = specs.parameter(specs.POSITIVE, "weight of the loss", default=1.0)
    tolerance: float = specs.parameter(specs.POSITIVE, "largest violation allowed", default=1e-3)
    standardise: bool = specs.parameter(
        specs.YES_NO, "whether counts are standardised, or taken as they are", default=True
    )
    name: ClassVar[str] = "l1"
    summary: ClassVar[str] = "logistic regression with an L1 penalty, at its optimum"

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_], seed: int = 0) -> Linear:  # noqa: ARG002
        n = len(labels)
        signs = np.where(labels, 1.0, -1.0)
        mean, scale = self.moments(counts)
        if not self.standardise:
            mean, scale = np.zeros_like(mean), np.ones_like(scale)
        coarse_mean, coarse_scale = mean.astype(np.float32), scale.astype(np.float32)
        # What is worked on: first the intercept, a feature that is always 1, then some cells.
        precision = np.float32 if self.tolerance >= _FINE else np.float64
        cells, weights, features = np.empty(0, np.int64), np.zeros(1), np.ones((1, n), precision)
        margins = np.zeros(n)
        finest = 0.3 * self.tolerance
        reached = np.inf
        for _ in range(_MOST_ROUNDS):
            slope = -self.c * signs / (1.0 + np.exp(signs * margins))
            gradient = np.abs(kernels.standardised_sums(counts, slope, coarse_mean, coarse_scale))
            # Single precision is enough to rank cells; those worked on are known more exactly.
            gradient[cells] = 0.0
            missing = np.flatnonzero(gradient > 1.0 + self.tolerance)
            if not missing.size and reached <= finest:
                break
            worst = float(gradient[missing].max(initial=1.0)) - 1.0
            if missing.size:
                # Cells in use stay, and about as many that miss a weight most join.
                kept = weights != 0
                kept[0] = True
                room = max(int(kept.sum()), _LEAST_ROOM)
                if missing.size > room:
                    missing = missing[np.argpartition(-gradient[missing], room)[:room]]
                cells = np.concatenate([cells[kept[1:]], missing])
                weights = np.concatenate([weights[kept], np.zeros(missing.size)])
                new = np.empty((missing.size, n), precision)
                kernels.standardised_cells(counts, missing, mean, scale, new)
                features = np.concatenate([features[kept], new])
            # As long as cells are missing that matter, there is no use in being much more exact.
            reached = max(finest, _COARSENESS * worst)
            margins = kernels.minimise(features, signs, self.c, weights, reached)
        else:
            warnings.warn("the classifier did not reach its optimum", stacklevel=2)
        objective = np.abs(weights).sum() + self.c * np.logaddexp(0.0, -signs * margins).sum()
        # From weights of standardised cells, the intercept's first, to weights of plain counts.
        order = np.argsort(cells)
        used = order[weights[1:][order] != 0]
        cells, per_person = cells[used], weights[1:][used] / scale[cells[used]]
        offset = float(weights[0] - per_person @ mean[cells])
        return Linear(cells, per_person, offset, float(objective))

    def moments(self, counts: CountMatrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and deviation of each cell, by which counts are standardised."""
        return moments(counts.shape[0], *kernels.cell_sums(counts))


def moments(
    n: int, total: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of each cell; a constant cell gets 1, and so becomes all zero."""
    mean = total / n
    # Whole numbers below 2**53: the variance of a constant cell is exactly zero.
    variance = (n * squares - total * total) / (n * n)
    return mean, np.sqrt(np.where(variance > 0, variance, 1.0))
