"""Several audits side by side."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from whosthere.reporting.charts.risk import Dot, DotChart, Protection, numbered_keys
from whosthere.reporting.sections import parts
from whosthere.reporting.sections.about import facts_of
from whosthere.reporting.sections.parts import PROTECTION, Head, Lookup, Table
from whosthere.reporting.words import shortened, texts, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.auditing.result import AuditResult
    from whosthere.auditing.verdict import Verdict
    from whosthere.inference.finding import Finding

_LETTERS = 40
_FACTS = (
    *("begun", "data", "SHA-256 of the traces", "policy", "targets", "how targets were chosen"),
    *("releases per target and protection", "attacks", "seed", "controls", "failed tasks"),
    "versions",
)


class Matched(NamedTuple):
    """A protection: its name, with all group sizes that it has, and its setting in each audit."""

    name: str
    settings: tuple[str | None, ...]

    def values(self, found: Sequence[Lookup], metric: str) -> list[Finding | None]:
        """Return the largest value of all attacks in each audit."""
        return [
            None if setting is None else lookup.largest(setting, metric)
            for lookup, setting in zip(found, self.settings, strict=True)
        ]


class Measure(NamedTuple):
    """One metric of all protections in all audits."""

    metric: str
    chart: DotChart
    table: Table


class ComparisonPage(NamedTuple):
    """The report of several audits side by side."""

    names: tuple[str, ...]
    warnings: tuple[str, ...]
    verdicts: Table
    measures: tuple[Measure, ...]
    plans: Table


def comparison_page(audits: Sequence[AuditResult]) -> ComparisonPage:
    """Return the sections of a comparison; see `_matched` for what stands side by side."""
    names, pairs = distinct_names(audits), _matched(audits)
    found = [Lookup(audit.findings) for audit in audits]
    measures = (_measure(metric, names, pairs, found) for metric in _metrics(audits))
    return ComparisonPage(
        names,
        _warnings(audits, pairs),
        _verdicts(audits, names, pairs),
        tuple(measure for measure in measures if measure is not None),
        _plans(audits, names),
    )


def comparison_json(audits: Sequence[AuditResult]) -> dict[str, Any]:
    """Return a comparison as a JSON object: every audit, and what surely changed since the first.

    Under `changes`, every protection and metric has the largest value of all attacks in each audit
    (null where it was not measured), and how all but the first differ from the first.
    """
    names, pairs = distinct_names(audits), _matched(audits)
    found = [Lookup(audit.findings) for audit in audits]
    changes = []
    for pair in pairs:
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
        "warnings": list(_warnings(audits, pairs)),
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
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return "cannot tell"
    if after.low > before.high:
        return "higher"
    return "lower" if after.high < before.low else "cannot tell"


def _matched(audits: Sequence[AuditResult]) -> tuple[Matched, ...]:
    """Return what stands side by side: settings of the same name.

    Where each audit has a protection with one group size only, its settings are matched even if
    these sizes differ: the question is then what another group size changes.
    """
    made = [audit.manifest["settings"] for audit in audits]
    own = [{one["setting"]: (one["mechanism"], one["knowledge"]) for one in each} for each in made]
    sizes = {one["setting"]: f"m={one['group_size']}" for each in made for one in each}
    found: dict[object, Matched] = {}
    for setting, kind in [item for settings in own for item in settings.items()]:
        alike = [[name for name in settings if settings[name] == kind] for settings in own]
        if max(map(len, alike)) == 1:
            there = dict.fromkeys(sizes[name] for names in alike for name in names)
            name = setting.replace(sizes[setting], " / ".join(there))
            pair = Matched(name, tuple(names[0] if names else None for names in alike))
            found.setdefault(kind, pair)
        else:
            each = tuple(setting if setting in settings else None for settings in own)
            found[setting] = Matched(setting, each)
    return tuple(found.values())


def _metrics(audits: Sequence[AuditResult]) -> tuple[str, ...]:
    """Return what is compared: all that a policy of some audit limits, and the usual metrics."""
    shown = (metric for audit in audits for metric in audit.policy.metrics_to_show)
    return tuple(dict.fromkeys(shown))


def _verdicts(
    audits: Sequence[AuditResult], names: tuple[str, ...], pairs: tuple[Matched, ...]
) -> Table:
    decided: list[dict[str | None, Verdict]] = [
        {verdict.setting: verdict for verdict in audit.verdicts} for audit in audits
    ]
    rows = (
        (
            parts.protection_cell(i, pair.name),
            *(
                own.get(setting, "not measured")
                for own, setting in zip(decided, pair.settings, strict=True)
            ),
        )
        for i, pair in enumerate(pairs, 1)
    )
    return Table.of("The verdicts of each audit, by its own policy.", (PROTECTION, *names), rows)


def _measure(
    metric: str, names: tuple[str, ...], pairs: tuple[Matched, ...], found: list[Lookup]
) -> Measure | None:
    keys = numbered_keys(names)
    words = words_of(metric)
    rows, body = [], []
    for i, pair in enumerate(pairs, 1):
        values = pair.values(found, metric)
        dots = tuple(
            dot
            for name, setting, one in zip(names, pair.settings, values, strict=True)
            for dot in Dot.of(keys[name], one, f"{name}, {shortened(str(setting))}: {words}")
        )
        if dots:
            rows.append(Protection(f"{i}  {pair.name}", dots))
        changes = [difference(values[0], value) for value in values[1:]]
        body.append((parts.protection_cell(i, pair.name), *values, *changes))
    if not rows:
        return None
    heads: tuple[Head | str, ...] = (
        PROTECTION,
        *(Head(name) for name in names),
        *(f"{name}, against {names[0]}" for name in names[1:]),
    )
    caption = f"{words}, the largest of all attacks, with 95 % intervals."
    low, high = parts.axis_ends(metric, rows)
    chart = DotChart(f"{words} in {len(names)} audits", words, tuple(rows), None, low, high)
    return Measure(metric, chart, Table.of(caption, heads, body))


def _warnings(audits: Sequence[AuditResult], pairs: Sequence[Matched]) -> tuple[str, ...]:
    said: dict[str, str] = texts()["comparison"]["warnings"]
    cases = {
        "untrusted": any(audit.trusted is False for audit in audits),
        "policies": len({str(audit.policy.to_json()) for audit in audits}) > 1,
        "traces": len({audit.manifest.get("traces") for audit in audits}) > 1,
        "group_sizes": any(pair.name not in pair.settings for pair in pairs),
        "targets": len({str(audit.choice) for audit in audits}) > 1,
    }
    return tuple(said[case] for case, is_so in cases.items() if is_so)


def _plans(audits: Sequence[AuditResult], names: tuple[str, ...]) -> Table:
    known = [facts_of(audit) for audit in audits]
    rows = ((what, *(facts.get(what, "not known") for facts in known)) for what in _FACTS)
    return Table.of("What was done in each audit.", ("what", *names), rows)
