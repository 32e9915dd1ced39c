"""What comes of a study: its numbers, claims and figures, and a page of them as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined

from whosthere._version import __version__
from whosthere.adversary.attacks import TrainedAttack
from whosthere.auditing.manifest import json_object
from whosthere.auditing.store import RunFolder
from whosthere.data.files import new_file
from whosthere.display import counted, told
from whosthere.errors import FileError
from whosthere.inference.vocabulary import CEILING
from whosthere.paper.claims import CLAIMS, FEWEST, OURS, Judgement, Status, judged, judged_data
from whosthere.paper.datasets import PRESETS
from whosthere.paper.experiments import EXPERIMENTS, KK, LR, ZK, Experiment, Series, named
from whosthere.paper.results import Numbers, beside_published, by_target, summarised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from whosthere.paper.datasets import Dataset, Published
    from whosthere.paper.description import Description

FIGURES_FOLDER = "figures"
_NOTES, _CAPTIONS = told("whosthere.paper", "notes"), told("whosthere.paper", "figures")["captions"]
_SHORT = {KK: "KK", ZK: "ZK", LR: "LR"}


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

    @property
    def cautions(self) -> list[str]:
        """What to know before the claims are read; mostly nothing."""
        n = Numbers(self.targets).n_targets
        few = f"{counted(n, 'target')} can decide nothing of what attacks are claimed to find: "
        return [f"{few}at least {FEWEST} are needed."] if n < FEWEST else []

    def to_json(self) -> dict[str, Any]:
        """Return the claims and the numbers as a JSON object."""
        claims = {"claims": self.judgements, "claims_of_ours": self.ours}
        return {
            "folder": str(self.folder),
            **{
                name: [
                    {"about": about, "claim": one.claim, "status": one.status.value}
                    for about, one in judged
                ]
                for name, judged in claims.items()
            },
            "results": self.results.fill_nan(None).to_dicts(),
        }


class Finished(NamedTuple):
    """An experiment, what of it fits the data, and what the folder of its audit says."""

    experiment: Experiment
    series: tuple[Series, ...]
    plan: Mapping[str, Any]
    verdicts: Mapping[str, Any]


def write_outcome(
    folder: Path, dataset: Dataset, description: Description, *, figures: bool
) -> StudyResult:
    """Put together what the finished experiments of a folder found, and write all of it.

    The description lacks the targets. Without `figures`, the page shows those that are there.
    """
    measured = finished_in(folder)
    if not measured:
        raise FileError(
            "holds no result, as every task failed", where=folder, fix="log.txt says why"
        )
    plans = {name: json_object(folder / name / "manifest.json")["plan"] for name in measured}
    description = description.of_targets(max((plan["targets"] for plan in plans.values()), key=len))
    finished = {
        name: Finished(
            EXPERIMENTS[name],
            EXPERIMENTS[name].fitting(dataset, description.users),
            plan,
            json_object(folder / name / "verdicts.json"),
        )
        for name, plan in plans.items()
    }
    of_targets = {name: (rows, plans[name]["targets"]) for name, rows in measured.items()}
    targets = by_target(of_targets, dataset, description.users)
    numbers = Numbers(targets)
    found = StudyResult(
        summarised(targets),
        targets,
        (*judged_data(description), *judged(CLAIMS, numbers, dataset)),
        judged(OURS, numbers, dataset),
        description,
        folder,
    )
    if figures:
        _draw(folder / FIGURES_FOLDER, finished, numbers, description)
    drawn = [file.stem for file in (folder / FIGURES_FOLDER).glob("*.svg")]
    with new_file(folder / "results.csv", force=True, public=True) as temporary:
        found.results.write_csv(temporary, float_precision=6)
    with new_file(folder / "targets.parquet", force=True) as temporary:
        targets.write_parquet(temporary, compression="zstd")
    with new_file(folder / "README.md", force=True, public=True) as temporary:
        temporary.write_text(_page(found, dataset, finished, drawn), encoding="utf-8")
    return found


def finished_in(folder: Path) -> dict[str, pl.DataFrame]:
    """Return what was found of each target, by experiment."""
    found = {name: folder / name / "targets.parquet" for name in EXPERIMENTS}
    there = {name: file for name, file in found.items() if file.exists()}
    for file in there.values():
        RunFolder(file.parent).check_results()
    return {name: pl.read_parquet(file) for name, file in there.items()}


def _draw(
    folder: Path, finished: Mapping[str, Finished], numbers: Numbers, description: Description
) -> None:
    """Draw all figures as SVG and PNG."""
    from whosthere.paper.figures import DATA_FIGURES, draw  # noqa: PLC0415 - an optional extra

    pictures = {name: make(description) for name, make in DATA_FIGURES.items()}
    pictures |= {name: draw(name, one.series, numbers) for name, one in finished.items()}
    for name, picture in pictures.items():
        for ending in ("svg", "png"):
            with new_file(folder / f"{name}.{ending}", force=True, public=True) as temporary:
                picture.write(temporary, ending)


def _page(
    found: StudyResult, dataset: Dataset, finished: Mapping[str, Finished], figures: Sequence[str]
) -> str:
    by_series = beside_published(found.results, dataset.like).partition_by(
        "experiment", as_dict=True, maintain_order=True
    )
    page = (
        _templates()
        .get_template("page.md.j2")
        .render(
            found=found,
            dataset=dataset,
            where="a simulated city" if dataset.name in PRESETS else "these data",
            finished=finished,
            published={series: rows.to_dicts() for (series,), rows in by_series.items()},
            tables={name: list(_tables(found.results, one)) for name, one in finished.items()},
            figures=figures,
            captions={name: said for name, said in _CAPTIONS.items() if name in figures},
        )
    )
    return page.rstrip() + "\n"


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("whosthere.paper", ""),
        autoescape=False,  # noqa: S701 - Markdown
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["plain"] = _plain
    made.globals |= {"notes_on": notes_on, "short": _SHORT}
    made.globals |= {"statuses": list(Status), "version": __version__}
    made.globals["threshold"] = TrainedAttack.threshold
    return made


def notes_on(series: str, like: Published) -> list[str]:
    """Return what to read beside numbers of a series that are compared with the paper's."""
    return [note for about in ("any", like) for note in _NOTES.get(about, {}).get(series, ())]


