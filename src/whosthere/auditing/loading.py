"""Reading the folder of an audit, without the code of whoever wrote its attacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.auditing.follow_up import WhatIf
from whosthere.auditing.policy import Policy
from whosthere.auditing.result import AuditResult, n_tasks
from whosthere.auditing.risk import TABLES, EverybodysRisk
from whosthere.auditing.store import FORMAT_VERSION, MANIFEST, RunFolder
from whosthere.auditing.verdict import Verdict
from whosthere.data.files import existing
from whosthere.data.reading.source import readable
from whosthere.errors import FileError
from whosthere.inference.finding import Finding

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

_IN_EVERY_AUDIT = ("scores", "targets")
_IN_SOME = ("regions", "leaks", "marginals", *TABLES)


def load(folder: str | os.PathLike[str]) -> AuditResult:
    """Return what an audit found, from the folder where it was kept: the same as the audit gave.

    The experiments of a study and the trials of a search are audits too.

    Parameters
    ----------
    folder
        What was given as `out`.
    """
    path = existing(Path(folder))
    if not is_audit(path):
        within = [*path.glob("*/manifest.json"), *path.glob("trials/*/manifest.json")]
        fix = "Name a folder that `whosthere audit --out` wrote"
        if within:
            fix = f"Name one of the audits in it, such as {min(within).parent}"
        raise FileError("is not the folder of an audit", where=path, fix=fix)
    if not is_finished(path):
        fix = "Repeat the command that began it, which resumes the audit"
        raise FileError("holds an audit that is not finished", where=path, fix=fix)
    manifest = _manifest(path)
    judged = _read(path / "verdicts.json", _judged)
    there = [one for one in _IN_SOME if (path / f"{one}.parquet").is_file()]
    tables: dict[str, Any] = {name: _table(path, name) for name in (*_IN_EVERY_AUDIT, *there)}
    everybody = EverybodysRisk(**{name: tables.pop(name) for name in TABLES if name in tables})
    changes = path / "what_if.json"
    return AuditResult(
        manifest=manifest,
        findings=_read(path / "findings.json", lambda found: _each(Finding, found)),
        **judged,
        folder=path,
        everybody=everybody,
        **tables,
        what_if=_read(changes, WhatIf.each) if changes.is_file() else (),
    )


def is_audit(folder: Path) -> bool:
    """Tell whether a path is the folder of an audit, finished or not."""
    return (folder / MANIFEST).is_file()


def is_finished(folder: Path) -> bool:
    """Tell whether the audit in a folder has its results."""
    return (folder / "verdicts.json").is_file()


def tasks_done(folder: Path) -> tuple[int, int]:
    """Return how many tasks of an audit are kept in its folder, and how many it has."""
    kept = sum(1 for _ in (folder / "tasks").glob("[!.]*.parquet"))
    return kept, n_tasks(_manifest(folder))


def _read(path: Path, of: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - whatever `of` returns
    """Return what a JSON file describes; anything but what we wrote is damage."""
    try:
        return of(json.loads(existing(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        fix = "Repeat the command that wrote it"
        raise FileError("is damaged", where=path, fix=fix) from error


def _manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of an audit of which every file is as it was written."""
    manifest = RunFolder(folder).manifest
    if manifest.get("format", FORMAT_VERSION) != FORMAT_VERSION:
        fix = "Repeat the audit in a new folder"
        raise FileError("is an audit of another version", where=folder, fix=fix)
    RunFolder(folder).check_results()
    return manifest


def _judged(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "policy": Policy(**found["policy"]),
        "verdicts": _each(Verdict, found["verdicts"]),
        "trusted": found["trusted"],
        "failed_tasks": int(found["failed_tasks"]),
    }


def _each(kind: type, found: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return findings or verdicts, with tuples for the lists of JSON."""
    return tuple(
        kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in one.items()})
        for one in found
    )


def _table(folder: Path, name: str) -> pl.DataFrame:
    path = existing(folder / f"{name}.parquet")
    with readable(path):
        return pl.read_parquet(path, glob=False)
