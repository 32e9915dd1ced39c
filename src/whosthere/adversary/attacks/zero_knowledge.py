"""Zero Auxiliary Knowledge (Guan, Guépin, Cretu and de Montjoye, 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from whosthere.adversary.activity import parse_activity
from whosthere.adversary.attacks.base import (
    Answer,
    Attack,
    Auxiliary,
    Facts,
    FittedAttack,
    generator_for,
    needed,
)
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import Trained, Training, sampler_over, train
from whosthere.adversary.marginals import LEAST_MEAN, Marginals, estimate_marginals
from whosthere.adversary.rates import mechanism_marginals
from whosthere.adversary.synthetic import UnicityModel, usual_places
from whosthere.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release

MarginalsFrom: TypeAlias = Literal["paper", "mechanism", "empirical"]


@dataclass(frozen=True)
class ZeroKnowledge(Attack):
    """Make people up from the attacked release alone, and train on groups of them.

    Parameters
    ----------
    training
        How the classifier is trained.
    reference_size
        How many people to make up; at least the size of the group.
    activity
        How visits are spread over them: exponential, constant, or lognormal:SIGMA.
    marginals
        How they are estimated from the release: "paper" corrects them by its rules,
        "mechanism" fits them through the mechanism, "empirical" takes the counts as they are.
    rule
        Whether the contradiction rule goes first, where it is sound.
    """

    training: Training = field(default_factory=Training)
    reference_size: int = 5_000
    activity: str = "exponential"
    marginals: MarginalsFrom = "paper"
    rule: bool = True

    name: ClassVar[str] = "zero-knowledge"
    summary: ClassVar[str] = (
        "trains on groups of people made up from the release itself; needs nothing but some "
        "visits of the target"
    )

    def _fit(
        self,
        facts: Facts,
        knowledge: Knowledge | None,
        auxiliary: Auxiliary,  # noqa: ARG002 - it has none
        seed: int,
    ) -> FittedAttack:
        """Note the target; all training waits for the release, which it is made from."""
        waiting = OnEachRelease(self, facts, needed(knowledge), seed)
        return rule_first(facts, knowledge, waiting) if self.rule else waiting

    def synthetic_reference(self, release: Release, rng: np.random.Generator) -> Traces:
        """Make people up whose visits resemble those that the release was counted from."""
        marginals = self._marginals(release, rng)
        model = UnicityModel(
            regions=release.regions,
            epochs=release.epochs,
            space=marginals.space,
            time=marginals.time,
            activity=parse_activity(self.activity, marginals.mean_visits),
            places=usual_places(release.regions),
        )
        return model.generate(max(self.reference_size, release.group_size), rng)

    def _marginals(self, release: Release, rng: np.random.Generator) -> Marginals:
        if self.marginals == "mechanism":
            return mechanism_marginals(release)
        return estimate_marginals(
            release,
            correct=self.marginals == "paper",
            activity=parse_activity(self.activity, LEAST_MEAN),
            rng=rng,
        )


@dataclass(frozen=True, eq=False)
class OnEachRelease(FittedAttack):
    """Trains a classifier for every release that it scores."""

    attack: ZeroKnowledge
    facts: Facts
    knowledge: Knowledge
    seed: int

    def score(self, release: Release) -> Answer:
        """Make people up from this release, train on them, and score it."""
        return self.trained_on(release).score(release)

    def trained_on(self, release: Release) -> Trained:
        """Train on one release.

        To score other releases by the result is cheaper, and slightly flattering where that
        release was not chosen at random.
        """
        if release.facts != self.facts:
            raise InputError("the release has other regions, epochs, group size or mechanism")
        rng = generator_for(self.seed, release, self.attack.name)
        reference = self.attack.synthetic_reference(release, rng)
        sampler = sampler_over(reference, self.facts, self.knowledge, rng)
        return train(sampler, self.attack.training, rng)
