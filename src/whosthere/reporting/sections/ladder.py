"""What a search for a protection found: the ladders, what each step costs, and the choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.auditing.finding import Finding
from whosthere.reporting.charts.dots import DECISIONS, Dot, DotChart, DotRow
from whosthere.reporting.lookup import UTILITY, Lookup, words_of
from whosthere.reporting.numbers import number, shortened, with_interval
from whosthere.reporting.sections.about import Entry, glossary_entries, policy_table
from whosthere.reporting.sections.overview import (
    Overview,
    card,
    pictures,
    settings_table,
    tally,
)
from whosthere.reporting.texts import texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whosthere.auditing.search import Candidate, Recommendation
    from whosthere.reporting.sections.tables import Table


@dataclass(frozen=True)
class Ladder:
    """The steps of one family that were tried, from weak to strong: their risk and their cost."""

    family: str
    risk: DotChart
    kept: DotChart


@dataclass(frozen=True)
class LadderPage:
    """The report of a recommendation."""

    overview: Overview
    ladders: tuple[Ladder, ...]
    checked: tuple[str, ...]
    policy: Table
    policy_name: str
    glossary: tuple[Entry, ...]


def ladder_page(found: Recommendation) -> LadderPage:
    """Return the sections of a recommendation's report."""
    tried = found.candidates
    verdicts = [candidate.verdict for candidate in tried]
    findings = [one for candidate in tried for one in (*candidate.findings, *_utility(candidate))]
    lookup = Lookup(findings, verdicts)
    best = [i for i, candidate in enumerate(tried, 1) if candidate in found.best]
    screen = Overview(
        _advice(found),
        (),
        tally(verdicts),
        tuple(card(i, verdicts[i - 1], lookup, opened=True) for i in best),
        pictures(verdicts, lookup, found.policy),
        settings_table(verdicts, lookup),
    )
    limits = {limit.metric: limit.most for limit in found.policy.limits}
    return LadderPage(
        screen,
        tuple(
            _ladder(family, [one for one in tried if one.family == family], limits.get("auc"))
            for family in dict.fromkeys(candidate.family for candidate in tried)
        ),
        tuple(shortened(candidate.mechanism) for candidate in tried if candidate.checked),
        policy_table(found.policy),
        shortened(found.policy.name),
        glossary_entries(one.metric for one in findings),
    )


def _advice(found: Recommendation) -> tuple[str, ...]:
    chosen = found.recommended
    if chosen is None:
        return tuple(texts()["recommendation"]["nothing"])
    said = [
        sentence.format(mechanism=shortened(chosen.mechanism))
        for sentence in texts()["recommendation"]["found"]
    ]
    cost = chosen.utility
    lost = "An unknown share" if cost.nonzero_lost is None else f"{cost.nonzero_lost:.0%}"
    off = cost.mean_relative_error
    by = "an unknown amount" if off is None else f"{off:.0%}"
    price = f"What it costs: {lost} of the visited cells are published as 0, and a visited cell is "
    return (*said, f"{price}off by {by} on average.")


def _utility(candidate: Candidate) -> Iterator[Finding]:
    """Return what a candidate keeps in the form of findings."""
    kept = candidate.utility
    values = {
        "pattern_kept": 1 - candidate.pattern_lost,
        "cells_kept": None if kept.nonzero_lost is None else 1 - kept.nonzero_lost,
        "relative_error": kept.mean_relative_error,
    }
    for metric, value in values.items():
        yield Finding(candidate.verdict.setting, UTILITY, metric, value, None, None, 0, 0, 0)


def _ladder(family: str, steps: list[Candidate], limit: float | None) -> Ladder:
    risks, kept = [], []
    for step in steps:
        series = DECISIONS[step.verdict.decision]
        lookup = Lookup(step.findings, [step.verdict])
        one = lookup.largest(step.verdict.setting, "auc")
        label = f"{step.choice}{' (checked by all attacks)' if step.checked else ''}"
        if one is not None and one.estimate is not None:
            title = f"{shortened(step.mechanism)}: mean AUC {with_interval(one)}"
            dot = Dot(series, one.estimate, one.low, one.high, title)
            risks.append(DotRow(label, (dot,), lookup.ceiling(step.verdict.setting, "auc")))
        left = 1 - step.pattern_lost
        title = f"{shortened(step.mechanism)}: {words_of('pattern_kept')} {number(left)}"
        kept.append(DotRow(label, (Dot(series, left, None, None, title),)))
    name = shortened(family)
    risk = DotChart(f"Risk by step of {name}", "mean AUC", tuple(risks), limit, 0.4, 1.0)
    left_over = DotChart(f"Pattern kept by step of {name}", "pattern kept", tuple(kept), None, 0, 1)
    return Ladder(name, risk, left_over)
