"""How many of somebody's cells another person visited as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def most_shared(
    indptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    rows: tuple[int, int],
    place_of_cell: NDArray[np.int32],
    starts: NDArray[np.int64],
    visitors: NDArray[np.int32],
    own_row: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the most cells that any one row shares with each of some people, shape (n_people,).

    Row r holds ``cells[indptr[r]:indptr[r + 1]]``. Memory grows with the people asked about, and
    not with the rows: each row is read once and forgotten.

    Parameters
    ----------
    rows
        The first row to compare with, and the one after the last.
    place_of_cell
        By cell, its place in `starts`; negative where none of the people was.
    starts, visitors
        At place p were the people ``visitors[starts[p]:starts[p + 1]]``.
    own_row
        By person, the row that is not another one.
    """
    most = np.zeros(own_row.size, np.int32)
    shared = np.zeros(own_row.size, np.int32)
    met = np.empty(own_row.size, np.int32)
    for row in range(rows[0], rows[1]):
        n_met = 0
        for i in range(indptr[row], indptr[row + 1]):
            place = place_of_cell[np.uint32(cells[i])]
            if place < 0:
                continue
            for j in range(starts[place], starts[place + 1]):
                person = visitors[j]
                # Written in any case, and kept only if this is the first cell that both visited.
                met[n_met] = person
                n_met += shared[person] == 0
                shared[person] += 1
        for person in met[:n_met]:
            if own_row[person] != row:
                most[person] = max(most[person], shared[person])
            shared[person] = 0
    return most
