"""How much of the truth a release keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Utility:
    r"""Measures of published counts against the true ones; None where one is not defined.

    Attributes
    ----------
    mean_absolute_error
        Mean over all cells of \\|published - true\\|, in people.
    mean_relative_error
        Mean over cells with somebody in them of \\|published - true\\| / true.
    nonzero_lost
        Share of the cells with somebody in them that were published as 0.
    space_distance, time_distance
        Jensen-Shannon distance, 0 (same) to 1 (disjoint), between the true and the published
        distribution over regions and over epochs.
    top_regions_kept
        Share of the ten busiest regions that are among the ten busiest as published; regions
        with the same total stand in their own order.
    """

    mean_absolute_error: float
    mean_relative_error: float | None
    nonzero_lost: float | None
    space_distance: float | None
    time_distance: float | None
    top_regions_kept: float | None


def utility(published: NDArray[np.int32], truth: NDArray[np.int32], *, top: int = 10) -> Utility:
    """Measure published counts against the true ones, both of shape (n_regions, n_epochs)."""
    if published.shape != truth.shape:
        raise InputError(f"counts of shape {published.shape} against truth of {truth.shape}")
    error = np.abs(published.astype(np.int64) - truth)
    visited = truth > 0
    relative = error[visited] / truth[visited]
    return Utility(
        mean_absolute_error=float(error.mean()),
        mean_relative_error=float(relative.mean()) if visited.any() else None,
        nonzero_lost=float((published[visited] == 0).mean()) if visited.any() else None,
        space_distance=_jensen_shannon(published.sum(axis=1), truth.sum(axis=1)),
        time_distance=_jensen_shannon(published.sum(axis=0), truth.sum(axis=0)),
        top_regions_kept=_top_kept(published.sum(axis=1), truth.sum(axis=1), top),
    )


def _jensen_shannon(p: NDArray[np.int64], q: NDArray[np.int64]) -> float | None:
    from scipy.special import rel_entr  # noqa: PLC0415 - slow to import

    if not p.any() or not q.any():
        return None
    share_p, share_q = p / p.sum(), q / q.sum()
    middle = (share_p + share_q) / 2
    bits = (rel_entr(share_p, middle).sum() + rel_entr(share_q, middle).sum()) / 2 / np.log(2)
    # Rounding can carry nearly equal or disjoint distributions just outside of 0 to 1.
    return float(np.sqrt(np.clip(bits, 0, 1)))


def _top_kept(published: NDArray[np.int64], truth: NDArray[np.int64], top: int) -> float | None:
    if not published.any() or not truth.any():
        return None
    n = min(top, truth.size)
    as_published, in_truth = (
        np.argsort(-totals, kind="stable")[:n] for totals in (published, truth)
    )
    return float(np.isin(in_truth, as_published).mean())
