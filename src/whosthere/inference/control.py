"""The controls: whether an audit can be trusted.

In control releases somebody else takes the place of the target, so scores are independent of
labels: their AUC must be 0.5. In test releases every published value must lie in the law of the
mechanism like a draw from it (`whosthere.game.checks`). And no attack may do better than the
best test of the game. What differs by more than chance is a fault of the audit itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

from whosthere.inference.metrics import Estimate, auc, least_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Bools, Floats
    from whosthere.inference.panel import Panel

FALSE_ALARMS = 0.01
"""The share of sound audits whose control fails by chance."""
ROLES = (
    "all cells",
    "the target's cells in IN releases",
    "the target's cells in OUT releases",
)
"""Which cells are tested together: a fault of the target is hardly seen among all cells."""
MOMENTS = ("mean", "spread", "skewness", "kurtosis")
"""What the sums are sensitive to, one for each polynomial."""


def control_auc(
    scores: Floats, stand_in: Bools, targets: NDArray[np.integer], *, n_controls: int = 1
) -> Estimate:
    """Return the mean AUC over targets of releases with a stand-in against releases without.

    If labels mean nothing, all orders of a target's scores are equally likely. The variance of
    the AUC is then known (it is that of the Mann-Whitney statistic with ties) and does not have
    to be estimated, so the interval holds even for few targets.

    All have the shape (n_releases,). Intervals are so wide that any of the `n_controls` of an audit
    misses 0.5 in at most a share `FALSE_ALARMS` of sound audits.
    """
    aucs, variances = [], []
    for target in np.unique(targets):
        own = targets == target
        aucs.append(auc(scores[own], stand_in[own]))
        variances.append(_variance_of_chance(scores[own], stand_in[own]))
    mean, error = float(np.mean(aucs)), float(np.sqrt(np.sum(variances))) / len(aucs)
    reach = -float(ndtri(FALSE_ALARMS / n_controls / 2)) * error
    return Estimate(mean, max(mean - reach, 0.0), min(mean + reach, 1.0))


def above_ceiling(
    attack: Floats, best: Floats, rng: np.random.Generator, *, n_controls: int = 1
) -> Estimate:
    """Return how much larger the AUC of an attack is than that of the best test, at least.

    Each release with a target is paired with one without, and no release is in two pairs, so pairs
    are independent. The attack wins a pair if it puts the release with the target first and the
    best test does not, and loses it in the opposite case. The best test is right with at least the
    same chance. So of the pairs that are won or lost, however many these are, the number won is at
    most binomial with a chance of 1/2 (McNemar's test). This is exact for any number of pairs. A
    tie is broken by a coin, the same for both.

    `attack` and `best` are scores of the release with the target and of the one without, shape
    (n_pairs, 2).
    """
    coins = rng.choice([-1, 1], len(attack))
    first, best_first = (
        np.where(np.equal(*pairs.T), coins, np.sign(pairs[:, 0] - pairs[:, 1])) > 0
        for pairs in (attack, best)
    )
    won, lost = int((first & ~best_first).sum()), int((best_first & ~first).sum())
    least = float(least_share(won, won + lost, FALSE_ALARMS / n_controls))
    share = (won + lost) / len(attack)
    return Estimate((won - lost) / len(attack), (2 * least - 1) * share, 1.0)


def above_ceiling_by_rounds(
    panel: Panel, best: Floats, rng: np.random.Generator, *, n_controls: int = 1
) -> Estimate:
    """Return the same of a game of everybody, where all scores of a round depend on one another.

    Rounds are paired two by two. A pair compares everybody who is in one of the two. What is won
    less what is lost, as a share of these people, is one number for a pair of rounds; these numbers
    are independent, and their mean is at most 0 for the best test. The bound is that of Student.

    `best` are scores of the best test, in the shape of the panel's, from the same prior odds.
    """
    margins = []
    for first in range(0, len(best) - 1, 2):
        one, other = (panel.labels[first + i] for i in (0, 1))
        asked = np.flatnonzero(one != other)
        if not asked.size:
            continue
        sign = np.where(one[asked], 1, -1)
        coins = rng.choice([-1, 1], asked.size)
        right = []
        for scores in (panel.scores, best):
            ahead = sign * np.sign(scores[first, asked] - scores[first + 1, asked])
            right.append(np.where(ahead == 0, coins, ahead) > 0)
        margins.append(float(np.mean(right[0] & ~right[1]) - np.mean(right[1] & ~right[0])))
    mean, n = float(np.mean(margins)) if margins else 0.0, len(margins)
    if n < 2:
        return Estimate(mean, -1.0, 1.0)
    reach = -float(stdtrit(n - 1, FALSE_ALARMS / n_controls)) * float(np.std(margins, ddof=1))
    return Estimate(mean, mean - reach / math.sqrt(n), 1.0)


def law_control(sums: Floats, *, n_controls: int = 1) -> Estimate:
    """Return how far published values lie from where their law puts them, where that is worst.

    The value is the mean of a Legendre polynomial over the places of the values in their laws, and
    the interval must hold 0. It is Bernstein's, which holds for any law and any number of values;
    the variance in it is bounded by the sum of squares that was seen, which holds for any law too.
    `sums` are as by `whosthere.game.checks.Checks.sums`, added up over tasks.
    """
    n, _, *moments = np.moveaxis(sums.reshape(len(ROLES), -1), 1, 0)
    mean, squares = np.split(np.array(moments), 2)
    # For each sum: too large, too small, or its squares too small for its variance.
    log_odds = math.log(3 * mean.size * n_controls / FALSE_ALARMS)
    deviation = np.sqrt(squares + log_odds / 2) + math.sqrt(log_odds / 2)
    reach = deviation * math.sqrt(2 * log_odds) + log_odds / 3
    worst = np.unravel_index(np.argmax(np.abs(mean) / reach), mean.shape)
    seen = max(float(n[worst[1]]), 1.0)
    value, allowed = float(mean[worst]) / seen, float(reach[worst]) / seen
    note = f"{MOMENTS[worst[0]]} over {ROLES[worst[1]]}"
    return Estimate(value, value - allowed, value + allowed, note)


def impossible_values(sums: Floats) -> int:
    """Return how many published values have no chance by the law, of sums as in `law_control`."""
    return int(sums.reshape(len(ROLES), -1)[0, 1])


def _variance_of_chance(scores: Floats, labels: Bools) -> float:
    """Return the variance of the AUC over all permutations of the labels."""
    n, n_in = scores.size, int(labels.sum())
    _, ties = np.unique(scores, return_counts=True)
    same = float(((ties.astype(np.float64) ** 3) - ties).sum()) / (n * (n - 1))
    return (n + 1 - same) / (12 * n_in * (n - n_in))
