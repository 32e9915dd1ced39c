"""Attacks that only a study needs: what the authors' code does and the text does not say.

Each is a usual attack with something more to choose, and the same random numbers. No specs name
them. The last one is that of an attacker who knows everybody else, after what the abstract of Liu,
Shilov, Guépin and de Montjoye (2024, arXiv 2412.20456) says; its formulas were not at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from whosthere import kernels, specs
from whosthere.adversary import attacks
from whosthere.adversary.attacks import Answer, Attack, Auxiliary, FittedAttack, TrainedAttack
from whosthere.adversary.attacks.trained import Untuned, sampler_over
from whosthere.adversary.classifiers import L1, classifier, moments
from whosthere.adversary.groups import FeaturesOfTables, GroupSampler
from whosthere.adversary.knowledge import Known, KnownRegions, Regions
from whosthere.adversary.marginals import LEAST_MEAN, Marginals, estimate_mean
from whosthere.adversary.synthetic import UnicityModel, parse_activity
from whosthere.data.cells import region_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks.trained import Tables
    from whosthere.data.traces import Traces
    from whosthere.kernels.count_matrix import CountMatrix
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.mechanism import Noise
    from whosthere.privacy.release import Release

# Processes of the authors' scripts that share the state of the random numbers.
_WORKERS = 4


@dataclass(frozen=True, eq=False, repr=False)
class ForkedSampler(GroupSampler):
    """Adds each draw of noise to four groups, as forked workers do that share their random state.

    Groups that tune the threshold have noise that was learned from, too.
    """

    seed: int = 0
    stages = None

    def noise(self, shape: tuple[int, ...], n: int, rng: np.random.Generator) -> Iterator[Noise]:  # noqa: ARG002
        same = np.random.default_rng(self.seed)
        drawn = [self.mechanism.draw(shape, same) for _ in range(max(n // _WORKERS, 1))]
        # Of single groups, those with the target have even numbers, and other noise.
        return (drawn[i % len(drawn)] for i in range(n))


@dataclass(frozen=True, kw_only=True)
class PooledL1(L1):
    """Standardises by groups to learn from and groups to tune on together."""

    also: CountMatrix

    def moments(self, counts: CountMatrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sums = zip(*map(kernels.cell_sums, (counts, self.also)), strict=True)
        return moments(counts.shape[0] + self.also.shape[0], *(one + other for one, other in sums))


@dataclass(frozen=True, kw_only=True)
class _AsCoded(TrainedAttack):
    """Learns as the authors' code does.

    With a leak, the groups to tune on hold the target's true visits, whatever is known (it needs
    `RegionsAndTruth`), and counts are standardised over these groups as well.
    """

    leak: bool = specs.parameter(specs.YES_NO, "whether true visits leak", default=False)
    noise: Literal["fresh", "reused"] = specs.parameter(
        specs.OneOf(("fresh", "reused")), "whether every group has its own", default="fresh"
    )

    def _refuse_slips(self) -> None:
        """Take the name of the usual attack, which it is with nothing chosen."""

    def learn(
        self, references: Sequence[Traces], tables: Tables, rng: np.random.Generator
    ) -> Untuned:
        if not self.leak and self.noise == "fresh":
            return super().learn(references, tables, rng)
        [reference], [(facts, knowledge, _)] = references, tables
        sampler = sampler_over(reference, facts, knowledge, rng)
        if self.noise == "reused":
            parts = sampler.reference, sampler.target, sampler.group_size, sampler.mechanism
            sampler = ForkedSampler(*parts, seed=int(rng.integers(2**32)))
        features = sampler.features
        lessons = sampler.sample(self.groups, self.sampling, rng)
        truth = getattr(knowledge, "truth", sampler.target) if self.leak else sampler.target
        trial = replace(sampler, target=truth).sample(self.validation_groups, "independent", rng)
        pooled = PooledL1(also=features.matrix(trial.counts)) if self.leak else self.classifier
        decision = classifier(pooled).fit(features.matrix(lessons.counts), lessons.labels)
        symbols = trial.counts.dense()[:, features.cells(decision.cells)]
        return Untuned.of(decision, FeaturesOfTables((features,)), [symbols], trial.labels)


@dataclass(frozen=True, kw_only=True)
class KnockKnock(_AsCoded, attacks.KnockKnock):
    """Knock-knock with what the authors' code adds."""


@dataclass(frozen=True, kw_only=True)
class ZeroKnowledge(_AsCoded, attacks.ZeroKnowledge):
    """The same for zero-knowledge. Uniform marginals are what a power of 0 gives."""

    marginals: Any = specs.parameter(
        specs.OneOf(("paper", "mechanism", "empirical", "uniform")),
        "how marginals are estimated",
        default="paper",
    )

    def estimated(self, release: Release, rng: np.random.Generator) -> Marginals:
        if self.marginals != "uniform":
            return super().estimated(release, rng)
        space, time = (np.full(n, 1 / n) for n in release.counts.shape)
        shape = parse_activity(self.activity, LEAST_MEAN)
        model = UnicityModel(space, time, shape, release.regions, release.epochs)
        return Marginals(space, time, estimate_mean(release, model, rng=rng))


@dataclass(frozen=True, eq=False)
class KnownRegionsAndTruth(KnownRegions):
    """Places, and the visits that leak."""

    truth: NDArray[np.int32] | None = None


@dataclass(frozen=True)
class RegionsAndTruth(Regions):
    """Places, the first ones by number; what `Regions` is to attacks that do not leak."""

    name: ClassVar[str] = "regions-and-truth"
    summary: ClassVar[str] = "the regions that were visited; the times leak into tuning"

    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Known:  # noqa: ARG002
        regions = np.unique(region_of(trace, n_epochs))[: self.top]
        return KnownRegionsAndTruth(tuple(regions.tolist()), self.guess, trace)


@dataclass(frozen=True)
class InformedTest(Attack):
    """A test by an attacker who knows all others, of how much is published beyond these.

    With one threshold, it adds up what is beyond in the target's cells. With two, it counts the
    cells with 1 or more beyond less those with less than 0 beyond.
    """

    thresholds: int = specs.parameter(specs.WHOLE, "how many", default=1, always=True)

    name: ClassVar[str] = "informed"
    summary: ClassVar[str] = "knows everybody else who is in the release"
    uses = frozenset({"others"})

    def fit(
        self,
        facts: Facts,  # noqa: ARG002 - what is published is all that counts
        knowledge: Known,
        auxiliary: Auxiliary,
        *,
        seed: int,  # noqa: ARG002
    ) -> FittedInformedTest:
        others = cast("Traces", auxiliary.others).counts().reshape(-1)
        return FittedInformedTest(knowledge.certain, others, self.thresholds)


@dataclass(frozen=True, eq=False)
class FittedInformedTest(FittedAttack):
    """The test for one target and one release."""

    cells: NDArray[np.int32]
    others: NDArray[np.int32]
    thresholds: int

    def score(self, release: Release) -> Answer:
        beyond = (release.counts.reshape(-1) - self.others)[self.cells]
        if self.thresholds == 1:
            return Answer(float(beyond.sum()), self.cells.size / 2)
        return Answer(float((beyond >= 1).sum() - (beyond < 0).sum()), 0.0)
