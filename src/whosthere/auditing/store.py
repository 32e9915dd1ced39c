"""The folder of an audit: what was planned, every finished task, and the results.

A finished task is one file, written under another name and renamed. So there is no journal to
repair: what is there is done, what is not there is left to do. A lock of the operating system keeps
a second audit out, and goes with its process.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere._version import __version__
from whosthere.auditing.extension import joined, obstacle
from whosthere.auditing.lock import LOCK, only_one
from whosthere.auditing.what_if import WhatIf
from whosthere.data.files import (
    existing,
    new_file,
    read_metadata,
    read_table,
    refuse_existing,
    write_table,
)
from whosthere.errors import FileError
from whosthere.game.scoring import NOTHING, Scored, tests_and_controls
from whosthere.inference.looks import Look

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from whosthere.game.plan import Plan
    from whosthere.game.rounds import Task

KIND = "audit task"
MANIFEST = "manifest.json"
FORMAT_VERSION = 4
# Scores may differ in their last digits between versions of these.
_DECISIVE = ("numba", "numpy", "scipy")
RESULTS = (
    "findings.json",
    "verdicts.json",
    "scores.parquet",
    "control.parquet",
    "targets.parquet",
    "leaks.parquet",
    "marginals.parquet",
    "regions.parquet",
    "what_if.json",
    "manifest.json",
    "log.txt",
)


def fingerprint(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with existing(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of all software that decides the last digits of scores."""
    return {"whosthere": __version__, **{name: version(name) for name in _DECISIVE}}


def identity_of(plan: Plan, traces_fingerprint: str) -> dict[str, Any]:
    """Return all that decides the scores of an audit, as a JSON object."""
    return {"plan": plan.to_json(), "traces": traces_fingerprint, "versions": versions()}


