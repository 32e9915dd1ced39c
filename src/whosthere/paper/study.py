"""A study: experiments on one data set, each an audit of its own, and what comes of them.

A folder holds a record of what the study is of, the traces, a folder for each experiment with its
report, and the results of all that are finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack, cast

from whosthere.adversary.attacks import TrainedAttack
from whosthere.auditing.choices import whole_numbers
from whosthere.auditing.manifest import json_object, only_one, write_json
from whosthere.auditing.policy import Policy
from whosthere.auditing.run import PreparedAudit, prepare_audit
from whosthere.auditing.work import Job, Outcome, Workers
from whosthere.data.files import fingerprint
from whosthere.data.traces import Traces
from whosthere.errors import AuditFailedError, FileError, LostWorkersError
from whosthere.paper.choices import StudyChoices
from whosthere.paper.datasets import Dataset, find_dataset, is_milan_file, made_traces
from whosthere.paper.description import describe
from whosthere.paper.experiments import ALL, EXPERIMENTS, named_experiments, size_of
from whosthere.paper.outcome import StudyResult, write_outcome
from whosthere.reporting.report import REPORT, audit_report
from whosthere.seeds import check_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whosthere.game.rounds import Task
    from whosthere.paper.experiments import Experiment, Size
    from whosthere.progress import Move

_SECONDS_TO_TRY_ALL = 40.0


@dataclass(frozen=True, eq=False)
class PreparedStudy:
    """A study that was checked against its data and its folder, and can be run.

    `audits` are the experiments that were asked for; those for which there are too few people are
    `left_out`, if all were asked for.
    """

    dataset: Dataset
    audits: dict[Experiment, PreparedAudit]
    left_out: tuple[Experiment, ...]
    _traces: Path
    _folder: Path
    _size: Size
    _record: dict[str, Any]

    @property
    def n_left(self) -> int:
        """How many tasks are not done yet."""
        return sum(len(audit.left) for audit in self.audits.values())

    @property
    def seconds(self) -> float | None:
        """What they are expected to take of one processor; None if it was not asked for."""
        costs = [audit.cost for audit in self.audits.values()]
        known = [cost.seconds for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def to_json(self) -> dict[str, Any]:
        """Return what would be run, and what it is expected to cost, as a JSON object."""
        return {
            "dataset": self.dataset.name,
            "experiments": {
                experiment.name: {
                    "settings": [str(one) for one in audit.plan.settings],
                    "targets": len(audit.plan.targets),
                    "releases": audit.plan.releases,
                    "tasks": len(audit.plan.tasks),
                    "tasks_left": len(audit.left),
                }
                for experiment, audit in self.audits.items()
            },
            "left_out": [experiment.name for experiment in self.left_out],
            "seconds_of_one_processor": self.seconds,
        }

    def run(
        self,
        *,
        workers: Workers,
        figures: bool = True,
        on_progress: Move = lambda _what, _done, _total: None,
        on_failure: Callable[[str, Task, str], None] = lambda *_: None,
    ) -> StudyResult:
        """Run what is left of every experiment.

        After each, the results of all that are finished are written; the figures, which need
        matplotlib, come last. `on_progress` is called with "tasks", the number of tasks done and of
        all tasks, of all experiments together; and with what follows the scores of each.
        `on_failure` is called with an experiment, a task that failed, and why; the others continue.
        """
        before, total = 0, sum(len(audit.plan.tasks) for audit in self.audits.values())
        with workers, only_one(self._folder, "study"):
            # Another study may have begun here since this one was prepared.
            _check_record(self._folder, self._record)
            write_json(self._folder / _FILE, self._record)
            traces = Traces.load(self._traces)
            description = describe(traces, self.dataset, seed=self._record["seed"])
            write = partial(write_outcome, self._folder, self.dataset, description)
            for experiment, audit in self.audits.items():
                move = _shifted(on_progress, before, total)
                before += len(audit.plan.tasks)
                try:
                    result = audit.run(
                        policy=Policy.default(),
                        workers=_Kept(workers),
                        leaks=self._size.leaks,
                        what_if=False,
                        on_progress=move,
                        on_failure=partial(on_failure, experiment.name),
                    )
                except LostWorkersError:
                    raise
                except AuditFailedError:
                    continue
                audit_report(result).save(self._folder / experiment.name / REPORT, force=True)
                write(figures=False)
            return write(figures=figures)


def _shifted(on_progress: Move, before: int, total: int) -> Move:
    """Report the tasks of one experiment as some of all."""

    def move(what: str, done: int, most: int | None) -> None:
        is_task = what == "tasks"
        on_progress(what, before + done if is_task else done, total if is_task else most)

    return move


class _Kept(Workers):
    """Workers that stay at work after an audit, for the next one."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def do(self, job: Job, tasks: Sequence[Task]) -> Iterator[Outcome]:
        return self._workers.do(job, tasks)


