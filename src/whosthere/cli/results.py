"""The results of an audit as tables in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.cli import console
from whosthere.display import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.auditing.follow_up import MeanOverTargets, WhatIf
    from whosthere.auditing.result import AuditResult
    from whosthere.inference.finding import Finding

_HEADS = {
    "auc": "mean AUC",
    "pooled_auc": "AUC, all",
    "accuracy": "accuracy",
    "tpr_at_fpr_1pct": "TPR at 1% FPR",
    "share_auc_90": "AUC >= 0.9",
    "empirical_eps": "eps",
}
_HEADS_OF_UTILITY = {
    "visits_kept": "visits kept",
    "cells_kept": "cells kept",
    "relative_error": "relative error",
    "pattern_correlation": "pattern correlation",
}


def head_of(metric: str) -> str:
    """Return what a metric is called in the head of a column of a terminal."""
    from whosthere.inference.vocabulary import METRICS

    return _HEADS.get(metric, METRICS[metric].words)


def show_audit(result: AuditResult) -> None:
    """Print a table and a verdict for each setting, and what the numbers mean."""
    from whosthere.inference.vocabulary import CEILING, GUARANTEE, UTILITY, glossary

    for verdict in result.verdicts:
        own = [finding for finding in result.findings if finding.setting == verdict.setting]
        console.say("")
        console.verdict(verdict.decision, verdict.headline, useless=verdict.useless)
        console.table("", ("attack", *_HEADS.values()), _rows(own))
        left = _row_of_utility(own)
        if left:
            console.table("Left to publish", tuple(_HEADS_OF_UTILITY.values()), [left])
        for reason in verdict.reasons:
            console.say(reason)
        for title, said in (("Guaranteed", verdict.guaranteed), ("Meaning", verdict.meaning)):
            for sentence in said:
                console.say(f"{title}: {sentence}")
    console.say("")
    if result.what_if:
        _show_what_if(result.what_if)
    console.say("All numbers with 95 % intervals.")
    for words, explanation in glossary([*_HEADS, CEILING, GUARANTEE, UTILITY, *_HEADS_OF_UTILITY]):
        console.say(f"- {words}: {explanation}")
    _show_targets(result)
    for caution in result.cautions:
        console.say(f"Note: {caution}")
    console.say(f"Judged by the policy {result.policy.name!r}.")
    if result.trusted:
        console.say("All controls passed.")
    elif result.trusted is None:
        console.say("There was no control, so nothing shows that the audit itself is sound.")
    else:
        console.complain(
            "a control failed, so this audit cannot be trusted; the reasons above say which one"
        )


def _show_targets(result: AuditResult) -> None:
    """Say how many people were attacked, and how they were chosen."""
    n, chosen = result.n_targets, result.choice or "it is not known how they were chosen"
    console.say(f"{counted(n, 'target')}, {chosen}.")


def show_named_targets(result: AuditResult) -> None:
    """Print a line for each target that was asked for by name, by number and not by name."""
    from whosthere.inference.vocabulary import CEILING

    numbers = {row: i for i, row in enumerate(result.plan["targets"], start=1)}
    rows = [
        (
            str(numbers[row["target"]]),
            row["setting"],
            row["attack"],
            f"{row['auc']:.3f}",
            f"{row['accuracy']:.3f}",
            str(row["releases"]),
        )
        for row in result.targets.sort("target").iter_rows(named=True)
        if row["attack"] != CEILING
    ]
    rows.sort(key=lambda row: int(row[0]))
    header = ("target", "setting", "attack", "AUC", "accuracy", "releases")
    console.table("Named targets, in the order given (no intervals: one person each)", header, rows)


def _rows(findings: Sequence[Finding]) -> list[list[str]]:
    from whosthere.auditing.result import shown
    from whosthere.inference.vocabulary import CEILING, GUARANTEE, UTILITY

    by_metric = {(finding.attack, finding.metric): finding for finding in findings}
    attacks = dict.fromkeys(one.attack for one in findings if one.attack != UTILITY)
    # What attacks reach first, then what bounds them all.
    for line in (CEILING, GUARANTEE):
        if line in attacks:
            attacks[line] = attacks.pop(line)
    return [
        [attack, *(shown(by_metric.get((attack, metric)), between="\n") for metric in _HEADS)]
        for attack in attacks
    ]


def _row_of_utility(findings: Sequence[Finding]) -> list[str]:
    """Return what is left to publish as the cells of a row; none where it was not measured."""
    from whosthere.auditing.result import shown
    from whosthere.inference.vocabulary import UTILITY

    own = {finding.metric: finding for finding in findings if finding.attack == UTILITY}
    cells = [shown(own.get(metric), between="\n") for metric in _HEADS_OF_UTILITY]
    return cells if own else []


def _show_what_if(tried: Sequence[WhatIf]) -> None:
    rows = [
        (
            one.setting,
            one.change,
            *(_interval(found) for found in (one.before, one.after)),
            *(_share(kept.get("cells_kept")) for kept in (one.utility_before, one.utility_after)),
        )
        for one in tried
    ]
    header = ("setting", "change", "mean AUC", "after", "cells kept", "after")
    console.table(
        "What if (likelihood-ratio on a few releases; nothing is judged by it)", header, rows
    )


def _interval(found: MeanOverTargets) -> str:
    if found.estimate is None or found.low is None or found.high is None:
        return _share(found.estimate)
    return f"{found.estimate:.3f}\n{found.low:.2f}\N{EN DASH}{found.high:.2f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
