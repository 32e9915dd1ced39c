"""Some of the people in traces, without a copy of what they did."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from whosthere.arrays import frozen, own

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces


@dataclass(frozen=True, eq=False)
class Group:
    """People chosen from traces, in an order of their own.

    An audit draws groups by the thousand, of which mostly the counts are asked for. They are
    counted where they stand; ids and traces of their own are made for who asks.

    Parameters
    ----------
    everybody
        The people to choose from.
    rows
        Which of them are chosen, shape (n_users,).
    """

    everybody: Traces
    rows: NDArray[np.int64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", frozen(self.everybody.checked(self.rows), np.int64))

    @classmethod
    def all_of(cls, everybody: Traces) -> Self:
        """Choose everybody, in the order of the traces."""
        return cls(everybody, own(np.arange(everybody.n_users), np.int64))

    @property
    def n_users(self) -> int:
        """How many people are chosen."""
        return int(self.rows.size)

    @property
    def n_visits(self) -> int:
        """How many visits they made together."""
        indptr = self.everybody.indptr
        return int((indptr[self.rows + 1] - indptr[self.rows]).sum())

    @cached_property
    def users(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple([self.everybody.users[row] for row in self.rows.tolist()])

    @cached_property
    def traces(self) -> Traces:
        """Their traces, as a copy."""
        return self.everybody.select(self.rows)

    def trace(self, i: int) -> NDArray[np.int32]:
        """Return the cells that person number i of the group visited, sorted."""
        return self.everybody.trace(int(self.rows[i]))

    def added(self, i: int) -> NDArray[np.int32] | int:
        """Return what person number i of the group adds to the counts of the cells of `trace`."""
        return self.everybody.added(int(self.rows[i]))

    def counts(self) -> NDArray[np.int32]:
        """Count how many of the group visited each cell, shape (n_regions, n_epochs)."""
        return self.everybody.counts(self.rows)
