"""The same visits over larger regions and longer epochs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels
from whosthere.arrays import own

if TYPE_CHECKING:
    from whosthere.data.traces import Traces


@dataclass(frozen=True)
class Coarsening:
    """A change of regions and epochs to larger ones.

    Parameters
    ----------
    regions
        The new number of each region, from 0 without gaps; None leaves the regions as they are.
    epochs
        How many epochs become one.
    """

    regions: tuple[int, ...] | None = None
    epochs: int = 1

    def of(self, traces: Traces) -> Traces:
        """Return the same people with the same visits; several in a new cell become one."""
        epochs = traces.epochs.joined(self.epochs)
        region, epoch = np.divmod(traces.cells, np.int32(traces.epochs.n))
        regions = traces.regions
        if self.regions is not None:
            regions = regions.merged(self.regions)
            region = np.array(self.regions, dtype=np.int32)[region]
        cells = (region * epochs.n + epoch // self.epochs).astype(np.int32, copy=False)
        person = np.repeat(np.arange(traces.n_users, dtype=np.int32), traces.visits_per_user())
        indptr, distinct = kernels.group_by_row(person, cells, traces.n_users)
        return replace(
            traces,
            indptr=own(indptr, np.int64),
            cells=own(distinct, np.int32),
            regions=regions,
            epochs=epochs,
        )


AS_IT_IS = Coarsening()
"""No change."""
