"""What the attacks that train a classifier have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from whosthere.adversary.attacks.base import Answer, FittedAttack, flat_counts
from whosthere.adversary.classifiers import Classifier, Decision, ExactL1, youden_threshold
from whosthere.adversary.groups import GroupSampler, Sampling
from whosthere.adversary.knowledge import Knowledge, KnownVisits
from whosthere.data.traces import Traces
from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.attacks.base import Facts
    from whosthere.privacy.release import Release


@dataclass(frozen=True)
class Training:
    """How a classifier is trained; the defaults are the paper's.

    Parameters
    ----------
    groups
        Labelled aggregates to learn from, half of them with the target.
    validation_groups
        Further ones, always independent, to tune the threshold on.
    sampling
        Whether those to learn from are drawn in pairs or independently.
    classifier
        What learns.
    """

    groups: int = 400
    validation_groups: int = 100
    sampling: Sampling = "paired"
    classifier: Classifier = field(default_factory=ExactL1)

    def __post_init__(self) -> None:
        if self.sampling not in {"paired", "independent"}:
            raise InputError(f"sampling {self.sampling!r}", fix="Use 'paired' or 'independent'")
        for what in (self.groups, self.validation_groups):
            if what < 2 or what % 2:
                raise InputError(f"{what} aggregates cannot be balanced", fix="Use an even number")


@dataclass(frozen=True, eq=False)
class Trained(FittedAttack):
    """A classifier with its tuned threshold."""

    decision: Decision
    threshold: float

    def score(self, release: Release) -> Answer:
        """Score a release by the classifier."""
        counts = flat_counts(release)[None, self.decision.cells]
        return Answer(float(self.decision(counts)[0]), self.threshold)


def train(sampler: GroupSampler, training: Training, rng: np.random.Generator) -> Trained:
    """Learn from aggregates that the sampler makes, and tune the threshold on further ones."""
    lessons = sampler.sample(training.groups, training.sampling, rng)
    decision = training.classifier.fit(lessons.counts, lessons.labels)
    del lessons  # the largest thing in memory, and done with
    trial = sampler.sample(training.validation_groups, "independent", rng, cells=decision.cells)
    return Trained(decision, youden_threshold(decision(trial.counts), trial.labels))


def sampler_over(
    reference: Traces, facts: Facts, knowledge: Knowledge, rng: np.random.Generator
) -> GroupSampler:
    """Make groups out of reference traces and the target, contributions bounded as published.

    What the attacker does not know of the target is guessed from the reference.
    """
    bounded = facts.mechanism.bound(reference, rng).traces
    if isinstance(knowledge, KnownVisits):
        cells = knowledge.cells
    else:
        cells = knowledge.guessed_trace(
            time_marginal=_time_marginal(reference),
            mean_visits=reference.n_visits / reference.n_users,
            rng=rng,
        )
    alone = Traces(("",), np.array([0, cells.size]), cells, facts.regions, facts.epochs)
    target = facts.mechanism.bound(alone, rng).traces.cells
    return GroupSampler(bounded, target, facts.group_size, facts.mechanism)


def _time_marginal(reference: Traces) -> NDArray[np.float64]:
    """Share of all visits in each epoch, shape (n_epochs,)."""
    n_epochs = reference.epochs.n
    visits = np.bincount(reference.cells % n_epochs, minlength=n_epochs).astype(np.float64)
    return visits / visits.sum() if visits.any() else np.full(n_epochs, 1.0 / n_epochs)
