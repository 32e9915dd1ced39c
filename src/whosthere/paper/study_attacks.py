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
from whosthere.adversary.attacks.trained import Untuned, believed, sampler_over
from whosthere.adversary.classifiers import L1, moments
from whosthere.adversary.features import FeaturesOfTables
from whosthere.adversary.groups import Aggregates, GroupSampler
from whosthere.adversary.knowledge import Regions
from whosthere.adversary.marginals import LEAST_MEAN, Marginals, empirical, estimate_mean
from whosthere.adversary.models import classifier
from whosthere.adversary.suspects import Known, Places
from whosthere.adversary.synthetic import Exponential, SamePeople, UnicityModel, parse_activity
from whosthere.data.cells import region_of
from whosthere.privacy.step import Correction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks.trained import Tables
    from whosthere.adversary.groups import Sampling
    from whosthere.data.traces import Traces
    from whosthere.kernels.count_matrix import CountMatrix
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

# Processes of the authors' scripts that share the state of the random numbers.
_WORKERS = 4


@dataclass(frozen=True, eq=False, repr=False)
class ForkedSampler(GroupSampler):
    """Adds each draw of noise to four groups, as forked workers do that share their random state.

    Groups that tune the threshold have noise that was learned from, too.
    """

    seed: int = 0

    def noise(self) -> None:
        return None

    def noise_seeds(self, n: int, rng: np.random.Generator) -> Sequence[int]:  # noqa: ARG002
        # Of single groups, those with the target have even numbers, and other noise.
        return [self.seed + i % max(n // _WORKERS, 1) for i in range(n)]


@dataclass(frozen=True, eq=False, repr=False)
class GuessingSampler(GroupSampler):
    """Guesses the target's visits anew for every two groups."""

    guessed: Callable[[], NDArray[np.int32]] = lambda: np.empty(0, np.int32)

    def sample(
        self,
        n: int,
        sampling: Sampling,
        rng: np.random.Generator,
        *,
        cells: NDArray[np.int64] | None = None,
    ) -> Aggregates:
        made = []
        for _ in range(n // 2):
            one = GroupSampler(self.reference, self.guessed(), self.group_size, self.mechanism)
            made.append(one.sample(2, sampling, rng, cells=cells))
        counts = np.concatenate([one.counts.dense() for one in made])
        return Aggregates(kernels.CountMatrix.single(counts.T.copy()), np.arange(n) % 2 == 0)


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
    guess: Literal["once", "anew"] = specs.parameter(
        specs.OneOf(("once", "anew")), "how often the target's visits are guessed", default="once"
    )

    def _refuse_slips(self) -> None:
        """Take the name of the usual attack, which it is with nothing chosen."""

    def learn(
        self, references: Sequence[Traces], tables: Tables, rng: np.random.Generator
    ) -> Untuned:
        if not self.leak and self.noise == "fresh" and self.guess == "once":
            return super().learn(references, tables, rng)
        [reference], [(facts, knowledge, _)] = references, tables
        sampler = sampler_over(reference, facts, knowledge, rng)
        parts = sampler.reference, sampler.target, sampler.group_size, sampler.mechanism
        if self.guess == "anew":
            sampler = GuessingSampler(
                *parts, guessed=lambda: believed(knowledge, reference, rng).cells
            )
        if self.noise == "reused":
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
    search: Literal["settled", "five-rounds"] = specs.parameter(
        specs.OneOf(("settled", "five-rounds")),
        "where the search for the mean ends",
        default="settled",
    )
    visits: float = specs.parameter(
        specs.NUMBER, "how many visits are made up for each one that was found", default=1.0
    )

    def estimated(self, release: Release, rng: np.random.Generator) -> Marginals:
        if self.marginals == "uniform":
            found = self._uniform(release, rng)
        else:
            found = super().estimated(release, rng)
        if self.search == "five-rounds":
            found = replace(found, mean_visits=mean_in_five_rounds(release, found, rng))
        return replace(found, mean_visits=found.mean_visits * self.visits)

    def _uniform(self, release: Release, rng: np.random.Generator) -> Marginals:
        space, time = (np.full(n, 1 / n) for n in release.counts.shape)
        shape = parse_activity(self.activity, LEAST_MEAN)
        model = UnicityModel(space, time, shape, release.regions, release.epochs)
        return Marginals(space, time, estimate_mean(release, model, rng=rng))


def mean_in_five_rounds(release: Release, found: Marginals, rng: np.random.Generator) -> float:
    """Search for the mean as the authors' code does: in steps of twice the difference, five times.

    Under suppression alone, it compares how many cells are not 0; otherwise, all visits.
    """
    mechanism, m = release.mechanism, release.group_size
    size = np.sum if mechanism.correction is Correction.STRETCH else np.count_nonzero
    shape = Exponential(LEAST_MEAN)
    model = UnicityModel(found.space, found.time, shape, release.regions, release.epochs)
    people, mean = SamePeople(model, m, rng), empirical(release).mean_visits
    for _ in range(5):
        imitated = mechanism.apply(people.counts(mean), m, rng)
        mean = max(mean + 2 * float(size(release.counts) - size(imitated)) / m, 0.0)
    return mean


@dataclass(frozen=True, eq=False)
class PlacesAndTruth(Places):
    """Places of one person, and the visits that leak."""

    truth: NDArray[np.int32] | None = None


@dataclass(frozen=True)
class RegionsAndTruth(Regions):
    """Places, the first ones by number; what `Regions` is to attacks that do not leak."""

    name: ClassVar[str] = "regions-and-truth"
    summary: ClassVar[str] = "the regions that were visited; the times leak into tuning"

    def of(self, traces: Traces, rng: np.random.Generator) -> Known:  # noqa: ARG002
        regions = np.unique(region_of(traces.cells, traces.epochs.n))[: self.top]
        return PlacesAndTruth(np.array([0, regions.size]), regions, self.guess, traces.cells)


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
        return FittedInformedTest(knowledge.cells, others, self.thresholds)


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
