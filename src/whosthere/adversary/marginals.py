"""What a release tells about its people: where, when and how often they are seen.

What suppression and noise do to a marginal is undone as the paper does it. Suppression takes visits
from quiet regions and epochs: the marginal that is left is too uneven and gets compressed. Noise
adds about the same to all of them: the marginal is too even and gets stretched. Both are rules of
thumb that use no knowledge beyond the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from whosthere.adversary.count_tables import filled, stand_in
from whosthere.adversary.synthetic import Activity, Exponential, SamePeople, UnicityModel
from whosthere.arrays import Floats, Ints32, frozen
from whosthere.privacy.step import Correction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whosthere.privacy.release import Release

# No estimate of the mean falls below one visit: people who were never seen tell nothing.
LEAST_MEAN = 1.0
# About five rounds are usual. Each halves the range of means at least, once it has two ends.
_MOST_ROUNDS = 60
# A relative step that does not matter: the group is a sample, so the mean's own error is larger.
_TOLERANCE = 1e-3
# No step changes the mean by a larger factor, as long as one end of the range is not known.
_LARGEST_FACTOR = 4.0
# Where even this power is not enough, the values differ by rounding errors alone.
_MOST_POWER = 1e12
# Halvings of the search interval: enough for every digit of a power.
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Marginals:
    """Where, when and how often people are seen, as far as a release tells.

    `space` and `time` are the probabilities that a visit is to each region, shape (n_regions,),
    and in each epoch, shape (n_epochs,).
    """

    space: Floats
    time: Floats
    mean_visits: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", frozen(self.space, np.float64))
        object.__setattr__(self, "time", frozen(self.time, np.float64))


def estimate_marginals(
    release: Release,
    *,
    activity: Activity | None = None,
    rng: np.random.Generator,
) -> Marginals:
    """Estimate the marginals of the population that a release was counted from.

    The marginals are corrected as the mechanism asks for: stretched after noise, compressed after
    suppression alone. The mean is found by imitation, with visits that are spread over people as in
    `activity` (its mean is not used), exponentially by default. Raw counts are taken as they are.
    """
    found = empirical(release)
    if not filled(release).any() or not release.mechanism.changes_counts:
        return found
    undo = _CORRECTIONS[release.mechanism.correction]
    space, time = undo(found.space), undo(found.time)
    shape = activity or Exponential(LEAST_MEAN)
    model = UnicityModel(space, time, shape, release.regions, release.epochs)
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
    the model's activity, of which only the shape is used and in which a cell visited twice is two
    visits; that of raw counts is the published total itself.
    """
    seen = float(filled(release).sum()) / release.group_size
    if not release.mechanism.changes_counts:
        return seen
    imitation = _Imitation(release, model, rng)
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


class _Imitation:
    """The release's total per person, imitated by the same synthetic people with another mean."""

    def __init__(self, release: Release, model: UnicityModel, rng: np.random.Generator) -> None:
        self.release, self.model, self.mechanism = release, model, release.mechanism
        # Mean published count for each true count, where it is known.
        self.expected = self.mechanism.expected(
            release.facts.most_count, withheld=stand_in(self.mechanism)
        )
        self.seed = int(rng.integers(2**63))
        self.people = SamePeople(model, release.group_size, np.random.default_rng(self.seed))

    def __call__(self, mean: float) -> float:
        """Return the total per person that is published of people with this mean."""
        if not self.mechanism.bounds_visits:
            return self.published(self.people.counts(mean))
        # Only whole traces can be bounded as the publisher bounds them.
        rng = np.random.default_rng(self.seed)
        model = replace(self.model, activity=replace(self.model.activity, mean=mean))
        traces = model.generate(self.release.group_size, rng, evenly=True)
        return self.published(self.mechanism.bound(traces, rng).counts())

    def published(self, counts: Ints32) -> float:
        """Return the total per person that is published of true counts, on average if known."""
        m = self.release.group_size
        if self.expected is not None:
            occurring = np.bincount(counts.reshape(-1))
            return float(occurring @ self.expected[: occurring.size]) / m / self.mechanism.slope
        values = self.mechanism.apply(counts, m, np.random.default_rng(self.seed))
        return float(filled(replace(self.release, values=values)).sum()) / m


def log_compressed(marginal: Floats) -> Floats:
    """Return log(1 + x / least) of each probability x, normalised, to undo suppression.

    `least` is the smallest probability above 0; there must be one. What is 0 stays 0: nothing
    tells which of the regions or epochs without any count are merely quiet.
    """
    logs = _logs(marginal)
    # log(1 + exp(.)) without the quotient, which could be too large a number.
    compressed = np.logaddexp(0, logs - logs[np.isfinite(logs)].min())
    return np.asarray(compressed / compressed.sum())


def power_transformed(marginal: Floats) -> Floats:
    """Raise each probability to one power p >= 1 and normalise, to undo noise.

    The power is the one at which the variance of the probabilities is that of n uniform draws
    divided by their sum. Its expected value tends to 1 / (3 n^2) for large n, which is what is
    used for every n: the draws have variance 1 / 12, and their sum is n / 2. The variance never
    falls as the power grows, so the power is found by bisection. Where no power meets the
    target, 1 is kept: the marginal is returned as it is.
    """
    logs = _logs(marginal)
    target = 1 / (3 * logs.size**2)
    if _variance(logs, 1) >= target:
        return marginal
    high = 2.0
    while _variance(logs, high) < target:
        if high > _MOST_POWER:
            return marginal
        high *= 2
    low = high / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _variance(logs, middle) < target else (low, middle)
    return _powers(logs, high)


def _logs(marginal: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(marginal)


def _powers(logs: Floats, power: float) -> Floats:
    """Return exp(power * logs), normalised; no power is too large for it."""
    values = np.exp(power * (logs - logs.max()))
    return np.asarray(values / values.sum())


def _variance(logs: Floats, power: float) -> float:
    return float(_powers(logs, power).var())


_CORRECTIONS: Mapping[Correction, Callable[[Floats], Floats]] = {
    Correction.NONE: lambda marginal: marginal,
    Correction.COMPRESS: log_compressed,
    Correction.STRETCH: power_transformed,
}
