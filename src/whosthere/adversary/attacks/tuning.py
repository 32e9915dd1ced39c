"""What an attacker learns from its own scores of groups with and without the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.adversary.attacks.base import Answer

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Variances are nothing if they are smaller than others by this factor.
_SAME = 1e-6


@dataclass(frozen=True)
class Tuning:
    """A threshold, and what scores are like without the target.

    Attributes
    ----------
    threshold
        Scores above it are called in.
    mean, deviation
        Of scores without the target; the deviation is above 0.
    """

    threshold: float
    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Tuning:
        """Learn from the scores of groups of which the attacker knows whether the target is in.

        The deviation is that of the groups without the target, with the usual deviation within
        either kind as one observation more. So it is not 0 where the few groups without the
        target happen to score alike. Where scores are alike within both kinds, it is that of all
        scores; where all are alike, 1.

        Parameters
        ----------
        scores, labels
            Scores, and whether the target is in, shape (n_groups,); at least one group is without.
        """
        out, rest = scores[~labels], scores[labels]
        squares = float(((out - out.mean()) ** 2).sum())
        within = squares + (float(((rest - rest.mean()) ** 2).sum()) if rest.size else 0.0)
        usual = within / max(scores.size - 2, 1)
        mean, variance, total = float(out.mean()), (squares + usual) / out.size, float(scores.var())
        if variance <= _SAME * total:
            variance = total
        if variance <= _SAME**2 * (1 + mean**2):
            variance = 1.0
        return cls(youden_threshold(scores, labels), mean, math.sqrt(variance))

    def answer(self, score: float) -> Answer:
        """Return what a score means: the decision, and how many deviations it is above the mean."""
        return Answer(score, self.threshold, (score - self.mean) / self.deviation)


def youden_threshold(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the threshold with the largest share of true less share of false alarms.

    Scores above it are called in. It lies in the middle between two scores that occur, or
    beyond all of them; of several equally good ones it is the middle one.
    """
    values = np.unique(scores)
    padded = np.concatenate([[values[0] - 1.0], values, [values[-1] + 1.0]])
    candidates = (padded[:-1] + padded[1:]) / 2
    missed = np.searchsorted(np.sort(scores[labels]), candidates, side="right")
    passed = np.searchsorted(np.sort(scores[~labels]), candidates, side="right")
    j = passed / max((~labels).sum(), 1) - missed / max(labels.sum(), 1)
    best = np.flatnonzero(j >= j.max() - 1e-12)
    return float(candidates[best[(best.size - 1) // 2]])
