"""The controls: the same pipeline with nothing to find.

In control releases somebody else takes the place of the target, so scores are independent of
labels. If the AUC there differs from 0.5 by more than chance, the audit itself is faulty.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from whosthere.auditing.metrics import Estimate, auc

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Of the exact laws, which are known on a grid.
_ROUNDING = 1e-4
FALSE_ALARMS = 0.01
"""The share of sound audits whose control fails by chance."""


def control_auc(
    scores: NDArray[np.float64],
    stand_in: NDArray[np.bool_],
    targets: NDArray[np.integer],
    *,
    n_controls: int = 1,
) -> Estimate:
    """Return the mean AUC over targets of releases with a stand-in against releases without.

    If labels mean nothing, all orders of a target's scores are equally likely. The variance of
    the AUC is then known (it is that of the Mann-Whitney statistic with ties) and does not have
    to be estimated, so the interval holds even for few targets.

    Parameters
    ----------
    scores
        The scores of releases with and without a stand-in, shape (n_releases,).
    stand_in, targets
        Whether each release contains a stand-in, and which target it belongs to.
    n_controls
        The number of controls in the audit. The intervals are so wide that any of them misses 0.5
        in at most a share `FALSE_ALARMS` of sound audits.
    """
    aucs, variances = [], []
    for target in np.unique(targets):
        own = targets == target
        aucs.append(auc(scores[own], stand_in[own]))
        variances.append(_variance_of_chance(scores[own], stand_in[own]))
    mean, error = float(np.mean(aucs)), float(np.sqrt(np.sum(variances))) / len(aucs)
    reach = -float(ndtri(FALSE_ALARMS / n_controls / 2)) * error
    return Estimate(mean, max(mean - reach, 0.0), min(mean + reach, 1.0))


def rank_mean(
    found: NDArray[np.float64], expected: NDArray[np.float64], *, n_controls: int = 1
) -> Estimate:
    """Return how far releases with the target stand from where they must, on average.

    Ranks are spread no wider than a number that is equally likely to lie anywhere from 0 to 1.
    For such numbers, P(|mean - 1/2| > r) <= 2 exp(-6 n r^2) whatever n is. A normal interval
    would be too narrow where nearly all ranks are the same and a few are far away.

    Parameters
    ----------
    found
        Where each release stands, 0 to 1; see `whosthere.auditing.omniscient.ranks`.
    expected
        Where each should stand on average, same shape.
    n_controls
        As for `control_auc`; the interval must hold 0.
    """
    off = float(np.mean(found - expected))
    reach = math.sqrt(math.log(2 * n_controls / FALSE_ALARMS) / (6 * found.size)) + _ROUNDING
    note = f"found {np.mean(found):.4f}, expected {np.mean(expected):.4f}"
    return Estimate(off, off - reach, off + reach, note)


def _variance_of_chance(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the variance of the AUC over all permutations of the labels."""
    n, n_in = scores.size, int(labels.sum())
    _, ties = np.unique(scores, return_counts=True)
    same = float(((ties.astype(np.float64) ** 3) - ties).sum()) / (n * (n - 1))
    return (n + 1 - same) / (12 * n_in * (n - n_in))
