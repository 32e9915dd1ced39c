"""Knock-Knock (Pyrgelis, Troncoso and De Cristofaro, 2018), Subset of Locations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.adversary.attacks.base import Attack, Auxiliary, Facts, FittedAttack, needed
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import Training, sampler_over, train

if TYPE_CHECKING:
    from whosthere.adversary.knowledge import Knowledge


@dataclass(frozen=True)
class KnockKnock(Attack):
    """Train on groups of real people, with and without the target.

    Parameters
    ----------
    training
        How the classifier is trained.
    rule
        Whether the contradiction rule goes first, where it is sound.
    """

    training: Training = field(default_factory=Training)
    rule: bool = True

    name: ClassVar[str] = "knock-knock"
    summary: ClassVar[str] = (
        "trains on groups made from thousands of real traces of other people over the same "
        "regions and epochs"
    )
    uses: ClassVar[frozenset[str]] = frozenset({"reference"})

    def _fit(
        self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary, seed: int
    ) -> FittedAttack:
        """Train on groups of the reference, once for all releases with these facts."""
        rng = np.random.default_rng(seed)
        sampler = sampler_over(auxiliary.real_traces, facts, needed(knowledge), rng)
        trained = train(sampler, self.training, rng)
        return rule_first(facts, knowledge, trained) if self.rule else trained
