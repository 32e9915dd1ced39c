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
is known exactly (`Step.trade_off`), far better than what eps alone says.

**Over all people** who may be published, a guarantee is computed once, and not over those whom an
audit happens to attack. Whoever takes a person's place is taken to be the one of all others who
spends most. What is said about single people is said about the next round number of visits, so that
it does not tell how many they made.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np

from whosthere.data.floor import LEAST_PEOPLE, class_ends
from whosthere.errors import InputError
from whosthere.privacy.exact_noise import Randomness
from whosthere.privacy.trade_off import Budget, Least, PooledCurve, TradeOff
from whosthere.specs import format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from whosthere.arrays import Bools, Floats, Ints64
    from whosthere.data.clusters import Clusters
    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.units import Guarantee, Unit

_Contribution: TypeAlias = "tuple[int, int | None]"  # units of a person, and their visits if known
REPLACEMENT = "replacement of one person by another, because the group's size is public"
"""How the data sets of the membership game differ."""
ADD_OR_REMOVE = "adding or removing one unit, which leaves the group's size as it is"
"""How data sets differ by a visit or by a person's day."""

STATED_DELTA = 1e-6
"""The chance that is left out of what is told of a person, whatever the noise."""
WEAK, HARDLY_ANY = 10.0, 1000.0
"""From these odds factors on, a guarantee is called weak, or hardly any."""


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
    given = mechanism.guarantee
    if min(units_of_target, units_of_other) < 0:
        raise InputError("a person cannot have fewer than 0 units")
    if given is None:
        return None
    target, other = (units_of_target, visits_of_target), (units_of_other, visits_of_other)
    return _in_game(mechanism, given, target, other)


def _in_game(
    mechanism: Mechanism, given: Guarantee, *people: _Contribution, adds_up: bool = False
) -> GameGuarantee:
    """Return the guarantee for the replacement of one of two people by the other, in all tables.

    What is sharper than the budget holds for visits to different cells, and not where they add up.
    """
    most = given.unit.most_visits
    counted = (
        units * most if visits is None else min(units * most, visits) for units, visits in people
    )
    curve = None if adds_up else mechanism.steps[0].trade_off(sum(counted))
    if curve is None:
        curve = Budget(*_of_a_group(given, sum(units for units, _ in people)))
    return GameGuarantee(curve)


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
    mechanism: Mechanism, everybody: Traces, asked: Bools
) -> GuaranteeForAll | None:
    """Return what the mechanism guarantees to all who may be published; None if nothing.

    Means are taken over those who are `asked` about, at least one of everybody, shape (n_users,).
    """
    return guarantee_of_tables([(mechanism, everybody)], asked)


def guarantee_of_tables(
    tables: Sequence[tuple[Mechanism, Traces]], asked: Bools, households: Clusters | None = None
) -> GuaranteeForAll | None:
    """Return the same for several tables of everybody, published together: budgets add up.

    Tables with the same noise are as good as one large table. Where `households` are replaced as a
    whole, each spends what its members spend, and as many other people may be in its place.
    """
    given = [mechanism.guarantee for mechanism, _ in tables]
    if not all(given):
        return None
    n_users = tables[0][1].n_users
    parts = zip(cast("list[Guarantee]", given), (traces for _, traces in tables), strict=True)
    own = np.hstack([np.stack(one.unit.contributions(of), axis=1) for one, of in parts])
    others = _most_of_others(own)
    most_others = [int(class_ends(column)[-1]) * (n_users > 1) for column in own.T]
    if households is not None:
        people_with_most = np.sort(own, axis=0)[::-1].cumsum(axis=0)
        size = households.sizes[households.of]
        most_others = [most * int(size.max()) for most in most_others]
        own = np.stack([np.bincount(households.of, one) for one in own.T], axis=1)
        own, others = own[households.of].astype(np.int64), people_with_most[size - 1]
    # Members of a household can add to the same cell.
    how = [(made, of.most_added > 1 or households is not None) for made, of in tables]
    most = [int(class_ends(column)[-1]) for column in own.T]
    worst = _of_tables(how, most, most_others)
    # Few of the many people differ in what they and their substitutes spend.
    cases, case_of = np.unique(np.hstack([own, others]), axis=0, return_inverse=True)
    people: Counter[TradeOff] = Counter()
    in_case = np.bincount(case_of.reshape(-1)[asked], minlength=len(cases))
    for case, many in zip(cases.tolist(), in_case.tolist(), strict=True):
        people[_of_tables(how, case[: len(most)], case[len(most) :]).curve] += many
    n = people.total()
    if n < LEAST_PEOPLE:
        people = Counter({worst.curve: n})
    return GuaranteeForAll(worst, n_users, PooledCurve.of(+people), n)


