"""Trials of a search: small audits, each in a folder of its own, resumed where they stopped."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from whosthere.auditing.lock import only_one
from whosthere.auditing.run import do_what_is_left
from whosthere.auditing.store import (
    MANIFEST,
    RunFolder,
    identity_of,
    json_object,
    note_look,
    number_of_look,
    refuse_other_content,
    write_json,
)
from whosthere.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import NoReturn

    import polars as pl

    from whosthere.auditing.work import Job, Workers
    from whosthere.game.plan import Plan
    from whosthere.game.rounds import Task
    from whosthere.progress import Move

FORMAT_VERSION = 2
SEARCH_MANIFEST = "search.json"


class TrialFailedError(RuntimeError):
    """A part of a trial could not be done, so that nothing can be said of the protection."""


@dataclass(frozen=True)
class TrialsFolder:
    """Where a search keeps its trials: a run folder for each, by its plan.

    Other searches on the same traces can use it too: what they share is done once.

    Parameters
    ----------
    path
        The folder.
    """

    path: Path

    @property
    def _manifest(self) -> Path:
        return self.path / SEARCH_MANIFEST

    def check(self, job: Job) -> None:
        """Refuse a folder that holds anything but trials on the same traces."""
        if self._manifest.exists():
            self._check_same(json_object(self._manifest), _identity(job))
        else:
            refuse_other_content(self._manifest, "a search")

    def _check_same(self, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        differs = [key for key in wanted if found.get(key) != wanted[key]]
        if not differs:
            return
        problem = {
            "format": "is of another format",
            "traces": "holds a search on other traces, or the traces have changed since",
            "versions": "holds a search by other versions of the software",
        }[differs[0]]
        raise FileError(problem, where=self.path, fix="Name a new folder")

    @contextmanager
    def opened(self, job: Job) -> Iterator[None]:
        """Keep other processes out of the folder, and begin it if it is new."""
        with only_one(self.path, "search"):
            self.check(job)
            if not self._manifest.exists():
                write_json(self._manifest, _identity(job) | {"looks": []})
            yield

    def begun(self) -> int:
        """Return how many trials were begun."""
        return len(list(self.path.glob(f"trials/*/{MANIFEST}")))

    def of(self, plan: Plan) -> RunFolder:
        """Return the folder of a trial."""
        text = json.dumps(plan.to_json(), sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        return RunFolder(self.path / "trials" / name)

    def number_of_look(self, seen: object) -> int:
        """Return which of the searches in the folder it is to confirm what is seen, from 1."""
        return number_of_look(self._manifest, seen)

    def note_look(self, seen: object) -> None:
        """Keep in mind that a search confirms."""
        note_look(self._manifest, seen)


def _identity(job: Job) -> dict[str, Any]:
    return {
        "format": FORMAT_VERSION,
        "traces": job.traces_fingerprint,
        "versions": job.versions,
    }


class Trials:
    """Does one trial after the other, and counts them.

    Parameters
    ----------
    folder
        Where they are kept.
    job
        Any job on the traces.
    workers
        Who does the tasks.
    most
        How many trials there will be at most.
    on_progress
        Called before each trial, and after each of its tasks, with the trial and its tasks.
    """

    def __init__(
        self,
        folder: TrialsFolder,
        job: Job,
        workers: Workers,
        most: int,
        on_progress: Move,
    ) -> None:
        self._folder, self._job, self._workers = folder, job, workers
        self._most, self._on_progress = most, on_progress
        self.number = 0

    @property
    def most(self) -> int:
        """How many trials there will be at most, as far as is known."""
        return max(self._most, self.number)

    def expect_more(self, n: int) -> None:
        """Raise the number of trials."""
        self._most += n

    def scores(self, plan: Plan, trial: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Do what is left of a trial; return the scores of test releases, and of the control."""
        self.number += 1
        title = f"trial {self.number} of at most {self.most}: {trial}"
        folder = self._folder.of(plan)
        folder.begin(identity_of(plan, self._job.traces_fingerprint), known=plan.about_json())
        do_what_is_left(
            replace(self._job, plan=plan),
            folder,
            self._workers,
            partial(self._on_progress, title),
            _fail,
        )
        return folder.collect(plan)

    def note_look(self, seen: object) -> None:
        """Keep in mind that a search confirms."""
        self._folder.note_look(seen)


def _fail(task: Task, why: str) -> NoReturn:
    raise TrialFailedError(f"{task} failed: {why}")
