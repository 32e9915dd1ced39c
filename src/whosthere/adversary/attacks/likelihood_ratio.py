"""The likelihood ratio: a direct test that needs no training."""

from __future__ import annotations

import math
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
    needed,
)
from whosthere.adversary.knowledge import Knowledge, KnownRegions, KnownVisits
from whosthere.adversary.published import published_counts
from whosthere.adversary.rates import FLAT, Rates, fit_rates, reference_shape
from whosthere.errors import InputError
from whosthere.privacy.units import Unit, User, UserDay

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.epochs import Epochs
    from whosthere.privacy.release import Release

# However often a place is visited, no single visit there is taken for more certain than this.
_MOST_LIKELY_VISIT = 0.9


@dataclass(frozen=True)
class LikelihoodAnswer(Answer):
    """An answer whose score is the log of a likelihood ratio.

    Attributes
    ----------
    p_value
        Chance of at least this score if the target is out; None where only places are known.
    """

    p_value: float | None = None

    def posterior(self, prior: float = 0.5) -> float:
        """Return the probability that the target is in, given one before the release is seen."""
        if not 0 < prior < 1:
            raise InputError(f"a prior of {prior:g}", fix="Give a probability between 0 and 1")
        odds = self.score + math.log(prior / (1 - prior))
        return 1 / (1 + math.exp(-odds)) if odds > -500 else 0.0


@dataclass(frozen=True)
class LikelihoodRatio(Attack):
    """Ask at each of the target's visits whether the count is likelier with one person more."""

    name: ClassVar[str] = "likelihood-ratio"
    summary: ClassVar[str] = (
        "tests the counts at the target's visits against rates fitted to the release through "
        "its mechanism; needs nothing else and no training"
    )

    def _fit(
        self,
        facts: Facts,
        knowledge: Knowledge | None,
        auxiliary: Auxiliary,
        seed: int,  # noqa: ARG002 - nothing is drawn
    ) -> FittedAttack:
        """Make the mechanism's tables; the rates wait for the release."""
        published_counts(facts.mechanism, facts.group_size)
        return _Test(facts, needed(knowledge), self._shape(auxiliary))

    def _shape(self, auxiliary: Auxiliary) -> NDArray[np.float64]:  # noqa: ARG002 - has none
        """Return how rates differ from region times epoch, as far as that is known."""
        return FLAT


@dataclass(frozen=True)
class LikelihoodRatioWithReference(LikelihoodRatio):
    """The likelihood ratio with rates whose shape comes from real traces of other people."""

    name: ClassVar[str] = "likelihood-ratio-reference"
    summary: ClassVar[str] = (
        "the likelihood ratio with rates shaped by real traces of other people, then fitted to "
        "the release"
    )
    uses: ClassVar[frozenset[str]] = frozenset({"reference"})

    def _shape(self, auxiliary: Auxiliary) -> NDArray[np.float64]:
        return reference_shape(auxiliary.real_traces)


@dataclass(frozen=True, eq=False)
class _Test(FittedAttack):
    facts: Facts
    knowledge: Knowledge
    shape: NDArray[np.float64]

    def score(self, release: Release) -> LikelihoodAnswer:
        if release.facts != self.facts:
            raise InputError("the release has other regions, epochs, group size or mechanism")
        return log_likelihood_ratio(release, self.knowledge, fit_rates(release, self.shape))


def log_likelihood_ratio(release: Release, knowledge: Knowledge, rates: Rates) -> LikelihoodAnswer:
    """Score a release for a target; rates that were fitted once serve any number of targets."""
    if isinstance(knowledge, KnownRegions):
        return LikelihoodAnswer(_score_of_places(release, knowledge, rates), 0.0)
    tables = published_counts(release.mechanism, release.group_size)
    log_rates = rates.log_rates(knowledge.cells)
    ratios = tables.log_ratio_of(flat_counts(release)[knowledge.cells], log_rates)
    if np.isneginf(ratios).any():
        return LikelihoodAnswer(RULED_OUT, 0.0, 1.0)
    possible, mean, variance = tables.null_law(log_rates)
    excess = (float(ratios.sum()) - mean) / math.sqrt(max(variance, 1e-300))
    p_value = possible * 0.5 * math.erfc(excess / math.sqrt(2))
    kept = _chance_of_being_counted(knowledge, release)
    score = float(np.log1p(kept * np.expm1(ratios)).sum())
    return LikelihoodAnswer(score, 0.0, p_value)


def _score_of_places(release: Release, knowledge: KnownRegions, rates: Rates) -> float:
    """Score places without times: the target may have been there in each epoch, or not."""
    n_epochs = release.epochs.n
    tables = published_counts(release.mechanism, release.group_size)
    time, mean_visits = rates.time_marginal(), rates.total() / release.group_size
    visits = np.minimum(time * mean_visits / len(knowledge.regions), _MOST_LIKELY_VISIT)
    score = 0.0
    for region in knowledge.regions:
        cells = region * n_epochs + np.arange(n_epochs)
        ratios = tables.log_ratio_of(flat_counts(release)[cells], rates.log_rates(cells))
        score += float(np.log1p(visits * np.expm1(ratios)).sum())
    return score


def _chance_of_being_counted(knowledge: KnownVisits, release: Release) -> NDArray[np.float64]:
    """Chance that each known visit was among those that the publisher's bound let through."""
    chance = np.ones(knowledge.cells.size)
    for noise in release.mechanism.noise_steps:
        period = _period(noise.unit, release.epochs)
        if period is not None:
            of_visit = period[knowledge.cells % release.epochs.n]
            together = np.bincount(of_visit)[of_visit]
            chance = np.minimum(chance, noise.unit.most_visits / together)
    return chance


def _period(unit: Unit, epochs: Epochs) -> NDArray[np.int32] | None:
    """Return the period within which a unit bounds visits, by epoch; None where it does not."""
    if isinstance(unit, UserDay):
        return epochs.days
    return np.zeros(epochs.n, dtype=np.int32) if isinstance(unit, User) else None
