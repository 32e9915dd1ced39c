"""The least privacy loss that the scores of an attack prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.errors import InputError
from whosthere.inference.looks import FIRST_ERRORS
from whosthere.inference.metrics import Estimate, least_share
from whosthere.inference.samples import TAIL, flags, in_and_out, same_length

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from whosthere.inference.looks import Errors

    Floats = NDArray[np.float64]


def empirical_eps(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    held_out: ArrayLike,
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return a lower bound on the eps with which the releases can have been published.

    Differential privacy implies TPR <= e^eps FPR, and the same for TNR and FNR. The threshold and
    one of the two inequalities are chosen to give the best bound on the held-out releases. The
    other releases then give the bound, which is too large with a chance of at most 5 %. `value`
    and `low` are both the bound; there is no `high`. `low_to_decide` is too large with a chance of
    at most `errors.low`.

    Scores and labels are as for `auc`; `held_out` marks the releases that the choice is based on,
    shape (n_releases,).
    """
    mask = flags(held_out, "held_out")
    _, score, label = same_length(mask, np.asarray(scores), np.asarray(labels))
    in_, out = in_and_out(score[mask], label[mask])
    steps = np.unique(np.concatenate([in_, out]))
    thresholds = np.concatenate([steps[:-1] / 2 + steps[1:] / 2, steps[-1:]])
    bounds = _eps_bounds(in_, out, thresholds, TAIL)
    direction, best = np.unravel_index(bounds.argmax(), bounds.shape)
    in_, out = in_and_out(score[~mask], label[~mask])
    # Both rates may be wrong, so that each has half of the error.
    value, low_to_decide = (
        max(float(_eps_bounds(in_, out, thresholds[best], chance)[direction]), 0.0)
        for chance in (TAIL, errors.low / 2)
    )
    reached = value == eps_ceiling(in_.size, out.size)
    note = f"the most that {in_.size} IN and {out.size} OUT releases can show" if reached else None
    return Estimate(value, value, None, note, low_to_decide=low_to_decide)


def eps_ceiling(n_in: int, n_out: int) -> float:
    """Return the bound that an attack without errors gets from releases that are not held out.

    `empirical_eps` cannot return a larger one for as many releases.
    """
    if min(n_in, n_out) < 1:
        raise InputError("a bound on eps needs at least one IN and one OUT release")
    flawless = _eps_bounds(np.ones(n_in), np.zeros(n_out), 0.5, TAIL)
    return max(float(flawless.max()), 0.0)


def _eps_bounds(in_: Floats, out: Floats, thresholds: ArrayLike, tail: float) -> Floats:
    """Return the bounds from TPR / FPR and from TNR / FNR, shape (2, *thresholds.shape)."""
    hits = in_.size - np.searchsorted(np.sort(in_), thresholds, "right")
    rejections = np.searchsorted(np.sort(out), thresholds, "right")
    tpr, tnr = least_share(hits, in_.size, tail), least_share(rejections, out.size, tail)
    sure, wrong = np.stack([tpr, tnr]), 1 - np.stack([tnr, tpr])
    return np.log(sure / wrong, out=np.full(sure.shape, -np.inf), where=sure > 0)
