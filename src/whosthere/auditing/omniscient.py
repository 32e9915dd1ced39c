"""The strongest attacker there can be: one who knows everybody else.

Who knows the true counts of all others in the target's cells has nothing left to estimate. The
best test is then the sum of the cells' log ratios, whose law is known exactly both with the
target and without. Its ROC is the ceiling for every attack on this target.

Where a mechanism drops visits beyond a bound, the cells are those that were kept: the attacker
is taken to know which, and so is stronger still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.auditing.log_ratios import RARE, alike, cell_laws
from whosthere.auditing.loss_grid import Sum, sum_over_cells
from whosthere.data.arrays import frozen
from whosthere.errors import InputError
from whosthere.privacy.parameters import MOST_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from whosthere.privacy.mechanism import Mechanism

# Chance that the spreads of all cells together are wider than reckoned with.
_TOO_WIDE = 1e-9
# Grid points with less chance than this make no corner of the ROC.
_UNSEEN = 1e-15
# Rounding of the transforms, in the sum of all chances.
_ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Omniscient:
    """What the omniscient attacker reaches.

    All of it is rounded in the attacker's favour, so that it stays a ceiling.

    Attributes
    ----------
    auc
        Chance that a release with the target scores above one without, ties counting half.
    error
        The exact AUC lies between ``auc - error`` and `auc`, but for rounding below 1e-11.
    fpr, tpr
        The corners of the ROC, from left to right; a test that tosses a coin gets to any
        point between two corners.
    """

    auc: float
    error: float
    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]

    def roc(self, fpr: ArrayLike) -> NDArray[np.float64]:
        """Return the true-positive rates at given false-positive rates, same shape."""
        return np.asarray(np.interp(np.asarray(fpr, np.float64), self.fpr, self.tpr))

    def tpr_at(self, fpr: float) -> float:
        """Return the true-positive rate at one false-positive rate."""
        return float(self.roc(fpr))


@dataclass(frozen=True, eq=False)
class OmniscientOverReleases:
    """What the omniscient attacker reaches over several releases.

    Attributes
    ----------
    pooled
        One test, and one ROC, over releases of all groups: the ceiling for an AUC that was
        measured over them together. A score then competes with scores of other groups too,
        which helps who knows how telling each group is: never below the mean of `aucs`.
    aucs
        The AUC in each group by itself, shape (n_releases,).
    error
        Largest numerical error of any of `aucs`.
    """

    pooled: Omniscient
    aucs: NDArray[np.float64]
    error: float

    @property
    def mean_auc(self) -> float:
        """Mean of `aucs`: the ceiling for AUCs that were measured group by group."""
        return float(self.aucs.mean())


def omniscient(mechanism: Mechanism, others_counts: ArrayLike, m: int) -> Omniscient:
    """Return what the omniscient attacker reaches against one release.

    Parameters
    ----------
    others_counts
        True count of all others in each cell that the target would be counted in, shape
        (n_cells,), each below m.
    m
        Size of the group, with the target.
    """
    return omniscient_over_releases(mechanism, [others_counts], m).pooled


def omniscient_over_releases(
    mechanism: Mechanism, counts_without_target: Sequence[ArrayLike] | NDArray[np.integer], m: int
) -> OmniscientOverReleases:
    """Return what the omniscient attacker reaches over releases of several groups.

    The attacker knows which group a release is of. Each group is equally often published with
    the target and without.

    Parameters
    ----------
    counts_without_target
        For each release, the true count of all others in each cell that the target would be
        counted in, shape (n_cells,), each below m. Releases may differ in their cells.
    m
        Size of the groups, with the target.
    """
    counts = [_checked(one, m) for one in counts_without_target]
    if not counts:
        raise InputError("there must be at least one release")
    each: list[tuple[float, float]] = []
    mixture: Sum | None = None
    for one in _laws(mechanism, counts, m):
        each.append(_auc(one))
        mixture = one if mixture is None else mixture.mixed(one, share=1 / len(each))
    assert mixture is not None  # noqa: S101 - there is at least one release
    aucs, errors = zip(*each, strict=True)
    return OmniscientOverReleases(_roc(mixture), frozen(aucs, np.float64), max(errors))


def ranks(
    mechanism: Mechanism,
    counts_without_target: Sequence[ArrayLike],
    published: Sequence[ArrayLike],
    m: int,
) -> list[float]:
    """Return where releases stand among releases of the same others with the target.

    Each is the chance that one with the target scores lower, ties counting half. For a release
    that really holds the target, it is 1/2 on average, and spread no wider than a number that is
    equally likely to lie anywhere from 0 to 1.

    Parameters
    ----------
    counts_without_target
        As for `omniscient_over_releases`.
    published
        The published counts of the same cells, in the same shapes.
    """
    counts = [_checked(one, m) for one in counts_without_target]
    return [
        _rank(law, _observed(mechanism, others, np.asarray(values, np.int32), m))
        for law, others, values in zip(_laws(mechanism, counts, m), counts, published, strict=True)
    ]


def _observed(
    mechanism: Mechanism, others: NDArray[np.int64], published: NDArray[np.int32], m: int
) -> float:
    """Return the sum of a release's log ratios, infinite if it proves that the target is in.

    A proof is what the laws take for one.
    """
    true = others.astype(np.int32)
    without, within = (mechanism.log_pmf(published, true + more, m) for more in (0, 1))
    proof = np.minimum(without, within) < math.log(RARE)
    # A count that rules the target out outweighs any proof.
    if (proof & (within < without)).any():
        return -math.inf
    if (proof & (within > without)).any():
        return math.inf
    # Impossible either way: several noise steps can make a chance too small for a number.
    possible = np.isfinite(within)
    return float((within[possible] - without[possible]).sum())


def _rank(law: Sum, observed: float) -> float:
    """Return the chance under IN of a sum below the observed one, ties counting half."""
    if math.isinf(observed):
        # A proof: no release with the target looks like this one, or no release without it.
        return 1 - law.proof_in / 2 if observed > 0 else 0.0
    # Sums are spread over the grid: what lies closer than that counts as a tie.
    width = math.ceil((3 * math.sqrt(law.spread) + law.moved) / law.step) + 1
    at = round(observed / law.step) - law.first
    below, beyond = max(at - width, 0), max(at + width + 1, 0)
    return float(law.p_in[:below].sum() + law.p_in[:beyond].sum()) / 2


def _laws(mechanism: Mechanism, counts: Sequence[NDArray[np.int64]], m: int) -> Iterator[Sum]:
    """Yield the law of the sum over the target's cells of each release."""
    others, place = np.unique(alike(mechanism, np.concatenate(counts), m), return_inverse=True)
    release = np.repeat(np.arange(len(counts)), [one.size for one in counts])
    cells = np.zeros((len(counts), max(others.size, 1)), np.int64)
    np.add.at(cells, (release, place), 1)
    laws = cell_laws(mechanism, others if others.size else np.zeros(1, np.int64), m)
    yield from sum_over_cells(laws, cells)


