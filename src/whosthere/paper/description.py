"""What the paper shows of its data: marginals, activity, visits of targets, what is suppressed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from whosthere.adversary.marginals import log_compressed, power_transformed
from whosthere.arrays import Floats, Ints32, Ints64, own
from whosthere.data.traces import Group, Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.paper.datasets import Dataset


# Groups that every number is an average over.
_GROUPS = 20
THRESHOLDS = range(6)
SCALES = (0.1, 1.0, 10.0, 100.0)
"""Noise scales of the marginals under growing noise, in people."""
LENGTHS = (100, 1_000, 10_000, 100_000)
"""Numbers of epochs at which the convergence of marginals is checked."""
_REGIONS_OF_THE_CHECK = 100


@dataclass(frozen=True, eq=False)
class Description:
    """What a data set looks like to its publisher and to an attacker.

    Shapes: S regions, T epochs, R groups. Marginals are shares of all visits, of shape (S,) or
    (T,): of the truth; of one release with k = 1, and after log compression; and of one with noise
    of scale 1, and after the power transform.

    Attributes
    ----------
    gain_of_compression, gain_of_stretching
        How much nearer to the truth each correction brings a marginal, in total variation, (R,).
    activity, target_visits
        Visits of every user, and of the targets.
    exponential_distance, lognormal_distance
        Kolmogorov-Smirnov distance of fitted laws to the visits of each group's users, (R,).
    suppressed
        Share of the non-zero entries that is suppressed at each of `THRESHOLDS`, (6, R).
    space_by_scale, time_by_scale
        Marginals of one release for each of `SCALES`, shapes (4, S) and (4, T).
    convergence
        Relative deviation of the space marginal from a uniform one, where counts are strongly
        sparse, at each of `LENGTHS`, and what the theorem's law of large numbers predicts, (2, 4).
    edges, positions
        Pairs of neighbouring regions, (n, 2), and places in km, (S, 2); None without positions.
    """

    users: int
    regions: int
    epochs: int
    visits: int
    true_space: Floats
    true_time: Floats
    suppressed_time: Floats
    compressed_time: Floats
    noisy_space: Floats
    stretched_space: Floats
    gain_of_compression: Floats
    gain_of_stretching: Floats
    activity: Ints64
    exponential_distance: Floats
    lognormal_distance: Floats
    target_visits: Ints64
    suppressed: Floats
    space_by_scale: Floats
    time_by_scale: Floats
    convergence: Floats
    edges: Ints32 | None
    positions: Floats | None

    def of_targets(self, targets: Sequence[int]) -> Description:
        """Return the description with the visits of some users as those of the targets."""
        return replace(self, target_visits=self.activity[list(targets)])


def describe(traces: Traces, dataset: Dataset, *, seed: int) -> Description:
    """Describe a data set, whose users are all targets, by groups drawn at random."""
    m = min(dataset.group_size, traces.n_users)
    truth = traces.counts().astype(np.float64)
    true_space, true_time = _shares(truth, 1), _shares(truth, 0)
    rows = [
        generator(seed, "described group", i).permutation(traces.n_users)[:m]
        for i in range(_GROUPS)
    ]
    groups = [Group(traces, own(some, np.int64)) for some in rows]

    def published(i: int, spec: str) -> Floats:
        noise = generator(seed, "described noise", spec, i)
        made = publish_table(groups[i], Mechanism.parse(spec), bounding=noise, noise=noise)
        return made.release.counts.astype(np.float64)

    suppressed = [_shares(published(i, "suppress(k=1)"), 0) for i in range(_GROUPS)]
    compressed = [log_compressed(one) for one in suppressed]
    noisy = [_shares(published(i, "laplace(eps=1, unit=event)"), 1) for i in range(_GROUPS)]
    stretched = [power_transformed(one) for one in noisy]
    counts = [group.counts() for group in groups]
    visits = traces.visits_per_user()
    fits = np.array([_fits(visits[some]) for some in rows])
    by_scale = [published(0, f"laplace(eps={1 / scale:g}, unit=event)") for scale in SCALES]
    has_positions = traces.regions.have_positions
    return Description(
        users=traces.n_users,
        regions=len(traces.regions),
        epochs=traces.epochs.n,
        visits=traces.n_visits,
        true_space=true_space,
        true_time=true_time,
        suppressed_time=suppressed[0],
        compressed_time=compressed[0],
        noisy_space=noisy[0],
        stretched_space=stretched[0],
        gain_of_compression=_gains(suppressed, compressed, true_time),
        gain_of_stretching=_gains(noisy, stretched, true_space),
        activity=visits,
        exponential_distance=fits[:, 0],
        lognormal_distance=fits[:, 1],
        target_visits=visits,
        suppressed=np.array([[_share_suppressed(one, k) for one in counts] for k in THRESHOLDS]),
        space_by_scale=np.array([_shares(one, 1) for one in by_scale]),
        time_by_scale=np.array([_shares(one, 0) for one in by_scale]),
        convergence=_convergence(seed),
        edges=traces.regions.neighbours.pairs() if has_positions else None,
        positions=traces.regions.positions_km if has_positions else None,
    )


def _shares(counts: Floats, axis: int) -> Floats:
    """Return the marginal that is left when an axis is summed over; uniform without counts."""
    sums = counts.sum(axis=axis)
    return sums / sums.sum() if sums.any() else np.full(sums.size, 1 / sums.size)


def _gains(before: Sequence[Floats], after: Sequence[Floats], truth: Floats) -> Floats:
    """Return how much nearer marginals have come to the truth, in total variation."""
    first, second = (np.abs(np.array(some) - truth).sum(axis=1) / 2 for some in (before, after))
    return np.asarray(first - second)


def _share_suppressed(counts: Ints32, k: int) -> float:
    there = counts > 0
    return float((counts[there] <= k).mean()) if there.any() else 1.0


def fitted_laws(visits: Ints64) -> tuple[Any, Any]:
    """Return scipy's exponential and lognormal law that fit the visits of people best."""
    seen = visits[visits > 0].astype(np.float64)
    logs = np.log(seen)
    lognormal = stats.lognorm(max(logs.std(), 1e-6), scale=math.exp(logs.mean()))
    return stats.expon(scale=seen.mean()), lognormal


