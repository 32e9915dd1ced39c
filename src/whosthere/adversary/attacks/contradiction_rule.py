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
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.counting import Rows, rows_of_visits
from whosthere.adversary.suspects import Places
from whosthere.inference.scores import RULED_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.adversary.attacks.base import View
    from whosthere.adversary.suspects import Known
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

# A score between "ruled out" (far below) and the 0 of a release without contradiction.
_THRESHOLD = -0.5
_NOWHERE = np.empty(0, np.int32), np.empty(0, np.int32)


def _sure_visits(facts: Facts, knowledge: Known) -> Rows:
    """Return the visits that were surely counted if the target is in; none of places alone."""
    if isinstance(knowledge, Places):
        return Rows(np.zeros(2, np.int64), *_NOWHERE, np.empty(0, np.float32))
    rows = rows_of_visits(knowledge, facts)
    sure = rows.chance == 1 if rows.chance.size else np.ones(rows.cells.size, np.bool_)
    return rows._replace(cells=rows.cells[sure], added=rows.added[sure])


def is_sound(facts: Facts, knowledge: Known) -> bool:
    """Tell whether a published count can prove that the target is out.

    It can where something is published that never is with what the target adds: raw counts of 0,
    but not if small counts may be suppressed, rounded to 0 or drowned in noise. The visits must be
    known, and some of them cannot have been dropped before the counting. (Somebody without any is
    judged as if there were one.)
    """
    if isinstance(knowledge, Places) or not facts.mechanism.has_law:
        return False
    added = np.unique(_sure_visits(facts, knowledge).added) if knowledge.cells.size else np.ones(1)
    tables = (count_tables(facts.mechanism, facts.most_count, int(n)) for n in added)
    return any(one.rules_out.any() for one in tables)


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
    """The rule by the target's visits in each table, and perhaps another attack for all else."""

    visits: tuple[Rows, ...]
    otherwise: FittedAttack | None = None

    @classmethod
    def of(cls, views: Sequence[View], otherwise: FittedAttack | None = None) -> _Rule:
        """Look up where the target surely was."""
        return cls(tuple(_sure_visits(one.facts, one.knowledge) for one in views), otherwise)

    def score(self, release: Release) -> Answer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> Answer:
        for release, visits in zip(releases, self.visits, strict=True):
            if release.mechanism.has_law and _rules_out(release, visits):
                return Answer(RULED_OUT, _THRESHOLD if self.otherwise is None else 0.0)
        if self.otherwise is None:
            return Answer(0.0, _THRESHOLD, calibrated=0.0)
        return self.otherwise.score_tables(releases)


def _rules_out(release: Release, visits: Rows) -> bool:
    """Tell whether something is published at a visit that never is with what is added there."""
    symbols, found = release.symbols.reshape(-1)[visits.cells], False
    for n in np.unique(visits.added).tolist():
        tables = count_tables(release.mechanism, release.facts.most_count, n)
        found |= bool(tables.rules_out[tables.bins(symbols[visits.added == n])].any())
    return found


def rule_first(views: Sequence[View], attack: FittedAttack) -> FittedAttack:
    """Put the rule before an attack, where it is sound for some table."""
    sound = any(is_sound(view.facts, view.knowledge) for view in views)
    return _Rule.of(views, attack) if sound else attack
