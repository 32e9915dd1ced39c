"""Findings of the game of everybody: the same metrics as in the game of one target."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.inference import one_run
from whosthere.inference.finding import Finding
from whosthere.inference.intervals import of_share, reaches
from whosthere.inference.looks import FIRST_ERRORS, Errors
from whosthere.inference.metrics import TAIL, Estimate
from whosthere.inference.panel import FEWEST_ALARMS
from whosthere.inference.risk import mean_of_people, percentile, share_above
from whosthere.inference.vocabulary import CEILING, RATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from whosthere.arrays import Floats, Ints64
    from whosthere.inference.panel import Curves, Panel

FEWEST_AT_TOP = 50
"""Of fewer people, the tenth with the largest risk is fewer than five."""
# How far around a rate the slope of the curve is taken.
_AROUND = 1.25
# Scores that are equal may be as large a part of the false alarms before they are taken for a step.
_STEP = 0.1


def everybody_findings(
    panel: Panel, *, setting: str, attack: str, include: float, errors: Errors = FIRST_ERRORS
) -> Iterator[Finding]:
    """Return all metrics of an attack; of the ceiling, those that it can be compared by.

    Everybody was in a round with the chance `include`.
    """
    curves, n = panel.curves, panel.n_people

    def finding(metric: str, estimate: Estimate) -> Finding:
        measured = asdict(estimate)
        value = measured.pop("value")
        return Finding(setting, attack, metric, value, measured.pop("low"), measured.pop("high"),
                       n, curves.n_in, curves.n_out, **measured)  # fmt: skip

    is_attack = attack != CEILING
    yield finding("auc", mean_of_people(panel.people, 0, errors=errors))
    yield finding("pooled_auc", pooled_auc(curves, errors))
    if is_attack:
        yield finding("accuracy", mean_of_people(panel.people, 1, errors=errors))
    for name, fpr in RATES.items():
        yield finding(name, tpr_at_fpr(curves, fpr, errors))
    if is_attack:
        yield from (finding(*one) for one in _eps(panel.of_units.curves, include, errors))
    yield finding("share_auc_90", share_above(panel.people, 0.9, errors=errors))
    if is_attack:
        top = percentile(panel.people, 0.9, errors=errors)
        few = f"about fewer than 5 people: {FEWEST_AT_TOP} are needed"
        yield finding("auc_p90", top if n >= FEWEST_AT_TOP else Estimate(None, None, None, few))


def pooled_auc(curves: Curves, errors: Errors = FIRST_ERRORS) -> Estimate:
    """Return the AUC over everybody and all rounds together; equal scores count half."""
    counts = curves.counts
    by_round, by_group = (_auc(counts - one) for one in (curves.by_round, curves.by_group))
    n = min(curves.n_in, curves.n_out)
    return of_share(float(_auc(counts)), by_round, by_group, n, errors)


def _auc(counts: Ints64) -> Floats:
    out, in_ = counts[..., 0, :].astype(np.float64), counts[..., 1, :]
    pairs = np.maximum(out.sum(axis=-1) * in_.sum(axis=-1), 1)
    return np.asarray(((np.cumsum(out, axis=-1) - out / 2) * in_).sum(axis=-1) / pairs)


def tpr_at_fpr(curves: Curves, fpr: float, errors: Errors = FIRST_ERRORS) -> Estimate:
    """Return the share of IN scores above the lowest threshold that a share `fpr` of OUT exceeds.

    The interval counts that the threshold is from the same scores: where a round has more false
    alarms, the threshold rises by as much as the slope of the curve says. Where many scores are
    equal, the curve has a step instead; the interval goes on to there if the threshold may.
    """
    if not curves.resolves(fpr):
        needed = f"{FEWEST_ALARMS / fpr:,.0f} OUT scores are needed"
        return Estimate(None, None, None, f"not resolvable with {curves.n_out:,}: {needed}")
    place, out = curves.place(fpr), np.append(curves.above[0], 0.0)
    before = float(out[place - 1]) if place else 1.0
    large = max(_STEP * fpr, 1.5 / curves.n_out)
    step_below, step_above = before - out[place] > large, out[place] - out[place + 1] > large
    # Around a high rate, it is what is left up to 1 that counts.
    higher = min(fpr * _AROUND, 1 - (1 - fpr) / _AROUND)
    lower = max(fpr / _AROUND, 1 - (1 - fpr) * _AROUND)
    slope = _slope(
        curves,
        place if step_below else curves.place(higher),
        place if step_above else curves.place(lower),
    )
    found = _share_found(curves, place, slope, errors)
    by_round, by_group = (one[:, 0] for one in curves.left_out)
    reach = reaches(by_round, by_group, min(TAIL, errors.low, errors.high))
    if found.low is None:
        return found
    if step_below and place and before - reach[place - 1] <= fpr:
        more = _share_found(curves, place - 1, 0.0, errors)
        found = replace(found, high=more.high, high_to_decide=more.high_to_decide)
    if step_above and place < reach.size - 1 and out[place] + reach[place] > fpr:
        less = _share_found(curves, place + 1, 0.0, errors)
        found = replace(found, low=less.low, low_to_decide=less.low_to_decide)
    return found


def roc(panel: Panel, rates: Iterable[float]) -> pl.DataFrame:
    """Return `tpr` at some rates of false alarms, `fpr`, with the ends of a 95 % interval.

    Rates that the scores cannot resolve are left out. Who names everybody finds everybody.
    """
    found = ((fpr, tpr_at_fpr(panel.curves, fpr)) for fpr in rates)
    rows = [(fpr, one.value, one.low, one.high) for fpr, one in found if one.value is not None]
    rows.append((1.0, 1.0, 1.0, 1.0))
    columns = dict.fromkeys(("fpr", "tpr", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, columns, orient="row")


def _slope(curves: Curves, first: int, last: int) -> float:
    (out, in_) = curves.above
    more = out[first] - out[last]
    return float((in_[first] - in_[last]) / more) if more > 0 else 0.0


def _share_found(curves: Curves, place: int, slope: float, errors: Errors) -> Estimate:
    """Return the share of IN above an edge that moves with the false alarms by a slope."""
    out, in_ = curves.above[:, place]
    by_round, by_group = (
        np.clip(one[:, 1, place] - slope * (one[:, 0, place] - out), 0, 1)
        for one in curves.left_out
    )
    return of_share(float(in_), by_round, by_group, curves.n_in, errors)


def _eps(curves: Curves, include: float, errors: Errors) -> Iterator[tuple[str, Estimate]]:
    """Return what the scores prove about eps, and what they could prove at most."""
    if include != 0.5:
        why = "only where everybody is in with a chance of 1/2 (--include 0.5)"
        yield "empirical_eps", Estimate(None, None, None, why)
        return
    if len(curves.by_round) == 1:
        why = "not resolvable with 1 round: another one chooses whom to guess"
        yield "empirical_eps", Estimate(None, None, None, why)
        return
    held_out = np.arange(len(curves.by_round)) % 2 == 0
    judged = curves.by_round[~held_out].sum(axis=0)
    guesses = one_run.best_guesses(curves.by_round[held_out].sum(axis=0))
    bound, to_decide = (
        one_run.eps_of_guesses(*one_run.outcome(judged, guesses), 1 - chance)
        for chance in (2 * TAIL, errors.low)
    )
    yield "empirical_eps", Estimate(bound, bound, None, low_to_decide=to_decide)
    n = int(judged.sum())
    most = one_run.eps_of_guesses(n, n, 1 - 2 * TAIL)
    yield "empirical_eps_ceiling", Estimate(most, most, most)