def _tables(
    results: pl.DataFrame, one: Finished
) -> Iterator[tuple[list[str], list[tuple[str, ...]]]]:
    """Return a table for each series: a row a value, the AUC of every attack, and its accuracy."""
    for series in one.series:
        rows = results.filter(pl.col("experiment") == series.name)
        found = {(row["value"], row["attack"], row["metric"]): row for row in rows.to_dicts()}
        every = list(dict.fromkeys(rows["attack"]))
        # What bounds them all comes last, and decides nothing itself.
        attacks = [attack for attack in every if attack != CEILING]
        columns = [("auc", "AUC", attack) for attack in sorted(every, key=lambda a: a == CEILING)]
        columns += [("accuracy", "accuracy", attack) for attack in attacks]
        heads = [f"{words} {named(attack, _SHORT)}" for _, words, attack in columns]
        lines = [
            (value, *(_number(found.get((value, attack, metric))) for metric, _, attack in columns))
            for value in rows["value"].unique(maintain_order=True)
        ]
        if lines:
            yield [f"{series.name}: {series.parameter.replace('_', ' ')}", *heads], lines


def _number(row: Mapping[str, float] | None) -> str:
    return "" if row is None else f"{row['mean']:.3f} ± {row['standard_error']:.3f}"


def _plain(name: str) -> str:
    """Return a name from outside as Markdown that means nothing else."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+!|<>" else c for c in name)