@dataclass(frozen=True)
class RunFolder:
    """Where an audit keeps all that it writes.

    The files of `RESULTS`, and ``tasks/`` with one file for each finished task.

    Parameters
    ----------
    path
        The folder.
    """

    path: Path

    @property
    def _manifest(self) -> Path:
        return self.path / MANIFEST

    @property
    def manifest(self) -> dict[str, Any]:
        """What was planned, on which data, by which software, and what readers must know."""
        return json_object(self._manifest)

    def check(self, identity: dict[str, Any], *, extend: bool = False) -> None:
        """Refuse a folder that holds anything but an audit with the same identity.

        To extend it, the same audit with fewer targets or releases will do.
        """
        if self._manifest.exists():
            found = json_object(self._manifest)
            self._check_same(found, self._extended(found, identity) if extend else identity)
        else:
            refuse_other_content(self._manifest, "an audit")

    def _extended(self, found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
        """Return what is wanted with the plan that was found, if it extends that one."""
        before = found.get("plan")
        if not isinstance(before, dict) or before == wanted["plan"]:
            return wanted
        why = obstacle(before, wanted["plan"])
        if why is not None:
            raise FileError(
                f"holds an audit that cannot be extended like this: {why}",
                where=self.path,
                fix="Repeat the command that began it with more targets or releases",
            )
        return wanted | {"plan": before}

    def begin(
        self,
        identity: dict[str, Any],
        *,
        known: dict[str, Any] | None = None,
        extend: bool = False,
    ) -> None:
        """Write the manifest, unless an audit with the same identity has begun here.

        `known` is what readers of the results must know and scores do not depend on.
        """
        self.check(identity, extend=extend)
        known = known or {}
        if self._manifest.exists():
            found = json_object(self._manifest)
            if found["plan"] != identity["plan"]:
                self._forget_results()
            wanted = found | identity | known
            if found != wanted:
                write_json(self._manifest, wanted)
            return
        about = {
            "format": FORMAT_VERSION,
            "begun": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": {
                "system": platform.platform(),
                "processor": platform.machine(),
                "processors": os.cpu_count(),
            },
            "python": platform.python_version(),
            "looks": [],
        }
        write_json(self._manifest, identity | known | about)

    def _check_same(self, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        """Refuse to go on with an audit of other data, by another plan or other software."""
        fix = "Name a new folder, or repeat the command that began this one"
        if found.get("format") != FORMAT_VERSION:
            raise FileError("is of another format", where=self.path, fix="Name a new folder")
        if found.get("traces") != wanted["traces"]:
            problem = "holds an audit of other traces, or the traces have changed since"
            raise FileError(problem, where=self.path, fix=fix)
        for part, what in (("plan", "by another plan"), ("versions", "by other software")):
            before, now = found.get(part), wanted[part]
            if not isinstance(before, dict):
                raise FileError("has a damaged manifest", where=self.path, fix="Name a new folder")
            other = [key for key in before | now if before.get(key) != now.get(key)]
            if other:
                shown = "; ".join(_change(key, before.get(key), now.get(key)) for key in other)
                if part == "plan" and obstacle(before, now) is None:
                    fix = "Have it extended (`extend`), or name a new folder"
                raise FileError(f"holds an audit {what} ({shown})", where=self.path, fix=fix)

    def known(self, name: str) -> object:
        """Return what an audit that was begun here wrote into its manifest, None where nothing."""
        return json_object(self._manifest).get(name) if self._manifest.exists() else None

    def look_at(self, plan: Plan, failed: Collection[Task] = ()) -> Look:
        """Return which look it is to judge the scores of a plan."""
        return Look(number_of_look(self._manifest, _seen(plan, failed)))

    def note_look(self, plan: Plan, failed: Collection[Task] = ()) -> Look:
        """Return the same, and keep in mind that these scores are judged."""
        return Look(note_look(self._manifest, _seen(plan, failed)))

    def alone(self) -> AbstractContextManager[None]:
        """Keep other processes from working in the folder; a killed one leaves no trace."""
        return only_one(self.path)

    def _forget_results(self) -> None:
        """Remove what rests on fewer targets or releases; the tasks stay."""
        for name in (*RESULTS, "report.html"):
            if name not in {"manifest.json", "log.txt"}:
                (self.path / name).unlink(missing_ok=True)

    def scored(self, plan: Plan, task: Task) -> Scored:
        """Return how much of a task is done."""
        path = self._task_file(plan, task)
        if not path.exists():
            return NOTHING
        with _named(path):
            head = read_metadata(path) or {}
            if "scored" not in head:
                raise FileError("is not a task of an audit")
        return Scored.from_json(head["scored"])

    def finished(self, plan: Plan) -> set[Task]:
        """Return the tasks that are done."""
        return {
            task for task in plan.tasks if self.scored(plan, task).covers(Scored.wanted(plan, task))
        }

    def write_task(self, plan: Plan, task: Task, scores: pl.DataFrame) -> None:
        """Keep a finished task, whole or not at all, with what was done of it before."""
        before = self.scored(plan, task)
        if before != NOTHING and not before.covers(Scored.wanted(plan, task)):
            scores = joined(self._read_task(plan, task), scores, plan, task.scheme)
        about = {"scored": Scored.of(scores).to_json()}
        write_table(scores, self._task_file(plan, task), kind=KIND, metadata=about, force=True)

    def collect(self, plan: Plan) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Read the finished tasks: the scores of test releases, and those of the control."""
        done = self.finished(plan)
        return tests_and_controls(plan, {task: self._read_task(plan, task) for task in done})

    def _read_task(self, plan: Plan, task: Task) -> pl.DataFrame:
        path = self._task_file(plan, task)
        with _named(path):
            return read_table(path, kind=KIND)[0]

    def write_results(self, name: str, table: pl.DataFrame) -> None:
        """Write a table for other programs to read."""
        with new_file(self.path / f"{name}.parquet", force=True) as temporary:
            table.write_parquet(temporary, compression="zstd")

    def read_results(self, name: str) -> pl.DataFrame | None:
        """Read what `write_results` wrote; None where it is not there, or not whole."""
        try:
            return pl.read_parquet(self.path / f"{name}.parquet")
        except (OSError, pl.exceptions.PolarsError):
            return None

    def write_what_if(self, tried: Sequence[WhatIf]) -> None:
        """Write what was found for changes of regions and epochs."""
        write_json(self.path / "what_if.json", [one.to_json() for one in tried])

    def read_what_if(self) -> tuple[WhatIf, ...]:
        """Read what `write_what_if` wrote; nothing where it is not there, or not whole."""
        try:
            found = json.loads((self.path / "what_if.json").read_text(encoding="utf-8"))
            return tuple(WhatIf.from_json(one) for one in found)
        except (OSError, ValueError, TypeError, KeyError):
            return ()

    def log(self, line: str) -> None:
        """Add a line to the log."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with (self.path / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{now} {line}\n")

    def _task_file(self, plan: Plan, task: Task) -> Path:
        number = plan.schemes.index(task.scheme)
        return self.path / "tasks" / f"{task.what}-{task.number}-scheme-{number}.parquet"


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say of a task that cannot be read how to go on."""
    try:
        yield
    except FileError as error:
        fix = "Delete it and repeat the command"
        raise FileError(error.problem, where=path, fix=fix) from error


def _seen(plan: Plan, failed: Collection[Task]) -> dict[str, Any]:
    """Return what tells the scores of a run folder from those of another look at it."""
    described = plan.to_json()
    return {
        "targets": len(plan.targets),
        "releases": described["releases"],
        "releases_of": described.get("releases_of", {}),
        "failed": sorted(map(str, failed)),
    }


def _looks_in(manifest: Path) -> list[object]:
    """Return what was seen at each look so far."""
    if not manifest.exists():
        return []
    looks = json_object(manifest).get("looks")
    if not isinstance(looks, list):
        raise FileError("does not say what was judged", where=manifest, fix="Name a new folder")
    return looks


def number_of_look(manifest: Path, seen: object) -> int:
    """Return which look it is to judge what is seen, from 1; the same again is the same look."""
    looks = _looks_in(manifest)
    return looks.index(seen) + 1 if seen in looks else len(looks) + 1


def note_look(manifest: Path, seen: object) -> int:
    """Return the same, and add what is seen to the looks in a manifest."""
    looks = _looks_in(manifest)
    if seen not in looks:
        write_json(manifest, json_object(manifest) | {"looks": [*looks, seen]})
    return number_of_look(manifest, seen)


def write_json(path: Path, value: object) -> None:
    """Write strict JSON, whole or not at all, over what is there."""
    with new_file(path, force=True) as temporary:
        text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)
        temporary.write_text(f"{text}\n", encoding="utf-8")


def json_object(path: Path) -> dict[str, Any]:
    """Read a JSON object of ours."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError("is not readable JSON", where=path, fix="Name a new folder") from error
    if not isinstance(value, dict):
        raise FileError("holds no JSON object", where=path, fix="Name a new folder")
    return value


def refuse_other_content(manifest: Path, what: str) -> None:
    """Refuse a folder without a manifest that holds anything else.

    What a killed process can leave before its manifest does not count.
    """
    folder = manifest.parent
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    others = [one for one in names if one != LOCK and not one.startswith(f".{manifest.name}.")]
    if others or (folder.exists() and not folder.is_dir()):
        problem = f"is there already and is not the folder of {what}"
        raise FileError(problem, where=folder, fix="Name a new folder")
    refuse_existing(manifest, force=False)


def _change(key: str, before: object, now: object) -> str:
    """Say what differs; rows of the traces are nobody's business, and help nobody."""
    if key == "targets" and isinstance(before, list) and isinstance(now, list):
        fewest = min(len(before), len(now))
        if before[:fewest] != now[:fewest]:
            return "targets chosen differently"
        return f"targets: {len(before)} then, {len(now)} now"
    return f"{key} {_short(before)} then, {_short(now)} now"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
