"""How well an attack distinguishes releases with a person from releases without, and how surely.

An attack gives each release a score: the higher the score, the more likely the target is in. A
label says whether the target really is in. Given their target, releases are independent.

Intervals from counts of releases hold for the targets that were attacked. Only intervals over
targets (`mean_over_targets`, `share_at_least`, `rank_correlation`) hold for all the people from
whom the targets were drawn. All intervals are two-sided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv, ndtr, stdtrit

from whosthere.data.arrays import frozen
from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# The standard error of a resample is taken to be at least this share of the sample's own. Resamples
# that repeat a few similar values would otherwise widen the interval without improving coverage.
_LEAST_SPREAD = 1 / 3


@dataclass(frozen=True)
class Estimate:
    """A number with its interval. What cannot be given is None, and the note says why.

    Only means have a standard error.
    """

    value: float | None
    low: float | None
    high: float | None
    note: str | None = None
    standard_error: float | None = None


def clopper_pearson(successes: int, n: int, *, confidence: float = 0.95) -> Estimate:
    """Return the share of successes among n trials, with its exact interval."""
    tail = _tail(confidence)
    if not 0 <= successes <= n:
        raise InputError(f"there cannot be {successes} successes among {n} trials")
    if n == 0:
        return Estimate(None, None, None, "not resolvable with n = 0")
    low, high = _least_share(successes, n, tail), 1 - _least_share(n - successes, n, tail)
    return Estimate(successes / n, float(low), float(high))


def auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Return the chance that an IN release scores higher than an OUT one; ties count half.

    Scores and labels (whether the target is in) have the shape (n_releases,).
    """
    in_, out = _in_and_out(scores, labels)
    out = np.sort(out)
    below = np.searchsorted(out, in_, "left") + np.searchsorted(out, in_, "right")
    return float(below.sum() / (2 * in_.size * out.size))


def auc_by_target(
    scores: ArrayLike, labels: ArrayLike, targets: ArrayLike
) -> tuple[NDArray[np.int64], Floats]:
    """Return the distinct targets in ascending order, and the AUC over the releases of each.

    Both have the shape (n_targets,); `targets` holds a whole number for each release.
    """
    score, label, target = _alike(np.asarray(scores), np.asarray(labels), np.asarray(targets))
    order = np.argsort(target, kind="stable")
    distinct, first = np.unique(target[order], return_index=True)
    aucs = [auc(score[rows], label[rows]) for rows in np.split(order, first[1:])]
    return frozen(distinct, np.int64), frozen(aucs, np.float64)


def mean_over_targets(
    values: ArrayLike,
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = 0.95,
    seed: int = 0,
    n_resamples: int = 10_000,
) -> Estimate:
    """Return the mean of one value per target, with an interval for the mean over all people.

    The interval is a studentised bootstrap over targets, and on each side at least as wide as
    Student's t interval. In simulations at 95 %, it covers the mean of skewed Beta distributions
    in 94 to 96 % of the cases with 10 targets or more, and in 93 % with 5. A sample can miss rare
    people: where one person in five differs greatly from the others, the interval covers the mean
    in 96 to 98 % of the cases with 30 targets, 89 to 95 % with 10, and 69 to 95 % with 5.

    If all targets have the same value, the ends of the interval are what the mean would be if as
    many people as a random sample can plausibly miss had the least, or the largest, possible
    value. This assumes nothing about those people except that their values lie within `bounds`.

    Parameters
    ----------
    values
        The value of each target, shape (n_targets,).
    bounds
        The least and the largest possible value, such as (0, 1) for an AUC.
    """
    tail, x = _tail(confidence), _numbers(values, "values")
    if x.min() < bounds[0] or x.max() > bounds[1]:
        raise InputError(f"values from {x.min()} to {x.max()} leave the bounds {bounds}")
    if x.size == 1:
        return Estimate(float(x[0]), None, None, "no interval with n = 1")
    if np.ptp(x) == 0:
        return _all_alike(float(x[0]), x.size, bounds, tail)
    mean, error = float(x.mean()), float(x.std(ddof=1)) / math.sqrt(x.size)
    student = stdtrit(x.size - 1, 1 - tail)
    pivots = _studentised((x - mean) / error, _resample_counts(x.size, seed, n_resamples))
    least, most = np.quantile(pivots, [tail, 1 - tail])
    ends = mean - error * np.array([max(most, student), min(least, -student)])
    low, high = np.clip(ends, *bounds).tolist()
    return Estimate(mean, low, high, None, error)


