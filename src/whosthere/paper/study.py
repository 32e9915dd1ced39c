"""A study: experiments on one data set, each an audit of its own, and what comes of them.

A folder holds the traces, a folder for each experiment with its report, and the results of all that
are finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from whosthere.auditing.finished import FinishedAudit
from whosthere.auditing.policy import Policy
from whosthere.auditing.run import PreparedAudit, prepare_audit
from whosthere.auditing.store import json_object
from whosthere.auditing.work import Workers
from whosthere.data.files import new_file
from whosthere.data.traces import Traces
from whosthere.errors import FileError, InputError, suggestion
from whosthere.paper.claims import judged
from whosthere.paper.datasets import simulated_traces
from whosthere.paper.description import Description, describe
from whosthere.paper.experiments import EXPERIMENTS
from whosthere.paper.milan import is_milan_file, read_milan
from whosthere.paper.page import Sizes, write_page
from whosthere.paper.results import Numbers, by_target, summarised
from whosthere.reporting.report import REPORT, audit_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from whosthere.auditing.plan import Task
    from whosthere.auditing.work import Job, Outcome
    from whosthere.paper.datasets import Dataset
    from whosthere.paper.experiments import Experiment, Series
    from whosthere.paper.judging import Judgement
    from whosthere.progress import Move

RESULTS_FILE = "results.csv"
TARGETS_FILE = "targets.parquet"
PAGE_FILE = "README.md"
FIGURES_FOLDER = "figures"
_SECONDS_TO_TRY_ALL = 40.0


class Size(NamedTuple):
    """How much is done.

    Attributes
    ----------
    targets, releases, control_releases
        How many targets, test releases of each, and releases for control there are.
    closer_look
        Whether to find out where and when people are found, for the reports.
    """

    targets: int
    releases: int
    control_releases: int
    closer_look: bool = True


SCALES = {
    "smoke": Size(2, 2, 0, closer_look=False),
    "quick": Size(50, 20, 2),
    "paper": Size(50, 100, 10),
}
"""A look at whether all of it runs; a first answer; the sizes of the paper's Table 2."""


def size_of(scale: str, *, targets: int | None = None, releases: int | None = None) -> Size:
    """Return the size of a scale, with other numbers where they are given."""
    if scale not in SCALES:
        raise InputError(f"there is no scale {scale!r}", fix=suggestion(scale, SCALES))
    usual = SCALES[scale]
    return usual._replace(targets=targets or usual.targets, releases=releases or usual.releases)


@dataclass(frozen=True, eq=False)
class PreparedStudy:
    """A study that was checked against its data and its folder, and can be run.

    Attributes
    ----------
    dataset
        What it is made on.
    audits
        The experiments that were asked for, each as an audit.
    """

    dataset: Dataset
    audits: dict[Experiment, PreparedAudit]
    _traces: Path
    _folder: Path
    _size: Size
    _seed: int

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
        """Run what is left of every experiment, and write the results of all that are finished.

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
        with workers:
            for experiment, audit in self.audits.items():
                audit.run(
                    policy=Policy.default(),
                    workers=_Kept(workers),
                    closer_look=self._size.closer_look,
                    what_if=False,
                    on_progress=_shifted(on_progress, before, total),
                    on_failure=partial(on_failure, experiment.name),
                )
                before += len(audit.plan.tasks)
                finished = FinishedAudit.load(self._folder / experiment.name)
                audit_report(finished).save(self._folder / experiment.name / REPORT, force=True)
        return write_results(
            self._folder, self.dataset, self._traces, seed=self._seed, figures=figures
        )


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


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found so far.

    Attributes
    ----------
    results
        Means and standard errors over targets, in the columns of the paper's numbers.
    targets
        AUC and accuracy of every attack on every target.
    judgements
        Every claim that was measured, with the series that it is about.
    description
        What the data look like.
    folder
        Where all of it is kept.
    """

    results: pl.DataFrame
    targets: pl.DataFrame
    judgements: tuple[tuple[str, Judgement], ...]
    description: Description
    folder: Path


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
    """
    path = _traces_in(out, dataset, traces)
    n_users = Traces.load(path).n_users
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
            seconds_to_try=_SECONDS_TO_TRY_ALL / len(experiments),
        )
        for one in experiments
    }
    return PreparedStudy(dataset, audits, path, out, size, seed)


def _traces_in(out: Path, dataset: Dataset, given: Path | None) -> Path:
    """Return the file of the traces, which the folder of a study keeps where it makes them."""
    if given is not None and not is_milan_file(given):
        return given
    path = out / f"{dataset.name}.parquet"
    if not path.exists():
        made = simulated_traces(dataset.name) if given is None else read_milan(given)
        made.save(path)
    return path


def write_results(
    folder: Path, dataset: Dataset, traces: Path, *, seed: int, figures: bool = True
) -> StudyResult:
    """Put together what the finished experiments of a folder found, and write all of it."""
    finished = {
        one: folder / name
        for name, one in EXPERIMENTS.items()
        if (folder / name / "targets.parquet").exists()
    }
    if not finished:
        raise FileError("holds no finished experiment", where=folder, fix="Run one first")
    plans = {one: json_object(path / "manifest.json")["plan"] for one, path in finished.items()}
    everybody = Traces.load(traces)
    measured = {one: pl.read_parquet(path / "targets.parquet") for one, path in finished.items()}
    targets = by_target(measured, dataset, everybody.n_users)
    results = summarised(targets)
    first = max(plans.values(), key=lambda plan: len(plan["targets"]))
    description = describe(everybody, dataset, first["targets"], seed=seed)
    numbers = Numbers(targets)
    judgements = (
        *(("data", one) for one in description.judged()),
        *judged(numbers, dataset.like),
    )
    with new_file(folder / RESULTS_FILE, force=True) as temporary:
        results.write_csv(temporary, float_precision=6)
    with new_file(folder / TARGETS_FILE, force=True) as temporary:
        targets.write_parquet(temporary, compression="zstd")
    series = {one: one.fitting(dataset, everybody.n_users) for one in finished}
    drawn = _draw(folder, series, numbers, description) if figures else ()
    sizes = {
        one.name: Sizes(
            len(plans[one]["targets"]),
            plans[one]["releases"],
            _trusted(path),
            tuple(each.name for each in series[one]),
        )
        for one, path in finished.items()
    }
    page = write_page(
        dataset,
        results=results,
        judgements=judgements,
        description=description,
        sizes=sizes,
        figures=drawn,
    )
    with new_file(folder / PAGE_FILE, force=True) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return StudyResult(results, targets, tuple(judgements), description, folder)


def _trusted(path: Path) -> bool | None:
    """Return whether the controls of an experiment found what they must."""
    found = json_object(path / "verdicts.json").get("trusted")
    return found if isinstance(found, bool) else None


def _draw(
    folder: Path,
    finished: dict[Experiment, tuple[Series, ...]],
    numbers: Numbers,
    description: Description,
) -> tuple[str, ...]:
    """Draw all figures as SVG and PNG, and return their names."""
    from whosthere.paper.data_figures import DATA_FIGURES  # noqa: PLC0415 - an optional extra
    from whosthere.paper.figures import draw  # noqa: PLC0415 - an optional extra

    pictures = {name: make(description) for name, (_, make) in DATA_FIGURES.items()}
    pictures |= {one.name: draw(one, series, numbers) for one, series in finished.items()}
    for name, picture in pictures.items():
        for ending in ("svg", "png"):
            with new_file(folder / FIGURES_FOLDER / f"{name}.{ending}", force=True) as temporary:
                picture.write(temporary, ending)
    return tuple(pictures)
