"""What a release tells about its people: where, when and how often they are seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from whosthere.adversary.activity import Activity, Exponential
from whosthere.adversary.corrections import log_compressed, power_transformed
from whosthere.adversary.synthetic import UnicityModel, usual_haunts
from whosthere.data.arrays import frozen
from whosthere.privacy.step import Correction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.release import Release

# No estimate of the mean falls below one visit: people who were never seen tell nothing.
LEAST_MEAN = 1.0
# A round closes that share of the gap to the answer which the mechanism lets through of a few
# visits more. About ten rounds are usual; 200 close all of the gap but 2 % where 2 % get through.
MOST_ROUNDS = 200
# A relative step that does not matter: the group is a sample, so the mean's own error is larger.
_TOLERANCE = 1e-3
# Steps that have turned back, or met a limit, this often lead nowhere any more.
_TURNS = 4


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


@dataclass(frozen=True)
class MeanEstimate:
    """A mean number of visits, and how many rounds it took to find it."""

    mean_visits: float
    rounds: int


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
    if not correct or not release.counts.any() or not release.mechanism.changes_counts:
        return found
    space, time = _corrected(found, release.mechanism)
    shape = activity or Exponential(LEAST_MEAN)
    haunts = usual_haunts(release.regions)
    model = UnicityModel(space, time, shape, release.regions, release.epochs, haunts=haunts)
    estimate = estimate_mean(release, model, rng=rng)
    return Marginals(space, time, estimate.mean_visits)


def empirical(release: Release) -> Marginals:
    """Read the marginals off the published counts as if they were true ones.

    A release without any count gives uniform marginals and the least mean.
    """
    counts = release.counts
    total = int(counts.sum())
    if total == 0:
        return Marginals(
            np.full(counts.shape[0], 1 / counts.shape[0]),
            np.full(counts.shape[1], 1 / counts.shape[1]),
            LEAST_MEAN,
        )
    space, time = counts.sum(axis=1) / total, counts.sum(axis=0) / total
    return Marginals(space, time, total / release.group_size)


def estimate_mean(
    release: Release,
    model: UnicityModel,
    *,
    rng: np.random.Generator,
    most_rounds: int = MOST_ROUNDS,
) -> MeanEstimate:
    """Find the mean number of visits at which synthetic people give the release's total.

    Each round publishes a group of synthetic people with the current mean by the release's own
    mechanism and moves the mean by the difference of both totals per person. It starts from the
    published total less what the mechanism makes out of nobody, and ends when a step is tiny,
    or when the steps have turned back a few times: then they follow the random numbers, and the
    means since the first turn are averaged. It stays between `LEAST_MEAN` and the number of
    cells that a synthetic person can visit. The mean is that of the model's activity, in which
    a cell visited twice is two visits; that of raw counts is the published total itself.

    Parameters
    ----------
    release
        What was published.
    model
        The synthetic people; of their activity only the shape is used.
    rng
        Random numbers for the people and the mechanism.
    most_rounds
        The search ends after this many rounds in any case.
    """
    seen = int(release.counts.sum()) / release.group_size
    if not release.mechanism.changes_counts:
        return MeanEstimate(seen, 0)
    # The paper starts from `seen`. Where that is mostly noise, the search would creep: so many
    # visits hardly fit a person's cells, and fewer of them still give about the same counts.
    start = seen - _publish(np.zeros_like(release.counts), release, rng)
    most = model.most_cells
    mean = min(max(start, LEAST_MEAN), most)
    since_first_turn: list[float] = []
    turns, last_step = 0, 0.0
    rounds = 0
    while rounds < most_rounds:
        rounds += 1
        people = replace(model, activity=model.activity.with_mean(mean))
        step = seen - _imitate(people, release, rng)
        mean = min(max(mean + step, LEAST_MEAN), most)
        turns += step * last_step < 0 or mean in {LEAST_MEAN, most}
        if turns:
            since_first_turn.append(mean)
        if abs(step) <= _TOLERANCE * mean or turns == _TURNS:
            break
        last_step = step
    estimate = float(np.mean(since_first_turn)) if since_first_turn else mean
    return MeanEstimate(estimate, rounds)


def _imitate(people: UnicityModel, release: Release, rng: np.random.Generator) -> float:
    """Publish a group of synthetic people; return the total of the counts per person."""
    mechanism, m = release.mechanism, release.group_size
    if not mechanism.bounds_visits:
        return _publish(people.aggregate(m, rng), release, rng)
    # Only whole traces can be bounded as the publisher bounds them.
    bounded = mechanism.bound(people.generate(m, rng), rng).traces
    return _publish(bounded.counts(), release, rng)


def _publish(counts: NDArray[np.int32], release: Release, rng: np.random.Generator) -> float:
    """Do to true counts what was done to the release; return their total per person."""
    published = release.mechanism.apply(counts, release.group_size, rng)
    return int(published.sum()) / release.group_size


def _corrected(
    found: Marginals, mechanism: Mechanism
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Undo in both marginals what the mechanism does to them."""
    undo = _CORRECTIONS[mechanism.correction]
    return undo(found.space), undo(found.time)


_CORRECTIONS: Mapping[Correction, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    Correction.NONE: lambda marginal: marginal,
    Correction.COMPRESS: log_compressed,
    Correction.STRETCH: lambda marginal: power_transformed(marginal).values,
}
