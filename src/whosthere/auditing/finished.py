"""A finished audit, as its folder or its result holds it, for whoever shows it.

Settings and attacks are texts here, so that an audit of somebody's own attacks can be read without
their code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from whosthere.auditing.policy import Policy
from whosthere.auditing.store import versions
from whosthere.auditing.verdict import Verdict
from whosthere.auditing.what_if import WhatIf
from whosthere.data.files import existing
from whosthere.data.reading.source import readable
from whosthere.errors import FileError, InputError
from whosthere.game.target_choice import TargetChoice
from whosthere.game.together import Together
from whosthere.inference.finding import Finding

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from whosthere.auditing.result import AuditResult

_NEEDED = {
    "scores": (
        *("setting", "attack", "target", "release", "label"),
        *("score", "threshold", "calibrated"),
    ),
    "targets": ("setting", "attack", "target", "visits", "uniqueness", "auc"),
    "regions": ("index", "id", "lon", "lat"),
    "leaks": ("setting", "axis", "index", "targets", "leak"),
    "marginals": ("setting", "axis", "index", "truth", "estimated"),
}
_Part = TypeVar("_Part", Finding, Verdict)


@dataclass(frozen=True, eq=False)
class FinishedAudit:
    """What an audit found, with all that a report tells of it.

    Attributes
    ----------
    name
        What to call it: the name of its folder.
    manifest
        What was planned, on which data, and by which software.
    findings, verdicts, policy, trusted
        As in `AuditResult`.
    failed_tasks
        How many tasks could not be done.
    scores, targets
        As in `AuditResult`.
    regions, leaks, marginals
        Where people are found and what attackers estimate, in sums over targets; None where the
        audit did not measure it.
    what_if
        What coarser regions or epochs would change.
    """

    name: str
    manifest: Mapping[str, Any]
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    policy: Policy
    trusted: bool | None
    failed_tasks: int
    scores: pl.DataFrame
    targets: pl.DataFrame
    regions: pl.DataFrame | None = None
    leaks: pl.DataFrame | None = None
    marginals: pl.DataFrame | None = None
    what_if: tuple[WhatIf, ...] = ()

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was done, as a JSON object."""
        plan: Mapping[str, Any] = self.manifest["plan"]
        return plan

    @property
    def n_targets(self) -> int:
        """How many people were attacked."""
        return len(self.plan.get("targets", ()))

    @property
    def n_tasks(self) -> int:
        """How many tasks the audit has: one for each target and scheme."""
        return _n_tasks(self.plan)

    @property
    def choice(self) -> TargetChoice | None:
        """How the targets were chosen; None where the manifest does not say."""
        found = self.manifest.get("targets_chosen")
        try:
            return TargetChoice.from_json(found) if isinstance(found, dict) else None
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def together(self) -> Together | None:
        """How many people share most of their visits; None where the manifest does not say."""
        return Together.read(self.manifest.get("together"))

    @property
    def people_looked_at(self) -> int | None:
        """How many people leaks are sums over; None where the manifest does not say."""
        found = self.manifest.get("people_looked_at")
        return found if isinstance(found, int) else None

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader of the results must know beforehand, a sentence each."""
        found = self.manifest.get("cautions")
        return tuple(map(str, found)) if isinstance(found, list) else ()

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> FinishedAudit:
        """Read the folder of a finished audit."""
        path = existing(Path(folder))
        if not is_audit(path):
            raise FileError(
                "is not the folder of an audit",
                where=path,
                fix="Name a folder that `whosthere audit --out` wrote",
            )
        if not is_finished(path):
            raise FileError(
                "holds an audit that is not finished",
                where=path,
                fix="Repeat the command that began it, which resumes the audit",
            )
        manifest, judged = _object(path / "manifest.json"), _object(path / "verdicts.json")
        if not isinstance(manifest.get("plan"), dict):
            raise _damaged(path / "manifest.json")
        return cls(
            path.resolve().name,
            manifest,
            _parts(Finding, _json(path / "findings.json"), path / "findings.json"),
            _parts(Verdict, judged.get("verdicts"), path / "verdicts.json"),
            _policy(judged.get("policy"), path / "verdicts.json"),
            judged.get("trusted"),
            int(judged.get("failed_tasks", 0)),
            _table(path, "scores"),
            _table(path, "targets"),
            **_extras(path),
        )

    def to_json(self) -> dict[str, Any]:
        """Return verdicts and findings as a JSON object, as an audit prints them."""
        return {
            "trusted": self.trusted,
            "failed_tasks": self.failed_tasks,
            "policy": self.policy.to_json(),
            "targets_chosen": None if self.choice is None else self.choice.to_json(),
            "cautions": list(self.cautions),
            "together": None if self.together is None else self.together.to_json(),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "findings": [finding.to_json() for finding in self.findings],
        }

    @classmethod
    def of(cls, result: AuditResult) -> FinishedAudit:
        """Return what a result holds; its manifest is read from its folder, if it has one."""
        folder = result.folder
        plan = result.plan
        manifest = {"plan": plan.to_json(), "versions": versions(), **plan.about_json()}
        if folder is not None and is_audit(folder):
            manifest = _object(folder / "manifest.json")
        return cls(
            "audit" if folder is None else folder.resolve().name,
            manifest,
            result.findings,
            result.verdicts,
            result.policy,
            result.trusted,
            len(result.failed),
            result.scores,
            result.targets,
            _unless_empty(result.regions),
            _unless_empty(result.leaks),
            _unless_empty(result.marginals),
            result.what_if,
        )


def _unless_empty(table: pl.DataFrame) -> pl.DataFrame | None:
    return None if table.is_empty() else table


def is_audit(folder: Path) -> bool:
    """Tell whether a path is the folder of an audit, finished or not."""
    return (folder / "manifest.json").is_file()


def is_finished(folder: Path) -> bool:
    """Tell whether the audit in a folder has its results."""
    return (folder / "verdicts.json").is_file()


def tasks_done(folder: Path) -> tuple[int, int]:
    """Return how many tasks of an audit are kept in its folder, and how many it has."""
    plan = _object(folder / "manifest.json").get("plan")
    if not isinstance(plan, dict) or not {"targets", "contests"} <= plan.keys():
        raise _damaged(folder / "manifest.json")
    return sum(1 for _ in (folder / "tasks").glob("target-*.parquet")), _n_tasks(plan)


def _n_tasks(plan: Mapping[str, Any]) -> int:
    # What is known of a target makes another setting, but no other releases.
    schemes = {str(setting).partition(", knows ")[0] for setting in plan.get("contests", ())}
    return len(plan.get("targets", ())) * len(schemes)


def _json(path: Path) -> object:
    try:
        return json.loads(existing(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path) from error


def _object(path: Path) -> dict[str, Any]:
    found = _json(path)
    if not isinstance(found, dict):
        raise _damaged(path)
    return found


def _parts(kind: type[_Part], found: object, path: Path) -> tuple[_Part, ...]:
    """Return findings or verdicts; those of an older version may lack what has a default."""
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise _damaged(path)
    known = {field.name for field in fields(kind)}
    try:
        return tuple(
            kind(**{name: _frozen(value) for name, value in one.items() if name in known})
            for one in found
        )
    except TypeError as error:
        raise _damaged(path) from error


def _frozen(value: Any) -> Any:  # noqa: ANN401 - any part of a JSON object
    return tuple(value) if isinstance(value, list) else value


def _policy(found: object, path: Path) -> Policy:
    if not isinstance(found, dict):
        raise _damaged(path)
    try:
        return Policy(**found)
    except (TypeError, InputError) as error:
        raise _damaged(path) from error


def _table(folder: Path, name: str) -> pl.DataFrame:
    path = existing(folder / f"{name}.parquet")
    with readable(path):
        table = pl.read_parquet(path, glob=False)
    missing = [column for column in _NEEDED[name] if column not in table.columns]
    # An audit in which every task failed has tables without columns.
    if missing and table.width:
        raise FileError(f"lacks the column {missing[0]}", where=path, fix="Repeat the audit")
    return table


def _extras(folder: Path) -> dict[str, Any]:
    """Read what not every audit measures."""
    names = ("regions", "leaks", "marginals")
    there = [name for name in names if (folder / f"{name}.parquet").is_file()]
    tables = {name: _table(folder, name) for name in there}
    return {**tables, "what_if": _changes(folder / "what_if.json")}


def _changes(path: Path) -> tuple[WhatIf, ...]:
    if not path.is_file():
        return ()
    found = _json(path)
    try:
        return tuple(WhatIf.from_json(one) for one in found)  # type: ignore[attr-defined]
    except (KeyError, TypeError) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> FileError:
    return FileError("is damaged", where=path, fix="Repeat the command that wrote it")