def _of_tables(
    how: Sequence[tuple[Mechanism, bool]], target: Sequence[int], other: Sequence[int]
) -> GameGuarantee:
    """Return the guarantee of tables, given units and visits of two people in each, in turns.

    What is done to a table comes with whether several visits of a person add up in a cell.
    """
    spent: dict[tuple[Mechanism, bool], list[_Contribution]] = {}
    for i, one in enumerate(how):
        own = [(person[2 * i], person[2 * i + 1]) for person in (target, other)]
        spent.setdefault(one, []).extend(own)
    found = [
        _in_game(mechanism, cast("Guarantee", mechanism.guarantee), *people, adds_up=adds_up)
        for (mechanism, adds_up), people in spent.items()
    ]
    if len(found) == 1:
        return found[0]
    # Each kind of noise leaves out its share, or nothing.
    shared = [replace(one, left_out=STATED_DELTA / len(found)) for one in found]
    eps, delta = sum(one.eps for one in shared), sum(one.delta for one in shared)
    pure = Budget(sum(one.pure_eps for one in found))
    return GameGuarantee(Least((Budget(eps, min(delta, 1.0)), pure)))


def _most_of_others(values: Ints64) -> Ints64:
    """Return for each row the largest of all other rows in each column; 0 if there is none."""
    padded = np.vstack([values, np.zeros((1, values.shape[1]), np.int64)])
    second, first = np.sort(padded, axis=0)[-2:]
    alone = (padded == first).sum(axis=0) == 1
    return np.asarray(np.where((values == first) & alone, second, first))


def odds_factor(eps: float) -> float:
    """Return e^eps, infinite where it is too large for a number."""
    try:
        return math.exp(eps)
    except OverflowError:
        return math.inf


def describe_guarantee(mechanism: Mechanism, given: Guarantee) -> str:
    """Say in public words how much a mechanism guarantees."""
    size = f"eps {format_number(float(f'{given.eps:.4g}'))}"
    if given.delta:
        size += f" and delta {format_number(given.delta)}"
    if given.rho is not None:
        size += f" (zero-concentrated with rho {format_number(given.rho)})"
    _, eps, _, more = _stated(mechanism, given)
    sentences = (
        f"This is differential privacy with {size} for adding or removing one {given.unit.name}.",
        _odds_sentence(given.unit, eps, more),
        given.unit.describe_person(),
    )
    return " ".join(filter(None, sentences))


