"""`whosthere inspect`: what is in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from whosthere.cli import console
from whosthere.cli.options import Json

if TYPE_CHECKING:
    from whosthere.data.epochs import Epochs
    from whosthere.data.reading.source import Source

_RECORDS = "table of another program, or records"


def inspect(
    file: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="Traces, a release, records, or a folder of an audit."),
    ],
    *,
    json: Json = False,
) -> None:
    """Show what a file holds: traces, a release, or a table of records; or the state of an audit.

    For a finished audit, the results are shown again; for another, how many tasks are done. No user
    id and no single trace is shown.

    Example: `whosthere inspect city/traces.parquet --json`, or `whosthere inspect run`
    """
    from whosthere.auditing.loading import is_audit
    from whosthere.data.files import existing, read_metadata
    from whosthere.privacy.release import description_path

    existing(file)
    if is_audit(file):
        _audit(file, json=json)
        return
    head = read_metadata(file) if file.suffix == ".parquet" else None
    kind = None if head is None else head["kind"]
    if kind == "traces":
        found = _traces(file)
    elif kind == "release" or (file.is_file() and description_path(file).exists()):
        found = _release(file)
    else:
        found = _tables(file, _kind_of_table(file, kind))
    if json:
        console.print_json(found.facts)
    else:
        _show(file, found)


class _Found(NamedTuple):
    """What is in a file.

    Attributes
    ----------
    facts
        All of it, for JSON.
    rows
        By name of a fact: what a table shows of it, if not the value itself.
    sentences
        What is said below the table.
    """

    facts: dict[str, Any]
    rows: Mapping[str, Sequence[tuple[str, object]]]
    sentences: Sequence[str] = ()


def _kind_of_table(file: Path, kind: str | None) -> str:
    from whosthere.auditing.loading import is_audit

    if kind is not None:
        return f"{kind} file of whosthere"
    return "table of an audit" if is_audit(file.absolute().parent) else _RECORDS


def _audit(folder: Path, *, json: bool) -> None:
    """Show the results of a finished audit again, or how far another one has come."""
    from whosthere.auditing.loading import is_finished, load_audit, tasks_done
    from whosthere.cli.results import show_audit

    if is_finished(folder):
        audit = load_audit(folder)
        if json:
            console.print_json(audit.to_json())
        else:
            show_audit(audit)
        return
    done, total = tasks_done(folder)
    if json:
        console.print_json({"kind": "unfinished audit", "tasks_done": done, "tasks": total})
        return
    console.say(f"{folder}: an unfinished audit. {done} of {total} tasks are done.")
    console.say("If it is not running, the command that began it resumes it.")


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
        **_space_and_time(len(traces.regions), traces.epochs),
        "has_positions": traces.regions.have_positions,
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
        **_space_and_time(len(release.regions), release.epochs),
        "has_positions": release.regions.have_positions,
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


def _tables(file: Path, kind: str) -> _Found:
    """Say what is in other tables: one, or those of a folder or an archive."""
    from whosthere.data.reading.columns import refuse_data_as_names
    from whosthere.data.reading.opening import open_sources

    sources, not_read = open_sources(file)
    alike: dict[frozenset[str], list[Source]] = {}
    for source in sources:
        refuse_data_as_names(source.columns, where=source.path)
        alike.setdefault(frozenset(source.columns), []).append(source)
    facts = {"kind": kind, "files": len(sources), "files_not_read": not_read}
    if len(alike) > 1:
        tables = {_names(same, file): _rows_of(same) for same in alike.values()}
        rows = [
            (table, f"{about['rows']:,} rows: {_in_words(about['columns'])}")
            for table, about in tables.items()
        ]
        return _Found(facts | {"tables": tables}, {"tables": rows})
    used = _columns_used(sources[0]) if kind == _RECORDS else {}
    more = {"columns_used_by_ingest": used} if used else {}
    return _Found(facts | _rows_of(sources) | more, {})


def _rows_of(sources: list[Source]) -> dict[str, Any]:
    """Describe tables that have the same columns."""
    from whosthere.errors import listed

    names = list(sources[0].columns)
    return {
        "rows": sum(source.count() for source in sources),
        "columns": names if len(names) <= 40 else [listed(names)],
    }


def _names(sources: list[Source], below: Path) -> str:
    first = str(sources[0].path.relative_to(below))
    return first if len(sources) == 1 else f"{first} and {len(sources) - 1:,} more"


def _columns_used(source: Source) -> dict[str, str]:
    """Return which column `ingest` would read for what, where that is clear; none without users."""
    from whosthere.data.reading.columns import Columns, arrange
    from whosthere.errors import RecordsError

    found: dict[str, str] = {}
    for role in ("user", "time", "region", "point"):
        with suppress(RecordsError):
            found |= arrange(source, Columns(), (role,)).names
    return found if "user" in found else {}


def _space_and_time(n_regions: int, epochs: Epochs) -> dict[str, Any]:
    described = epochs.to_json()
    return {
        "regions": n_regions,
        "epochs": epochs.n,
        "epoch_length": described["length"],
        "first_epoch": epochs.local_start,
        "days": epochs.n_days,
        "timezone": epochs.timezone,
    }


def _show(file: Path, found: _Found) -> None:
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
    for sentence in found.sentences:
        console.say(sentence)


def _in_words(value: object) -> object:
    if value is None:
        return "not known"
    return (", ".join(value) or "none") if isinstance(value, list) else value
