"""The page of a study: what holds, published and measured numbers, figures; as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from whosthere._version import __version__
from whosthere.inference.vocabulary import CEILING
from whosthere.paper.experiments import KK, LR, ZK, named
from whosthere.paper.judging import Status
from whosthere.paper.notes import notes_on
from whosthere.paper.results import beside_published

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whosthere.paper.datasets import Dataset
    from whosthere.paper.description import Description
    from whosthere.paper.experiments import Experiment, Series
    from whosthere.paper.judging import Judgement

_SHORT = {KK: "KK", ZK: "ZK", LR: "LR"}
_INTERVALS = (
    "Held: each number lies where it should, at 95 % (the interval has 5 % on either side). Not "
    "held: one does not, at 95 % for all numbers of the claim together."
)
# Differences beyond so many standard errors are set in bold.
_NOTABLE = 2.0


class Finished(NamedTuple):
    """An experiment that is finished.

    Attributes
    ----------
    experiment, series
        What it is, and what of it fits the data.
    plan, verdicts
        As the folder of its audit holds them.
    """

    experiment: Experiment
    series: tuple[Series, ...]
    plan: Mapping[str, Any]
    verdicts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name."""
        return self.experiment.name


def write_page(
    dataset: Dataset,
    *,
    results: pl.DataFrame,
    judgements: Sequence[tuple[str, Judgement]],
    ours: Sequence[tuple[str, Judgement]],
    description: Description,
    finished: Sequence[Finished],
    figures: Sequence[str],
) -> str:
    """Write the page."""
    parts = [
        f"# The paper's study on {_plain(dataset.name)}",
        _about(dataset, description),
        *_claims("Claims of the paper", judgements),
        _INTERVALS,
        *_claims("Claims of ours", ours),
        *_sizes(finished),
        *_published(results, dataset),
        *_measured(results, finished, figures),
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


def _claims(title: str, judgements: Sequence[tuple[str, Judgement]]) -> list[str]:
    if not judgements:
        return []
    found = [one.status for _, one in judgements]
    said = ", ".join(f"{found.count(status)} {status.value}" for status in Status)
    heads = ("about", "claim", "", "numbers that decided, with intervals")
    rows = [(series, one.claim, _marked(one.status), one.test) for series, one in judgements]
    return [f"## {title}", f"{said}.", _table(heads, rows)]


def _marked(status: Status) -> str:
    return f"**{status.value}**" if status is Status.NOT_HELD else status.value


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as Markdown."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def _sizes(finished: Sequence[Finished]) -> list[str]:
    words = {True: "passed", False: "**failed**", None: "none"}
    heads = ("experiment", "question", "targets", "releases of each", "controls")
    rows = []
    for one in finished:
        failed = one.verdicts["failed_tasks"]
        missing = f" ({failed} tasks **failed**)" if failed else ""
        targets, controls = len(one.plan["targets"]), words[one.verdicts.get("trusted")]
        question = one.experiment.question
        rows.append((one.name, question, f"{targets}{missing}", one.plan["releases"], controls))
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
                _number(row["mean"], row["standard_error"]),
                _number(row["mean_ours"], row["standard_error_ours"]),
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


def _in_errors(value: float | None) -> str:
    if value is None:
        return ""
    return f"**{value:+.1f}**" if abs(value) > _NOTABLE else f"{value:+.1f}"


def _measured(
    results: pl.DataFrame, finished: Sequence[Finished], figures: Sequence[str]
) -> list[str]:
    """Give the figure of each experiment, and a table for each of its series."""
    parts = ["## All results"]
    for one in finished:
        question = one.experiment.question
        parts.append(f"### {one.name}: {question}")
        if one.name in figures:
            parts.append(f"![{question}](figures/{one.name}.svg)")
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
        (value, *(_cell(found.get((value, attack, metric))) for metric, _, attack in columns))
        for value in rows["value"].unique(maintain_order=True)
    ]
    return _table(heads, lines)


def _cell(row: dict[str, float] | None) -> str:
    return "" if row is None else _number(row["mean"], row["standard_error"])


def _number(mean: float, error: float) -> str:
    return f"{mean:.3f} ± {error:.3f}"


def _data(figures: Sequence[str]) -> list[str]:
    try:
        from whosthere.paper.data_figures import DATA_FIGURES  # noqa: PLC0415 - an optional extra
    except ImportError:
        return []
    shown = [name for name in DATA_FIGURES if name in figures]
    if not shown:
        return []
    return [
        "## The data",
        *(f"![{DATA_FIGURES[n][0]}](figures/{n}.svg)\n\n{DATA_FIGURES[n][0]}." for n in shown),
    ]


def _plain(name: str) -> str:
    """Return a name from outside as Markdown that means nothing else."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+!|<>" else c for c in name)
