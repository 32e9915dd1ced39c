"""What comes of a study: its numbers, claims, figures and page, from the finished experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.auditing.store import json_object
from whosthere.data.files import new_file
from whosthere.errors import FileError
from whosthere.paper.claims import CLAIMS, OURS, judged
from whosthere.paper.experiments import EXPERIMENTS
from whosthere.paper.page import Sizes, write_page
from whosthere.paper.results import Numbers, by_target, summarised

if TYPE_CHECKING:
    from pathlib import Path

    from whosthere.paper.datasets import Dataset
    from whosthere.paper.description import Description
    from whosthere.paper.experiments import Experiment, Series
    from whosthere.paper.judging import Judgement

RESULTS_FILE = "results.csv"
TARGETS_FILE = "targets.parquet"
PAGE_FILE = "README.md"
FIGURES_FOLDER = "figures"


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found so far.

    Attributes
    ----------
    results
        Means and standard errors over targets, in the columns of the paper's numbers.
    targets
        AUC and accuracy of every attack on every target.
    judgements, ours
        Every claim of the paper that was measured, and every one of ours, with the series that it
        is about.
    description
        What the data look like.
    folder
        Where all of it is kept.
    """

    results: pl.DataFrame
    targets: pl.DataFrame
    judgements: tuple[tuple[str, Judgement], ...]
    ours: tuple[tuple[str, Judgement], ...]
    description: Description
    folder: Path


def write_outcome(
    folder: Path, dataset: Dataset, description: Description, *, figures: bool
) -> StudyResult:
    """Put together what the finished experiments of a folder found, and write all of it.

    Parameters
    ----------
    folder, dataset
        Of the study.
    description
        What the data look like, but for the targets.
    figures
        Whether to draw figures; otherwise the page shows those that are there.
    """
    finished = finished_in(folder)
    if not finished:
        raise FileError(
            "holds no result, as every task failed", where=folder, fix="log.txt says why"
        )
    plans = {one: json_object(folder / one.name / "manifest.json")["plan"] for one in finished}
    largest = max(plans.values(), key=lambda plan: len(plan["targets"]))
    description = description.of_targets(largest["targets"])
    targets = by_target(finished, dataset, description.users)
    results, numbers = summarised(targets), Numbers(targets)
    series = {one: one.fitting(dataset, description.users) for one in finished}
    data = tuple(("data", one) for one in description.judged())
    judgements = (*data, *judged(CLAIMS, numbers, dataset))
    ours = judged(OURS, numbers, dataset)
    if figures:
        _draw(folder / FIGURES_FOLDER, series, numbers, description)
    page = write_page(
        dataset,
        results=results,
        judgements=judgements,
        ours=ours,
        description=description,
        sizes={one.name: _size(folder, one, plans[one], series[one]) for one in finished},
        figures=[file.stem for file in (folder / FIGURES_FOLDER).glob("*.svg")],
    )
    with new_file(folder / RESULTS_FILE, force=True) as temporary:
        results.write_csv(temporary, float_precision=6)
    with new_file(folder / TARGETS_FILE, force=True) as temporary:
        targets.write_parquet(temporary, compression="zstd")
    with new_file(folder / PAGE_FILE, force=True) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return StudyResult(results, targets, judgements, ours, description, folder)


def finished_in(folder: Path) -> dict[Experiment, pl.DataFrame]:
    """Return what was found of each target, by experiment; not where every task failed."""
    files = {one: folder / name / "targets.parquet" for name, one in EXPERIMENTS.items()}
    found = {one: pl.read_parquet(file) for one, file in files.items() if file.exists()}
    return {one: rows for one, rows in found.items() if not rows.is_empty()}


def _size(
    folder: Path, experiment: Experiment, plan: dict[str, Any], series: tuple[Series, ...]
) -> Sizes:
    verdicts = json_object(folder / experiment.name / "verdicts.json")
    trusted = verdicts.get("trusted")
    return Sizes(
        targets=len(plan["targets"]),
        releases=plan["releases"],
        failed=verdicts["failed_tasks"],
        trusted=trusted if isinstance(trusted, bool) else None,
        series=tuple(one.name for one in series),
    )


def _draw(
    folder: Path,
    finished: dict[Experiment, tuple[Series, ...]],
    numbers: Numbers,
    description: Description,
) -> None:
    """Draw all figures as SVG and PNG."""
    from whosthere.paper.data_figures import DATA_FIGURES  # noqa: PLC0415 - an optional extra
    from whosthere.paper.figures import draw  # noqa: PLC0415 - an optional extra

    pictures = {name: make(description) for name, (_, make) in DATA_FIGURES.items()}
    pictures |= {one.name: draw(one, series, numbers) for one, series in finished.items()}
    for name, picture in pictures.items():
        for ending in ("svg", "png"):
            with new_file(folder / f"{name}.{ending}", force=True) as temporary:
                picture.write(temporary, ending)
