"""The rule that needs no training: who was where nobody was counted is not in the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.adversary.attacks.base import (
    Answer,
    AttackOnTables,
    Auxiliary,
    FittedAttack,
    NotApplicableError,
)
from whosthere.adversary.knowledge import may_be_dropped
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.step import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks.base import View
    from whosthere.adversary.knowledge import Known
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

# A score between "ruled out" (far below) and the 0 of a release without contradiction.
_THRESHOLD = -0.5


def least_counts(facts: Facts, knowledge: Known) -> NDArray[np.int32]:
    """Return the least that is published where the target surely was, if it is in, per cell.

    It is 0 where nothing follows. The visits must be known, and none of them may have been dropped
    before the counting. What is less than a mechanism without chance makes of the target alone
    proves that the target is out. So does a 0 where no count of 1 is published as 0: raw counts are
    not, but small counts may be suppressed, rounded to 0 or drowned in noise.
    """
    cells, mechanism, most = knowledge.certain, facts.mechanism, facts.most_count
    if not (cells.size and mechanism.has_law) or may_be_dropped(cells, facts).any():
        return np.zeros(cells.size, np.int32)
    least = np.full(cells.size, float(mechanism.pmf(0, 1, most)) == 0.0, np.int32)
    if not mechanism.random_steps:
        added = np.broadcast_to(np.asarray(knowledge.added, np.int32), cells.shape)
        least = np.maximum(least, mechanism.publish(added, (), most))
    return least


def is_sound(facts: Facts, knowledge: Known) -> bool:
    """Tell whether a published count can prove that the target is out."""
    return bool(least_counts(facts, knowledge).any())


@dataclass(frozen=True)
class ContradictionRule(AttackOnTables):
    """Say out where less is published than the target alone would add, in otherwise."""

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

    def check_tables(self, views: Sequence[View]) -> None:
        # One table for which it is sound is enough.
        sound = [view for view in views if is_sound(view.facts, view.knowledge)]
        super().check_tables(sound or views)

    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:  # noqa: ARG002
        return _Rule.of(views)


@dataclass(frozen=True, eq=False, repr=False)
class _Rule(FittedAttack):
    """The rule by the target's visits, and perhaps another attack for what it leaves open.

    It has cells of each table with the least that is published there. A withheld count says nothing
    of the kind.
    """

    tables: tuple[tuple[NDArray[np.int32], NDArray[np.int32]], ...]
    otherwise: FittedAttack | None = None

    @classmethod
    def of(cls, views: Sequence[View], otherwise: FittedAttack | None = None) -> _Rule:
        """Look up what the rule needs to know of each table."""
        tables = (
            (view.knowledge.certain, least_counts(view.facts, view.knowledge)) for view in views
        )
        return cls(tuple(tables), otherwise)

    def score(self, release: Release) -> Answer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> Answer:
        for release, (cells, least) in zip(releases, self.tables, strict=True):
            shown = release.values.reshape(-1)[cells]
            if ((shown < least) & (shown != WITHHELD)).any():
                return Answer(RULED_OUT, _THRESHOLD if self.otherwise is None else 0.0)
        if self.otherwise is None:
            return Answer(0.0, _THRESHOLD, calibrated=0.0)
        return self.otherwise.score_tables(releases)


def rule_first(views: Sequence[View], attack: FittedAttack) -> FittedAttack:
    """Put the rule before an attack, where it is sound for some table."""
    sound = any(is_sound(view.facts, view.knowledge) for view in views)
    return _Rule.of(views, attack) if sound else attack
