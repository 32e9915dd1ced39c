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
from whosthere.adversary.groups import sample_tables
from whosthere.errors import InputError
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.release import Release
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.groups import GroupSampler
    from whosthere.adversary.suspects import Known
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
    n = checked_groups(groups, "groups")
    return Calibrated.by([sampler], lambda releases: score(releases[0]), [facts], n, rng)


@dataclass(frozen=True, eq=False, repr=False)
class Calibrated(FittedAttack):
    """A function that scores the releases of a publication, and what its scores mean."""

    function: Callable[[Sequence[Release]], float]
    tuning: Tuning

    @classmethod
    def by(
        cls,
        samplers: Sequence[GroupSampler],
        function: Callable[[Sequence[Release]], float],
        facts: Sequence[Facts],
        groups: int,
        rng: np.random.Generator,
    ) -> Calibrated:
        """Score groups that samplers make, half of them with the target, and learn from these."""
        made = sample_tables(samplers, groups, "independent", rng)
        by_table = [
            [_release(symbols, of) for symbols in one.counts.dense()]
            for one, of in zip(made, facts, strict=True)
        ]
        together = zip(*by_table, strict=True)
        scores = np.array([Answer(function(releases), 0.0).score for releases in together])
        # How far below all others those are who cannot be in says nothing about the others.
        possible = scores[scores != RULED_OUT]
        scores = np.maximum(scores, possible.min() if possible.size else 0.0)
        # Where nothing was trained, the rule "roc" is not better.
        return cls(function, Tuning.of(scores, made[0].labels, "middle"))

    def score(self, release: Release) -> Answer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> Answer:
        return self.tuning.answer(self.function(releases))


def _release(symbols: NDArray[np.integer], facts: Facts) -> Release:
    values = facts.mechanism.alphabet(facts.most_count).values(symbols)
    return Release(values.reshape(facts.shape), facts)