def accuracy(decisions: ArrayLike, labels: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """Return the share of releases about which the attacker is right.

    The attacker's threshold must have been fixed beforehand. The number of right decisions is a
    sum of independent Bernoulli variables whose chances differ between targets. It varies less
    than a binomial variable with the same mean, so the binomial interval is conservative
    (Hoeffding 1956).

    Decisions (whether the attacker says that the target is in) and labels have the shape
    (n_releases,).
    """
    called, label = _alike(_flags(decisions, "decisions"), _flags(labels, "labels"))
    right = int(np.count_nonzero(called == label))
    return clopper_pearson(right, label.size, confidence=confidence)


def advantage(decisions: ArrayLike, labels: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """Return the true-positive rate minus the false-positive rate.

    The exact interval of each rate is taken at half the error, so the interval between the
    differences of their ends covers at least as often as required. Arguments are as for
    `accuracy`.
    """
    in_, out = _in_and_out(_flags(decisions, "decisions"), labels)
    hits, alarms, tail = int(in_.sum()), int(out.sum()), _tail(confidence) / 2
    low = _least_share(hits, in_.size, tail) + _least_share(out.size - alarms, out.size, tail) - 1
    high = 1 - _least_share(in_.size - hits, in_.size, tail) - _least_share(alarms, out.size, tail)
    return Estimate(hits / in_.size - alarms / out.size, float(low), float(high))


def tpr_at_fpr(
    scores: ArrayLike, labels: ArrayLike, fpr: float, *, confidence: float = 0.95
) -> Estimate:
    """Return the share of IN releases above a threshold that few OUT releases exceed.

    The threshold is the smallest one that at most a share `fpr` of the OUT releases exceeds. The
    IN releases are independent of it, so their exact interval is one for the true rate at this
    threshold. On average, a share (k + 1) / (n_out + 1) of new OUT releases exceeds it, where
    k = fpr * n_out: twice `fpr` if k = 1, 1.1 times `fpr` if k = 10. Scores and labels are as for
    `auc`.
    """
    if not 0 < fpr <= 1:
        raise InputError(f"a false-positive rate must be above 0 and at most 1, not {fpr}")
    in_, out = _in_and_out(scores, labels)
    # Products such as 0.29 * 100 are just below the whole number.
    n_above = math.floor(fpr * out.size + 1e-9)
    if n_above == 0:
        needed = math.ceil(1 / fpr - 1e-9)
        reason = f"not resolvable with n = {out.size} ({needed} OUT releases are needed)"
        return Estimate(None, None, None, reason)
    threshold = -math.inf if n_above == out.size else np.sort(out)[-1 - n_above]
    found = int(np.count_nonzero(in_ > threshold))
    return clopper_pearson(found, in_.size, confidence=confidence)


def empirical_eps(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    held_out: ArrayLike,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Estimate:
    """Return a lower bound on the eps with which the releases can have been published.

    Differential privacy implies TPR <= e^eps FPR + delta, and the same for TNR and FNR. The
    threshold and one of the two inequalities are chosen to give the best bound on the held-out
    releases. The other releases then give the bound, which is too large with a chance of at most
    1 - confidence. `value` and `low` are both the bound; there is no `high`.

    Scores and labels are as for `auc`; `held_out` marks the releases that the choice is based on,
    shape (n_releases,).
    """
    tail, mask = _tail(confidence), _flags(held_out, "held_out")
    _, score, label = _alike(mask, np.asarray(scores), np.asarray(labels))
    in_, out = _in_and_out(score[mask], label[mask])
    steps = np.unique(np.concatenate([in_, out]))
    thresholds = np.concatenate([steps[:-1] / 2 + steps[1:] / 2, steps[-1:]])
    bounds = _eps_bounds(in_, out, thresholds, delta, tail)
    direction, best = np.unravel_index(bounds.argmax(), bounds.shape)
    in_, out = _in_and_out(score[~mask], label[~mask])
    bound = _eps_bounds(in_, out, thresholds[best], delta, tail)[direction]
    value = max(float(bound), 0.0)
    reached = value == eps_ceiling(in_.size, out.size, delta=delta, confidence=confidence)
    note = f"the most that {in_.size} IN and {out.size} OUT releases can show" if reached else None
    return Estimate(value, value, None, note)


def eps_ceiling(n_in: int, n_out: int, *, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Return the bound that an attack without errors gets from releases that are not held out.

    `empirical_eps` cannot return a larger one for as many releases.
    """
    if min(n_in, n_out) < 1:
        raise InputError("a bound on eps needs at least one IN and one OUT release")
    flawless = _eps_bounds(np.ones(n_in), np.zeros(n_out), 0.5, delta, _tail(confidence))
    return max(float(flawless.max()), 0.0)


def share_at_least(values: ArrayLike, limit: float = 0.9, *, confidence: float = 0.95) -> Estimate:
    """Return the share of targets whose value is `limit` or more; shape (n_targets,)."""
    x = _numbers(values, "values")
    return clopper_pearson(int(np.count_nonzero(x >= limit)), x.size, confidence=confidence)


def rank_correlation(
    x: ArrayLike,
    values: ArrayLike,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    n_resamples: int = 10_000,
) -> Estimate:
    """Return Spearman's correlation of two properties of the targets, each of shape (n_targets,).

    The interval is Hesterberg's (2015) expanded percentile bootstrap over targets, without the
    resamples in which a property is constant. In simulations at 95 %, it covers the correlation
    in 94 to 99 % of the cases with 10 targets or more, but in as few as 74 % with 5. The ranks of
    so few targets often agree exactly, and then there is no interval. Fisher's z was not used: its
    coverage falls to 83 %, even with 100 targets, if the relation is not that of normal variables.
    """
    tail, (a, b) = _tail(confidence), _alike(_numbers(x, "x"), _numbers(values, "values"))
    n = a.size
    if n < 4:
        return Estimate(None, None, None, f"not resolvable with n = {n} targets")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return Estimate(None, None, None, "not defined: all targets have the same value")
    value = float(_spearman(a, b, np.ones((1, n)))[0])
    if abs(value) == 1:
        return Estimate(value, None, None, f"no interval: the ranks of all {n} agree exactly")
    resampled = _spearman(a, b, _resample_counts(n, seed, n_resamples))
    expanded = float(ndtr(-math.sqrt(n / (n - 1)) * stdtrit(n - 1, 1 - tail)))
    low, high = np.nanquantile(resampled, [expanded, 1 - expanded]).tolist()
    return Estimate(value, low, high)


def _all_alike(value: float, n: int, bounds: tuple[float, float], tail: float) -> Estimate:
    """Return the exact interval of a mean if all n targets have the same value.

    Other people may have any value within the bounds. But if a share of more than
    1 - tail^(1/n) were different, the chance to draw none of them would be below `tail`.
    """
    note = f"the same for all {n} targets"
    if not np.isfinite(bounds).all():
        return Estimate(value, None, None, note, 0.0)
    missed = 1 - tail ** (1 / n)
    low, high = (value + missed * (end - value) for end in bounds)
    return Estimate(value, low, high, note, 0.0)


def _least_share(successes: ArrayLike, n: int, tail: float) -> Floats:
    """Return the share for which the chance of so many successes or more among n is `tail`."""
    count = np.asarray(successes, np.float64)
    share = betaincinv(np.maximum(count, 1.0), n - count + 1, tail)
    return np.where(count > 0, share, 0.0)


def _eps_bounds(
    in_: Floats, out: Floats, thresholds: ArrayLike, delta: float, tail: float
) -> Floats:
    """Return the bounds from TPR / FPR and from TNR / FNR, shape (2, *thresholds.shape)."""
    if not 0 <= delta < 1:
        raise InputError(f"delta must be at least 0 and below 1, not {delta}")
    hits = in_.size - np.searchsorted(np.sort(in_), thresholds, "right")
    rejections = np.searchsorted(np.sort(out), thresholds, "right")
    tpr, tnr = _least_share(hits, in_.size, tail), _least_share(rejections, out.size, tail)
    sure, wrong = np.stack([tpr, tnr]) - delta, 1 - np.stack([tnr, tpr])
    return np.log(sure / wrong, out=np.full(sure.shape, -np.inf), where=sure > 0)


@lru_cache(maxsize=2)
def _resample_counts(n: int, seed: int, n_resamples: int) -> Floats:
    """Return how often each of n targets is drawn, shape (n_resamples, n).

    It is cached, as all attacks have the same targets.
    """
    rng = np.random.default_rng(seed)
    return frozen(rng.multinomial(n, np.full(n, 1 / n), n_resamples), np.float64)


def _studentised(deviations: Floats, counts: Floats) -> Floats:
    """Return the mean of each resample in units of its own standard error.

    The deviations are in units of the standard error of the sample.
    """
    n = deviations.size
    means = counts @ deviations / n
    variances = (counts @ deviations**2 / n - means**2) / (n - 1)
    return np.asarray(means / np.sqrt(np.maximum(variances, _LEAST_SPREAD**2)))


def _spearman(x: Floats, y: Floats, counts: Floats) -> Floats:
    """Return the rank correlation in each resample, NaN where one of the two is constant."""
    a, b = _centred_ranks(x, counts), _centred_ranks(y, counts)
    # Sums of quarters: the product is exact, and so is its root where the ranks agree.
    spread = np.sqrt((counts * a**2).sum(axis=1) * (counts * b**2).sum(axis=1))
    shared = (counts * a * b).sum(axis=1)
    undefined = np.full(spread.shape, np.nan)
    return np.asarray(np.divide(shared, spread, out=undefined, where=spread > 0))


def _centred_ranks(values: Floats, counts: Floats) -> Floats:
    """Return mid-ranks minus their mean in each resample, in the shape of counts."""
    distinct, place = np.unique(values, return_inverse=True)
    tied = counts @ np.eye(distinct.size)[place]
    ranks = np.cumsum(tied, axis=1) - (tied + values.size) / 2
    return np.asarray(ranks[:, place])


def _in_and_out(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return the scores of the IN and of the OUT releases; there must be some of both."""
    score, label = _alike(_numbers(scores, "scores"), _flags(labels, "labels"))
    if label.all() or not label.any():
        raise InputError("there must be releases both with and without the target")
    return score[label], score[~label]


def _numbers(values: ArrayLike, name: str) -> Floats:
    (array,) = _alike(np.asarray(values, np.float64))
    if not np.isfinite(array).all():
        fix = "Give releases that are ruled out a score of -1e9"
        raise InputError(f"{name} must be finite", fix=fix)
    return array


def _flags(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.dtype != np.bool_:
        raise InputError(f"{name} must be True or False, not {array.dtype}")
    return array


def _alike(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return arrays of the same shape (n,), with n at least 1."""
    shapes = [one.shape for one in arrays]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or shapes[0] == (0,):
        raise InputError(f"arrays must have one axis and the same size, not the shapes {shapes}")
    return arrays


def _tail(confidence: float) -> float:
    """Return the chance of error on each side."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}")
    return (1 - confidence) / 2
