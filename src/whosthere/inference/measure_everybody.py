"""From scores of a game of everybody to findings.

All people are asked in the same rounds, so a few rounds say much about many people. What a round
has in common, such as its noise, makes all of its scores depend on one another: the rounds are a
sample too, and often the smaller one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.inference import control, metrics
from whosthere.inference.everybody import everybody_findings
from whosthere.inference.looks import FIRST_LOOK, Errors, Look
from whosthere.inference.measure import Measured, by_setting_and_attack, checked
from whosthere.inference.panel import Panel
from whosthere.inference.scores import RULED_OUT, Scores
from whosthere.inference.vocabulary import (
    CEILING,
    CONTROL,
    EXCESS,
    OF_UTILITY,
    SHARED_AUC,
    STUDY_ONLY,
    UTILITY,
    is_judged,
)
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from whosthere.arrays import Floats
    from whosthere.inference.finding import Finding


def measure_everybody(
    scores: Scores,
    *,
    include: float,
    seed: int,
    n_limits: int = 1,
    n_attacks: int | None = None,
    look: Look = FIRST_LOOK,
    n_controls: int | None = None,
) -> list[Finding]:
    """Measure everything, where each person is in a round with the chance `include`.

    Attacks that score one person after the other are measured on the targets. All else is as for
    `whosthere.inference.measure.measure`.
    """
    parts = by_setting_and_attack(scores.tests)
    control_parts = by_setting_and_attack(scores.controls)
    has_ceiling = {
        setting
        for (setting, name), rows in parts.items()
        if name == CEILING and not rows["score"].null_count()
    }
    compared = [one for one in parts if one[0] in has_ceiling and not one[1].endswith(STUDY_ONLY)]
    n_controls = n_controls or len(control_parts) + len(compared)
    found: list[Finding] = []
    for setting in dict.fromkeys(one for one, _ in parts):
        own = {name: rows for (one, name), rows in parts.items() if one == setting}
        n_judged = max((n_attacks or sum(map(is_judged, own))) * n_limits, 1)
        errors = Errors.at(look, n_judged=n_judged)
        rounds = {name: rows["release"].n_unique() for name, rows in own.items()}
        shared = min((n for name, n in rounds.items() if is_judged(name)), default=0)
        best = _panel(scores, setting, CEILING, own) if setting in has_ceiling else None
        ruled_out = 0
        for attack in own:
            if attack != CEILING:
                panel = _panel(scores, setting, attack, own)
            elif best is None:
                continue
            else:
                panel = best
            findings = partial(
                everybody_findings, setting=setting, attack=attack, include=include, errors=errors
            )
            measured = list(findings(panel))
            found += measured
            if is_judged(attack) and rounds[attack] > shared:
                first = findings(Panel(panel.scores[:shared], panel.labels[:shared], panel.units))
                found.append(replace(next(first), metric=SHARED_AUC))
            like = measured[0]
            if (setting, attack) in control_parts:
                found.append(_control(scores, like, control_parts, n_controls))
            if (setting, attack) in compared and attack != CEILING and best is not None:
                ruled_out += int((panel.labels & (panel.scores <= RULED_OUT)).sum())
                beside = best
                if (setting, attack) not in scores.everybody:
                    beside = _of_targets(own[CEILING])
                odds = _log_odds(best)
                found.append(_excess(panel, beside, odds, like, seed=seed, n_controls=n_controls))
        releases = Measured(own[CEILING], seed) if CEILING in own else None
        if releases is not None:
            found += _left_to_publish(releases)
            here = pl.col("setting") == setting
            found += checked(
                releases,
                scores.tests.filter(here).clear(),
                scores.controls.filter(here),
                n_controls,
                ruled_out=ruled_out,
            )
    return found


def _panel(scores: Scores, setting: str, attack: str, own: Mapping[str, pl.DataFrame]) -> Panel:
    asked = scores.everybody.get((setting, attack))
    return _of_targets(own[attack]) if asked is None else asked.tests()


def _of_targets(rows: pl.DataFrame) -> Panel:
    """Return the scores of targets, who are all asked in the same rounds."""
    # The scores of an attack with its own threshold for each person are counted from there.
    shifted = rows.sort("release", "target").select(
        "label",
        score=pl.col("calibrated").fill_nan(None).fill_null(pl.col("score") - pl.col("threshold")),
    )
    n = rows["target"].n_unique()
    labels = shifted["label"].to_numpy().reshape(-1, n)
    return Panel(shifted["score"].to_numpy().astype(np.float32).reshape(-1, n), labels)


def _control(
    scores: Scores,
    like: Finding,
    parts: Mapping[tuple[str, str], pl.DataFrame],
    n_controls: int,
) -> Finding:
    """Compare those of control rounds for whom a coin fell heads with all others."""
    key = like.setting, like.attack
    asked = scores.everybody.get(key)
    panel = (_of_targets(parts[key]) if asked is None else asked.controls()).of_units
    # Of few people, all coins of a round may fall alike, which says nothing.
    heads = panel.labels.mean(axis=1)
    some = (heads > 0) & (heads < 1)
    n_rounds, n_people = int(some.sum()), panel.n_people
    rounds = np.repeat(np.arange(n_rounds), n_people)
    said = panel.scores[some].ravel().astype(np.float64)
    estimate = control.control_auc(said, panel.labels[some].ravel(), rounds, n_controls=n_controls)
    note = f"99 % interval for all {n_controls} controls together"
    return _finding(like, CONTROL, replace(estimate, note=note))


def _log_odds(everybody: Panel) -> Floats:
    """Return the log-odds of being in each round by how many are in it, which is public."""
    n_in, n = everybody.labels.sum(axis=1), everybody.n_people
    return np.asarray(np.log((n_in + 0.5) / (n - n_in + 0.5)))


def _excess(
    panel: Panel, best: Panel, log_odds: Floats, like: Finding, *, seed: int, n_controls: int
) -> Finding:
    """Compare an attack with the best test, on pairs of rounds that both scored.

    Somebody who is in one of two rounds is likelier in the larger one, so the best test starts from
    the odds of each round. An attack whose scores depend on how many are in finds that as well.
    """
    rng = generator(seed, "ties", like.setting, like.attack)
    n = min(len(panel.scores), len(best.scores))
    one = Panel(panel.scores[:n], panel.labels[:n])
    beside = best.scores[:n] + log_odds[:n, None]
    estimate = control.above_ceiling_by_rounds(one, beside, rng, n_controls=n_controls)
    note = f"lower bound at 99 % for all {n_controls} controls together"
    return _finding(like, EXCESS, replace(estimate, note=note))


def _left_to_publish(releases: Measured) -> Iterator[Finding]:
    """Return what the protection leaves of the true counts, mean over blocks of rounds."""
    blocks = releases.rows.select(OF_UTILITY).unique(maintain_order=True)
    for metric in OF_UTILITY:
        known = blocks[metric].drop_nulls().to_numpy()
        if known.size:
            mean = metrics.mean_over_groups(known)
            yield replace(releases.finding(metric, mean), attack=UTILITY)


def _finding(like: Finding, metric: str, estimate: metrics.Estimate) -> Finding:
    return replace(
        like,
        metric=metric,
        estimate=estimate.value,
        low=estimate.low,
        high=estimate.high,
        note=estimate.note,
        standard_error=None,
        low_to_decide=None,
        high_to_decide=None,
    )