def prepare_study(
    experiments: Sequence[str],
    out: Path,
    *,
    extend: bool = False,
    estimate: bool = False,
    scratch: Path | None = None,
    **chosen: Unpack[StudyChoices],
) -> PreparedStudy:
    """Check everything that can be checked before any work is done; see `whosthere.reproduce`.

    With ``all``, experiments for which there are too few people are left out; otherwise they are
    refused. `estimate` tells whether to try the attacks, to estimate the time, and `scratch` where
    to put traces that have to be made, if not in the folder of the study.
    """
    wanted = named_experiments(experiments)
    seed = check_seed(chosen.get("seed") or 0)
    chosen |= cast("StudyChoices", whole_numbers(StudyChoices, chosen))
    size = size_of(chosen.get("scale"), chosen.get("targets"), chosen.get("releases"))
    dataset, traces = find_dataset(**chosen)
    record = _record_of(dataset, traces, seed=seed)
    begun = _check_record(out, record)
    path = _traces_in(out if begun else scratch or out, dataset, traces, begun=begun)
    n_users = Traces.load(path).n_users
    fitting = tuple(one for one in wanted if one.fitting(dataset, n_users))
    # Where none fits, the first one says why.
    leave_out = ALL in experiments and fitting
    audits = {
        one: prepare_audit(
            path,
            one.options(dataset, n_users, size, seed=seed),
            out / one.name,
            extend=extend,
            estimate=estimate,
            seconds_to_try=_SECONDS_TO_TRY_ALL / len(wanted),
        )
        for one in (fitting if leave_out else wanted)
    }
    left_out = tuple(one for one in wanted if one not in audits)
    return PreparedStudy(dataset, audits, left_out, path, out, size, record)


_FILE = "study.json"
_FIX = "Name a new folder, or repeat the command that began this one"


def _record_of(dataset: Dataset, given: Path | None, *, seed: int) -> dict[str, Any]:
    """Return all that the experiments of a study share, as a JSON object.

    `given` is the file that the user gave; None where the data are a simulated city.
    """
    return {
        "data": dataset.name,
        "like": dataset.like,
        "file": None if given is None else fingerprint(given),
        "group size": dataset.group_size,
        "minimum visits": dataset.min_visits,
        "reference size": dataset.reference_size or "the usual",
        "visits a day": dataset.max_visits,
        # Accuracies by another rule would not compare.
        "threshold": TrainedAttack.threshold,
        "seed": seed,
    }


def _check_record(folder: Path, record: dict[str, Any]) -> bool:
    """Tell whether this very study was begun in a folder; refuse one that holds another."""
    path = folder / _FILE
    if path.exists():
        found = json_object(path)
        other = [key for key in record if found.get(key) != record[key]]
        if "file" in other:
            problem = "holds a study of another file, or the file has changed since"
            raise FileError(problem, where=folder, fix=_FIX)
        if other:
            shown = "; ".join(f"{key} {found.get(key)} then, {record[key]} now" for key in other)
            raise FileError(f"holds another study ({shown})", where=folder, fix=_FIX)
        return True
    if any((folder / name).exists() for name in EXPERIMENTS):
        problem = f"holds experiments, but no {_FILE} that says what they were made on"
        raise FileError(problem, where=folder, fix="Name a new folder")
    return False


def _traces_in(folder: Path, dataset: Dataset, given: Path | None, *, begun: bool) -> Path:
    """Return the file of the traces, which a folder keeps where they had to be made.

    A file that is there is taken if the study was begun with it, or if it is the same.
    """
    if given is not None and not is_milan_file(given):
        return given
    path = folder / f"{dataset.name}.parquet"
    if begun and path.exists():
        return path
    with only_one(folder, "study"), TemporaryDirectory() as elsewhere:
        made = Path(elsewhere) / path.name if path.exists() else path
        made_traces(dataset, given).save(made)
        if fingerprint(made) != fingerprint(path):
            problem = f"is there already, and does not hold the traces of {dataset.name}"
            raise FileError(problem, where=path, fix="Name a new folder")
    return path
