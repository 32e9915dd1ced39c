"""The page of a study: what holds, published and measured numbers, figures; as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from whosthere._version import __version__
from whosthere.inference.vocabulary import CEILING
from whosthere.paper.experiments import EXPERIMENTS, KK, LR, ZK, named
from whosthere.paper.judging import Status
from whosthere.paper.notes import notes_on
from whosthere.paper.results import beside_published

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.paper.datasets import Dataset
    from whosthere.paper.description import Description
    from whosthere.paper.judging import Judgement

_SHORT = {KK: "KK", ZK: "ZK", LR: "LR"}
_INTERVALS = (
    "Held: each number lies where it should, at 95 % (the interval has 5 % on either side). Not "
    "held: one does not, at 95 % for all numbers of the claim together."
)
# Differences beyond so many standard errors are set in bold.
_NOTABLE = 2.0


class Sizes(NamedTuple):
    """How large an experiment was.

    Attributes
    ----------
    targets, releases
        How many targets it has, and releases of each.
    failed
        Tasks of which nothing is known: one target under one protection each.
    trusted
        Whether the controls found what they must; None without any.
    series
        The names of its series.
    """

    targets: int
    releases: int
    failed: int
    trusted: bool | None
    series: tuple[str, ...]


def write_page(
    dataset: Dataset,
    *,
    results: pl.DataFrame,
    judgements: Sequence[tuple[str, Judgement]],
    ours: Sequence[tuple[str, Judgement]],
    description: Description,
    sizes: Mapping[str, Sizes],
    figures: Sequence[str],
) -> str:
    """Write the page."""
    parts = [
        f"# The paper's study on {_plain(dataset.name)}",
        _about(dataset, description),
        *_claims("Claims of the paper", judgements),
        _INTERVALS,
        *_claims("Claims of ours", ours),
        *_sizes(sizes),
        *_published(results, dataset),
        *_measured(results, sizes, figures),
        *_data(figures),
    ]
    return "\n\n".join(parts) + "\n"


def _about(dataset: Dataset, found: Description) -> str:
    return (
        f"{found.users:,} users, {found.regions:,} regions, {found.epochs:,} epochs, "
        f"{found.visits:,} visits. Groups of {dataset.group_size:,} where nothing else is said, "
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
    counts = {status: sum(one.status is status for _, one in judgements) for status in Status}
    said = ", ".join(f"{n} {status.value}" for status, n in counts.items())
    lines = [
        "| about | claim | | numbers that decided, with intervals |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {series} | {one.claim} | {_marked(one.status)} | {one.test} |"
        for series, one in judgements
    ]
    return [f"## {title}", f"{said}.", "\n".join(lines)]


def _marked(status: Status) -> str:
    return f"**{status.value}**" if status is Status.NOT_HELD else status.value


def _sizes(sizes: Mapping[str, Sizes]) -> list[str]:
    words = {True: "as they must", False: "**failed**", None: "none"}
    lines = [
        "| experiment | question | targets | releases of each | controls |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {EXPERIMENTS[name].question} | {one.targets}{_missing(one)} | "
        f"{one.releases} | {words[one.trusted]} |"
        for name, one in sizes.items()
    ]
    return [
        "## What was run",
        "Each experiment is an audit, with its verdicts, ROC curves, and (but for the scale "
        "`smoke`) where and when people are found in `report.html` in its folder (`whosthere "
        "paper` and `whosthere report` write it).",
        "\n".join(lines),
    ]


def _missing(size: Sizes) -> str:
    return f" ({size.failed} tasks **failed**)" if size.failed else ""


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
        metric, parameter = own["metric"][0], own["parameter"][0]
        lines = [
            f"| {parameter.replace('_', ' ')} | attack | published | ours | difference "
            "| in standard errors |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row['value']} | {_SHORT[row['attack']]} | "
            f"{_number(row['mean'], row['standard_error'])} | "
            f"{_number(row['mean_ours'], row['standard_error_ours'])} | "
            f"{row['difference']:+.3f} | {_in_errors(row['in_standard_errors'])} |"
            for row in own.to_dicts()
        ]
        parts += [f"### {series}: {metric}", "\n".join(lines)]
        notes = notes_on(series, dataset.like)
        if notes:
            parts.append("\n".join(f"- {note}" for note in notes))
    return parts


def _in_errors(value: float | None) -> str:
    if value is None:
        return ""
    return f"**{value:+.1f}**" if abs(value) > _NOTABLE else f"{value:+.1f}"


def _measured(
    results: pl.DataFrame, sizes: Mapping[str, Sizes], figures: Sequence[str]
) -> list[str]:
    """Give the figure of each experiment, and a table for each of its series."""
    parts = ["## All results"]
    for name, size in sizes.items():
        question = EXPERIMENTS[name].question
        parts.append(f"### {name}: {question}")
        if name in figures:
            parts.append(f"![{question}](figures/{name}.svg)")
        tables = [results.filter(pl.col("experiment") == series) for series in size.series]
        parts += [_table(rows) for rows in tables if not rows.is_empty()]
    return parts


def _table(rows: pl.DataFrame) -> str:
    """Write a series: a row for each value, the AUC of every attack, and its accuracy."""
    attacks = [*dict.fromkeys(a for a in rows["attack"] if a != CEILING)]
    found = {(row["value"], row["attack"], row["metric"]): row for row in rows.to_dicts()}
    has_ceiling = CEILING in set(rows["attack"])
    columns = [*attacks, *([CEILING] if has_ceiling else [])]
    series, parameter = rows["experiment"][0], rows["parameter"][0]
    head = [
        f"{series}: {parameter.replace('_', ' ')}",
        *(f"AUC {named(a, _SHORT)}" for a in columns),
    ]
    head += [f"accuracy {named(a, _SHORT)}" for a in attacks]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for value in rows["value"].unique(maintain_order=True):
        cells = [_cell(found.get((value, a, "auc"))) for a in columns]
        cells += [_cell(found.get((value, a, "accuracy"))) for a in attacks]
        lines.append(f"| {value} | {' | '.join(cells)} |")
    return "\n".join(lines)


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
