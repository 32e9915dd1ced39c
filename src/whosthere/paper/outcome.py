"""What comes of a study: its numbers, claims, figures and page, from the finished experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from whosthere.auditing.manifest import json_object
from whosthere.data.files import new_file
from whosthere.errors import FileError
from whosthere.paper.claims import CLAIMS, OURS, judged
from whosthere.paper.experiments import EXPERIMENTS
from whosthere.paper.page import Finished, write_page
from whosthere.paper.results import Numbers, by_target, summarised

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from whosthere.paper.datasets import Dataset
    from whosthere.paper.description import Description
    from whosthere.paper.judging import Judgement

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
        What the data look like, except for the targets.
    figures
        Whether to draw figures; otherwise the page shows those that are there.
    """
    measured = finished_in(folder)
    if not measured:
        raise FileError(
            "holds no result, as every task failed", where=folder, fix="log.txt says why"
        )
    plans = {name: json_object(folder / name / "manifest.json")["plan"] for name in measured}
    description = description.of_targets(max((plan["targets"] for plan in plans.values()), key=len))
    finished = [
        Finished(
            EXPERIMENTS[name],
            EXPERIMENTS[name].fitting(dataset, description.users),
            plan,
            json_object(folder / name / "verdicts.json"),
        )
        for name, plan in plans.items()
    ]
    targets = by_target(measured, dataset, description.users)
    results, numbers = summarised(targets), Numbers(targets)
    data = tuple(("data", one) for one in description.judged())
    judgements = (*data, *judged(CLAIMS, numbers, dataset))
    ours = judged(OURS, numbers, dataset)
    if figures:
        _draw(folder / FIGURES_FOLDER, finished, numbers, description)
    page = write_page(
        dataset,
        results=results,
        judgements=judgements,
        ours=ours,
        description=description,
        finished=finished,
        figures=[file.stem for file in (folder / FIGURES_FOLDER).glob("*.svg")],
    )
    with new_file(folder / "results.csv", force=True) as temporary:
        results.write_csv(temporary, float_precision=6)
    with new_file(folder / "targets.parquet", force=True) as temporary:
        targets.write_parquet(temporary, compression="zstd")
    with new_file(folder / "README.md", force=True) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return StudyResult(results, targets, judgements, ours, description, folder)


def finished_in(folder: Path) -> dict[str, pl.DataFrame]:
    """Return what was found of each target, by experiment; not where every task failed."""
    files = {name: folder / name / "targets.parquet" for name in EXPERIMENTS}
    found = {name: pl.read_parquet(file) for name, file in files.items() if file.exists()}
    return {name: rows for name, rows in found.items() if not rows.is_empty()}


def _draw(
    folder: Path, finished: Sequence[Finished], numbers: Numbers, description: Description
) -> None:
    """Draw all figures as SVG and PNG."""
    from whosthere.paper.data_figures import DATA_FIGURES  # noqa: PLC0415 - an optional extra
    from whosthere.paper.figures import draw  # noqa: PLC0415 - an optional extra

    pictures = {name: make(description) for name, (_, make) in DATA_FIGURES.items()}
    pictures |= {one.name: draw(one.name, one.series, numbers) for one in finished}
    for name, picture in pictures.items():
        for ending in ("svg", "png"):
            with new_file(folder / f"{name}.{ending}", force=True) as temporary:
                picture.write(temporary, ending)
