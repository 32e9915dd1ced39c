"""The rule that needs no training: who was where nobody was counted is not in the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from whosthere.adversary.attacks.base import (
    Answer,
    Attack,
    Auxiliary,
    FittedAttack,
    NotApplicableError,
)
from whosthere.adversary.knowledge import may_be_dropped
from whosthere.inference.scores import RULED_OUT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Known
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

# A score between "ruled out" (far below) and the 0 of a release without contradiction.
_THRESHOLD = -0.5


def is_sound(facts: Facts, knowledge: Known) -> bool:
    """Tell whether a published 0 at one of the target's visits proves that the target is out.

    The visits must be known. The mechanism must never publish 0 for a count of 1: raw counts do
    not, but small counts may be suppressed, rounded to 0 or drowned in noise. And no known visit
    may have been dropped before the counting.
    """
    if not knowledge.certain.size or not facts.mechanism.has_law:
        return False
    dropped = may_be_dropped(knowledge.certain, facts).any()
    return not dropped and float(facts.mechanism.pmf(0, 1, facts.most_count)) == 0.0


@dataclass(frozen=True)
class ContradictionRule(Attack):
    """Say out where a cell that the target visited is published as 0, in otherwise."""

    name: ClassVar[str] = "contradiction-rule"
    summary: ClassVar[str] = (
        "rules the target out where nobody was counted at one of its visits; "
        "sound where no visit and no count of 1 is hidden, as on raw counts"
    )

    def check(self, facts: Facts, knowledge: Known, auxiliary: Auxiliary) -> None:
        super().check(facts, knowledge, auxiliary)
        if not is_sound(facts, knowledge):
            raise NotApplicableError(
                "the contradiction rule is only sound for known visits and for releases that "
                f"never hide a count of 1 and drop no visits, not for {facts.mechanism}",
                fix="Use another attack",
            )

    def fit(
        self,
        facts: Facts,  # noqa: ARG002 - the visits are all it takes
        knowledge: Known,
        auxiliary: Auxiliary,  # noqa: ARG002
        *,
        seed: int,  # noqa: ARG002
    ) -> FittedAttack:
        return _Rule(knowledge.certain)


@dataclass(frozen=True, eq=False, repr=False)
class _Rule(FittedAttack):
    """The rule by the target's visits, and perhaps another attack for releases that it leaves open.

    It looks for cells where nobody was counted. A withheld count says nothing of the kind.
    """

    cells: NDArray[np.int32]
    otherwise: FittedAttack | None = None

    def score(self, release: Release) -> Answer:
        if (release.values.reshape(-1)[self.cells] == 0).any():
            return Answer(RULED_OUT, _THRESHOLD if self.otherwise is None else 0.0)
        if self.otherwise is None:
            return Answer(0.0, _THRESHOLD, calibrated=0.0)
        return self.otherwise.score(release)


def rule_first(facts: Facts, knowledge: Known, attack: FittedAttack) -> FittedAttack:
    """Put the rule before an attack, where it is sound."""
    return _Rule(knowledge.certain, attack) if is_sound(facts, knowledge) else attack
