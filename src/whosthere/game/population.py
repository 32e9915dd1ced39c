"""The people of an audit: where they were in the tested time, and before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from whosthere.data.coarsening import AS_IT_IS
from whosthere.data.floor import class_ends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from whosthere.data.coarsening import Coarsening
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

    def coarsened(self, coarsening: Coarsening) -> Population:
        """Return the same people over larger regions and longer epochs."""
        if coarsening == AS_IT_IS:
            return self
        earlier = tuple(coarsening.of(traces) for traces in self.earlier)
        return Population(coarsening.of(self.tested), earlier, self.friends)

    @cached_property
    def visit_classes(self) -> NDArray[np.int64]:
        """What numbers of visits in the tested time are rounded up to before they are written."""
        return class_ends(self.tested.visits_per_user())

    @property
    def past(self) -> tuple[Traces, ...]:
        """What past releases are made from: the earlier times or, without any, the tested one."""
        return self.earlier or (self.tested,)
