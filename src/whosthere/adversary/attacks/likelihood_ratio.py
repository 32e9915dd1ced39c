"""The likelihood ratio: a direct test that needs neither other data nor training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.adversary.attacks.base import (
    RULED_OUT,
    Answer,
    Attack,
    Auxiliary,
    Facts,
    FittedAttack,
    flat_counts,
)
from whosthere.adversary.knowledge import Knowledge, KnownVisits
from whosthere.adversary.published import published_counts
from whosthere.adversary.rates import fit_rates

if TYPE_CHECKING:
    from whosthere.privacy.release import Release


@dataclass(frozen=True)
class LikelihoodRatio(Attack):
    """Ask in each cell of the target whether its count is likelier with one person more."""

    name: ClassVar[str] = "likelihood-ratio"
    summary: ClassVar[str] = (
        "tests the counts at the target's visits against rates fitted to the release through "
        "its mechanism; needs nothing else and no training"
    )

    def fit(
        self,
        facts: Facts,
        knowledge: Knowledge | None,
        auxiliary: Auxiliary,
        *,
        seed: int,  # noqa: ARG002 - nothing is drawn
    ) -> FittedAttack:
        """Look the mechanism's tables up; the rates wait for the release."""
        self.check(facts, knowledge, auxiliary)
        assert knowledge is not None  # noqa: S101 - checked above
        published_counts(facts.mechanism, facts.group_size)
        return _Test(facts, knowledge)


@dataclass(frozen=True, eq=False)
class _Test(FittedAttack):
    facts: Facts
    knowledge: Knowledge

    def score(self, release: Release) -> Answer:
        assert isinstance(self.knowledge, KnownVisits)  # noqa: S101
        cells = self.knowledge.cells
        tables = published_counts(release.mechanism, release.group_size)
        log_rates = fit_rates(release).log_rates(cells)
        ratios = tables.log_ratio_of(flat_counts(release)[cells], log_rates)
        if np.isneginf(ratios).any():
            return Answer(RULED_OUT, 0.0)
        return Answer(float(ratios.sum()), 0.0)
