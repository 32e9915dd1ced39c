"""Knock-Knock (Pyrgelis, Troncoso and De Cristofaro, 2018), and the same by friends' traces.

Both train on groups of real people. Knock-Knock (Subset of Locations) knows the target's visits,
LocMIA (Zhang and others, 2020) those of the target's friends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks.base import Auxiliary, FittedAttack, NotApplicableError, needed
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import TrainedAttack, sampler_over
from whosthere.adversary.knowledge import KnownVisits
from whosthere.seeds import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.data.traces import Traces
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
    groups_from_reference: ClassVar[bool] = True
    needs_knowledge: ClassVar[bool] = False

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"reference", "friends"})

    def check(self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary) -> None:  # noqa: ARG002
        super().check(facts, None, auxiliary)
        if auxiliary.friends is None or not auxiliary.friends.n_visits:
            raise NotApplicableError("the target has no friends with a visit")

    def _fit(
        self,
        facts: Facts,
        knowledge: Knowledge | None,  # noqa: ARG002 - it is not looked at
        auxiliary: Auxiliary,
        seed: int,
    ) -> FittedAttack:
        if auxiliary.friends is None:
            raise NotApplicableError("there are no friends")
        rng = generator(seed, self.name)
        proxy = KnownVisits(proxy_trace(auxiliary.friends))
        return self.train(sampler_over(auxiliary.real_traces, facts, proxy, rng), rng)


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
