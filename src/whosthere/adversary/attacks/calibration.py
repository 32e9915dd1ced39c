"""What the scores of any function mean: a threshold and a scale, from groups of the attacker's own.

Scores of different targets can rarely be compared as they are: one who visits busy places scores
higher, in or out. An attacker who may call one person in a hundred wrongly must know, for each
target, how the scores without the target are spread. It learns that from groups that it makes up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from whosthere.adversary.attacks.base import Answer, Auxiliary, FittedAttack
from whosthere.adversary.attacks.trained import Tuning, checked_groups, sampler_over
from whosthere.adversary.attacks.zero_knowledge import ZeroKnowledge
from whosthere.errors import InputError
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.release import Release
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Callable

    from whosthere.adversary.groups import GroupSampler
    from whosthere.adversary.knowledge import Known
    from whosthere.privacy.facts import Facts

    ScoreFunction: TypeAlias = Callable[[Release], float]


def calibrated(
    score: ScoreFunction,
    facts: Facts,
    knowledge: Known,
    auxiliary: Auxiliary,
    *,
    seed: int,
    groups: int = 100,
) -> FittedAttack:
    """Return a fitted attack that scores by a function and knows what its scores mean.

    Groups of the attacker's own, half of them with the target, are published as the release was
    and scored. They are made of the reference if the attack uses one. Otherwise they are made of
    synthetic people, fitted to the example release as `zero-knowledge` does.

    Parameters
    ----------
    score
        Called with a release; the higher its number, the more likely is the target in it. For
        `RULED_OUT` the target cannot be in.
    facts, knowledge, auxiliary, seed
        What `Attack.fit` was given. The attack must use "reference" or "example".
    groups
        How many groups to make, an even number.
    """
    rng = generator(seed, "calibrated")
    people = auxiliary.reference
    if people is None:
        if auxiliary.example is None:
            fix = 'Let the attack have uses = frozenset({"example"}), or {"reference"}'
            raise InputError("there is nobody to make groups of", fix=fix)
        people = ZeroKnowledge().synthetic_reference(auxiliary.example, rng)
    sampler = sampler_over(people, facts, knowledge, rng)
    return Calibrated.by(sampler, score, facts, checked_groups(groups, "groups"), rng)


@dataclass(frozen=True, eq=False, repr=False)
class Calibrated(FittedAttack):
    """A function that scores releases, and what its scores mean."""

    function: ScoreFunction
    tuning: Tuning

    @classmethod
    def by(
        cls,
        sampler: GroupSampler,
        function: ScoreFunction,
        facts: Facts,
        groups: int,
        rng: np.random.Generator,
    ) -> Calibrated:
        """Score groups that a sampler makes, half of them with the target, and learn from these."""
        made = sampler.sample(groups, "independent", rng)
        values = facts.mechanism.alphabet(facts.most_count).values
        scores = np.array(
            [
                Answer(function(Release(values(one).reshape(facts.shape), facts)), 0.0).score
                for one in made.counts.dense()
            ]
        )
        # How far below all others those are who cannot be in says nothing about the others.
        possible = scores[scores != RULED_OUT]
        scores = np.maximum(scores, possible.min() if possible.size else 0.0)
        # Where nothing was trained, the rule "roc" is not better.
        return cls(function, Tuning.of(scores, made.labels, "middle"))

    def score(self, release: Release) -> Answer:
        return self.tuning.answer(self.function(release))
