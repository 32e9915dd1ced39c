"""How many people an attacker names correctly, who names everybody above one threshold.

Of n people who are asked, each is in with a chance that the attacker knows beforehand, the prior.
By a threshold with a TPR and an FPR, n · prior · TPR people are named correctly in a release, and
n · (1 - prior) · FPR by mistake. The precision is the share of the former.

The prior need not be the chance of the game. If nine people in ten are in, whoever names them all
is right in nine cases of ten and has learned nothing. So the prior is 1/2 unless it is given: a
precision above 1/2 then comes from the release alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.errors import InputError
from whosthere.inference.everybody import tpr_at_fpr
from whosthere.inference.intervals import reaches
from whosthere.inference.metrics import TAIL, Estimate, least_share
from whosthere.inference.panel import FEWEST_ALARMS
from whosthere.inference.vocabulary import RATES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whosthere.arrays import Floats
    from whosthere.inference.panel import Curves, Panel

PRECISIONS = (0.75, 0.9, 0.99)
"""Those that are shown if none is asked for; at a prior of 1/2, a guess has 0.5."""


def named(panel: Panel, precision: float, prior: float = 0.5) -> Estimate:
    """Return how many people are named correctly in one release, with at least such a precision.

    The attacker knows the best threshold. It is found among those that make enough false alarms to
    be judged; at the ends of the interval, among those that may have the precision.
    """
    for what, share in (("precision", precision), ("prior", prior)):
        if not 0 < share < 1:
            raise InputError(f"the {what} must be between 0 and 1, not {share}")
    most = panel.n_people * prior
    if precision <= prior:
        return Estimate(most, most, most, "by naming everybody")
    curves, (out, in_) = panel.curves, panel.curves.above
    # The precision is reached where TPR - factor · FPR is not below 0.
    factor = precision / (1 - precision) * (1 - prior) / prior
    surplus = in_ - factor * out
    judged = out * curves.n_out >= FEWEST_ALARMS - 0.5
    value = float(in_[judged & (surplus >= 0)].max(initial=0.0))
    by_round, by_group = curves.left_out
    reach = reaches(by_round[:, 1], by_group[:, 1], TAIL)
    of_surplus = reaches(
        by_round[:, 1] - factor * by_round[:, 0], by_group[:, 1] - factor * by_group[:, 0], TAIL
    )
    (few_alarms, most_alarms), (few_hits, most_hits) = (
        _exact(curves, out, 0),
        _exact(curves, in_, 1),
    )
    surely = surplus >= np.maximum(of_surplus, factor * (most_alarms - out))
    hardly = surplus < -np.maximum(of_surplus, factor * (out - few_alarms))
    low = np.minimum(in_ - reach, few_hits)[surely].max(initial=0.0)
    high = np.maximum(in_ + reach, most_hits)[~hardly].max(initial=0.0)
    ends = min(float(low), value), max(min(float(high), 1.0), value)
    return Estimate(most * value, most * ends[0], most * ends[1])


def naming_table(
    panel: Panel, prior: float = 0.5, rates: Iterable[float] = tuple(RATES.values())
) -> pl.DataFrame:
    """Return how many people are named in one release at some rates of false alarms.

    `named` correctly, with the ends of a 95 % interval; `wrong` are named by mistake. Rates that
    the scores cannot resolve have no numbers.
    """
    n, rows = panel.n_people, []
    for fpr in rates:
        found = tpr_at_fpr(panel.curves, fpr)
        right, low, high = (
            None if one is None else n * prior * one for one in (found.value, found.low, found.high)
        )
        wrong = n * (1 - prior) * float(panel.curves.above[0, panel.curves.place(fpr)])
        row = {"fpr": fpr, "named": right, "named_low": low, "named_high": high}
        known = right is not None
        row |= {"wrong": wrong if known else None}
        row |= {"precision": right / max(right + wrong, 1e-300) if right is not None else None}
        rows.append(row)
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(rows[0], pl.Float64))


def _exact(curves: Curves, shares: Floats, label: int) -> tuple[Floats, Floats]:
    """Return the ends of shares of so many independent scores with a label."""
    n = (curves.n_out, curves.n_in)[label]
    return least_share(n * shares, n, TAIL), 1 - least_share(n * (1 - shares), n, TAIL)
