"""What differential privacy guarantees by itself, whatever an attacker knows or computes.

**The game.** An attacker sees a release of m people and tells whether a person is in it. The size
m is public, so somebody else was counted if the person was not: the two data sets differ by the
*replacement* of one person by another. A guarantee for adding or removing one person holds twice
over, once for taking the one out and once for putting the other in. A budget of eps is then worth
2 eps at most.

**What a person spends.** A person with k visits changes k cells by one, and so does the substitute
with theirs. Disjoint visits are the worst case. Everything after the noise (rounding, limiting to
0..m, suppressing) can only help the person, and so can chance that falls alike in both cases: who
the others are, who the substitute is, which visits are dropped. For the noise itself the best test
is known exactly (`Step.trade_off`), far better than what eps alone says. All that is stated is read
off that one curve.

**Over all people** who may be published, it is the person with most to lose who counts, and not
those whom an audit happens to attack. Whoever takes a person's place is taken to be the one who
spends most. Both are said to have the next round number of visits, so that it does not tell how
many they made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.data.floor import class_ends
from whosthere.errors import InputError
from whosthere.privacy.trade_off import Budget, Least, TradeOff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from whosthere.arrays import Floats, Ints64
    from whosthere.data.clusters import Clusters
    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.units import Guarantee

STATED_DELTA = 1e-6
"""The chance that is left out of what is told of a person, whatever the noise."""


class Spent(NamedTuple):
    """What one person spends: units, and visits where they are known."""

    units: int
    visits: int | None = None


@dataclass(frozen=True)
class GameGuarantee:
    """What no attacker can exceed who tells whether one person is in a release.

    All of it is about the replacement of the person by another, and follows from the `curve` of the
    best test. An eps is told with a chance `left_out`, the same for all kinds of noise.
    """

    curve: TradeOff
    left_out: float = STATED_DELTA

    @property
    def eps(self) -> float:
        """The eps that holds together with `delta`."""
        return self.curve.eps_at(max(self.left_out, self.curve.least_delta))

    @property
    def delta(self) -> float:
        """What is left out; 0 where the eps holds without exception."""
        least = max(self.left_out, self.curve.least_delta)
        return least if self.eps < self.pure_eps else 0.0

    @property
    def pure_eps(self) -> float:
        """The eps that holds without exception, infinite where there is none."""
        return self.curve.eps_at(0.0)

    @property
    def odds_factor(self) -> float:
        """Most that the odds for "is in" rise, except with a chance of `chance_of_more`."""
        return odds_factor(self.eps)

    @property
    def chance_of_more(self) -> float:
        """The odds rise by more than `odds_factor` with at most this chance; 0 without a delta."""
        return self.curve.chance_of_more(self.eps) if self.delta else 0.0

    @property
    def auc(self) -> float:
        """The best AUC of any attacker."""
        return self.curve.auc

    def tpr(self, fpr: ArrayLike) -> Floats:
        """Return the best true-positive rates of any attacker at given false-positive rates."""
        return self.curve.tpr(fpr)


def game_guarantee(
    mechanism: Mechanism,
    *,
    units_of_target: int,
    units_of_other: int,
    visits_of_target: int | None = None,
    visits_of_other: int | None = None,
) -> GameGuarantee | None:
    """Return what the mechanism guarantees in the membership game; None if it guarantees nothing.

    It holds for noise that cannot be predicted, not for a release with a seed that can be found.

    Parameters
    ----------
    mechanism
        What is done to the counts.
    units_of_target, units_of_other
        Units of the person in question, and of the one in their place. If that can be one of
        several people, the largest number holds for all of them.
    visits_of_target, visits_of_other
        Their visits, where known, likewise. A person with fewer visits than their units may hold
        spends less.
    """
    if min(units_of_target, units_of_other) < 0:
        raise InputError("a person cannot have fewer than 0 units")
    target, other = Spent(units_of_target, visits_of_target), Spent(units_of_other, visits_of_other)
    if mechanism.guarantee is None:
        return None
    return GameGuarantee(best_test(mechanism, target, other))


def best_test(
    mechanism: Mechanism, target: Spent, other: Spent, *, adds_up: bool = False
) -> TradeOff:
    """Return the best test of whether one person was replaced by another.

    Where visits of a person add up in a cell, it is what the budget allows: what is sharper holds
    for visits to different cells.
    """
    given = mechanism.guarantee
    if given is None:
        return Budget(math.inf)
    most, curve = given.unit.most_visits, None
    if not adds_up:
        spent = (
            units * most if visits is None else min(units * most, visits)
            for units, visits in (target, other)
        )
        curve = mechanism.steps[0].trade_off(sum(spent))
    return curve or Budget(*_of_a_group(given, target.units + other.units))


@dataclass(frozen=True)
class GuaranteeForAll:
    """What no attacker can exceed, over many people."""

    worst: GameGuarantee
    """The guarantee for whoever has most to lose, of everybody; for as many visits, rounded up."""
    everybody: int
    """How many people that is."""


def guarantee_for_all(
    tables: Sequence[tuple[Mechanism, Traces]], households: Clusters | None = None
) -> GuaranteeForAll | None:
    """Return what tables of everybody guarantee, published together; None if one does nothing.

    Tables with the same noise are as good as one large table; other budgets add up. Where
    `households` are replaced as a whole, each spends what its members spend, and as many other
    people may be in its place.
    """
    n_users = tables[0][1].n_users
    spent: dict[tuple[Mechanism, bool], list[tuple[Spent, Spent]]] = {}
    for mechanism, traces in tables:
        if mechanism.guarantee is None:
            return None
        own = np.stack(mechanism.guarantee.unit.contributions(traces), axis=1)
        others = _most(own) * (n_users > 1)
        if households is not None:
            others *= int(households.sizes.max())
            own = np.stack([np.bincount(households.of, one) for one in own.T], axis=1)
        # Members of a household can add to the same cell.
        how = mechanism, traces.most_added > 1 or households is not None
        spent.setdefault(how, []).append((Spent(*_most(own).tolist()), Spent(*others.tolist())))
    curves = [
        best_test(mechanism, *(_sum(one) for one in zip(*pairs, strict=True)), adds_up=adds_up)
        for (mechanism, adds_up), pairs in spent.items()
    ]
    return GuaranteeForAll(GameGuarantee(_together(curves)), n_users)


def _most(spent: NDArray[np.integer]) -> Ints64:
    """Return the largest of each column, rounded up so that it does not tell whose it is."""
    return np.array([class_ends(column.astype(np.int64))[-1] for column in spent.T])


def _sum(spent: Sequence[Spent]) -> Spent:
    return Spent(*(sum(part) for part in zip(*spent, strict=True)))


def _together(curves: Sequence[TradeOff]) -> TradeOff:
    """Return what tables with different noise guarantee: budgets add up."""
    if len(curves) == 1:
        return curves[0]
    # Each kind of noise leaves out its share, or nothing.
    shared = [GameGuarantee(one, STATED_DELTA / len(curves)) for one in curves]
    eps, delta = sum(one.eps for one in shared), sum(one.delta for one in shared)
    pure = Budget(sum(one.pure_eps for one in shared))
    return Least((Budget(eps, min(delta, 1.0)), pure))


def odds_factor(eps: float) -> float:
    """Return e^eps, infinite where it is too large for a number."""
    try:
        return math.exp(eps)
    except OverflowError:
        return math.inf


def _of_a_group(given: Guarantee, units: int) -> tuple[float, float]:
    """Return what any mechanism of that guarantee gives for several units together.

    Data sets that differ by k units are k neighbours in a row. So eps becomes k eps, and delta
    becomes k e^((k - 1) eps) delta, 1 at most.
    """
    eps = given.eps * units
    if given.delta == 0 or units == 0:
        return eps, 0.0
    log_delta = math.log(given.delta) + math.log(units) + (units - 1) * given.eps
    return eps, math.exp(min(log_delta, 0.0))
