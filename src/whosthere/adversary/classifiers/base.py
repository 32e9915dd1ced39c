"""What every classifier has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from whosthere import specs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from whosthere.kernels.count_matrix import CountMatrix


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
