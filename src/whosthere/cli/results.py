"""The results of an audit as tables in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.cli import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.auditing.finding import Finding
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.run import Audited

_COLUMNS = {
    "auc": "mean AUC",
    "accuracy": "accuracy",
    "tpr_at_fpr_1pct": "TPR at 1% FPR",
    "share_auc_90": "AUC >= 0.9",
    "empirical_eps": "eps",
}
_LEGEND = (
    "With 95 % intervals. AUC: 0.5 is guessing, 1 is certainty. TPR at 1% FPR: share of people "
    "found while 1 in 100 others is named by mistake. AUC >= 0.9: share of people who are all but "
    "exposed. eps: the least privacy loss that the attack proves, with one person in place of "
    "another. Omniscient: no attack, but "
    "what somebody would reach who knows where everybody else was."
)


def show_audit(result: Audited, policy: Policy) -> None:
    """Print a table and a verdict for each setting."""
    for verdict in result.verdicts:
        own = [finding for finding in result.findings if finding.setting == verdict.setting]
        console.say("")
        console.verdict(verdict.decision, verdict.setting)
        console.table("", ("attack", *_COLUMNS.values()), _rows(own))
        for reason in verdict.reasons:
            console.say(reason)
    console.say("")
    console.say(_LEGEND)
    console.say(f"Judged by the policy {policy.name!r}.")
    if result.trusted:
        console.say("The control found nothing where there is nothing to find, as it must.")
    else:
        console.complain(
            "the control found a signal where there is none, so this audit cannot be trusted"
        )


def _rows(findings: Sequence[Finding]) -> list[list[str]]:
    from whosthere.auditing.vocabulary import CEILING

    by_metric = {(finding.attack, finding.metric): finding for finding in findings}
    attacks = dict.fromkeys(finding.attack for finding in findings)
    # What attacks reach first, then what bounds them all.
    attacks[CEILING] = attacks.pop(CEILING, None)
    return [
        [attack, *(shown(by_metric.get((attack, metric))) for metric in _COLUMNS)]
        for attack in attacks
    ]


def shown(finding: Finding | None) -> str:
    """Write a finding for a cell of a table: its value, and its interval on the next line."""
    if finding is None:
        return ""
    if finding.estimate is None:
        return "not resolvable"
    if finding.low is None or finding.high is None:
        return f"{finding.estimate:.2f}"
    return f"{finding.estimate:.3f}\n{finding.low:.2f}\N{EN DASH}{finding.high:.2f}"
