"""What an attacker expects of its own scores where the target is out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Variances are nothing if they are smaller than others by this factor.
_SAME = 1e-6


@dataclass(frozen=True)
class NullScores:
    """Mean and standard deviation of an attack's scores without the target.

    Attributes
    ----------
    mean, deviation
        The deviation is above 0.
    """

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> NullScores:
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
        return cls(mean, math.sqrt(variance))

    def calibrated(self, score: float) -> float:
        """Return how many deviations a score lies above the mean."""
        return (score - self.mean) / self.deviation
