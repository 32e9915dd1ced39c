"""Knock-Knock (Pyrgelis, Troncoso and De Cristofaro, 2018), by what the attacker has.

Knock-Knock (Subset of Locations) trains on groups of real people and knows the target's visits,
LocMIA (Zhang and others, 2020) those of the target's friends. Knock-Knock with Participation in
Past Groups trains on releases with known membership.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere import kernels, specs
from whosthere.adversary.attacks.base import (
    AttackOnTables,
    Auxiliary,
    FittedAttack,
    NotApplicableError,
)
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import (
    Table,
    ThresholdRule,
    TrainedAttack,
    Untuned,
    threshold_parameter,
)
from whosthere.adversary.classifiers import L1, Classifier
from whosthere.adversary.features import Features, FeaturesOfTables
from whosthere.adversary.models import CLASSIFIERS, Model, classifier
from whosthere.adversary.suspects import visits_of_one
from whosthere.seeds import derived_seed, generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks.base import View
    from whosthere.adversary.suspects import Known
    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts

_LEAST_OF_EACH = 2


@dataclass(frozen=True, kw_only=True)
class KnockKnock(TrainedAttack):
    """Train on groups of real people, with and without the target."""

    rule: bool = specs.parameter(
        specs.YES_NO, "whether the contradiction rule goes first, where it is sound", default=True
    )

    name: ClassVar[str] = "knock-knock"
    summary: ClassVar[str] = (
        "trains on groups made from thousands of real traces of other people over the same "
        "regions and epochs"
    )
    uses = frozenset({"reference"})
    groups_from_reference: ClassVar[bool] = True

    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:
        seen = [view.auxiliary.real_traces for view in views]
        trained = self.train(seen, Table.each(views), seed)
        return rule_first(views, trained) if self.rule else trained


@dataclass(frozen=True, kw_only=True)
class LocMia(TrainedAttack):
    """Make a stand-in for the target's trace from friends' traces, then go on as Knock-Knock.

    The contradiction rule is not used: it is not sound for visits that are only guessed.
    """

    name: ClassVar[str] = "loc-mia"
    summary: ClassVar[str] = (
        "knows traces of the target's friends instead of the target's own, and thousands of "
        "real traces of other people"
    )
    uses = frozenset({"reference", "friends"})
    groups_from_reference: ClassVar[bool] = True

    def check(self, facts: Facts, knowledge: Known, auxiliary: Auxiliary) -> None:
        super().check(facts, knowledge, auxiliary)
        _friends(auxiliary)

    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:
        guessed = []
        for view in views:
            trace = proxy_trace(_friends(view.auxiliary))
            known = visits_of_one(trace, view.facts.regions, view.facts.epochs)
            guessed.append(Table(view.facts, known, view.layout))
        seen = [view.auxiliary.real_traces for view in views]
        return self.train(seen, tuple(guessed), seed)


def _friends(auxiliary: Auxiliary) -> Traces:
    if auxiliary.friends is None or not auxiliary.friends.n_visits:
        raise NotApplicableError("the target has no friends with a visit")
    return auxiliary.friends


def proxy_trace(friends: Traces) -> NDArray[np.int32]:
    """Guess where somebody was from where their friends were: sorted cells, int32.

    As many cells as a friend visits on average: those that most friends visited and, of
    equals, those in the regions and at the hours that friends visit most.
    """
    visits = friends.counts().astype(np.float64)
    wanted = max(1, round(friends.n_visits / friends.n_users))
    total = max(visits.sum(), 1.0)
    usual = np.outer(visits.sum(axis=1), visits.sum(axis=0)) / total**2
    # What is usual only decides between cells that equally many friends visited.
    liking = (visits + usual).reshape(-1)
    return np.sort(np.argsort(-liking, kind="stable")[:wanted]).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class KnockKnockPastGroups(AttackOnTables):
    """Train on real past releases of which it is known whether the target was in them."""

    classifier: Classifier | Model | str = specs.parameter(
        specs.Nested(lambda: CLASSIFIERS), "what learns", default_factory=L1
    )
    held_out: float = specs.parameter(
        specs.CHANCE, "share of the past releases that only tune the threshold", default=0.2
    )
    threshold: ThresholdRule = threshold_parameter()  # noqa: RUF009 - a field

    name: ClassVar[str] = "knock-knock-past-groups"
    summary: ClassVar[str] = (
        "trains on past releases of the same regions and epochs with known membership"
    )
    uses = frozenset({"past"})

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "classifier", classifier(self.classifier))

    def check(self, facts: Facts, knowledge: Known, auxiliary: Auxiliary) -> None:
        super().check(facts, knowledge, auxiliary)
        if not all(_is_alike(past.release.facts, facts) for past in auxiliary.past):
            raise NotApplicableError(
                "the past releases have other regions, another number or length of epochs, or "
                "another mechanism or group size",
                fix="Give past releases that were made in the same way",
            )
        inside = sum(past.target_in for past in auxiliary.past)
        if min(inside, len(auxiliary.past) - inside) < _LEAST_OF_EACH:
            raise NotApplicableError(
                f"{self.name} needs past releases with and without the target, at least "
                f"{_LEAST_OF_EACH} of each, not {inside} and {len(auxiliary.past) - inside}"
            )

    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:
        parts, symbols = [], []
        for view in views:
            alphabet = view.facts.mechanism.alphabet(view.facts.most_count)
            parts.append(Features(view.facts.n_cells, alphabet.withholds))
            symbols.append(
                np.stack(
                    [past.release.symbols.reshape(-1) for past in view.auxiliary.past],
                    dtype=np.min_scalar_type(alphabet.size - 1),
                    casting="unsafe",
                )
            )
        features = FeaturesOfTables(tuple(parts))
        labels = np.array([past.target_in for past in views[0].auxiliary.past])
        trial = self._held_out(labels, generator(seed, self.name))
        lessons = features.matrix(
            [kernels.CountMatrix.single(one[~trial].T.copy()) for one in symbols]
        )
        own = derived_seed(seed, self.name, "classifier") % 2**32
        decision = classifier(self.classifier).fit(lessons, labels[~trial], own)
        chosen = zip(symbols, features.cells(decision.cells), strict=True)
        tried = [one[trial][:, cells] for one, cells in chosen]
        untuned = Untuned.of(decision, features, tried, labels[trial])
        return rule_first(views, untuned.tuned(self.threshold))

    def _held_out(self, labels: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Mark the releases that are kept for tuning: some of either kind, never all."""
        trial = np.zeros(labels.size, dtype=bool)
        for kind in (True, False):
            members = np.flatnonzero(labels == kind)
            kept = min(max(1, round(self.held_out * members.size)), members.size - 1)
            trial[rng.choice(members, size=kept, replace=False)] = True
        return trial


def _is_alike(past: Facts, facts: Facts) -> bool:
    """Tell whether a release was made like another, at whatever time."""
    return (
        past.regions.ids == facts.regions.ids
        and (past.epochs.n, past.epochs.length) == (facts.epochs.n, facts.epochs.length)
        and (past.mechanism, past.group_size) == (facts.mechanism, facts.group_size)
    )
