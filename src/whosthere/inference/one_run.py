"""What guesses about many people at once prove about eps (Steinke, Nasr and Jagielski, 2023).

Each person is in a round by an independent coin of chance 1/2. From the published table, somebody
guesses of some people whether they are in, and abstains from the others. If the table is
differentially private, then each guess is right with a chance of at most e^eps / (1 + e^eps),
whatever came of the guesses before. So the number of right ones is at most binomial ("Privacy
Auditing with One (1) Training Run", arXiv:2305.08846).

Rounds have coins and noise of their own. A person in a round is thus somebody in one large data set
of all rounds, and one coin changes one table: rounds together have the eps of one (parallel
composition). So guesses in several rounds count together, and what they prove is the eps of one
round.

eps is that of adding or removing a person, or, as it is public how many are in, of replacing one by
another: either bounds the odds of a coin. Knowing how many of n people are in moves these odds by
about one part in the root of n, which is not corrected for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom

from whosthere.errors import InputError
from whosthere.inference.metrics import least_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from whosthere.arrays import Ints64

_CANDIDATES = 40
_MOST_EPS = 50.0
# Few guesses are often all right by chance. At a high level, many good ones compare better.
_COMPARED_AT = 0.9999


def one_run_eps(
    scores: ArrayLike,
    labels: ArrayLike,
    guesses: Sequence[tuple[int, int]],
    level: float = 0.95,
    delta: float = 0.0,
) -> float:
    """Return a lower bound of eps at a level, given delta; 0 proves nothing.

    Scores and labels (whether the person is in) have any shape, such as (n_rounds, n_people). Each
    choice of guesses says how many of the highest scores are guessed to be in, and how many of the
    lowest not to be. Choices share the chance of error (Bonferroni); they must not depend on the
    labels.
    """
    score, label = np.ravel(scores), np.ravel(labels).astype(np.bool_)
    if score.size != label.size:
        raise InputError("scores and labels must have the same shape")
    if not guesses or any(min(one) < 0 or sum(one) > score.size for one in guesses):
        raise InputError(f"guesses must be pairs of numbers, together at most {score.size}")
    # Equal scores are in the order of people, which says nothing of who is in.
    ranked = label[np.argsort(score, kind="stable")]
    error = (1 - level) / len(guesses)
    return max(
        eps_of_guesses(
            int(ranked[ranked.size - top :].sum() + bottom - ranked[:bottom].sum()),
            top + bottom,
            1 - error,
            delta,
            score.size,
        )
        for top, bottom in guesses
    )


def eps_of_guesses(
    correct: int, guesses: int, level: float, delta: float = 0.0, people: int = 0
) -> float:
    """Return the largest eps that so many correct guesses rule out, 0 if there is none.

    `people` says how many could have been guessed; it matters only with a delta.
    """
    if not delta:
        share = float(least_share(correct, guesses, 1 - level))
        return max(math.log(share / (1 - share)), 0.0) if share > 0 else 0.0
    low, high = 0.0, _MOST_EPS
    if _chance(correct, guesses, 0.0, delta, people) > 1 - level:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        ruled_out = _chance(correct, guesses, middle, delta, people) <= 1 - level
        low, high = (middle, high) if ruled_out else (low, middle)
    return low


def _chance(correct: int, guesses: int, eps: float, delta: float, people: int) -> float:
    """Return a bound of the chance of so many correct guesses under (eps, delta)."""
    share = 1 / (1 + math.exp(-eps))
    enough = float(binom.sf(correct - 1, guesses, share))
    short = np.arange(1, correct + 1)
    nearly = np.cumsum(binom.pmf(correct - short, guesses, share)) / short
    return enough + 2 * people * delta * float(nearly.max(initial=0.0))


def best_guesses(counts: Ints64) -> tuple[int, int]:
    """Return the edges above and below which to guess, by scores that are not judged afterwards.

    Counts of OUT and IN have the shape (2, n_bins). The result are places of bins: guessed to be in
    is who has a score in the first or a higher bin, guessed not to be who has one below the second.
    """
    n = counts.shape[1]
    upper = np.append(np.cumsum(counts[:, ::-1], axis=1)[:, ::-1], np.zeros((2, 1), int), axis=1)
    lower = np.append(np.zeros((2, 1), int), np.cumsum(counts, axis=1), axis=1)
    tops, bottoms = _spread(upper.sum(axis=0)), _spread(lower.sum(axis=0))
    right = upper[1, tops][:, None] + lower[0, bottoms]
    all_guesses = upper[:, tops].sum(axis=0)[:, None] + lower[:, bottoms].sum(axis=0)
    allowed = (tops[:, None] >= bottoms) & (all_guesses > 0)
    share = least_share(right[allowed], all_guesses[allowed], 1 - _COMPARED_AT)
    bounds = np.zeros(right.shape)
    bounds[allowed] = share
    top, bottom = np.unravel_index(bounds.argmax(), bounds.shape)
    return (int(tops[top]), int(bottoms[bottom])) if bounds.max() > 0 else (n, 0)


def outcome(counts: Ints64, edges: tuple[int, int]) -> tuple[int, int]:
    """Return how many guesses by `best_guesses` are correct, of counts in the same bins, of all."""
    top, bottom = edges
    named, denied = counts[:, top:].sum(axis=1), counts[:, :bottom].sum(axis=1)
    return int(named[1] + denied[0]), int(named.sum() + denied.sum())


def _spread(guesses: Ints64) -> Ints64:
    """Return places with about evenly spaced logarithms of numbers of guesses, and those of 0."""
    logs = np.log1p(guesses)
    wanted = np.linspace(0, logs.max(), _CANDIDATES)
    places = [int(np.abs(logs - one).argmin()) for one in wanted]
    return np.unique(places)
