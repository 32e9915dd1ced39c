"""Knock-Knock with Participation in Past Groups: trained on releases with known membership."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere import kernels, specs
from whosthere.adversary.attacks.base import (
    Attack,
    Auxiliary,
    FittedAttack,
    NotApplicableError,
)
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import Trained
from whosthere.adversary.classifiers import CLASSIFIERS, Classifier, ExactL1, classifier
from whosthere.adversary.features import Features
from whosthere.privacy.parameters import check_positive
from whosthere.seeds import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.privacy.facts import Facts

_LEAST_OF_EACH = 2


@dataclass(frozen=True, kw_only=True)
class PastGroups(Attack):
    """Train on real past releases of which it is known whether the target was in them.

    Parameters
    ----------
    classifier
        What learns.
    held_out
        Share of the past releases, of either kind, that only tune the threshold.
    """

    classifier: Classifier = specs.parameter(
        specs.Nested(lambda: CLASSIFIERS), "what learns", default_factory=ExactL1
    )
    held_out: float = specs.parameter(
        specs.NUMBER, "share of the past releases that only tune the threshold", default=0.2
    )

    name: ClassVar[str] = "knock-knock-past-groups"
    summary: ClassVar[str] = (
        "trains on past releases of the same regions and epochs with known membership"
    )
    needs_knowledge: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "classifier", classifier(self.classifier))
        object.__setattr__(self, "held_out", check_positive(self.held_out, "held_out", below=1))

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"past"})

    def check(self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary) -> None:
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

    def _fit(
        self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary, seed: int
    ) -> FittedAttack:
        alphabet = facts.mechanism.alphabet(facts.most_count)
        features = Features(facts.n_cells, alphabet.withholds)
        symbols: NDArray[np.unsignedinteger] = np.stack(
            [
                past.release.symbols.reshape(-1).astype(np.min_scalar_type(alphabet.size - 1))
                for past in auxiliary.past
            ]
        )
        labels = np.array([past.target_in for past in auxiliary.past])
        trial = self._held_out(labels, generator(seed, self.name))
        lessons = features.matrix(kernels.CountMatrix.single(symbols[~trial].T.copy()))
        decision = self.classifier.fit(lessons, labels[~trial])
        tried = symbols[trial][:, features.cells(decision.cells)]
        trained = Trained.tuned(decision, features, tried, labels[trial])
        return rule_first(facts, knowledge, trained)

    def _held_out(self, labels: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Mark the releases that are kept for tuning: some of either kind, never all."""
        trial = np.zeros(labels.size, dtype=bool)
        for kind in (True, False):
            members = np.flatnonzero(labels == kind)
            wanted = round(self.held_out * members.size)
            kept = min(max(1, wanted), members.size - 1)
            trial[rng.choice(members, size=kept, replace=False)] = True
        return trial


def _is_alike(past: Facts, facts: Facts) -> bool:
    """Tell whether a release was made like another, at whatever time."""
    return (
        past.regions.ids == facts.regions.ids
        and (past.epochs.n, past.epochs.length) == (facts.epochs.n, facts.epochs.length)
        and past.mechanism == facts.mechanism
        and past.group_size == facts.group_size
    )
