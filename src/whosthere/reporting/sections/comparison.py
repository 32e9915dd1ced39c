"""Several audits side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whosthere.inference.vocabulary import METRICS
from whosthere.reporting.charts.dots import Dot, DotChart, DotRow, numbered_series
from whosthere.reporting.lookup import (
    Lookup,
    group_size_of,
    with_group_size,
    words_of,
)
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

    from whosthere.auditing.result import AuditResult
    from whosthere.inference.finding import Finding

_LETTERS = 40


@dataclass(frozen=True)
class Matched:
    """A protection in each audit: its setting there, None where it was not measured."""

    settings: tuple[str | None, ...]

    @property
    def _present(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(setting for setting in self.settings if setting is not None))

    @property
    def differs(self) -> bool:
        """Whether the audits have different group sizes."""
        return len(self._present) > 1

    @property
    def name(self) -> str:
        """What to call it: its name, with all group sizes that it has."""
        first, *_ = self._present
        if not self.differs:
            return first
        sizes = " / ".join(f"m={group_size_of(setting)}" for setting in self._present)
        return with_group_size(first, f", {sizes}")

    def values(self, found: Sequence[Lookup], metric: str) -> list[Finding | None]:
        """Return the largest value of all attacks in each audit."""
        return [
            None if setting is None else lookup.largest(setting, metric)
            for lookup, setting in zip(found, self.settings, strict=True)
        ]


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


def comparison_page(audits: Sequence[AuditResult]) -> ComparisonPage:
    """Return the sections of a comparison; see `matched` for what stands side by side."""
    names = distinct_names(audits)
    pairs = matched(audits)
    found = [Lookup.of(audit) for audit in audits]
    return ComparisonPage(
        names,
        _warnings(audits),
        _verdicts(audits, names, pairs),
        tuple(
            measure
            for metric in _metrics(audits)
            if (measure := _measure(metric, names, pairs, found)) is not None
        ),
        _plans(audits, names),
        glossary_entries(one.metric for audit in audits for one in audit.findings),
    )


def comparison_json(audits: Sequence[AuditResult]) -> dict[str, Any]:
    """Return a comparison as a JSON object: every audit, and what surely changed since the first.

    Under `changes`, every protection and metric has the largest value of all attacks in each audit
    (null where it was not measured), and how all but the first differ from the first. `settings`
    are the names that the protection has in each audit.
    """
    names = distinct_names(audits)
    found = [Lookup.of(audit) for audit in audits]
    changes = []
    for pair in matched(audits):
        for metric in _metrics(audits):
            values = pair.values(found, metric)
            changes.append(
                {
                    "setting": pair.name,
                    "settings": list(pair.settings),
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


def distinct_names(audits: Sequence[AuditResult]) -> tuple[str, ...]:
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


def matched(audits: Sequence[AuditResult]) -> tuple[Matched, ...]:
    """Return what stands side by side: settings of the same name.

    Where each audit has a protection with one group size only, its settings are matched even if
    these sizes differ: the question is then what another group size changes.
    """
    own = [[one.setting for one in audit.verdicts] for audit in audits]
    found: dict[str, Matched] = {}
    for setting in dict.fromkeys(name for names in own for name in names):
        kind = with_group_size(setting, "")
        alike = [[name for name in names if with_group_size(name, "") == kind] for names in own]
        if max(map(len, alike)) == 1:
            found[kind] = Matched(tuple(names[0] if names else None for names in alike))
        else:
            found[setting] = Matched(tuple(setting if setting in names else None for names in own))
    return tuple(found.values())


def _metrics(audits: Sequence[AuditResult]) -> tuple[str, ...]:
    """Return what is compared: all that a policy of some audit limits, and the usual metrics."""
    shown = (metric for audit in audits for metric in audit.policy.metrics_to_show)
    return tuple(dict.fromkeys(shown))


def _verdicts(
    audits: Sequence[AuditResult], names: tuple[str, ...], pairs: tuple[Matched, ...]
) -> Table:
    decided = [{verdict.setting: verdict for verdict in audit.verdicts} for audit in audits]
    heads = (
        Head("protection", "setting", numeric=False),
        *(Head(name, numeric=False) for name in names),
    )
    rows = []
    for i, pair in enumerate(pairs, 1):
        cells = [Cell(f"{i}  {shortened(pair.name)}", sort=float(i))]
        for own, setting in zip(decided, pair.settings, strict=True):
            verdict = None if setting is None else own[setting]
            cells.append(Cell("not measured") if verdict is None else verdict_cell(verdict))
        rows.append(tuple(cells))
    return Table("The verdicts of each audit, by its own policy.", heads, tuple(rows))


def _measure(
    metric: str, names: tuple[str, ...], pairs: tuple[Matched, ...], found: list[Lookup]
) -> Measure | None:
    series = numbered_series(names)
    words = words_of(metric)
    rows, body = [], []
    for i, pair in enumerate(pairs, 1):
        values = pair.values(found, metric)
        dots = tuple(
            Dot(
                series[name],
                one.estimate,
                one.low,
                one.high,
                f"{name}, {shortened(one.setting)}: {words} {with_interval(one)}",
            )
            for name, one in zip(names, values, strict=True)
            if one is not None and one.estimate is not None
        )
        if dots:
            rows.append(DotRow(f"{i}  {pair.name}", dots))
        changes = [name_cell(difference(values[0], value)) for value in values[1:]]
        first = Cell(f"{i}  {shortened(pair.name)}", sort=float(i))
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


def _warnings(audits: Sequence[AuditResult]) -> tuple[str, ...]:
    said = []
    if any(audit.trusted is False for audit in audits):
        said.append("A control failed in at least one of the audits: do not trust its numbers.")
    if len({str(audit.policy.to_json()) for audit in audits}) > 1:
        said.append(
            "The audits were judged by different policies, so verdicts may differ for that."
        )
    if len({str(audit.manifest.get("traces")) for audit in audits}) > 1:
        said.append("The audits are of different data.")
    if any(pair.differs for pair in matched(audits)):
        said.append(
            "Some protections were measured with different group sizes (m), in the order of the "
            "audits. What changes there may be due to the group size."
        )
    if len({str(audit.choice) for audit in audits}) > 1:
        said.append(
            "The audits chose their targets in different ways, so their numbers are about "
            "different people."
        )
    return tuple(said)


def _plans(audits: Sequence[AuditResult], names: tuple[str, ...]) -> Table:
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
