"""The log-likelihood test (Homer and others, 2008; Bauer and Bindschaedler, 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks.base import AttackOnTables, FittedAttack
from whosthere.adversary.attacks.calibration import Calibrated
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import EVEN, sampler_over
from whosthere.adversary.count_tables import filled
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks.base import View
    from whosthere.privacy.release import Release


@dataclass(frozen=True, kw_only=True)
class LogLikelihood(AttackOnTables):
    """Ask whether the target's trace fits the release's frequencies better than the reference's.

    Each cell is taken for a coin of its own: the target visits it with the frequency of the
    release if in, with that of the reference if out. The statistic knows nothing of the
    mechanism; only the groups that tune its threshold are published by it.
    """

    validation_groups: int = specs.parameter(
        EVEN, "groups to tune the threshold on", default=100, key="validation"
    )

    name: ClassVar[str] = "log-likelihood"
    summary: ClassVar[str] = (
        "compares the frequencies of the release with those of a reference data set, without "
        "training"
    )
    uses = frozenset({"reference"})
    groups_from_reference: ClassVar[bool] = True

    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:
        rng = generator(seed, self.name)
        samplers, tests = [], []
        for view in views:
            traces = view.auxiliary.real_traces
            sampler = sampler_over(traces, view.facts, view.knowledge, rng)
            everybody = sampler.reference.counts().reshape(-1)
            frequencies = _log_frequencies(everybody, sampler.reference.n_users)
            samplers.append(sampler)
            tests.append(_Test(sampler.target, frequencies))

        def together(releases: Sequence[Release]) -> float:
            return sum(test(one) for test, one in zip(tests, releases, strict=True))

        facts = [view.facts for view in views]
        fitted = Calibrated.by(samplers, together, facts, self.validation_groups, rng)
        return rule_first(views, fitted)


@dataclass(frozen=True, eq=False, repr=False)
class _Test:
    """The log of the ratio of the likelihoods.

    `target` holds the cells of the target, `reference` logarithms of the reference's frequencies
    and of their complements, each (n_cells,).
    """

    target: NDArray[np.int32]
    reference: tuple[NDArray[np.float64], NDArray[np.float64]]

    def __call__(self, release: Release) -> float:
        """Return the ratio of a release."""
        people = np.clip(filled(release), 0, release.group_size).reshape(-1)
        of_release, of_reference = _log_frequencies(people, release.group_size), self.reference
        visited, not_visited = (a - b for a, b in zip(of_release, of_reference, strict=True))
        return float(not_visited.sum() + (visited - not_visited)[self.target].sum())


def _log_frequencies(
    counts: NDArray[np.number], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logs of the frequency of each cell among n people and of its complement.

    Half a person is added to either side, so that both stay finite.
    """
    frequency = (np.minimum(counts, n) + 0.5) / (n + 1.0)
    return np.log(frequency), np.log1p(-frequency)
