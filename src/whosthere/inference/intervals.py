"""Intervals where the same people are asked in every round.

Scores of a round depend on one another, by whoever else was drawn, by its noise and by the rates
that were fitted to it; so do those of a person in all rounds. What varies between rounds and what
varies between people are both taken from the data, by leaving out a round, and by leaving out a
group of people. The two variances are added. Noise that is neither a round's nor a person's is in
both, so that intervals are a little too wide rather than too narrow.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit, stdtrit

from whosthere.inference.looks import FIRST_ERRORS, Errors
from whosthere.inference.metrics import TAIL, Estimate, least_share

if TYPE_CHECKING:
    from whosthere.arrays import Floats


def variance(left_out: Floats) -> Floats:
    """Return the delete-one jackknife variance, given values without each of n parts: (n, ...)."""
    n = len(left_out)
    return np.asarray(left_out.var(axis=0) * (n - 1))


def reaches(by_round: Floats, by_group: Floats, tail: float) -> Floats:
    """Return how far a value reaches to one side, so that the truth is beyond with chance `tail`.

    Given are the values without each round and without each group of people, shapes (n, ...).
    Student's t has the degrees of freedom of Satterthwaite.
    """
    rounds, groups = variance(by_round), variance(by_group)
    both = rounds + groups
    weights = rounds**2 / max(len(by_round) - 1, 1) + groups**2 / max(len(by_group) - 1, 1)
    freedom = np.divide(both**2, weights, out=np.ones_like(both), where=weights > 0)
    return np.asarray(-stdtrit(freedom, tail) * np.sqrt(both))


def of_share(
    value: float, by_round: Floats, by_group: Floats, n: int, errors: Errors = FIRST_ERRORS
) -> Estimate:
    """Return a share, or another number from 0 to 1, with its interval.

    It is one of log-odds, and at least the exact one of so many independent observations, n: where
    all are the same, nothing varies. Values without each round and without each group of people
    have the shape (n_rounds,), (n_groups,).
    """
    if len(by_round) == 1:
        return Estimate(value, None, None, "no interval with 1 round")

    def ends(tail: float) -> tuple[float, float]:
        low = float(least_share(n * value, n, tail))
        high = float(1 - least_share(n * (1 - value), n, tail))
        if 0 < value < 1:
            reach = float(reaches(by_round, by_group, tail)) / (value * (1 - value))
            low = min(low, float(expit(logit(value) - reach)))
            high = max(high, float(expit(logit(value) + reach)))
        return low, high

    low, high = ends(TAIL)
    error = math.sqrt(float(variance(by_round) + variance(by_group)))
    return Estimate(value, low, high, None, error, ends(errors.low)[0], ends(errors.high)[1])
