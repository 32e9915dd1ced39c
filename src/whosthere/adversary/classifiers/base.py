"""What every classifier has in common, and the tuning of its threshold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere import specs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.pair_counts import CountMatrix


class Decision(ABC):
    """A fitted classifier: higher scores mean that the target is more likely in.

    Attributes
    ----------
    cells
        The cells that it looks at, shape (k,); it never needs any other.
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

    def __str__(self) -> str:
        return specs.write(self)

    @abstractmethod
    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_]) -> Decision:
        """Learn from the counts of n groups and labels of shape (n,)."""


def youden_threshold(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the threshold with the largest share of true less share of false alarms.

    Scores above it are called in. It lies in the middle between two scores that occur, or
    beyond all of them; of several equally good ones it is the middle one.
    """
    values = np.unique(scores)
    padded = np.concatenate([[values[0] - 1.0], values, [values[-1] + 1.0]])
    candidates = (padded[:-1] + padded[1:]) / 2
    missed = np.searchsorted(np.sort(scores[labels]), candidates, side="right")
    passed = np.searchsorted(np.sort(scores[~labels]), candidates, side="right")
    j = passed / max((~labels).sum(), 1) - missed / max(labels.sum(), 1)
    best = np.flatnonzero(j >= j.max() - 1e-12)
    return float(candidates[best[(best.size - 1) // 2]])
