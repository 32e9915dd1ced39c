"""The best test of many people by one threshold: false alarms are spent where they find most.

Metrics over everybody allow a mean rate of false alarms, not the same rate for each person. The
best attacker names whom a release speaks for by a likelihood ratio above one threshold (Neyman and
Pearson, with the person as a part of what is seen). At a common slope e^eps of all curves, person i
gives TPR_i - e^eps FPR_i = delta_i(eps), so that

    mean TPR <= mean of delta_i(eps) + e^eps (mean FPR)      for every eps,

and the best eps reaches it. Each line is a bound by itself: leaving some out only raises the curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from whosthere.privacy.trade_off import TradeOff

# More than rounding errors can take away: a bound must not be too low.
_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class PooledCurve:
    """The best that any test of many people reaches.

    Attributes
    ----------
    slopes, intercepts
        Of lines TPR = intercept + slope * FPR, steepest first, the last one TPR = 1. The lowest of
        them is the curve.
    mean_auc
        The mean of the best areas under the ROC curves of single people.
    """

    slopes: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    mean_auc: float

    @classmethod
    def of(cls, people: Mapping[TradeOff, int]) -> Self:
        """Return the curve of a group in which so many people have each of some curves."""
        total = sum(people.values())
        eps = np.unique(np.concatenate([[0.0], *(curve.bends for curve in people)]))
        delta, mean_auc = np.zeros_like(eps), 0.0
        for curve, many in people.items():
            delta += many / total * curve.delta_at(eps)
            mean_auc += many / total * curve.auc
        flat = np.exp(-eps)
        return cls(
            np.concatenate([np.exp(eps[::-1]), flat[1:], [0.0]]),
            np.concatenate([delta[::-1], (1 - flat * (1 - delta))[1:], [1.0]]),
            min(mean_auc, 1.0),
        )

    def tpr(self, fpr: float) -> float:
        """Return the best mean true-positive rate at a mean false-positive rate."""
        return float(min(np.min(self.intercepts + self.slopes * fpr) + _SLACK, 1.0))

    @property
    def auc(self) -> float:
        """The best area under the one ROC curve of all of them together."""
        # Each line holds from where the one before it ends.
        ends = np.diff(self.intercepts) / -np.diff(self.slopes)
        fpr = np.concatenate([[0.0], np.maximum.accumulate(np.clip(ends, 0.0, 1.0)), [1.0]])
        widths, middles = np.diff(fpr), (fpr[1:] + fpr[:-1]) / 2
        area = float(np.dot(widths, self.intercepts + self.slopes * middles))
        return min(max(area, 0.5) + _SLACK, 1.0)
