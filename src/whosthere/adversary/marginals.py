"""What a release tells about its people: where, when and how often they are seen.

The search for the mean number of visits draws its people once, with their visits in the order in
which they are made. People with a smaller mean make the first of these visits, so a round of the
search only counts. If a mean asks for more visits than were drawn, twice as many are drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from whosthere.adversary.activity import Activity, Exponential
from whosthere.adversary.corrections import log_compressed, power_transformed
from whosthere.adversary.count_tables import filled, stand_in
from whosthere.adversary.synthetic import SamePeople, UnicityModel, usual_haunts
from whosthere.arrays import frozen
from whosthere.privacy.step import Correction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.release import Release

# No estimate of the mean falls below one visit: people who were never seen tell nothing.
LEAST_MEAN = 1.0
# About five rounds are usual. Each halves the range of means at least, once it has two ends.
_MOST_ROUNDS = 60
# A relative step that does not matter: the group is a sample, so the mean's own error is larger.
_TOLERANCE = 1e-3
# No step changes the mean by a larger factor, as long as one end of the range is not known.
_LARGEST_FACTOR = 4.0


@dataclass(frozen=True, eq=False)
class Marginals:
    """Where, when and how often people are seen, as far as a release tells.

    Attributes
    ----------
    space
        Probability that a visit is to each region, shape (n_regions,).
    time
        Probability that a visit is in each epoch, shape (n_epochs,).
    mean_visits
        Mean number of visits of a person.
    """

    space: NDArray[np.float64]
    time: NDArray[np.float64]
    mean_visits: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", frozen(self.space, np.float64))
        object.__setattr__(self, "time", frozen(self.time, np.float64))


def estimate_marginals(
    release: Release,
    *,
    correct: bool = True,
    activity: Activity | None = None,
    rng: np.random.Generator,
) -> Marginals:
    """Estimate the marginals of the population that a release was counted from.

    The marginals are corrected as the mechanism asks for: stretched after noise, compressed after
    suppression alone. The mean is found by imitation. Raw counts are taken as they are.

    Parameters
    ----------
    release
        What was published.
    correct
        Whether to undo what the mechanism does; otherwise the counts are taken as true ones.
    activity
        How visits are spread over people, exponentially by default; its mean is not used.
    rng
        Random numbers for the imitation.
    """
    found = empirical(release)
    if not correct or not filled(release).any() or not release.mechanism.changes_counts:
        return found
    space, time = _corrected(found, release.mechanism)
    shape = activity or Exponential(LEAST_MEAN)
    haunts = usual_haunts(release.regions)
    model = UnicityModel(space, time, shape, release.regions, release.epochs, haunts=haunts)
    return Marginals(space, time, estimate_mean(release, model, rng=rng))


def empirical(release: Release) -> Marginals:
    """Read the marginals off the published counts as if they were true ones.

    A release without any count gives uniform marginals and the least mean.
    """
    counts = filled(release)
    total = counts.sum()
    if total == 0:
        return Marginals(
            np.full(counts.shape[0], 1 / counts.shape[0]),
            np.full(counts.shape[1], 1 / counts.shape[1]),
            LEAST_MEAN,
        )
    space, time = counts.sum(axis=1) / total, counts.sum(axis=0) / total
    return Marginals(space, time, total / release.group_size)


def estimate_mean(release: Release, model: UnicityModel, *, rng: np.random.Generator) -> float:
    """Find the mean number of visits at which synthetic people give the release's total.

    Each round makes a group of synthetic people with the current mean and compares what the
    release's own mechanism would publish of them, on average, with what was published. The people
    are the same in every round, and visit more cells the larger the mean is. So their total grows
    with the mean, without any chance, and secant steps meet the release's in a few rounds. It
    starts from the published total less what the mechanism makes out of nobody, and stays between
    `LEAST_MEAN` and the number of cells that a synthetic person can visit. The mean is that of
    the model's activity, in which a cell visited twice is two visits; that of raw counts is the
    published total itself.

    Parameters
    ----------
    release
        What was published.
    model
        The synthetic people; of their activity only the shape is used.
    rng
        Random numbers for the people and, where its averages are not known, the mechanism.
    """
    seen = float(filled(release).sum()) / release.group_size
    if not release.mechanism.changes_counts:
        return seen
    imitation = _Imitation.of(release, model, rng)
    # The paper starts from `seen`. Where that is mostly noise, this is closer by far.
    start = seen - imitation.published(np.zeros_like(release.counts))
    return _meet(seen, imitation, (LEAST_MEAN, float(model.most_cells)), start)


def _meet(
    wanted: float,
    imitation: Callable[[float], float],
    limits: tuple[float, float],
    start: float,
) -> float:
    """Find the mean at which an imitation, which grows with it, gives the wanted total."""
    low, high = limits
    mean, last, last_gap = min(max(start, low), high), 0.0, 0.0
    for rounds in range(1, _MOST_ROUNDS + 1):
        gap = wanted - imitation(mean)
        if (gap >= 0 and mean >= high) or (gap <= 0 and mean <= low):
            return mean
        low, high = (mean, high) if gap > 0 else (low, mean)
        # One visit more is counted once, as long as nothing else is known.
        slope = (last_gap - gap) / (mean - last) if rounds > 1 else 1.0
        step = gap / slope if slope > 0 else gap * math.inf
        following = min(max(mean + step, mean / _LARGEST_FACTOR), mean * _LARGEST_FACTOR)
        if not low < following < high:
            ends = low if gap < 0 else high
            following = ends if ends in limits else (low + high) / 2
        if abs(following - mean) <= _TOLERANCE * mean:
            return following
        mean, last, last_gap = following, mean, gap
    return mean


@dataclass(frozen=True, eq=False)
class _Imitation:
    """The release's total per person, imitated by the same synthetic people with another mean.

    Attributes
    ----------
    people
        The synthetic people.
    expected
        Mean published count for each true count, where it is known.
    seed
        Decides on all random numbers.
    """

    release: Release
    model: UnicityModel
    people: SamePeople
    expected: NDArray[np.float64] | None
    seed: int

    @classmethod
    def of(cls, release: Release, model: UnicityModel, rng: np.random.Generator) -> Self:
        mechanism = release.mechanism
        expected = mechanism.expected(release.facts.most_count, withheld=stand_in(mechanism))
        seed = int(rng.integers(2**63))
        people = SamePeople(model, release.group_size, np.random.default_rng(seed))
        return cls(release, model, people, expected, seed)

    def __call__(self, mean: float) -> float:
        """Return the total per person that is published of people with this mean."""
        mechanism = self.release.mechanism
        if not mechanism.bounds_visits:
            return self.published(self.people.counts(mean))
        # Only whole traces can be bounded as the publisher bounds them.
        model = replace(self.model, activity=self.model.activity.with_mean(mean))
        rng = np.random.default_rng(self.seed)
        traces = model.generate(self.release.group_size, rng, evenly=True)
        return self.published(mechanism.bound(traces, rng).counts())

    def published(self, counts: NDArray[np.int32]) -> float:
        """Return the total per person that is published of true counts, on average if known."""
        m = self.release.group_size
        if self.expected is not None:
            occurring = np.bincount(counts.reshape(-1))
            return float(occurring @ self.expected[: occurring.size]) / m
        rng = np.random.default_rng(self.seed)
        values = self.release.mechanism.apply(counts, m, rng)
        return float(filled(replace(self.release, values=values)).sum()) / m


def _corrected(
    found: Marginals, mechanism: Mechanism
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Undo in both marginals what the mechanism does to them."""
    undo = _CORRECTIONS[mechanism.correction]
    return undo(found.space), undo(found.time)


_CORRECTIONS: Mapping[Correction, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    Correction.NONE: lambda marginal: marginal,
    Correction.COMPRESS: log_compressed,
    Correction.STRETCH: power_transformed,
}
