"""The people of an audit: where they were in the tested time, and before it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.floor import class_ends
from whosthere.privacy.scheme import ORDINARY, Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.neighbours import Neighbours
    from whosthere.data.traces import Traces


@dataclass(frozen=True, eq=False)
class Population:
    """Everybody's traces in the tested time, and in earlier times of the same length.

    Attributes
    ----------
    tested
        What test releases are made from.
    earlier
        The same people in each of the whole windows before, the latest first.
    friends
        Who knows whom, as a graph over the rows of the traces; None where that is not known.
    """

    tested: Traces
    earlier: tuple[Traces, ...] = ()
    friends: Neighbours | None = None
    _under: dict[Layout, Population] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, traces: Traces, first_epoch: int = 0) -> Population:
        """Cut traces at the epoch where the tested time begins."""
        # Groups are chosen by the thousand, and nobody asks for the friendships within them.
        friends, bare = traces.friends, replace(traces, friends=None)
        if first_epoch == 0:
            return cls(bare, (), friends)
        n = traces.epochs.n - first_epoch
        starts = range(first_epoch - n, -1, -n)
        earlier = tuple(bare.between(start, n) for start in starts)
        return cls(bare.between(first_epoch, n), earlier, friends)

    def under(self, layout: Layout) -> Population:
        """Return the same people over the cells of a table; made once for each layout."""
        if layout == ORDINARY:
            return self
        if layout not in self._under:
            earlier = tuple(layout(traces) for traces in self.earlier)
            self._under[layout] = Population(layout(self.tested), earlier, self.friends)
        return self._under[layout]

    def friends_of(self, row: int) -> NDArray[np.integer]:
        """Return the rows of somebody's friends; none where nothing is known about friends."""
        return np.zeros(0, np.int64) if self.friends is None else self.friends.of(row)

    @cached_property
    def visit_classes(self) -> NDArray[np.int64]:
        """What numbers of visits in the tested time are rounded up to before they are written."""
        return class_ends(self.tested.visits_per_user())

    @property
    def past(self) -> tuple[Traces, ...]:
        """What past releases are made from: the earlier times or, without any, the tested one."""
        return self.earlier or (self.tested,)
