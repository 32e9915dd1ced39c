"""What a search for a protection found: the choice, and what each step of a family costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.reporting.charts.risk import DECISIONS, Dot, DotChart, Protection
from whosthere.reporting.lookup import KEPT, Lookup
from whosthere.reporting.sections.overview import overview_of
from whosthere.reporting.words import number, shortened, texts, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.auditing.verdict import Verdict
    from whosthere.inference.finding import Finding
    from whosthere.reporting.charts.svg import Chart
    from whosthere.reporting.sections.overview import Overview
    from whosthere.search.recommendation import Candidate, Recommendation


def choice_section(found: Recommendation) -> Overview:
    """Return the first screen: what was chosen, and all that was tried."""
    tried = found.candidates
    findings = [one for candidate in tried for one in candidate.last_findings]
    return overview_of(
        [candidate.last_verdict for candidate in tried],
        Lookup(findings),
        found.policy,
        advice=tuple(_advice(found)),
        best=[i for i, candidate in enumerate(tried, 1) if candidate in found.best],
    )


def ladders_section(found: Recommendation) -> dict[str, dict[str, Chart]]:
    """Return the risk and the cost of the steps of each family, from weak to strong."""
    families: dict[str, list[Candidate]] = {}
    for candidate in found.candidates:
        families.setdefault(shortened(candidate.family), []).append(candidate)
    limit = next((limit.most for limit in found.policy.limits if limit.metric == "auc"), None)
    return {family: _figures(family, steps, limit) for family, steps in families.items()}


def _advice(found: Recommendation) -> Iterator[str]:
    said = texts()["recommendation"]
    chosen = found.recommended
    if chosen is None:
        yield from said["nothing"]
        return
    for sentence in said["found"]:
        yield sentence.format(mechanism=shortened(chosen.mechanism), seed=found.confirmation_seed)
    kept, off = (chosen.utility.get(name) for name in ("cells_kept", "relative_error"))
    share = "an unknown share" if kept is None else f"{kept:.0%}"
    yield said["left"].format(
        share=share, error="an unknown amount" if off is None else f"{off:.0%}"
    )
    if chosen.last_verdict.who is not None:
        yield said["about"].format(who=chosen.last_verdict.who)


def _figures(family: str, steps: list[Candidate], limit: float | None) -> dict[str, Chart]:
    risks: list[Protection] = []
    kept: list[Protection] = []
    words = words_of(KEPT)
    for step in steps:
        name = shortened(step.mechanism)
        label = f"{step.choice}{' (checked by all attacks)' if step.checked else ''}"
        risks.append(_risk(name, label, step.verdict, step.findings))
        if step.confirmation is not None:
            again = f"{step.choice} (confirmation)"
            risks.append(_risk(name, again, step.confirmation, step.confirmation_findings))
        left, key = step.pattern_kept, DECISIONS[step.last_verdict.decision]
        dot = Dot(key, left, None, None, f"{name}: {words} {number(left)}")
        kept.append(Protection(label, (dot,)))
    measured = tuple(row for row in risks if row.dots)
    risk = DotChart(f"Risk by step of {family}", "mean AUC", measured, limit, 0.4, 1.0)
    left_over = DotChart(f"{words} by step of {family}", words, tuple(kept), None, 0, 1)
    return {"risk": risk, "kept": left_over}


def _risk(name: str, label: str, verdict: Verdict, findings: Sequence[Finding]) -> Protection:
    """Return what a trial of a step found."""
    lookup = Lookup(findings)
    auc = lookup.largest(verdict.setting, "auc")
    dots = Dot.of(DECISIONS[verdict.decision], auc, f"{name}: mean AUC")
    return Protection(label, dots, lookup.ceiling(verdict.setting, "auc"))
