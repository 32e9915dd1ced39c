"""The log-likelihood test (Homer and others, 2008; Bauer and Bindschaedler, 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks.base import Answer, Attack, Auxiliary, FittedAttack, needed
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import Tuning, checked_groups, sampler_over
from whosthere.adversary.count_tables import stand_in
from whosthere.privacy.step import WITHHELD
from whosthere.seeds import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Known
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

_UNTUNED = Tuning(0.0, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class LogLikelihood(Attack):
    """Ask whether the target's trace fits the release's frequencies better than the reference's.

    Each cell is taken for a coin of its own: the target visits it with the frequency of the
    release if in, with that of the reference if out. The statistic knows nothing of the
    mechanism; only the groups that tune its threshold are published by it.

    Parameters
    ----------
    validation_groups
        Groups of the reference, half of them with the target, to tune the threshold on.
    """

    validation_groups: int = specs.parameter(
        specs.WHOLE, "groups to tune the threshold on", default=100, key="validation"
    )

    name: ClassVar[str] = "log-likelihood"
    summary: ClassVar[str] = (
        "compares the frequencies of the release with those of a reference data set, without "
        "training"
    )
    uses = frozenset({"reference"})
    groups_from_reference: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked = checked_groups(self.validation_groups, "validation")
        object.__setattr__(self, "validation_groups", checked)

    def _fit(
        self, facts: Facts, knowledge: Known | None, auxiliary: Auxiliary, seed: int
    ) -> FittedAttack:
        rng = generator(seed, self.name)
        sampler = sampler_over(auxiliary.real_traces, facts, needed(knowledge), rng)
        everybody = sampler.reference.counts().reshape(-1)
        frequencies = _log_frequencies(everybody, sampler.reference.n_users)
        test = _Test(sampler.target, frequencies, facts)
        trial = sampler.sample(self.validation_groups, "independent", rng)
        scores = np.array([test.statistic(symbols) for symbols in trial.counts.dense()])
        return rule_first(facts, knowledge, replace(test, tuning=Tuning.of(scores, trial.labels)))


@dataclass(frozen=True, eq=False, repr=False)
class _Test(FittedAttack):
    """The log of the ratio of the likelihoods, and what its values mean.

    `target` holds the cells of the target, `reference` logarithms of the reference's frequencies
    and of their complements, each (n_cells,).
    """

    target: NDArray[np.int32]
    reference: tuple[NDArray[np.float64], NDArray[np.float64]]
    facts: Facts
    tuning: Tuning = _UNTUNED

    def statistic(self, symbols: NDArray[np.integer]) -> float:
        """Return the ratio of published symbols, shape (n_cells,)."""
        m, mechanism = self.facts.group_size, self.facts.mechanism
        counts: NDArray[np.number] = symbols
        if mechanism.withheld is not None:
            values = mechanism.alphabet(self.facts.most_count).values(symbols)
            counts = np.where(values == WITHHELD, stand_in(mechanism), values)
        of_release, of_reference = _log_frequencies(counts, m), self.reference
        visited, not_visited = (a - b for a, b in zip(of_release, of_reference, strict=True))
        return float(not_visited.sum() + (visited - not_visited)[self.target].sum())

    def score(self, release: Release) -> Answer:
        return self.tuning.answer(self.statistic(release.symbols.reshape(-1)))


def _log_frequencies(
    counts: NDArray[np.number], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logs of the frequency of each cell among n people and of its complement.

    Half a person is added to either side, so that both stay finite.
    """
    frequency = (counts + 0.5) / (n + 1.0)
    return np.log(frequency), np.log1p(-frequency)
