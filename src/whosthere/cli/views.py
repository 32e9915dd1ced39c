"""Commands that only look: at a file, at finished audits, at what can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from whosthere.cli import console
from whosthere.errors import InputError, listed

if TYPE_CHECKING:
    from whosthere.data.reading.source import Source
    from whosthere.data.traces import Traces
    from whosthere.privacy.catalogue import Preset
    from whosthere.privacy.release import Release
    from whosthere.reporting.sections.comparison import ComparisonPage
    from whosthere.specs import Kind


def report(
    run: Path,
    *,
    out: Path | None = None,
    json: bool = False,
    force: bool = False,
) -> None:
    """Write the report of a finished audit: one HTML file that opens offline.

    `whosthere audit` writes it at its end; this writes it anew. It names nobody and shows no
    single trace.

    Example: `whosthere report run --out report.html`
    """
    from whosthere.auditing.loading import load
    from whosthere.reporting.report import REPORT, audit_report, refuse_page

    path = run / REPORT if out is None else out
    # The one in the folder of the audit is ours to replace.
    replaced = force or out is None
    audit = load(run)
    refuse_page(path, force=replaced, runs=(run,))
    with console.working("Drawing the report ..."):
        audit_report(audit).save(path, force=replaced)
    show = partial(console.say, f"Written: {path}")
    console.result({"file": str(path)}, show, json=json)


def compare(
    runs: list[Path],
    *,
    out: Path | None = None,
    force: bool = False,
    json: bool = False,
) -> None:
    """Show several audits side by side: before and after, two months, two cities.

    Protections are matched by their names, or by what is done to the counts where only the group
    size differs. A value counts as changed only if the intervals of the two audits do not overlap.

    Example: `whosthere compare run stricter-run --out comparison.html`, or the same with `--json`
    """
    from whosthere.auditing.loading import load
    from whosthere.reporting.report import comparison_report, refuse_page
    from whosthere.reporting.sections.comparison import comparison_json, comparison_page

    if len(runs) < 2:
        raise InputError("one audit cannot be compared", fix="Name at least two folders")
    if out is not None:
        refuse_page(out, force=force, runs=runs)
    audits = [load(run) for run in runs]
    if json:
        console.print_json(comparison_json(audits))
    else:
        _show_comparison(comparison_page(audits))
    if out is not None:
        comparison_report(audits).save(out, force=force)
        if not json:
            console.say(f"Written: {out}")


def _show_comparison(page: ComparisonPage) -> None:
    for table in (page.plans, page.verdicts, *(measure.table for measure in page.measures)):
        rows = [[f"{cell.text}\n{cell.detail}".rstrip() for cell in row] for row in table.rows]
        console.table(table.caption, [head.words for head in table.heads], rows)
    console.say(*page.warnings, begin="Note: ")


def inspect(
    file: Path,
    *,
    explain: bool = False,
    json: bool = False,
) -> None:
    """Show what a file holds: traces, a release, or a table of records; or the state of an audit.

    Of a finished audit, all results are shown, with tables, reasons and guarantees; of another, how
    many tasks are done. No user id and no single trace is shown.

    Example: `whosthere inspect city/traces.parquet --json`, or `whosthere inspect run`
    """
    from whosthere.auditing.loading import is_audit, is_finished, load
    from whosthere.cli.screen import show_audit
    from whosthere.data.files import existing, read_metadata
    from whosthere.privacy.release_files import is_release

    existing(file)
    if is_audit(file) and is_finished(file):
        audit = load(file)
        show = partial(show_audit, audit, details=True, explain=explain)
        console.result(audit.to_json(), show, json=json)
        return
    head = read_metadata(file) if file.suffix == ".parquet" else None
    kind = None if head is None else head["kind"]
    if is_audit(file):
        found = _unfinished(file)
    elif kind == "traces":
        found = _traces(file)
    elif is_release(file):
        found = _release(file)
    else:
        found = _tables(file, kind)
    console.result(found.facts, partial(_show_facts, file, found), json=json)


class _Found(NamedTuple):
    """What is in a file: all facts, how a table shows some of them, and sentences below it."""

    facts: dict[str, Any]
    rows: Mapping[str, Sequence[tuple[str, object]]]
    sentences: Sequence[str] = ()


def _unfinished(folder: Path) -> _Found:
    from whosthere.auditing.loading import tasks_done

    done, total = tasks_done(folder)
    facts = {"kind": "unfinished audit", "tasks_done": done, "tasks": total}
    said = "If it is not running, the command that began it resumes it."
    return _Found(facts, {}, [f"{done} of {total} tasks are done.", said])


def _traces(file: Path) -> _Found:
    import numpy as np

    from whosthere.data.traces import Traces
    from whosthere.game.together import together

    traces = Traces.load(file)
    shared = together(traces)
    visits = traces.visits_per_user()
    shares = (0, 0.25, 0.5, 0.75, 0.95, 1)
    quantiles = np.quantile(visits, shares, method="nearest").tolist() if visits.size else []
    facts = {
        "kind": "traces",
        "users": traces.n_users,
        **_space_and_time(traces),
        "visits": traces.n_visits,
        "visits_per_user": traces.n_visits / max(traces.n_users, 1),
        "visits_per_user_quantiles": {
            f"{share:.0%}": int(value) for share, value in zip(shares, quantiles, strict=False)
        },
        "users_with_at_least_10_visits": int((visits >= 10).sum()),
        "going_together": shared.to_json(),
        "friendships": None if traces.friends is None else traces.friends.n_edges,
        "ledger": None if traces.ledger is None else traces.ledger.to_json(),
    }
    by_visits = () if shared.is_rare else shared.by_visits()
    rows = {
        "going_together": [(f"going together, {visits}", many) for visits, many in by_visits],
        "ledger": [],
    }
    return _Found(facts, rows, [f"Note: {sentence}" for sentence in shared.in_words()])


def _release(file: Path) -> _Found:
    from whosthere.privacy.release import Release

    release = Release.load(file)
    ledger = release.ledger
    # Where nothing is stated, it is known only of a mechanism that guarantees nothing.
    unstated = "none" if release.mechanism.guarantee is None else None
    facts = {
        "kind": "release",
        "group_size": release.group_size,
        "mechanism": str(release.mechanism),
        "description": release.describe(),
        "guarantee": unstated if ledger is None else ledger.to_json(),
        "audit": str(release.audited or "none"),
        **_space_and_time(release),
        "cells": release.counts.size,
        "nonzero_cells": int((release.counts > 0).sum()),
        "withheld_cells": None if release.withheld is None else int(release.withheld.sum()),
        "total_count": int(release.counts.sum(dtype="int64")),
        "largest_count": int(release.counts.max()),
    }
    rows: dict[str, Sequence[tuple[str, object]]] = {"description": ()}
    if ledger is not None:
        rows["guarantee"] = ledger.rows()
    return _Found(facts, rows, [release.describe()])


def _tables(file: Path, kind: str | None) -> _Found:
    """Say what is in other tables: one, or those of a folder or an archive."""
    from whosthere.auditing.loading import is_audit
    from whosthere.data.reading.columns import refuse_data_as_names
    from whosthere.data.reading.opening import open_sources

    sources, not_read = open_sources(file)
    alike: dict[frozenset[str], list[Source]] = {}
    for source in sources:
        refuse_data_as_names(source.columns, where=source.path)
        alike.setdefault(frozenset(source.columns), []).append(source)
    what = "table of another program, or records"
    if kind is not None:
        what = f"{kind} file of whosthere"
    elif is_audit(file.absolute().parent):
        kind = what = "table of an audit"
    facts = {"kind": what, "files": len(sources), "files_not_read": not_read}
    if len(alike) == 1:
        used = _columns_used(sources[0]) if kind is None else {}
        return _Found(facts | _rows_of(sources) | used, {})
    tables = {_names(same, file): _rows_of(same) for same in alike.values()}
    rows = [
        (table, f"{about['rows']:,} rows: {_in_words(about['columns'])}")
        for table, about in tables.items()
    ]
    return _Found(facts | {"tables": tables}, {"tables": rows})


def _rows_of(sources: list[Source]) -> dict[str, Any]:
    """Describe tables that have the same columns."""
    from whosthere.data.reading.columns import showable

    names = showable(sources[0].columns)
    return {
        "rows": sum(source.count() for source in sources),
        "columns": names if len(names) <= 40 else [listed(names)],
    }


def _names(sources: list[Source], below: Path) -> str:
    first = str(sources[0].path.relative_to(below))
    return first if len(sources) == 1 else f"{first} and {len(sources) - 1:,} more"


def _columns_used(source: Source) -> dict[str, Any]:
    """Return which column `ingest` would read for what, where that is clear; none without users."""
    from whosthere.data.reading.columns import Columns, arrange

    found = arrange(source, Columns(), ("user", "time", "region", "point"), skipped=[]).names
    return {"columns_used_by_ingest": found} if "user" in found else {}


def _space_and_time(of: Traces | Release) -> dict[str, Any]:
    return {
        "regions": len(of.regions),
        "epochs": of.epochs.n,
        "epoch_length": of.epochs.to_json()["length"],
        "first_epoch": of.epochs.local_start,
        "days": of.epochs.n_days,
        "timezone": of.epochs.timezone,
        "has_positions": of.regions.have_positions,
    }


def _show_facts(file: Path, found: _Found) -> None:
    rows: list[tuple[str, object]] = []
    for name, value in found.facts.items():
        words = name.replace("_", " ")
        if name in found.rows:
            rows += found.rows[name]
        elif isinstance(value, dict):
            rows += [(f"{words}, {key}", inner) for key, inner in value.items()]
        elif name != "kind":
            rows.append((words, _in_words(value)))
    console.table(f"{file}: {found.facts['kind']}", ("", ""), rows)
    console.say(*found.sentences)


def _in_words(value: object) -> object:
    if value is None:
        return "not known"
    return (", ".join(value) or "none") if isinstance(value, list) else value


_EXAMPLES = (
    "--attack 'zero-knowledge(sampling=independent, marginals=mechanism)'",
    "--attack 'knock-knock(classifier=forest(trees=50))'",
    "--knowledge 'regions(top=2, guess=random)'",
)


def attacks(*, json: bool = False) -> None:
    """List the attacks that can be named with --attack, and what --knowledge can be.

    Example: `whosthere attacks`
    """
    from whosthere.adversary.attacks import ATTACKS
    from whosthere.adversary.attacks.base import WORDS
    from whosthere.adversary.knowledge import KNOWLEDGE
    from whosthere.adversary.models import CLASSIFIERS

    def listed_attack(name: str, kind: Kind) -> dict[str, Any]:
        needs = [WORDS[part] for part in sorted(kind.make().uses)]
        return _about(name, kind, f" Needs {' and '.join(needs)}." if needs else "")

    listed = {
        "Attacks (--attack)": [listed_attack(*one) for one in ATTACKS.kinds.items()],
        "What is known of a target (--knowledge)": [
            _about(*one) for one in KNOWLEDGE.kinds.items()
        ],
        "Classifiers, for attacks that train one": [
            _about(*one) for one in CLASSIFIERS.kinds.items()
        ],
    }
    _show_listed(listed, ("attacks", "knowledge", "classifiers"), json=json)
    if not json:
        console.heading("Examples")
        console.say(*_EXAMPLES, begin="  ")


def mechanisms(*, presets: bool = False, json: bool = False) -> None:
    """List the protections that can be named with --mechanism, with presets used in practice.

    Example: `whosthere mechanisms --presets`
    """
    from whosthere.privacy.catalogue import MECHANISMS, PRESETS

    steps = [_about(*one) for one in MECHANISMS.kinds.items() if one[0] not in PRESETS]
    rules = [
        _about(name, MECHANISMS.kinds[name]) | asdict(one) | {"meaning": _told(one, whole=presets)}
        for name, one in PRESETS.items()
    ]
    listed = {"Steps (--mechanism); join several with |": steps, "Presets": rules}
    if presets:
        listed = {"What publishers do, by name (--mechanism)": rules}
    _show_listed(listed, ("presets",) if presets else ("steps", "presets"), json=json)


def _told(preset: Preset, *, whole: bool) -> str:
    """Say what a preset stands for; as a whole, also who does so and what is assumed."""
    said = f"{preset.spec}. {preset.publisher}: {preset.meaning}"
    if not whole:
        return f"{said}."
    assumed = f" Assumed: {preset.assumed}." if preset.assumed else ""
    return f"{said} ({preset.year}; {preset.source}).{assumed}"


def _about(name: str, kind: Kind, more: str = "") -> dict[str, Any]:
    """Return what can be named, what it means, and its parameters, as a JSON object."""
    parameters = [
        {
            "key": one.key,
            "default": one.usual,
            "meaning": one.meaning,
            "values": None if one.value.words.startswith("a ") else one.value.words,
        }
        for one in kind.parameters
    ]
    meaning = f"{kind.summary}.{more}"
    return {"name": name, "example": kind.example, "meaning": meaning, "parameters": parameters}


def _show_listed(
    listed: Mapping[str, Sequence[Mapping[str, Any]]], keys: Sequence[str], *, json: bool
) -> None:
    """Print lists of what can be named, each under its heading; or as JSON under its key."""
    if json:
        console.print_json(dict(zip(keys, listed.values(), strict=True)))
        return
    for heading, entries in listed.items():
        console.heading(heading)
        for about in entries:
            console.entry(about["example"], about["meaning"])
            for one in about["parameters"]:
                usual, values = one["default"], one["values"]
                written = one["key"] if usual is None else f"{one['key']}={usual}"
                meaning = one["meaning"] + ("" if values is None else f" ({values})")
                console.entry(written, meaning, indent=4)
