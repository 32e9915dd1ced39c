"""LocMIA (Zhang and others, 2020): knows the target's friends, not the target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.adversary.attacks.base import (
    Attack,
    Auxiliary,
    Facts,
    FittedAttack,
    NotApplicableError,
)
from whosthere.adversary.attacks.knock_knock import KnockKnock
from whosthere.adversary.attacks.trained import Training
from whosthere.adversary.knowledge import KnownVisits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.data.traces import Traces


@dataclass(frozen=True)
class LocMia(Attack):
    """Make a stand-in for the target's trace from friends' traces, then go on as Knock-Knock.

    Parameters
    ----------
    training
        How the classifier is trained.
    """

    training: Training = field(default_factory=Training)

    name: ClassVar[str] = "loc-mia"
    summary: ClassVar[str] = (
        "knows traces of the target's friends instead of the target's own, and thousands of "
        "real traces of other people"
    )
    uses: ClassVar[frozenset[str]] = frozenset({"reference", "friends"})
    needs_knowledge: ClassVar[bool] = False

    def check(self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary) -> None:  # noqa: ARG002
        """Refuse friends who are not in the reference."""
        super().check(facts, None, auxiliary)
        if auxiliary.reference is not None and not all(
            0 <= friend < auxiliary.reference.n_users for friend in auxiliary.friends
        ):
            raise NotApplicableError("some of the target's friends are not in the reference")

    def _fit(
        self,
        facts: Facts,
        knowledge: Knowledge | None,  # noqa: ARG002 - it is not looked at
        auxiliary: Auxiliary,
        seed: int,
    ) -> FittedAttack:
        """Train on the stand-in."""
        proxy = KnownVisits(proxy_trace(auxiliary.real_traces, auxiliary.friends))
        # The rule is not sound for visits that are only guessed.
        return KnockKnock(self.training, rule=False).fit(facts, proxy, auxiliary, seed=seed)


def proxy_trace(reference: Traces, friends: tuple[int, ...]) -> NDArray[np.int32]:
    """Guess where somebody was from where their friends were: sorted cells, int32.

    As many cells as a friend visits on average: those that most friends visited and, of
    equals, those in the regions and at the hours that friends visit most.
    """
    visits = reference.counts(np.array(friends)).astype(np.float64)
    wanted = max(1, round(float(visits.sum()) / len(friends)))
    total = max(visits.sum(), 1.0)
    usual = np.outer(visits.sum(axis=1), visits.sum(axis=0)) / total**2
    # What is usual only decides between cells that equally many friends visited.
    liking = (visits + usual).reshape(-1)
    return np.sort(np.argsort(-liking, kind="stable")[:wanted]).astype(np.int32)
