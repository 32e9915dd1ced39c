"""How well an attack distinguishes releases with a person from releases without, and how surely.

An attack gives each release a score: the higher the score, the more likely the target is in. A
label says whether the target really is in. Given their target, releases are independent.

People are the sample, and the releases of one person are repetitions. All intervals are over
people: they hold for everybody from whom the targets were drawn. They are two-sided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit

from whosthere.arrays import Floats, Ints64, frozen
from whosthere.errors import InputError
from whosthere.inference.looks import FIRST_ERRORS, Errors
from whosthere.inference.mean_bound import lower_bound, upper_bound

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


TAIL = (1 - 0.95) / 2
"""The chance of error on each side of the intervals that are shown, which are 95 % ones."""
# A quantile of resamples is trusted if so many of them lie beyond it.
_FEWEST_BEYOND = 10


@dataclass(frozen=True)
class Estimate:
    """A number with its interval. What cannot be given is None, and the note says why.

    Only means have a standard error. `low_to_decide` and `high_to_decide` are the ends that a
    verdict looks at, which err with the chances of `whosthere.inference.looks.Errors`.
    """

    value: float | None
    low: float | None
    high: float | None
    note: str | None = None
    standard_error: float | None = None
    low_to_decide: float | None = None
    high_to_decide: float | None = None


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
) -> tuple[Ints64, Floats]:
    """Return the distinct targets in ascending order, and the AUC over the releases of each.

    Both have the shape (n_targets,); `targets` holds a whole number for each release.
    """
    score, label, target = np.asarray(scores), np.asarray(labels), np.asarray(targets)
    order = np.argsort(target, kind="stable")
    distinct, first = np.unique(target[order], return_index=True)
    aucs = [auc(score[rows], label[rows]) for rows in np.split(order, first[1:])]
    return frozen(distinct, np.int64), frozen(aucs, np.float64)


def mean_over_targets(
    values: ArrayLike,
    *,
    unseen: tuple[float, float],
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return the mean of one value per target, with an interval for the mean over all people.

    A sample can miss rare people, so each end allows for one person who was not seen, by Gaffke's
    bound (`whosthere.inference.mean_bound`). For the upper end, this person has the largest
    possible value: nothing is assumed about people who are not in the sample. For the lower end,
    the attacker can only guess about this person, or does as badly as about the worst target. If
    all n targets have the same value, the ends are what the mean would be if a share
    1 - 0.025^(1/n) of people had the other value: so many are missed in 2.5 % of all samples.

    `values` has the shape (n_targets,). `unseen` is the value of somebody about whom the attacker
    can only guess, and the largest possible value, such as (0.5, 1) for an AUC.
    """
    x = np.asarray(values, np.float64)
    guessed, most = unseen
    if x.size == 1:
        return Estimate(float(x[0]), None, None, "no interval with n = 1")
    note = f"the same for all {x.size} targets" if np.ptp(x) == 0 else None
    least = min(guessed, float(x.min()))
    low, low_to_decide = (lower_bound(x, least, chance) for chance in (TAIL, errors.low))
    high, high_to_decide = (upper_bound(x, most, chance) for chance in (TAIL, errors.high))
    error = float(x.std(ddof=1)) / math.sqrt(x.size)
    return Estimate(float(x.mean()), low, high, note, error, low_to_decide, high_to_decide)


def mean_over_groups(values: ArrayLike) -> Estimate:
    """Return the mean of a property of groups of people, with Student's t interval.

    A protection treats all groups alike: there is no rare one that a sample could miss, even where
    all have the same value.
    """
    x = np.asarray(values, np.float64)
    value = float(x[0])
    if x.size == 1:
        return Estimate(value, None, None, "no interval with n = 1")
    if np.ptp(x) == 0:
        return Estimate(value, value, value, f"the same for all {x.size} targets", 0.0)
    mean, error = float(x.mean()), float(x.std(ddof=1)) / math.sqrt(x.size)
    reach = float(stdtrit(x.size - 1, 1 - TAIL)) * error
    return Estimate(mean, mean - reach, mean + reach, None, error)


