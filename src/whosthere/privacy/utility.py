"""How much of the truth a release keeps."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.display import table
from whosthere.errors import InputError
from whosthere.inference.vocabulary import UTILITY_WORDS

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Ints32, Ints64


@dataclass(frozen=True)
class Utility:
    """How much published counts differ from the true ones; a measure is None if not defined."""

    mean_absolute_error: float
    """Mean over all cells of |published - true|, in people."""
    mean_relative_error: float | None
    """Mean over cells with somebody in them of |published - true| / true."""
    nonzero_lost: float | None
    """Share of the cells with somebody in them that were published as 0 or withheld."""
    space_distance: float | None
    """Jensen-Shannon distance of the shares of regions, 0 (same) to 1 (disjoint)."""
    time_distance: float | None
    """The same of epochs."""
    top_regions_kept: float | None
    """Share of the ten busiest regions that are among the ten busiest as published.

    Regions with the same total are ranked in their own order.
    """
    visits_kept: float | None
    """Share of the visits that are still there: sum of min(published, true) over sum of true."""
    pattern_correlation: float | None
    """Pearson's correlation of true and published counts over all cells, -1 to 1."""

    @property
    def cells_kept(self) -> float | None:
        """Share of the cells with somebody in them that were published above 0."""
        return None if self.nonzero_lost is None else 1 - self.nonzero_lost

    def _repr_html_(self) -> str:
        rows = [
            (UTILITY_WORDS[name], "not defined" if value is None else f"{value:.4g}")
            for name, value in asdict(self).items()
        ]
        return table(("measure", "value"), rows)


def utility(published: Ints32 | Floats, truth: Ints32, *, top: int = 10) -> Utility:
    """Compare published counts with the true ones.

    Parameters
    ----------
    published
        Shape (n_regions, n_epochs). Withheld cells are 0, as in `Release.counts`: nothing of them
        is kept. Counts of larger cells may be spread over smaller ones, as `Layout.spread` does.
    truth
        The true counts, of the same shape.
    top
        How many of the busiest regions should stay the busiest.
    """
    if published.shape != truth.shape:
        raise InputError(f"counts of shape {published.shape} against truth of {truth.shape}")
    exact = np.promote_types(published.dtype, np.int64)
    error = np.abs(published.astype(exact) - truth)
    visited, total = truth > 0, int(truth.sum(dtype=np.int64))
    # Noise must not pass for visits, so that no cell keeps more than were made in it.
    kept = np.clip(published, 0, truth).sum(dtype=exact)
    relative = error[visited] / truth[visited]
    return Utility(
        mean_absolute_error=float(error.mean()),
        mean_relative_error=float(relative.mean()) if visited.any() else None,
        nonzero_lost=float((published[visited] == 0).mean()) if visited.any() else None,
        space_distance=_jensen_shannon(published.sum(axis=1), truth.sum(axis=1)),
        time_distance=_jensen_shannon(published.sum(axis=0), truth.sum(axis=0)),
        top_regions_kept=_top_kept(published.sum(axis=1), truth.sum(axis=1), top),
        visits_kept=float(kept) / total if total else None,
        pattern_correlation=_correlation(published, truth),
    )


def _correlation(published: Ints32 | Floats, truth: Ints32) -> float | None:
    if np.ptp(published) == 0 or np.ptp(truth) == 0:
        return None
    # Rounding can put it just outside.
    return float(np.clip(np.corrcoef(published.ravel(), truth.ravel())[0, 1], -1, 1))


def _jensen_shannon(p: Ints64 | Floats, q: Ints64) -> float | None:
    from scipy.spatial.distance import jensenshannon  # noqa: PLC0415 - slow to import

    if not p.any() or not q.any():
        return None
    # Rounding can put the divergence of nearly equal or disjoint distributions just outside of 0
    # to 1, and below 0 it has no root.
    with np.errstate(invalid="ignore"):
        distance = float(jensenshannon(p, q, base=2))
    return 0.0 if math.isnan(distance) else min(distance, 1.0)


def _top_kept(published: Ints64 | Floats, truth: Ints64, top: int) -> float | None:
    if not published.any() or not truth.any():
        return None
    n = min(top, truth.size)
    as_published, in_truth = (
        np.argsort(-totals, kind="stable")[:n] for totals in (published, truth)
    )
    return float(np.isin(in_truth, as_published).mean())
