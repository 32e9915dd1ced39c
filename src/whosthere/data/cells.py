"""How the cells (region, epoch) of a table are numbered: the epochs of a region follow one another.

Compiled code counts on the same order; everybody else asks here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Int = TypeVar("_Int", bound=np.integer[Any])


def cell_at(region: NDArray[_Int], epoch: NDArray[_Int], n_epochs: int) -> NDArray[_Int]:
    """Return the cell of a region in an epoch; arrays broadcast against each other."""
    return region * n_epochs + epoch


def region_and_epoch(cells: NDArray[_Int], n_epochs: int) -> tuple[NDArray[_Int], NDArray[_Int]]:
    """Return in which region and in which epoch each of some cells lies."""
    return np.divmod(cells, n_epochs)


def region_of(cells: NDArray[_Int], n_epochs: int) -> NDArray[_Int]:
    """Return in which region each of some cells lies."""
    return cells // n_epochs


def epoch_of(cells: NDArray[_Int], n_epochs: int) -> NDArray[_Int]:
    """Return in which epoch each of some cells lies."""
    return cells % n_epochs
