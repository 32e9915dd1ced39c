"""What comes of a study: its numbers, claims and figures, and a page of them as Markdown."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from whosthere._version import __version__
from whosthere.auditing.manifest import json_object
from whosthere.data.files import new_file
from whosthere.display import counted
from whosthere.errors import FileError
from whosthere.inference.vocabulary import CEILING
from whosthere.paper.claims import CLAIMS, FEWEST, OURS, Status, judged, judged_data
from whosthere.paper.datasets import PRESETS
from whosthere.paper.experiments import EXPERIMENTS, KK, LR, ZK, named
from whosthere.paper.results import Numbers, beside_published, by_target, summarised

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from whosthere.paper.claims import Judgement
    from whosthere.paper.datasets import Dataset, Published
    from whosthere.paper.description import Description
    from whosthere.paper.experiments import Experiment, Series

FIGURES_FOLDER = "figures"
_SHORT = {KK: "KK", ZK: "ZK", LR: "LR"}
_INTERVALS = (
    "Held: each number lies where it should, at 95 % (the interval has 5 % on either side). Not "
    "held: one does not, at 95 % for all numbers of the claim together. Numbers that the paper "
    "measured are bounds with two of their own standard errors."
)
# Differences beyond so many standard errors are set in bold.
_NOTABLE = 2.0


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
    """Return what was found of each target, by experiment; not where every task failed."""
    found = {name: folder / name / "targets.parquet" for name in EXPERIMENTS}
    rows = {name: pl.read_parquet(file) for name, file in found.items() if file.exists()}
    return {name: some for name, some in rows.items() if not some.is_empty()}


def _draw(
    folder: Path, finished: Mapping[str, Finished], numbers: Numbers, description: Description
) -> None:
    """Draw all figures as SVG and PNG."""
    from whosthere.paper.figures import DATA_FIGURES, draw  # noqa: PLC0415 - an optional extra

    pictures = {name: make(description) for name, (_, make) in DATA_FIGURES.items()}
    pictures |= {name: draw(name, one.series, numbers) for name, one in finished.items()}
    for name, picture in pictures.items():
        for ending in ("svg", "png"):
            with new_file(folder / f"{name}.{ending}", force=True, public=True) as temporary:
                picture.write(temporary, ending)


def _page(
    found: StudyResult, dataset: Dataset, finished: Mapping[str, Finished], figures: Sequence[str]
) -> str:
    where = f"on {'a simulated city' if dataset.name in PRESETS else 'these data'}"
    parts = [
        f"# The paper's study on {_plain(dataset.name)}",
        _about(dataset, found.description),
        *_claims("Claims of the paper", found.judgements, where),
        *found.cautions,
        _INTERVALS,
        *_claims("Claims of ours", found.ours, where),
        *_sizes(finished),
        *_published(found.results, dataset),
        *_measured(found.results, finished, figures),
        *_data(figures),
    ]
    return "\n\n".join(parts) + "\n"


def _about(dataset: Dataset, found: Description) -> str:
    return (
        f"{found.users:,} users, {found.regions:,} regions, {found.epochs:,} epochs, "
        f"{found.visits:,} visits. Groups of {dataset.group_size:,} unless stated otherwise, "
        f"targets with {dataset.min_visits} or more visits, at most {dataset.max_visits} visits "
        "a day under user-day noise; numbers and claims beside those of the paper's "
        f"{'CDR' if dataset.like == 'cdr' else 'Milan'} data. KK is knock-knock, ZK "
        "zero-knowledge with a classifier for each release, LR the likelihood ratio, and the "
        "ceiling the optimum of the game. Means and standard errors over targets. "
        f"Written by whosthere {__version__} (`whosthere paper`)."
    )


def _claims(title: str, judgements: Sequence[tuple[str, Judgement]], where: str) -> list[str]:
    if not judgements:
        return []
    found = [one.status for _, one in judgements]
    said = ", ".join(f"{found.count(status)} {status.value}" for status in Status)
    heads = ("about", "claim", "", "numbers that decided, with intervals")
    words = {Status.NOT_HELD: f"**not held** {where}"}
    rows = []
    for series, one in judgements:
        status = words.get(one.status, one.status.value)
        if one.explained_by and one.status is not Status.HELD:
            status += f"; it comes from the authors' code: {', '.join(one.explained_by)}"
        rows.append((series, one.claim, status, one.test))
    return [f"## {title}", f"{said}.", _table(heads, rows)]


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as Markdown."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def _sizes(finished: Mapping[str, Finished]) -> list[str]:
    words = {True: "passed", False: "**failed**", None: "none"}
    heads = ("experiment", "question", "targets", "releases of each", "controls")
    rows = []
    for name, one in finished.items():
        failed = one.verdicts["failed_tasks"]
        missing = f" ({failed} tasks **failed**)" if failed else ""
        targets, controls = len(one.plan["targets"]), words[one.verdicts.get("trusted")]
        question = one.experiment.question
        rows.append((name, question, f"{targets}{missing}", one.plan["releases"], controls))
    return [
        "## What was run",
        "Each experiment is an audit. `report.html` in its folder has its verdicts, its ROC curves "
        "and, except at the scale `smoke`, where and when people are found (`whosthere paper` and "
        "`whosthere report` write it).",
        _table(heads, rows),
    ]


def _published(results: pl.DataFrame, dataset: Dataset) -> list[str]:
    """Put the paper's numbers beside ours, series by series."""
    both = beside_published(results, dataset.like)
    if both.is_empty():
        return []
    parts = [
        "## Published and measured",
        "Published numbers are those of the paper's tables, on its own data. Differences beyond "
        "two standard errors are set in bold.",
    ]
    for series in both["experiment"].unique(maintain_order=True):
        own = both.filter(pl.col("experiment") == series)
        heads = (
            *(own["parameter"][0].replace("_", " "), "attack", "published", "ours"),
            *("difference", "in standard errors"),
        )
        rows = [
            (
                row["value"],
                _SHORT[row["attack"]],
                _number(row),
                _number(row, "_ours"),
                f"{row['difference']:+.3f}",
                _in_errors(row["in_standard_errors"]),
            )
            for row in own.to_dicts()
        ]
        parts += [f"### {series}: {own['metric'][0]}", _table(heads, rows)]
        notes = notes_on(series, dataset.like)
        if notes:
            parts.append("\n".join(f"- {note}" for note in notes))
    return parts


