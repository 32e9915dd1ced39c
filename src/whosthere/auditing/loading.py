"""Reading the folder of an audit, without the code of whoever wrote its attacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.auditing.follow_up import WhatIf
from whosthere.auditing.policy import Policy
from whosthere.auditing.result import AuditResult, n_tasks, with_settings
from whosthere.auditing.risk import TABLES, EverybodysRisk
from whosthere.auditing.series import read_series
from whosthere.auditing.store import FORMAT_VERSION
from whosthere.auditing.verdict import Verdict
from whosthere.data.epochs import Epochs
from whosthere.data.files import existing
from whosthere.data.reading.source import readable
from whosthere.errors import FileError
from whosthere.game.leaks import LEAKS, MARGINALS, REGIONS
from whosthere.game.plan import TargetChoice
from whosthere.game.together import Together
from whosthere.inference.finding import Finding
from whosthere.inference.scores import OF_CHECKS, SCHEMA

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

_IN_EVERY_AUDIT = {
    "scores": [name for name in SCHEMA if name not in {*OF_CHECKS, "control"}],
    "targets": ["setting", "attack", "target", "visits", "uniqueness", "releases", "auc"],
}
_PARTS = {"begun": str, "traces": str, "versions": dict, "plan": dict, "looks": list}
_PARTS |= {"machine": dict, "settings": list, "cautions": list}
_IN_SOME = {"regions": REGIONS, "leaks": LEAKS, "marginals": MARGINALS, **TABLES}


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
    judged = _read(path / "verdicts.json", _judged)
    manifest = _read(path / "manifest.json", _manifest)
    there = [one for one in _IN_SOME if (path / f"{one}.parquet").is_file()]
    tables: dict[str, Any] = {name: _table(path, name) for name in (*_IN_EVERY_AUDIT, *there)}
    # Audits of earlier versions do not have them beside their settings.
    tables |= {name: with_settings(tables[name], manifest) for name in _IN_EVERY_AUDIT}
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
    return (folder / "manifest.json").is_file()


def is_finished(folder: Path) -> bool:
    """Tell whether the audit in a folder has its results."""
    return (folder / "verdicts.json").is_file()


def tasks_done(folder: Path) -> tuple[int, int]:
    """Return how many tasks of an audit are kept in its folder, and how many it has."""
    kept = sum(1 for _ in (folder / "tasks").glob("[!.]*.parquet"))
    return kept, n_tasks(_read(folder / "manifest.json", _manifest))


def _read(path: Path, of: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - whatever `of` returns
    """Return what a JSON file describes; anything but what we wrote is damage."""
    try:
        return of(json.loads(existing(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        fix = "Repeat the command that wrote it"
        raise FileError("is damaged", where=path, fix=fix) from error


def _manifest(found: dict[str, Any]) -> dict[str, Any]:
    if found["format"] != FORMAT_VERSION:
        raise ValueError(found["format"])
    # Whatever could not be read later is found out now.
    if not all(isinstance(found[part], kind) for part, kind in _PARTS.items()):
        raise TypeError(found)
    n_tasks(found)
    "".join(one["setting"] for one in found["settings"])
    read_series(found["settings"])
    plan = found["plan"]
    sum((plan["seed"], plan["first_epoch"], *plan["targets"]))
    plan.get("code", {}).get("")
    int(found["people_looked_at"])
    Together.read(found["together"])
    if found["targets_chosen"] is not None:
        TargetChoice.from_json(found["targets_chosen"])
    if "data" in found:
        Epochs.from_json(found["data"]["epochs"])
        sum(int(found["data"][what]) for what in ("people", "visits", "regions"))
    return found


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
        table = pl.read_parquet(path, glob=False)
    columns = (_IN_EVERY_AUDIT | _IN_SOME)[name]
    missing = [column for column in columns if column not in table.columns]
    # An audit in which every task failed has tables without columns.
    if missing and table.width:
        raise FileError(f"lacks the column {missing[0]}", where=path, fix="Repeat the audit")
    return table
