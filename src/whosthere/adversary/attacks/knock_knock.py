"""Knock-Knock (Pyrgelis, Troncoso and De Cristofaro, 2018), Subset of Locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from whosthere import specs
from whosthere.adversary.attacks.base import Auxiliary, FittedAttack, needed
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import TrainedAttack, sampler_over
from whosthere.seeds import generator

if TYPE_CHECKING:
    from whosthere.adversary.knowledge import Knowledge
    from whosthere.privacy.facts import Facts


@dataclass(frozen=True, kw_only=True)
class KnockKnock(TrainedAttack):
    """Train on groups of real people, with and without the target.

    Parameters
    ----------
    rule
        Whether the contradiction rule goes first, where it is sound.
    """

    rule: bool = specs.parameter(
        specs.YES_NO, "whether the contradiction rule goes first, where it is sound", default=True
    )

    name: ClassVar[str] = "knock-knock"
    summary: ClassVar[str] = (
        "trains on groups made from thousands of real traces of other people over the same "
        "regions and epochs"
    )
    groups_from_reference: ClassVar[bool] = True

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"reference"})

    def _fit(
        self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary, seed: int
    ) -> FittedAttack:
        rng = generator(seed, self.name)
        sampler = sampler_over(auxiliary.real_traces, facts, needed(knowledge), rng)
        trained = self.train(sampler, rng)
        return rule_first(facts, knowledge, trained) if self.rule else trained
