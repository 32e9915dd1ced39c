"""What a mechanism guarantees over all people who may be published.

It depends on the people and the mechanism only, so it is computed over everybody, once, and not
over those whom an audit happens to attack. Whoever takes a person's place is taken to be the one of
all others who spends most. What is said about single people is said about the next round number of
visits, so that it does not tell how many they made.

**Many people by one threshold.** Metrics over everybody allow a mean rate of false alarms, not the
same rate for each person. The best attacker names whom a release speaks for by a likelihood ratio
above one threshold (Neyman and Pearson, with the person as a part of what is seen). At a common
slope e^eps of all curves, person i gives TPR_i - e^eps FPR_i = delta_i(eps), so that

    mean TPR <= mean of delta_i(eps) + e^eps (mean FPR)      for every eps,

and the best eps reaches it. Each line is a bound by itself: leaving some out only raises the curve.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from whosthere.data.floor import LEAST_PEOPLE, class_ends
from whosthere.privacy.guarantees import game_guarantee

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.guarantees import GameGuarantee
    from whosthere.privacy.mechanism import Mechanism
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


@dataclass(frozen=True, eq=False)
class GuaranteeForAll:
    """What no attacker can exceed, over many people."""

    worst: GameGuarantee
    """The guarantee for whoever has most to lose, of everybody; for as many visits, rounded up."""
    everybody: int
    """How many people that is."""
    pooled: PooledCurve
    """The largest possible means, rates and area over those who are asked about."""
    asked: int
    """How many people these are."""


def guarantee_for_all(
    mechanism: Mechanism, everybody: Traces, asked: NDArray[np.bool_]
) -> GuaranteeForAll | None:
    """Return what the mechanism guarantees to all who may be published; None if nothing.

    Means are taken over those who are `asked` about, at least one of everybody, shape (n_users,).
    """
    given = mechanism.guarantee
    if given is None:
        return None
    own = np.stack(given.unit.contributions(everybody), axis=1)
    most = [int(class_ends(column)[-1]) for column in own.T]
    worst = _in_case(mechanism, *most, *(most if everybody.n_users > 1 else (0, 0)))
    # Few of the many people differ in what they and their substitutes spend.
    cases, case_of = np.unique(np.hstack([own, _most_of_others(own)]), axis=0, return_inverse=True)
    found = [_in_case(mechanism, *map(int, case)) for case in cases]
    people: Counter[TradeOff] = Counter()
    in_case = np.bincount(case_of.reshape(-1)[asked], minlength=len(cases))
    for one, many in zip(found, in_case, strict=True):
        people[one.curve] += int(many)
    n = people.total()
    if n < LEAST_PEOPLE:
        people = Counter({worst.curve: n})
    return GuaranteeForAll(worst, everybody.n_users, PooledCurve.of(+people), n)


def _in_case(mechanism: Mechanism, units: int, visits: int, more: int, most: int) -> GameGuarantee:
    """Return the guarantee for a person's units and visits, and the most that others have."""
    found = game_guarantee(
        mechanism,
        units_of_target=units,
        units_of_other=more,
        visits_of_target=visits,
        visits_of_other=most,
    )
    assert found is not None  # noqa: S101 - there is a guarantee
    return found


def _most_of_others(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each row the largest of all other rows in each column; 0 if there is none."""
    padded = np.vstack([values, np.zeros((1, values.shape[1]), np.int64)])
    second, first = np.sort(padded, axis=0)[-2:]
    alone = (padded == first).sum(axis=0) == 1
    return np.asarray(np.where((values == first) & alone, second, first))
