"""Several audits side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whosthere.auditing.vocabulary import METRICS
from whosthere.reporting.charts.dots import Dot, DotChart, DotRow, numbered_series
from whosthere.reporting.lookup import Lookup, words_of
from whosthere.reporting.numbers import shortened, with_interval
from whosthere.reporting.sections.about import Entry, glossary_entries
from whosthere.reporting.sections.tables import (
    Cell,
    Head,
    Table,
    finding_cell,
    name_cell,
    verdict_cell,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.auditing.finding import Finding
    from whosthere.auditing.finished import FinishedAudit

_LETTERS = 40


@dataclass(frozen=True)
class Measure:
    """One metric of all protections in all audits."""

    metric: str
    words: str
    chart: DotChart
    table: Table


@dataclass(frozen=True)
class ComparisonPage:
    """The report of several audits side by side."""

    names: tuple[str, ...]
    warnings: tuple[str, ...]
    verdicts: Table
    measures: tuple[Measure, ...]
    plans: Table
    glossary: tuple[Entry, ...]


def comparison_page(audits: Sequence[FinishedAudit]) -> ComparisonPage:
    """Return the sections of a comparison; settings are matched by their names."""
    names = distinct_names(audits)
    settings = _settings(audits)
    found = [Lookup.of(audit) for audit in audits]
    return ComparisonPage(
        names,
        _warnings(audits),
        _verdicts(audits, names, settings),
        tuple(
            measure
            for metric in _metrics(audits)
            if (measure := _measure(metric, names, settings, found)) is not None
        ),
        _plans(audits, names),
        glossary_entries(one.metric for audit in audits for one in audit.findings),
    )


def comparison_json(audits: Sequence[FinishedAudit]) -> dict[str, Any]:
    """Return a comparison as a JSON object: every audit, and what surely changed since the first.

    Under `changes`, every setting and metric has the largest value of all attacks in each audit
    (null where it was not measured), and how all but the first differ from the first.
    """
    names = distinct_names(audits)
    found = [Lookup.of(audit) for audit in audits]
    changes = []
    for setting in _settings(audits):
        for metric in _metrics(audits):
            values = [lookup.largest(setting, metric) for lookup in found]
            changes.append(
                {
                    "setting": setting,
                    "metric": metric,
                    "values": [None if one is None else one.to_json() for one in values],
                    "against_first": [difference(values[0], one) for one in values[1:]],
                }
            )
    return {
        "audits": [
            {"name": name} | audit.to_json() for name, audit in zip(names, audits, strict=True)
        ],
        "changes": changes,
        "warnings": list(_warnings(audits)),
    }


def distinct_names(audits: Sequence[FinishedAudit]) -> tuple[str, ...]:
    """Return a short name for each audit; those called alike are numbered."""
    names = [shortened(audit.name, _LETTERS) for audit in audits]
    often = Counter(names)
    return tuple(f"{i}: {name}" if often[name] > 1 else name for i, name in enumerate(names, 1))


def difference(before: Finding | None, after: Finding | None) -> str:
    """Say whether a value surely changed: only where the two intervals do not overlap."""
    if before is None or after is None or before.estimate is None or after.estimate is None:
        return "not comparable"
    ends = (before.low, before.high, after.low, after.high)
    if any(end is None for end in ends):
        return "cannot tell"
    low, high, new_low, new_high = (float(end) for end in ends if end is not None)
    if new_low > high:
        return "higher"
    return "lower" if new_high < low else "cannot tell"


def _settings(audits: Sequence[FinishedAudit]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.setting for audit in audits for one in audit.verdicts))


def _metrics(audits: Sequence[FinishedAudit]) -> tuple[str, ...]:
    """Return what is compared: all that a policy of some audit limits, and the usual metrics."""
    shown = (metric for audit in audits for metric in audit.policy.metrics_to_show)
    return tuple(dict.fromkeys(shown))


def _verdicts(
    audits: Sequence[FinishedAudit], names: tuple[str, ...], settings: tuple[str, ...]
) -> Table:
    decided = [{verdict.setting: verdict for verdict in audit.verdicts} for audit in audits]
    heads = (
        Head("protection", "setting", numeric=False),
        *(Head(name, numeric=False) for name in names),
    )
    rows = []
    for i, setting in enumerate(settings, 1):
        cells = [Cell(f"{i}  {shortened(setting)}", sort=float(i))]
        for own in decided:
            verdict = own.get(setting)
            cells.append(Cell("not measured") if verdict is None else verdict_cell(verdict))
        rows.append(tuple(cells))
    return Table("The verdicts of each audit, by its own policy.", heads, tuple(rows))


def _measure(
    metric: str, names: tuple[str, ...], settings: tuple[str, ...], found: list[Lookup]
) -> Measure | None:
    series = numbered_series(names)
    words = words_of(metric)
    rows, body = [], []
    for i, setting in enumerate(settings, 1):
        values = [lookup.largest(setting, metric) for lookup in found]
        dots = tuple(
            Dot(
                series[name],
                one.estimate,
                one.low,
                one.high,
                f"{name}, {shortened(setting)}: {words} {with_interval(one)}",
            )
            for name, one in zip(names, values, strict=True)
            if one is not None and one.estimate is not None
        )
        if dots:
            rows.append(DotRow(f"{i}  {setting}", dots))
        changes = [name_cell(difference(values[0], value)) for value in values[1:]]
        first = Cell(f"{i}  {shortened(setting)}", sort=float(i))
        body.append((first, *map(finding_cell, values), *changes))
    if not rows:
        return None
    heads = (
        Head("protection", "setting", numeric=False),
        *(Head(name) for name in names),
        *(Head(f"{name}, against {names[0]}", numeric=False) for name in names[1:]),
    )
    caption = f"{words}, the largest of all attacks, with 95 % intervals."
    low, high = _ends(metric, [dot for row in rows for dot in row.dots])
    chart = DotChart(f"{words} in {len(names)} audits", words, tuple(rows), None, low, high)
    return Measure(metric, words, chart, Table(caption, heads, tuple(body)))


def _ends(metric: str, dots: Sequence[Dot]) -> tuple[float, float]:
    """Return the ends of the axis of a metric."""
    if METRICS[metric].largest is None:
        return 0.0, 1.1 * max(1.0, *(dot.high or dot.estimate for dot in dots))
    return (0.4 if metric in {"auc", "pooled_auc"} else 0.0), 1.0


def _warnings(audits: Sequence[FinishedAudit]) -> tuple[str, ...]:
    said = []
    if any(audit.trusted is False for audit in audits):
        said.append("A control failed in at least one of the audits: do not trust its numbers.")
    if len({str(audit.policy.to_json()) for audit in audits}) > 1:
        said.append(
            "The audits were judged by different policies, so verdicts may differ for that."
        )
    if len({str(audit.manifest.get("traces")) for audit in audits}) > 1:
        said.append("The audits are of different data.")
    if len({str(audit.choice) for audit in audits}) > 1:
        said.append(
            "The audits chose their targets in different ways, so their numbers are about "
            "different people."
        )
    return tuple(said)


def _plans(audits: Sequence[FinishedAudit], names: tuple[str, ...]) -> Table:
    facts: dict[str, list[object]] = {
        "begun": [audit.manifest.get("begun") for audit in audits],
        "SHA-256 of the traces": [str(a.manifest.get("traces", ""))[:16] for a in audits],
        "policy": [shortened(audit.policy.name, _LETTERS) for audit in audits],
        "targets": [audit.n_targets for audit in audits],
        "how targets were chosen": [audit.choice for audit in audits],
        "releases per target": [audit.plan.get("releases") for audit in audits],
        "attacks": [", ".join(Lookup.of(audit).attacks) for audit in audits],
        "seed": [audit.plan.get("seed") for audit in audits],
        "controls": [_passed(audit.trusted) for audit in audits],
        "failed tasks": [audit.failed_tasks for audit in audits],
        "version": [audit.manifest.get("versions", {}).get("whosthere") for audit in audits],
    }
    rows = tuple(
        (name_cell(what), *(name_cell(shortened(_known(value))) for value in values))
        for what, values in facts.items()
    )
    heads = (Head("what", numeric=False), *(Head(name, numeric=False) for name in names))
    return Table("What was done in each audit.", heads, rows)


def _passed(trusted: bool | None) -> str:  # noqa: FBT001 - the value itself
    return "none" if trusted is None else "passed" if trusted else "FAILED"


def _known(value: object) -> str:
    return "not known" if value is None else str(value)
