"""Drawing from many weighted lists at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.arrays import own

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Choices:
    """Weighted lists of one length, each a row of a table, ready to be drawn from.

    Parameters
    ----------
    weights
        Not negative, shape (n_rows, n_columns); every row needs a positive weight.
    """

    n_columns: int
    bounds: NDArray[np.float64]

    def __init__(self, weights: NDArray[np.float64]) -> None:
        shares = np.cumsum(weights, axis=1)
        shares /= shares[:, -1:]
        # Row i's cumulative shares lie in (i, i + 1], so one sorted array serves all rows.
        shares += np.arange(len(weights))[:, None]
        object.__setattr__(self, "n_columns", weights.shape[1])
        object.__setattr__(self, "bounds", own(shares.reshape(-1), np.float64))

    def draw(self, rows: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw one column for each of the given rows, by the weights of that row."""
        found = np.searchsorted(self.bounds, rows + rng.random(rows.size), side="right")
        # A draw just below 1 can be rounded up into the next row.
        return np.minimum(found - rows * self.n_columns, self.n_columns - 1).astype(np.int32)