@dataclass(frozen=True)
class GuaranteeLedger:
    """What a release guarantees, and on what that rests. All of it is public."""

    randomness: Randomness
    """Where the noise comes from. All else is None if nothing is guaranteed."""
    relation: str | None = None
    """How the data sets differ that cannot be told apart; eps and delta are for that."""
    unit: str | None = None
    """Name of what is protected."""
    eps: float | None = None
    delta: float | None = None
    chance_of_more: float | None = None
    """The odds rise by more than `odds_factor` with at most this chance."""

    @classmethod
    def of(cls, mechanism: Mechanism, *, seeded: bool) -> Self:
        """Return the ledger of a release that was just made with a mechanism."""
        if seeded:
            return cls(Randomness.SEEDED)
        if not mechanism.random_steps:
            return cls(Randomness.NONE)
        given = mechanism.guarantee
        # What comes after the noise may be drawn in any way: it only processes private counts.
        randomness = mechanism.random_steps[0].randomness
        if given is None or randomness is not Randomness.EXACT:
            return cls(randomness)
        relation, eps, delta, more = _stated(mechanism, given)
        return cls(randomness, relation, given.unit.name, eps, delta, chance_of_more=more)

    @property
    def seeded(self) -> bool:
        """Whether the release was made with a seed."""
        return self.randomness is Randomness.SEEDED

    @property
    def states_guarantee(self) -> bool:
        """Whether anything is guaranteed."""
        return self.eps is not None

    @property
    def odds_factor(self) -> float | None:
        """Most that the odds rise, except with a chance of `chance_of_more`."""
        return None if self.eps is None else odds_factor(self.eps)

    def rows(self) -> list[tuple[str, object]]:
        """Return what the ledger says as pairs of words and values, for tables."""
        found: list[tuple[str, object]] = [
            ("randomness", self.randomness.value),
            ("seeded", "yes" if self.seeded else "no"),
            ("size of the group", "public"),
        ]
        more = self.chance_of_more
        if self.eps is None:
            return [("guarantee", "none"), *found]
        return [
            ("guarantee", "differential privacy"),
            ("neighbours differ by", self.relation),
            ("unit", self.unit),
            ("eps for that", format_number(float(f"{self.eps:.4g}"))),
            ("delta for that", format_number(self.delta or 0.0)),
            ("odds rise at most by a factor of", format_factor(self.eps)),
            *([("chance of more, at most", f"{more:.2g}")] if more else []),
            *found,
        ]

    def to_json(self) -> dict[str, Any]:
        """Return plain values that `from_json` reads back."""
        factor = self.odds_factor
        return {
            **asdict(self),
            "odds_factor": None if factor is None or math.isinf(factor) else factor,
            "group_size_public": True,
            "randomness": self.randomness.name.lower(),
            "seeded": self.seeded,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read what `to_json` gave."""
        kinds: dict[str, type] = {"relation": str, "unit": str}
        kinds |= dict.fromkeys(("eps", "delta", "chance_of_more"), float)
        stated = {name: kind(data[name]) for name, kind in kinds.items() if data[name] is not None}
        return cls(Randomness[str(data["randomness"]).upper()], **stated)


def format_factor(eps: float) -> str:
    """Write an odds factor, such as ``e^2 = 7.4``."""
    power = format_number(float(f"{eps:.4g}"))
    factor = odds_factor(eps)
    if math.isinf(factor):
        return f"e^{power}"
    if factor < 1e6:
        return f"e^{power} = {factor:,.0f}" if factor >= 10 else f"e^{power} = {factor:.2g}"
    return f"e^{power} = {factor:.1e}"


def _stated(mechanism: Mechanism, given: Guarantee) -> tuple[str, float, float, float]:
    """Return the relation that a mechanism is meant for, its eps and delta, and chance of more."""
    if given.unit.is_person:
        found = _in_game(mechanism, given, (1, None), (1, None))
        found = replace(found, left_out=given.delta)
        return REPLACEMENT, found.eps, found.delta, found.chance_of_more
    curve = mechanism.steps[0].trade_off(given.unit.most_visits) or Budget(given.eps, given.delta)
    more = curve.chance_of_more(given.eps) if given.delta else 0.0
    return ADD_OR_REMOVE, given.eps, given.delta, more


def _odds_sentence(unit: Unit, eps: float, more: float) -> str:
    why = "The group's size is public, so somebody else is counted instead of a person left out. "
    text = (
        f"{why if unit.is_person else ''}Whoever knows everything else can raise the odds "
        f"{unit.question} by a factor of at most {format_factor(eps)}"
    )
    if more:
        text += f", except with a chance of at most {more:.2g}"
    factor = odds_factor(eps)
    if factor >= HARDLY_ANY:
        return f"{text}. That is hardly any protection."
    return f"{text}. That is weak protection." if factor >= WEAK else f"{text}."


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