def accuracy_by_target(
    decisions: ArrayLike, labels: ArrayLike, targets: ArrayLike
) -> tuple[Ints64, Floats]:
    """Return the distinct targets in ascending order, and how often the attacker is right on each.

    Both have the shape (n_targets,). `decisions` tells for each release whether the attacker says
    that the target is in; the threshold must have been fixed beforehand.
    """
    distinct, place = np.unique(targets, return_inverse=True)
    right = np.bincount(place, np.equal(decisions, labels)) / np.bincount(place)
    return frozen(distinct, np.int64), frozen(right, np.float64)


def pooled_auc(
    scores: ArrayLike,
    labels: ArrayLike,
    targets: ArrayLike,
    *,
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return the AUC over the releases of all targets together.

    It compares the IN releases of each target to the OUT releases of all. Each target's share in it
    is computed from its IN and its OUT releases (the linear part of a U-statistic), and
    `mean_over_targets` gives the interval. A person who is always found counts twice, so the upper
    end is larger than that of a mean AUC of the same value. Arguments are as for `tpr_at_fpr`.
    """
    score, label = np.asarray(scores, np.float64), np.asarray(labels)
    distinct, place = np.unique(targets, return_inverse=True)
    in_, out = map(np.sort, _in_and_out(score, label))
    beaten = np.where(label, _share_below(out, score), 1 - _share_below(in_, score))
    value = float(beaten[label].mean())
    gain = (beaten - value) / np.where(label, in_.size, out.size)
    parts = value + distinct.size * np.bincount(place, gain)
    # In exact arithmetic equal; a spread of rounding errors would pass for one of people.
    parts = np.where(np.isclose(parts, value, rtol=0, atol=1e-12), value, parts)
    guessed, most = 1 - value, max(2 - value, float(parts.max()))
    found = mean_over_targets(parts, unseen=(guessed, most), errors=errors)
    ends = (found.low, found.high, found.low_to_decide, found.high_to_decide)
    low, high, *to_decide = (None if end is None else min(max(end, 0.0), 1.0) for end in ends)
    return Estimate(value, low, high, found.note, found.standard_error, *to_decide)


def tpr_at_fpr(
    scores: ArrayLike,
    labels: ArrayLike,
    targets: ArrayLike,
    fpr: float,
    *,
    seed: int = 0,
    n_resamples: int = 10_000,
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return the share of IN releases above a threshold that few OUT releases exceed.

    The threshold is the smallest one that at most a share `fpr` of the OUT releases of all targets
    exceeds.

    For the interval, targets are weighted at random, with all their releases, and the threshold is
    found anew for every weighting (a Bayesian bootstrap). One person more is added who was not
    seen. For the upper end, the attacker finds this person in every IN release. For the lower end,
    the attacker finds this person in none, and all OUT releases of theirs are false alarms at every
    threshold. If the threshold were known, this would be the bound of Gaffke (2005) for a mean.

    A share `fpr` of people with nothing but false alarms uses up all that are allowed, and the
    attacker then finds nobody else. Where a sample may have missed them, (1 - fpr)^n > 0.025, the
    lower end is 0, and a note says how many targets are needed.

    Scores (comparable between targets), labels (whether the target is in) and targets have the
    shape (n_releases,); every target needs IN and OUT releases.
    """
    label = np.asarray(labels)
    in_, out = _in_and_out(scores, label)
    distinct, place = np.unique(targets, return_inverse=True)
    n = distinct.size
    if out.size * fpr < 1 - 1e-9:
        return Estimate(None, None, None, _too_few(n, out.size, fpr))
    thresholds = np.unique(out)
    above = _above(thresholds, in_, place[label], n), _above(thresholds, out, place[~label], n)
    value = float(_weighted_tpr(*above, np.ones((1, n + 1)), fpr, unseen=None)[0])
    if n == 1:
        return Estimate(value, None, None, "no interval with 1 target")
    weights = _random_weights(n + 1, seed, n_resamples)
    least = _weighted_tpr(*above, weights, fpr, unseen=False)
    most = _weighted_tpr(*above, weights, fpr, unseen=True)
    low, low_to_decide = (
        min(_low_quantile(least, chance), value) if n >= least_people(fpr, chance) else 0.0
        for chance in (TAIL, errors.low)
    )
    high, high_to_decide = (
        max(1 - _low_quantile(1 - most, chance), value) for chance in (TAIL, errors.high)
    )
    needed = least_people(fpr, errors.low)
    too_few = f"no lower end above 0 with {n:,} targets: at least {needed:,} are needed"
    note = too_few if value > 0 and n < needed else None
    return Estimate(value, low, high, note, None, low_to_decide, high_to_decide)


def empirical_eps(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    held_out: ArrayLike,
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return a lower bound on the eps with which the releases can have been published.

    Differential privacy implies TPR <= e^eps FPR, and the same for TNR and FNR. The threshold and
    one of the two inequalities are chosen to give the best bound on the releases that `held_out`
    marks. The others then give the bound, which is too large with a chance of at most 5 %. `value`
    and `low` are both the bound; there is no `high`.
    """
    mask, score, label = np.asarray(held_out), np.asarray(scores), np.asarray(labels)
    in_, out = _in_and_out(score[mask], label[mask])
    steps = np.unique(np.concatenate([in_, out]))
    thresholds = np.concatenate([steps[:-1] / 2 + steps[1:] / 2, steps[-1:]])
    bounds = _eps_bounds(in_, out, thresholds, TAIL)
    direction, best = np.unravel_index(bounds.argmax(), bounds.shape)
    in_, out = _in_and_out(score[~mask], label[~mask])
    # Both rates may be wrong, so that each has half of the error.
    value, low_to_decide = (
        max(float(_eps_bounds(in_, out, thresholds[best], chance)[direction]), 0.0)
        for chance in (TAIL, errors.low / 2)
    )
    reached = value == eps_ceiling(in_.size, out.size)
    note = f"the most that {in_.size} IN and {out.size} OUT releases can show" if reached else None
    return Estimate(value, value, None, note, low_to_decide=low_to_decide)


def eps_ceiling(n_in: int, n_out: int) -> float:
    """Return the bound of an attack without errors, by as many releases that are not held out."""
    flawless = _eps_bounds(np.ones(n_in), np.zeros(n_out), 0.5, TAIL)
    return max(float(flawless.max()), 0.0)


def _eps_bounds(in_: Floats, out: Floats, thresholds: ArrayLike, tail: float) -> Floats:
    """Return the bounds from TPR / FPR and from TNR / FNR, shape (2, *thresholds.shape)."""
    hits = in_.size - np.searchsorted(np.sort(in_), thresholds, "right")
    rejections = np.searchsorted(np.sort(out), thresholds, "right")
    tpr, tnr = least_share(hits, in_.size, tail), least_share(rejections, out.size, tail)
    sure, wrong = np.stack([tpr, tnr]), 1 - np.stack([tnr, tpr])
    return np.log(sure / wrong, out=np.full(sure.shape, -np.inf), where=sure > 0)


def _weighted_tpr(
    in_above: Floats, out_above: Floats, weights: Floats, fpr: float, *, unseen: bool | None
) -> Floats:
    """Return the TPR in each weighting of the targets, shape (n_weightings,).

    How many releases of each target are above each threshold is as by `_above`. Weights have the
    shape (n_weightings, n_targets + 1). The last is that of the person who
    was not seen: there is none if `unseen` is None, else it tells whether they are found.
    """
    own, extra = weights[:, :-1], weights[:, -1] * (unseen is not None)
    extra_out = extra * out_above[-1].mean()
    allowed = fpr * (own @ out_above[-1] + extra_out) * (1 + 1e-9)
    above_all = extra_out * (unseen is False)
    least, most = np.zeros(extra.size, np.intp), np.full(extra.size, len(out_above) - 1)
    # The share above grows from threshold to threshold: halve the range until one is left.
    while (most > least).any():
        middle = (least + most + 1) // 2
        above = np.einsum("rt,rt->r", own, out_above[middle]) + above_all
        fits = above <= allowed
        least, most = np.where(fits, middle, least), np.where(fits, most, middle - 1)
    hits = np.einsum("rt,rt->r", own, in_above[least])
    people = in_above[-1]
    unseen_in = extra * people.mean()
    rates = (hits + unseen_in * (unseen is True)) / (own @ people + unseen_in)
    return np.asarray(np.minimum(rates, 1.0))


def _above(thresholds: Floats, scores: Floats, place: NDArray[np.intp], n_targets: int) -> Floats:
    """Return how many scores of each target are above each threshold, which ascend.

    The shape is (n_thresholds + 2, n_targets): from infinity down to minus infinity.
    """
    # A score counts from the first threshold below it: the last place is minus infinity.
    first = thresholds.size + 1 - np.searchsorted(thresholds, scores, "left")
    shape = (thresholds.size + 2, n_targets)
    counts = np.bincount(first * n_targets + place, minlength=math.prod(shape)).reshape(shape)
    return frozen(np.cumsum(counts, axis=0), np.float64)


def _in_and_out(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return the scores of the IN and of the OUT releases; there must be some of both."""
    score, label = np.asarray(scores, np.float64), np.asarray(labels)
    if not np.isfinite(score).all():
        fix = "Give releases that are ruled out a score of -1e9"
        raise InputError("scores must be finite", fix=fix)
    if label.all() or not label.any():
        raise InputError("there must be releases both with and without the target")
    return score[label], score[~label]


def _too_few(n_targets: int, n_out: int, fpr: float) -> str:
    needed, each = math.ceil(1 / fpr - 1e-9), n_out / n_targets
    targets = f"{n_targets} target" + "s" * (n_targets > 1)
    return (
        f"not resolvable with {targets} and {n_out:,} OUT releases: {needed:,} OUT releases are "
        f"needed, such as {targets} with {math.ceil(needed / n_targets)} each or "
        f"{math.ceil(needed / each)} targets with {each:.3g} each"
    )


def _share_below(others: Floats, scores: Floats) -> Floats:
    """Return the share of the other scores, which are sorted, below each; ties count half."""
    below = np.searchsorted(others, scores, "left") + np.searchsorted(others, scores, "right")
    return np.asarray(below / (2 * others.size))


def _low_quantile(shares: Floats, tail: float) -> float:
    """Return a low quantile of resampled shares.

    Resamples cannot show tails of few of them; there, log-odds fall off as normal ones do.
    """
    shown = max(tail, min(_FEWEST_BEYOND / shares.size, 0.025))
    middle, low = np.quantile(shares, [0.5, shown]).tolist()
    if shown == tail or not 0 < low <= middle < 1:
        return float(low)
    far = float(ndtri(tail) / ndtri(shown))
    return float(expit(logit(middle) + far * (logit(low) - logit(middle))))


def least_people(share: float, tail: float) -> int:
    """Return how many people must be drawn to miss all of a share but with a chance of `tail`."""
    return 1 if share == 1 else math.ceil(math.log(tail) / math.log1p(-share) - 1e-9)


def least_share(successes: ArrayLike, n: ArrayLike, tail: float) -> Floats:
    """Return the share for which the chance of so many successes or more among n is `tail`."""
    count = np.asarray(successes, np.float64)
    share = betaincinv(np.maximum(count, 1e-300), np.asarray(n) - count + 1, tail)
    return np.where(count > 0, share, 0.0)


@lru_cache(maxsize=2)
def _random_weights(n: int, seed: int, n_resamples: int) -> Floats:
    """Return exponential weights, shape (n_resamples, n): their shares are evenly distributed.

    They are cached, as all attacks have the same targets.
    """
    return frozen(np.random.default_rng(seed).exponential(size=(n_resamples, n)), np.float64)
