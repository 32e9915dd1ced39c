"""Trials of a search: small audits, each in a folder of its own, resumed where they stopped."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from whosthere.auditing.manifest import check_manifest, only_one, write_json
from whosthere.auditing.run import do_what_is_left
from whosthere.auditing.store import MANIFEST, RunFolder, identity_of

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
    """

    path: Path

    @property
    def manifest(self) -> Path:
        """The file that says on which traces the search is, by which software, and its looks."""
        return self.path / SEARCH_MANIFEST

    def check(self, job: Job) -> None:
        """Refuse a folder that holds anything but trials on the same traces."""
        check_manifest(self.manifest, _identity(job), "a search")

    @contextmanager
    def opened(self, job: Job) -> Iterator[None]:
        """Keep other processes out of the folder, and begin it if it is new."""
        with only_one(self.path, "search"):
            self.check(job)
            if not self.manifest.exists():
                write_json(self.manifest, _identity(job) | {"looks": []})
            yield

    def begun(self) -> int:
        """Return how many trials were begun."""
        return len(list(self.path.glob(f"trials/*/{MANIFEST}")))

    def of(self, plan: Plan) -> RunFolder:
        """Return the folder of a trial."""
        text = json.dumps(plan.to_json(), sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        return RunFolder(self.path / "trials" / name)


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
        self.folder, self._job, self._workers = folder, job, workers
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
        folder = self.folder.of(plan)
        folder.begin(identity_of(plan, self._job.traces_fingerprint), plan.about_json())
        do_what_is_left(
            replace(self._job, plan=plan),
            folder,
            self._workers,
            partial(self._on_progress, title),
            _fail,
        )
        return folder.collect(plan)


def _fail(task: Task, why: str) -> NoReturn:
    raise TrialFailedError(f"{task} failed: {why}")
