"""A study: experiments on one data set, each an audit of its own, and what comes of them.

A folder holds a record of what the study is of, the traces, a folder for each experiment with its
report, and the results of all that are finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from whosthere.auditing.lock import only_one
from whosthere.auditing.policy import Policy
from whosthere.auditing.run import PreparedAudit, prepare_audit
from whosthere.auditing.store import fingerprint
from whosthere.auditing.work import Workers
from whosthere.data.traces import Traces
from whosthere.errors import FileError, InputError, suggestion
from whosthere.paper.datasets import simulated_traces
from whosthere.paper.description import describe
from whosthere.paper.milan import is_milan_file, read_milan
from whosthere.paper.outcome import finished_in, write_outcome
from whosthere.paper.record import check_record, record_of, write_record
from whosthere.reporting.report import REPORT, audit_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whosthere.auditing.work import Job, Outcome
    from whosthere.game.rounds import Task
    from whosthere.paper.datasets import Dataset
    from whosthere.paper.experiments import Experiment
    from whosthere.paper.outcome import StudyResult
    from whosthere.progress import Move

_SECONDS_TO_TRY_ALL = 40.0


class Size(NamedTuple):
    """How much is done.

    Attributes
    ----------
    targets, releases, control_releases
        How many targets, test releases of each, and releases for control there are.
    leaks
        Whether to find out where and when people are found, for the reports.
    """

    targets: int
    releases: int
    control_releases: int
    leaks: bool = True


SCALES = {
    "smoke": Size(2, 2, 0, leaks=False),
    "quick": Size(50, 20, 2),
    "paper": Size(50, 100, 10),
}
"""A look at whether all of it runs; a first answer; the sizes of the paper's Table 2."""


def size_of(scale: str, *, targets: int | None = None, releases: int | None = None) -> Size:
    """Return the size of a scale, with other numbers where they are given."""
    if scale not in SCALES:
        raise InputError(f"there is no scale {scale!r}", fix=suggestion(scale, SCALES))
    for what, n, fewest in (("target", targets, 1), ("releases of each target", releases, 2)):
        if n is not None and n < fewest:
            raise InputError(f"there must be at least {fewest} {what}, not {n}")
    usual = SCALES[scale]
    return usual._replace(
        targets=usual.targets if targets is None else targets,
        releases=usual.releases if releases is None else releases,
    )


@dataclass(frozen=True, eq=False)
class PreparedStudy:
    """A study that was checked against its data and its folder, and can be run.

    Attributes
    ----------
    dataset
        What it is made on.
    audits
        The experiments that were asked for, each as an audit.
    left_out
        Those for which there are too few people, if all were asked for.
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

    def run(
        self,
        *,
        workers: Workers,
        figures: bool = True,
        on_progress: Move = lambda _what, _done, _total: None,
        on_failure: Callable[[str, Task, str], None] = lambda *_: None,
    ) -> StudyResult:
        """Run what is left of every experiment.

        After each, the results of all that are finished are written; the figures come last.

        Parameters
        ----------
        workers
            Who does the work.
        figures
            Whether to draw figures, which needs matplotlib.
        on_progress
            Called with "tasks", the number of tasks done and of all tasks, of all experiments
            together; and with what follows the scores of each.
        on_failure
            Called with an experiment, a task that failed, and why; the others continue.
        """
        before, total = 0, sum(len(audit.plan.tasks) for audit in self.audits.values())
        with workers, only_one(self._folder, "study"):
            # Another study may have begun here since this one was prepared.
            check_record(self._folder, self._record)
            write_record(self._folder, self._record)
            traces = Traces.load(self._traces)
            description = describe(traces, self.dataset, seed=self._record["seed"])
            write = partial(write_outcome, self._folder, self.dataset, description)
            for experiment, audit in self.audits.items():
                result = audit.run(
                    policy=Policy.default(),
                    workers=_Kept(workers),
                    leaks=self._size.leaks,
                    what_if=False,
                    on_progress=_shifted(on_progress, before, total),
                    on_failure=partial(on_failure, experiment.name),
                )
                before += len(audit.plan.tasks)
                audit_report(result).save(self._folder / experiment.name / REPORT, force=True)
                if finished_in(self._folder):
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
    experiments: Sequence[Experiment],
    dataset: Dataset,
    out: Path,
    *,
    traces: Path | None,
    size: Size,
    seed: int,
    extend: bool = False,
    estimate: bool = False,
    leave_out: bool = False,
    scratch: Path | None = None,
) -> PreparedStudy:
    """Check everything that can be checked before any work is done.

    Parameters
    ----------
    experiments
        What to find out.
    dataset
        What it is made on, with the numbers that go with it.
    out
        Folder of the study. Experiments that were begun there resume.
    traces
        File of the traces, or the real Milan file; None where the data are a simulated city.
    size
        How many targets and releases there are.
    seed
        Of everything.
    extend
        Whether experiments may be there with fewer targets or releases, to which the others are
        added.
    estimate
        Whether to try the attacks, to estimate the time.
    leave_out
        Whether to leave out experiments for which there are too few people, instead of refusing
        all of them.
    scratch
        Where to put traces that have to be made, if not in the folder of the study.
    """
    record = record_of(dataset, traces, seed=seed)
    begun = check_record(out, record)
    path = _traces_in(out if begun else scratch or out, dataset, traces, begun=begun)
    n_users = Traces.load(path).n_users
    fitting = tuple(one for one in experiments if one.fitting(dataset, n_users))
    left_out = tuple(one for one in experiments if one not in fitting) if leave_out else ()
    # Where none fits, the first one says why.
    wanted = fitting if leave_out and fitting else experiments
    audits = {
        one: prepare_audit(
            path,
            one.options(
                dataset,
                n_users,
                targets=size.targets,
                releases=size.releases,
                control_releases=size.control_releases,
                seed=seed,
            ),
            out / one.name,
            extend=extend,
            estimate=estimate,
            seconds_to_try=_SECONDS_TO_TRY_ALL / len(wanted),
        )
        for one in wanted
    }
    return PreparedStudy(dataset, audits, left_out, path, out, size, record)


def _traces_in(folder: Path, dataset: Dataset, given: Path | None, *, begun: bool) -> Path:
    """Return the file of the traces, which a folder keeps where they had to be made.

    A file that is there is taken if the study was begun with it, or if it is the same.
    """
    if given is not None and not is_milan_file(given):
        return given
    path = folder / f"{dataset.name}.parquet"
    if begun and path.exists():
        return path
    made = simulated_traces(dataset.name) if given is None else read_milan(given)
    with only_one(folder, "study"), TemporaryDirectory() as elsewhere:
        if not path.exists():
            made.save(path)
            return path
        again = Path(elsewhere) / path.name
        made.save(again)
        if fingerprint(again) != fingerprint(path):
            problem = f"is there already, and does not hold the traces of {dataset.name}"
            raise FileError(problem, where=path, fix="Name a new folder")
    return path