@cache
def _notes() -> dict[str, dict[str, list[str]]]:
    source = files("whosthere.paper") / "notes.toml"
    return tomllib.loads(source.read_text(encoding="utf-8"))


def notes_on(series: str, like: Published) -> list[str]:
    """Return what to read beside numbers of a series that are compared with the paper's."""
    return [note for about in ("any", like) for note in _notes().get(about, {}).get(series, ())]


def _in_errors(value: float | None) -> str:
    if value is None:
        return ""
    return f"**{value:+.1f}**" if abs(value) > _NOTABLE else f"{value:+.1f}"


def _measured(
    results: pl.DataFrame, finished: Mapping[str, Finished], figures: Sequence[str]
) -> list[str]:
    """Give the figure of each experiment, and a table for each of its series."""
    parts = ["## All results"]
    for name, one in finished.items():
        question = one.experiment.question
        parts.append(f"### {name}: {question}")
        if name in figures:
            parts.append(f"![{question}](figures/{name}.svg)")
        tables = [results.filter(pl.col("experiment") == series.name) for series in one.series]
        parts += [_results(rows) for rows in tables if not rows.is_empty()]
    return parts


def _results(rows: pl.DataFrame) -> str:
    """Write a series: a row for each value, the AUC of every attack, and its accuracy."""
    found = {(row["value"], row["attack"], row["metric"]): row for row in rows.to_dicts()}
    attacks = [*dict.fromkeys(a for a in rows["attack"] if a != CEILING)]
    ceiling = [CEILING] if CEILING in set(rows["attack"]) else []
    columns = [("auc", "AUC", attack) for attack in [*attacks, *ceiling]]
    columns += [("accuracy", "accuracy", attack) for attack in attacks]
    series, parameter = rows["experiment"][0], rows["parameter"][0].replace("_", " ")
    heads = [f"{series}: {parameter}", *(f"{words} {named(a, _SHORT)}" for _, words, a in columns)]
    lines = [
        (value, *(_number(found.get((value, attack, metric))) for metric, _, attack in columns))
        for value in rows["value"].unique(maintain_order=True)
    ]
    return _table(heads, lines)


def _number(row: Mapping[str, float] | None, whose: str = "") -> str:
    if row is None:
        return ""
    return f"{row[f'mean{whose}']:.3f} ± {row[f'standard_error{whose}']:.3f}"


def _data(figures: Sequence[str]) -> list[str]:
    try:
        from whosthere.paper.figures import DATA_FIGURES  # noqa: PLC0415 - an optional extra
    except ImportError:
        return []
    drawn = {name: caption for name, (caption, _) in DATA_FIGURES.items() if name in figures}
    shown = [f"![{said}](figures/{name}.svg)\n\n{said}." for name, said in drawn.items()]
    return ["## The data", *shown] if shown else []


def _plain(name: str) -> str:
    """Return a name from outside as Markdown that means nothing else."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+!|<>" else c for c in name)
