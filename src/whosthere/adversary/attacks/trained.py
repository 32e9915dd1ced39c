"""What the attacks that train a classifier have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks.base import Answer, Attack, FittedAttack
from whosthere.adversary.attacks.tuning import Tuning
from whosthere.adversary.classifiers import (
    CLASSIFIERS,
    Classifier,
    Decision,
    ExactL1,
    classifier,
)
from whosthere.adversary.groups import SAMPLINGS, GroupSampler, Sampling
from whosthere.data.cells import epoch_of
from whosthere.data.traces import Traces
from whosthere.errors import InputError, suggestion
from whosthere.privacy.parameters import check_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.features import Features
    from whosthere.adversary.knowledge import Knowledge
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release


@dataclass(frozen=True, kw_only=True)
class TrainedAttack(Attack):
    """An attack that learns from groups of its own; the defaults are the paper's.

    Parameters
    ----------
    sampling
        Whether the groups to learn from are drawn in pairs or independently.
    classifier
        What learns; a name such as ``"l1-paper"`` will do.
    groups
        Labelled aggregates to learn from, half of them with the target.
    validation_groups
        Further ones, always independent, to tune the threshold on.
    """

    sampling: Sampling = specs.parameter(
        specs.OneOf(SAMPLINGS),
        "how the groups to learn from are drawn: in pairs, or independently",
        default="paired",
    )
    classifier: Classifier = specs.parameter(
        specs.Nested(lambda: CLASSIFIERS), "what learns", default_factory=ExactL1
    )
    groups: int = specs.parameter(specs.WHOLE, "groups to learn from, an even number", default=400)
    validation_groups: int = specs.parameter(
        specs.WHOLE, "groups to tune the threshold on", default=100, key="validation"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "classifier", classifier(self.classifier))
        if self.sampling not in SAMPLINGS:
            fix = suggestion(str(self.sampling), SAMPLINGS)
            raise InputError(f"there is no sampling {self.sampling!r}", fix=fix)
        for field, key in (("groups", "groups"), ("validation_groups", "validation")):
            object.__setattr__(self, field, checked_groups(getattr(self, field), key))

    def train(self, sampler: GroupSampler, rng: np.random.Generator) -> Trained:
        """Learn from aggregates that the sampler makes, and tune the threshold on further ones."""
        features = sampler.features
        lessons = sampler.sample(self.groups, self.sampling, rng)
        decision = self.classifier.fit(features.matrix(lessons.counts), lessons.labels)
        del lessons  # the largest thing in memory, and done with
        cells = features.cells(decision.cells)
        trial = sampler.sample(self.validation_groups, "independent", rng, cells=cells)
        return Trained.tuned(decision, features, trial.counts.dense(), trial.labels)


def checked_groups(given: int, key: str) -> int:
    """Return a number of groups, or refuse one that cannot be half with the target."""
    n = check_integer(given, key, least=2)
    if n % 2:
        raise InputError(f"{n} groups cannot be balanced", fix="Use an even number")
    return n


@dataclass(frozen=True, eq=False, repr=False)
class Trained(FittedAttack):
    """A classifier, what it sees, and what its scores mean."""

    decision: Decision
    features: Features
    tuning: Tuning

    @classmethod
    def tuned(
        cls,
        decision: Decision,
        features: Features,
        symbols: NDArray[np.integer],
        labels: NDArray[np.bool_],
    ) -> Trained:
        """Tune a classifier by labelled groups, given the symbols of the cells that it looks at."""
        scores = decision(features.of(symbols, decision.cells))
        return cls(decision, features, Tuning.of(scores, labels))

    def score(self, release: Release) -> Answer:
        chosen = self.decision.cells
        symbols = release.symbols.reshape(-1)[None, self.features.cells(chosen)]
        return self.tuning.answer(float(self.decision(self.features.of(symbols, chosen))[0]))


def sampler_over(
    reference: Traces, facts: Facts, knowledge: Knowledge, rng: np.random.Generator
) -> GroupSampler:
    """Make groups out of reference traces and the target, contributions bounded as published.

    Which visits the publisher drops is drawn anew for each publication. The attacker draws it once
    for all of its groups, as the paper does: the reference then holds as many visits as the
    publisher's people do, though always the same ones of each person. What the attacker does not
    know of the target is guessed from the reference.
    """
    bounded = facts.mechanism.bound(reference, rng)
    cells = knowledge.believed_trace(_HabitsOf(reference), rng)
    alone = Traces(("",), np.array([0, cells.size]), cells, facts.regions, facts.epochs)
    target = facts.mechanism.bound(alone, rng).cells
    return GroupSampler(bounded, target, facts.group_size, facts.mechanism)


@dataclass(frozen=True, eq=False)
class _HabitsOf:
    """When and how often the people of a reference are seen."""

    reference: Traces

    def time_marginal(self) -> NDArray[np.float64]:
        n_epochs = self.reference.epochs.n
        visits = np.bincount(epoch_of(self.reference.cells, n_epochs), minlength=n_epochs).astype(
            np.float64
        )
        return visits / visits.sum() if visits.any() else np.full(n_epochs, 1.0 / n_epochs)

    def mean_visits(self) -> float:
        return self.reference.n_visits / self.reference.n_users
