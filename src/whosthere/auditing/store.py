"""The folder of an audit: what was planned, every finished task, and the results.

A finished task is one file, written under another name and renamed. So there is no journal to
repair: what is there is done, what is not there is left to do.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.auditing.manifest import (
    CHECKSUMS,
    changed,
    check_manifest,
    json_object,
    number_of_look,
    refuse_changed,
    versions,
    write_json,
)
from whosthere.data.files import add_line, new_file, read_metadata, read_table, write_table
from whosthere.data.reading.source import readable
from whosthere.game.everybody import CONTROL
from whosthere.game.scoring import (
    ASKED,
    NOTHING,
    Scored,
    TaskScores,
    tests_and_controls,
)
from whosthere.inference.looks import Look
from whosthere.inference.panel import Panel
from whosthere.inference.scores import Scores
from whosthere.inference.vocabulary import CEILING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from whosthere.game.plan import Plan
    from whosthere.game.rounds import Task
    from whosthere.privacy.scheme import Scheme

KIND = "audit task"
MANIFEST = "manifest.json"
FORMAT_VERSION = 5
NOTE = "README.txt"
KEPT = "traces.parquet"
"""The traces of records that were audited directly."""
MAY_LEAVE = {
    "report.html": "all of it, to read in a browser",
    "verdicts.json": "the verdicts by the policy",
    "findings.json": "every metric, with its interval",
    "leaks.parquet": "where and when people are found: sums over 5 people or more",
    "marginals.parquet": "how visits are spread: shares of 5 people or more",
    "regions.parquet": "the regions that these two name",
    "spread.parquet": "how risk is spread over everybody",
    "groups.parquet": "the risk of groups of everybody",
    "named.parquet": "how many of everybody would be named correctly",
    "curves.parquet": "how many of everybody are found at each rate of false alarms",
    "what_if.json": "what coarser tables would change",
}
"""What may be given to those who decide about a release: no numbers about single people."""
STAYS = {
    KEPT: "everybody's visits, if records were audited directly",
    "scores.parquet": "a row for each score of a person",
    "control.parquet": "the same of the controls",
    "targets.parquet": "a row for each person who was attacked",
    "people.parquet": "a row for each person of whom everybody's releases tell",
    "manifest.json": "what was planned, with the rows of these people in the traces",
    "log.txt": "what was done when, with the rows of these people",
    CHECKSUMS: "what each file held when it was written, as SHA-256",
}
RESULTS = (*(name for name in MAY_LEAVE if name != "report.html"), *STAYS, NOTE)


def identity_of(plan: Plan, traces_fingerprint: str) -> dict[str, Any]:
    """Return all that decides the scores of an audit, as a JSON object."""
    return {"plan": plan.to_json(), "traces": traces_fingerprint, "versions": versions()}


@dataclass(frozen=True)
class RunFolder:
    """Where an audit keeps the files of `RESULTS`, and ``tasks/`` with one for each task done.

    Scores of everybody stand in ``everybody/``, in files of the same names.
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
        """Refuse a folder that holds anything but an audit with the same identity, or a part.

        As long as no task of it is done, its plan may change.
        """
        wanted = identity | {"format": FORMAT_VERSION}
        begun = any((self.path / "tasks").glob("[!.]*.parquet"))
        check_manifest(self._manifest, wanted, "an audit", extend=extend, begun=begun)
        refuse_changed(self.path, self._kept())

    def check_results(self) -> None:
        """Refuse the folder if a result, or a task that it rests on, is not as it was written."""
        results = (one for one in RESULTS if one.endswith((".json", ".parquet")) and one != KEPT)
        refuse_changed(self.path, (*map(self.path.joinpath, results), *self._kept()))

    def has(self, name: str) -> bool:
        """Tell whether a result is there, as it was written."""
        path = self.path / name
        return path.exists() and not changed(self.path, [path])

    def begin(
        self, identity: dict[str, Any], known: dict[str, Any], *, extend: bool = False
    ) -> None:
        """Write the manifest, unless an audit with the same identity has begun here.

        `known` is what readers of the results must know and scores do not depend on.
        """
        self.check(identity, extend=extend)
        found: dict[str, Any] = {
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
        if self._manifest.exists():
            found = json_object(self._manifest)
        if found.get("plan", identity["plan"]) != identity["plan"]:
            # They rest on fewer targets, releases or attacks; the tasks stay.
            for name in {*MAY_LEAVE, *STAYS} - {KEPT, MANIFEST, "log.txt", CHECKSUMS}:
                (self.path / name).unlink(missing_ok=True)
        wanted = found | identity | known
        if found != wanted:
            write_json(self._manifest, wanted)
        if not (self.path / NOTE).exists():
            with new_file(self.path / NOTE) as temporary:
                temporary.write_text(what_may_leave(), encoding="utf-8")

    def known(self, name: str) -> object:
        """Return what an audit that was begun here wrote into its manifest, None where nothing."""
        return json_object(self._manifest).get(name) if self._manifest.exists() else None

    def look_at(self, plan: Plan, failed: Collection[Task] = (), *, note: bool = False) -> Look:
        """Return which look it is to judge the scores of a plan; `note` keeps that in mind."""
        return Look(number_of_look(self._manifest, _seen(plan, failed), note=note))

    def scored(self, plan: Plan, task: Task) -> Scored:
        """Return how much of a task is done."""
        path = self._task_file(plan, task)
        if not path.exists():
            return NOTHING
        return Scored.from_json((read_metadata(path) or {})["done"])

    def finished(self, plan: Plan) -> set[Task]:
        """Return the tasks that are done."""
        return {
            task for task in plan.tasks if self.scored(plan, task).covers(Scored.wanted(plan, task))
        }

    def write_task(self, plan: Plan, task: Task, made: TaskScores) -> None:
        """Keep a finished task, whole or not at all, with what was done of it before."""
        before, wanted = self.scored(plan, task), Scored.wanted(plan, task)
        scores, everybody, path = *made, self._task_file(plan, task)
        extends = before != NOTHING and not before.covers(wanted)
        if everybody is not None:
            # First, as it is the file of the task that tells that it is done.
            place = _of_everybody(path)
            if extends:
                everybody = _merged(_read_task(place), everybody)
            self._write_table(everybody, place, {})
        if extends:
            scores = _joined(_read_task(path), scores, plan, task.scheme)
        used = set(scores["setting"])
        unused = [
            one for one in plan.settings if one.scheme == task.scheme and str(one) not in used
        ]
        self._write_table(scores, path, {"done": wanted.without(unused).to_json()})
        self.log(f"done: {task}")

    def collect(self, plan: Plan) -> Scores:
        """Read the finished tasks; scores of everybody are read when they are asked for."""
        done = self.finished(plan)
        tests, controls = tests_and_controls(
            plan, {task: _read_task(self._task_file(plan, task)) for task in done}
        )
        named = {
            str(one): (plan.schemes.index(one.scheme), [*map(str, plan.attacks_in(one))])
            for one in plan.settings
        }
        paths = [_of_everybody(self._task_file(plan, task)) for task in plan.tasks if task in done]
        everybody = _panels(named, [path for path in paths if path.exists()])
        return Scores(tests, controls, everybody)

    def write_results(self, name: str, table: pl.DataFrame) -> None:
        """Write a table for other programs to read."""
        path = self.path / f"{name}.parquet"
        with new_file(path, force=True, record=self.path / CHECKSUMS) as temporary:
            table.write_parquet(temporary, compression="zstd")

    def read_results(self, name: str) -> pl.DataFrame | None:
        """Read what `write_results` wrote; None where it is not there, or not whole."""
        file = f"{name}.parquet"
        return pl.read_parquet(self.path / file) if self.has(file) else None

    def log(self, line: str) -> None:
        """Add a line to the log."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        add_line(self.path / "log.txt", f"{now} {line}")

    def _kept(self) -> Iterator[Path]:
        """Return the files of finished tasks."""
        for folder in ("tasks", "everybody"):
            yield from self.path.glob(f"{folder}/[!.]*.parquet")

    def _write_table(self, table: pl.DataFrame, path: Path, about: dict[str, Any]) -> None:
        record = self.path / CHECKSUMS
        write_table(table, path, kind=KIND, metadata=about, force=True, record=record)

    def _task_file(self, plan: Plan, task: Task) -> Path:
        number = plan.schemes.index(task.scheme)
        return self.path / "tasks" / f"{task.what}-{task.number}-scheme-{number}.parquet"


@dataclass(frozen=True)
class PanelFiles:
    """Where the scores of everybody by one attack in one setting are kept."""

    paths: tuple[Path, ...]
    column: str

    def tests(self) -> Panel:
        """Read those of test rounds."""
        return self._panel(control=False)

    def controls(self) -> Panel:
        """Read those of control rounds, whose labels are coins."""
        return self._panel(control=True)

    def people(self) -> pl.Series:
        """Return the rows of the people in the traces, in the order of the panels."""
        first = _columns(self.paths[0], "release", "person")
        return first.filter(pl.col("release") == first["release"][0])["person"]

    def _panel(self, *, control: bool) -> Panel:
        own = (path for path in self.paths if path.name.startswith(CONTROL) == control)
        unit = ["unit"] if "unit" in pl.read_parquet_schema(self.paths[0]) else []
        names = ("release", "label", *unit, self.column)
        return Panel.of((_columns(one, *names) for one in own), self.column)


def _panels(
    named: Mapping[str, tuple[int, Sequence[str]]], paths: Sequence[Path]
) -> dict[tuple[str, str], PanelFiles]:
    """Find everybody's scores in files; settings are given by the number of their scheme."""
    found = {}
    for setting, (scheme, attacks) in named.items():
        own = tuple(path for path in paths if path.stem.endswith(f"-scheme-{scheme}"))
        known = {name for path in own for name in pl.read_parquet_schema(path)}
        for attack in (*attacks, CEILING):
            if (column := f"{attack} in {setting}") in known:
                found[setting, attack] = PanelFiles(own, column)
    return found


def _columns(path: Path, *names: str) -> pl.DataFrame:
    with readable(path):
        return pl.read_parquet(path, columns=list(names), glob=False)


def _of_everybody(task_file: Path) -> Path:
    return task_file.parent.parent / "everybody" / task_file.name


def _merged(before: pl.DataFrame, added: pl.DataFrame) -> pl.DataFrame:
    """Put scores of everybody together, of other rounds or by other attacks."""
    both = pl.concat([before, added], how="diagonal").group_by(ASKED, maintain_order=True)
    return both.agg(pl.all().drop_nulls().first()).sort("release", "person")


def what_may_leave() -> str:
    """Return the note of a run folder on which of its files are private."""
    stays = STAYS | {"tasks": "the scores of each finished task"}
    stays |= {"everybody": "the same of all people, where all are asked"}
    leave, stay = (
        "\n".join(f"  {name:<18} {what}" for name, what in some.items())
        for some in (MAY_LEAVE, stays)
    )
    return f"""This folder holds the results of an audit by whosthere. It is private.

These files may be given to those who decide about a release. They name nobody and hold no number
about a single place of fewer than 5 people. They were measured on real people, so they are not
for publication:
{leave}

These must not leave the house. Whoever has the traces can tell whose rows they are:
{stay}
"""


def _read_task(path: Path) -> pl.DataFrame:
    return read_table(path, kind=KIND)[0]


def _seen(plan: Plan, failed: Collection[Task]) -> dict[str, Any]:
    """Return what tells the scores of a run folder from those of another look at it."""
    described = plan.to_json()
    return {
        "targets": len(plan.targets),
        "attacks": len(plan.contests),
        "releases": described["releases"],
        "releases_of": described.get("releases_of", {}),
        "failed": sorted(map(str, failed)),
    }


def _joined(before: pl.DataFrame, added: pl.DataFrame, plan: Plan, scheme: Scheme) -> pl.DataFrame:
    """Put the rows of a task together, in the order of one that was done at once."""
    contests = plan.contests_under(scheme)
    players = [(str(one.setting), str(one.attack)) for one in contests]
    settings = dict.fromkeys(str(one.setting) for one in contests)
    order = pl.DataFrame(
        [*players, *((setting, CEILING) for setting in settings)],
        schema={"setting": pl.String, "attack": pl.String},
        orient="row",
    ).with_row_index("place")
    rows = pl.concat([before, added]).join(order, on=["setting", "attack"], how="left")
    # Test releases by number, then control releases.
    rows = rows.sort("control", "release", "place", maintain_order=True)
    return rows.select(added.columns)
