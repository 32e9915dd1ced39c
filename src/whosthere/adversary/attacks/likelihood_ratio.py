"""The likelihood ratio: a direct test that needs no training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from whosthere import specs
from whosthere.adversary.attacks.base import (
    Answer,
    AttackOnEverybody,
    AttackOnTables,
    FittedAttack,
    check_same_facts,
)
from whosthere.adversary.nesting import chains
from whosthere.adversary.rates import LOW_RANK, RANK_ONE, USUAL, Part, hours_of_week
from whosthere.adversary.scorer import Scorer
from whosthere.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whosthere.adversary.attacks.base import View
    from whosthere.arrays import Floats
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

RatesFrom = Literal["near", "low-rank", "rank-one"]
"""What the rates follow: what is counted around each cell, too, or components, or neither."""
_PARTS: dict[RatesFrom, tuple[Part, ...]] = {
    "near": USUAL,
    "low-rank": (*LOW_RANK, hours_of_week),
    "rank-one": RANK_ONE,
}


@dataclass(frozen=True)
class LikelihoodAnswer(Answer):
    """An answer whose score is the log of a likelihood ratio.

    Scores of different targets can be compared as they are: equal ones say equally much.
    `simulate` finds the p-value.
    """

    simulate: Callable[[], float | None] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def p_value(self) -> float | None:
        """Chance of at least this score if the target is out.

        None where only places are known, where several tables are, where noise belongs to people
        and not to cells, or where the target counts more than once in a cell.

        It is found by simulation, always with the same random numbers, when it is first asked
        for. Where the model holds it is hardly ever too small: its standard error, some percent of
        it, is added twice.
        """
        if self.is_certain:
            return 1.0
        return None if self.simulate is None else self.simulate()

    def posterior(self, prior: float = 0.5) -> float:
        """Return the probability that the target is in, given one before the release is seen."""
        if not 0 < prior < 1:
            raise InputError(f"a prior of {prior:g} is not between 0 and 1", fix="Try 0.5")
        odds = self.score + math.log(prior / (1 - prior))
        return 1 / (1 + math.exp(-odds)) if odds > -500 else 0.0

    def explain(self, *, prior: float) -> list[str]:
        said = [f"Probability of being in, from {prior:g} before: {self.posterior(prior):.3f}."]
        if self.p_value is not None:
            said.append(f"Chance of such a score for somebody who is out: {self.p_value:.3g}.")
        said.append(
            "That holds as far as the model does: other people's visits independent, their rates "
            "as regular as the release shows. A companion who made the same visits looks like the "
            "target, so where people go together, high probabilities are too high. The decision "
            "may be wrong: how often it is, is what an audit over many people measures."
        )
        return said

    def to_json(self, *, prior: float = 0.5) -> dict[str, Any]:
        posterior = self.posterior(prior)
        return super().to_json() | {"p_value": self.p_value, "posterior": posterior}


@dataclass(frozen=True)
class LikelihoodRatio(AttackOnTables, AttackOnEverybody):
    """Ask at each of the target's visits whether the count is likelier with one person more.

    Parameters
    ----------
    rates
        "near" follows all structure that stands out of the release's noise, and what is counted
        around each cell. "low-rank" leaves the latter out. "rank-one" takes a factor of the region
        times one of the epoch.
    """

    rates: RatesFrom = specs.parameter(
        specs.OneOf(get_args(RatesFrom)),
        "how much structure the rates of others may have",
        default="near",
    )

    name: ClassVar[str] = "likelihood-ratio"
    summary: ClassVar[str] = (
        "tests the counts at the target's visits against rates fitted to the release through "
        "its mechanism; needs nothing else and no training"
    )
    needs_law = True

    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:  # noqa: ARG002
        return _Test(tuple(view.facts for view in views), self._scorer(views))

    def scorer(self, views: Sequence[View]) -> Callable[[Sequence[Release]], Floats]:
        return self._scorer(views)

    def _scorer(self, views: Sequence[View]) -> Scorer:
        known = [view.knowledge for view in views]
        return Scorer(known, _PARTS[self.rates], chains(views))


@dataclass(frozen=True, eq=False, repr=False)
class _Test(FittedAttack):
    """The scorer of everybody, of one person."""

    facts: tuple[Facts, ...]
    scorer: Scorer

    def score(self, release: Release) -> Answer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> LikelihoodAnswer:
        for release, facts in zip(releases, self.facts, strict=True):
            check_same_facts(release, facts)
        [score] = self.scorer(releases).tolist()
        simulate = partial(self.scorer.p_value, releases[0]) if len(releases) == 1 else None
        return LikelihoodAnswer(score, 0.0, simulate=simulate)
