"""What differential privacy alone says about any attacker.

Under (E, delta) differential privacy, every test of whether a person is in that raises a false
alarm with chance f finds the person with a chance of at most

    min(1, delta + e^E f, 1 - e^-E (1 - delta - f)),

and one mechanism reaches all of these at once. The curve is made of three straight lines; the
area above it is (1 - delta)^2 / (1 + e^E).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from whosthere.privacy.mechanism import Mechanism


def dp_auc_bound(total_eps: float, delta: float = 0.0) -> float:
    """Return the best AUC of any attacker against a person protected by (total_eps, delta).

    It is e^E / (1 + e^E) for delta = 0. It is 1 in floating point from E of about 37.
    """
    _check(total_eps, delta)
    return float(1 - (1 - delta) ** 2 * expit(-total_eps))


def dp_tpr_bound(fpr: ArrayLike, total_eps: float, delta: float = 0.0) -> NDArray[np.float64]:
    """Return the best true-positive rate of any attacker at given false-positive rates.

    The same shape as `fpr`, whose values lie in 0..1.
    """
    _check(total_eps, delta)
    rates = np.asarray(fpr, np.float64)
    if not np.all((rates >= 0) & (rates <= 1)):
        raise InputError("false-positive rates must lie between 0 and 1")
    positive = rates > 0
    # Above 0 the line is above 1 in any case, and exp would overflow.
    exponent = np.minimum(np.log(np.where(positive, rates, 1.0)) + total_eps, 0.0)
    steep = delta + np.where(positive, np.exp(exponent), 0.0)
    flat = 1 - math.exp(-total_eps) * (1 - delta - rates)
    return np.asarray(np.minimum(np.minimum(steep, flat), 1.0))


def person_budget(
    mechanism: Mechanism, visits: int, active_days: int
) -> tuple[float, float] | None:
    """Return the eps and delta that a whole person spends, or None without a guarantee.

    A person with k units (visits, days with a visit, or one) is a group of k neighbours in a
    row. So eps becomes k eps, and delta becomes k e^((k - 1) eps) delta, 1 at most.

    Parameters
    ----------
    visits
        How many visits the person made.
    active_days
        On how many local days there was one.
    """
    if min(visits, active_days) < 0:
        raise InputError("a person cannot have fewer than 0 visits or active days")
    given = mechanism.guarantee
    if given is None:
        return None
    eps = given.unit.total_budget(given.eps, visits=visits, active_days=active_days)
    units = given.unit.total_budget(1.0, visits=visits, active_days=active_days)
    if given.delta == 0 or units == 0:
        return eps, 0.0
    log_delta = math.log(given.delta) + math.log(units) + (units - 1) * given.eps
    return eps, math.exp(min(log_delta, 0.0))


def _check(total_eps: float, delta: float) -> None:
    # Infinity is fine: no protection at all.
    if not total_eps >= 0:
        raise InputError(f"a budget must be 0 or more, not {total_eps}")
    if not 0 <= delta <= 1:
        raise InputError(f"delta must lie between 0 and 1, not {delta}")