def _roc(law: Sum) -> Omniscient:
    """Find the ROC of the test that calls the largest sums in."""
    auc, error = _auc(law)
    corners = (law.p_out + law.p_in)[::-1] > _UNSEEN
    fpr = np.cumsum(law.p_out[::-1])[corners]
    tpr = law.proof_in + np.cumsum(law.p_in[::-1])[corners]
    return Omniscient(
        auc=auc,
        error=error,
        fpr=frozen(np.minimum(np.concatenate([[0.0], fpr, [1.0]]), 1.0), np.float64),
        tpr=frozen(np.minimum(np.concatenate([[law.proof_in], tpr, [1.0]]), 1.0), np.float64),
    )


def _auc(law: Sum) -> tuple[float, float]:
    """Return the AUC, and how far the exact one may lie below it."""
    lower = np.cumsum(law.p_out) - law.p_out / 2
    auc = law.proof_in + float((law.p_in * (law.proof_out + lower)).sum())
    # A move can only turn the order of two sums whose ratios are that close to each other.
    error = _spread_error(law) + 2 * law.moved + law.inexact + _ROUNDING
    return min(auc + law.moved, 1.0), error


def _spread_error(law: Sum) -> float:
    """Bound what spreading the log ratios over the grid has added to the AUC.

    With R and R' the likelihood ratios of two releases without the target, the AUC is
    E max(R, R') / 2 plus a part that does not change, and spreading changes it only where it
    turns the order of R and R'. Then their logarithms on the grid are no further apart than
    both sums of spreads. These are sums of bounded independent terms, so that Hoeffding's
    inequality gives a distance that they hardly ever exceed.
    """
    if law.spread == 0:
        return 0.0
    distance = law.spread / 4 + math.sqrt(law.spread * math.log(2 / _TOO_WIDE))
    n_steps = min(math.ceil(distance / law.step), law.p_out.size)
    # Over all pairs of points i > j that are at most n_steps apart.
    turned = law.p_in * _sum_before(law.p_out, n_steps)
    turned -= law.p_out * _sum_before(law.p_in, n_steps)
    return max(float(turned.sum()), 0.0) + _TOO_WIDE


def _sum_before(values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the sum of the n values before each one, same shape."""
    total = np.concatenate([np.zeros(n + 1), np.cumsum(values)])
    return np.asarray(total[n:-1] - total[: -n - 1])


def _checked(counts: ArrayLike, m: int) -> NDArray[np.int64]:
    """Return counts of others as int64, or refuse those that leave no room for the target."""
    if not 1 <= m <= MOST_COUNT:
        raise InputError(f"a group must have 1 to {MOST_COUNT} people, not {m}")
    array = np.asarray(counts)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1:
        raise InputError(
            f"the counts of others in a release must be one row, not the shape {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise InputError(f"the counts of others must be whole numbers, not {array.dtype}")
    if array.size and not 0 <= array.min() <= array.max() < m:
        raise InputError(
            f"the counts of others must lie in 0..{m - 1}, as the group of {m} has the target "
            f"in it; they reach from {array.min()} to {array.max()}"
        )
    return array.astype(np.int64)
