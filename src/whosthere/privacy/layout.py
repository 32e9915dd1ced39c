"""Layouts: which cells a table has, and which of them each visit counts in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels
from whosthere.arrays import own
from whosthere.data.cells import cell_at, region_and_epoch

if TYPE_CHECKING:
    from whosthere.data.traces import Traces


@dataclass(frozen=True)
class Layout:
    """The cells of a table: the regions and epochs of the traces, or larger ones.

    A person is counted once in a cell, however many visits fall into it.

    Parameters
    ----------
    regions
        The new number of each region, from 0 without gaps; None leaves the regions as they are.
    epochs
        How many epochs become one.
    """

    regions: tuple[int, ...] | None = None
    epochs: int = 1

    def __call__(self, traces: Traces) -> Traces:
        """Return the same people over the cells of the table; traces as they are if it is ordinary.

        What the table counts are these traces: whoever counts, bounds or attacks it needs to know
        nothing else.
        """
        if self == ORDINARY:
            return traces
        epochs = traces.epochs.joined(self.epochs)
        region, epoch = region_and_epoch(traces.cells, traces.epochs.n)
        regions = traces.regions
        if self.regions is not None:
            regions = regions.merged(self.regions)
            region = np.array(self.regions, dtype=np.int32)[region]
        cells = cell_at(region, epoch // self.epochs, epochs.n).astype(np.int32, copy=False)
        person = np.repeat(np.arange(traces.n_users, dtype=np.int32), traces.visits_per_user())
        indptr, distinct = kernels.group_by_row(person, cells, traces.n_users)
        return replace(
            traces,
            indptr=own(indptr, np.int64),
            cells=own(distinct, np.int32),
            regions=regions,
            epochs=epochs,
        )

    def __str__(self) -> str:
        """Write the layout as settings name it; the ordinary one goes without saying."""
        merged = [] if self.regions is None else [f"{max(self.regions) + 1} merged regions"]
        joined = [f"{self.epochs} epochs joined"] if self.epochs > 1 else []
        return ", ".join(merged + joined)


ORDINARY = Layout()
"""The regions and epochs of the traces."""