def _fits(visits: Ints64) -> tuple[float, float]:
    """Return how far the visits of people are from an exponential and from a lognormal law.

    Visits are whole and at least 1: either law is taken to be rounded to whole numbers.
    """
    seen = visits[visits > 0].astype(np.float64)
    values, ranks = np.unique(seen, return_counts=True)
    observed = np.cumsum(ranks) / seen.size
    laws = fitted_laws(visits)
    first, second = (float(np.abs(observed - law.cdf(values + 0.5)).max()) for law in laws)
    return first, second


def _convergence(seed: int) -> Floats:
    """Check that the space marginal of strongly sparse counts converges to the uniform one.

    100 regions have a total of 1 to 100 visits each, however many epochs there are. With
    L the noise, max(L, 0) has mean b / 2 and variance 3 b^2 / 4. So sums over T epochs deviate
    from their mean by a share of sqrt(3 / T), whatever the scale b.
    """
    rng = generator(seed, "convergence")
    found, visits = [], np.arange(1.0, _REGIONS_OF_THE_CHECK + 1)
    for length in LENGTHS:
        sums = np.zeros(_REGIONS_OF_THE_CHECK)
        for region, total in enumerate(visits):
            counts = np.zeros(length)
            np.add.at(counts, rng.integers(length, size=int(total)), 1.0)
            sums[region] = np.maximum(counts + rng.laplace(0, 1.0, length), 0).sum()
        relative = sums / sums.sum() * sums.size
        found.append(float(np.sqrt(np.mean((relative - 1) ** 2))))
    return np.array([found, [math.sqrt(3 / length) for length in LENGTHS]])
