"""What a search for a protection found: the ladders, what each step costs, and the choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.charts.dots import DECISIONS, Dot, DotChart, DotRow
from whosthere.reporting.lookup import Lookup, words_of
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
    from collections.abc import Iterator, Sequence

    from whosthere.auditing.verdict import Verdict
    from whosthere.inference.finding import Finding
    from whosthere.reporting.sections.tables import Table
    from whosthere.search.recommendation import Candidate, Recommendation

_PATTERN = "pattern_correlation"


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
    verdicts = [candidate.last_verdict for candidate in tried]
    findings = [one for candidate in tried for one in candidate.last_findings]
    lookup = Lookup(findings, verdicts)
    best = [i for i, candidate in enumerate(tried, 1) if candidate in found.best]
    screen = Overview(
        _advice(found),
        (),
        tally(verdicts),
        tuple(card(i, verdicts[i - 1], lookup, opened=True) for i in best),
        pictures(verdicts, lookup, found.policy),
        settings_table(verdicts, lookup, found.policy),
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
        sentence.format(mechanism=shortened(chosen.mechanism), seed=found.confirmation_seed)
        for sentence in texts()["recommendation"]["found"]
    ]
    kept, off = (chosen.utility.get(name) for name in ("cells_kept", "relative_error"))
    share = "an unknown share" if kept is None else f"{kept:.0%}"
    by = "an unknown amount" if off is None else f"{off:.0%}"
    price = (
        f"What is left: {share} of the visited cells are published above 0, and a visited cell is "
    )
    who = chosen.last_verdict.who
    about = [] if who is None else [f"This is about {who}: nothing is said about others."]
    return (*said, f"{price}off by {by} on average.", *about)


def _ladder(family: str, steps: list[Candidate], limit: float | None) -> Ladder:
    risks: list[DotRow] = []
    kept: list[DotRow] = []
    for step in steps:
        label = f"{step.choice}{' (checked by all attacks)' if step.checked else ''}"
        risks += _risk(step, label, step.verdict, step.findings)
        if step.confirmation is not None:
            label_again = f"{step.choice} (confirmation)"
            risks += _risk(step, label_again, step.confirmation, step.confirmation_findings)
        left = step.pattern_kept
        title = f"{shortened(step.mechanism)}: {words_of(_PATTERN)} {number(left)}"
        dot = Dot(DECISIONS[step.last_verdict.decision], left, None, None, title)
        kept.append(DotRow(label, (dot,)))
    name = shortened(family)
    risk = DotChart(f"Risk by step of {name}", "mean AUC", tuple(risks), limit, 0.4, 1.0)
    words = words_of(_PATTERN)
    left_over = DotChart(f"{words} by step of {name}", words, tuple(kept), None, 0, 1)
    return Ladder(name, risk, left_over)


def _risk(
    step: Candidate, label: str, verdict: Verdict, findings: Sequence[Finding]
) -> Iterator[DotRow]:
    """Return the row of a trial; none where no AUC was measured."""
    lookup = Lookup(findings, [verdict])
    one = lookup.largest(verdict.setting, "auc")
    if one is not None and one.estimate is not None:
        title = f"{shortened(step.mechanism)}: mean AUC {with_interval(one)}"
        dot = Dot(DECISIONS[verdict.decision], one.estimate, one.low, one.high, title)
        yield DotRow(label, (dot,), lookup.ceiling(verdict.setting, "auc"))
