"""Who is found: risk over people, and what it goes with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.display import counted
from whosthere.reporting.charts.scatter import Scatter
from whosthere.reporting.charts.spread import Spread
from whosthere.reporting.lookup import Lookup, short_words_of
from whosthere.reporting.numbers import shortened
from whosthere.reporting.sections.tables import Cell, Head, Table, finding_cell, name_cell
from whosthere.seeds import generator

if TYPE_CHECKING:
    from whosthere.auditing.finished import FinishedAudit
    from whosthere.game.together import Together

_METRICS = ("auc_p90", "share_auc_90")
_MOST_TITLES, _MOST_POINTS = 6000, 400
"""To keep a page small: points with a text of their own, and points of one picture."""
_PERCENTILES = ((50, "median"), (90, "90 %"))
_AUC = "AUC of a target (0.5: guessing, 1: certain)"


@dataclass(frozen=True)
class RiskOfPeople:
    """How one attack's success is spread over the targets, under one protection."""

    setting: int
    attack: int
    setting_name: str
    attack_name: str
    spread: Spread
    by_visits: Scatter
    by_uniqueness: Scatter


@dataclass(frozen=True)
class People:
    """All of the section.

    Attributes
    ----------
    releases
        How many releases an AUC of a target rests on, at least.
    together
        How many people share most of their visits with somebody else; None where it is rare, or
        was not measured.
    """

    panels: tuple[RiskOfPeople, ...]
    table: Table
    releases: int
    together: Table | None = None


def people_section(audit: FinishedAudit) -> People | None:
    """Return who is found, None where nobody was attacked."""
    found = Lookup.of(audit)
    if not audit.targets.width or not found.attacks:
        return None
    numbers = target_numbers(audit)
    contests = sum(len(found.attacks_in(verdict.setting)) for verdict in audit.verdicts)
    detailed = 2 * contests * len(numbers) <= _MOST_TITLES
    panels = []
    for i, verdict in enumerate(audit.verdicts, 1):
        for attack in found.attacks_in(verdict.setting):
            rows = audit.targets.filter(
                (pl.col("setting") == verdict.setting) & (pl.col("attack") == attack)
            )
            if rows.height:
                place = i, found.attacks.index(attack) + 1
                panels.append(_panel(rows, numbers, place, detailed=detailed))
    least = audit.targets["releases"].min() if "releases" in audit.targets.columns else None
    return People(
        tuple(panels),
        _table(audit, found),
        least if isinstance(least, int) else 0,
        _together(audit.together),
    )


def _together(found: Together | None) -> Table | None:
    if found is None or found.is_rare:
        return None
    heads = (
        Head("visits of a person", numeric=False),
        Head("share most with one other person"),
        Head("by chance"),
    )
    rows = tuple(
        (Cell(visits, sort=float(band.least)), Cell(sharing), Cell(f"{band.by_chance:.1%}"))
        for band, (visits, sharing) in zip(found.bands, found.by_visits(), strict=True)
    )
    return Table("People who go together.", heads, rows)


def target_numbers(audit: FinishedAudit) -> dict[int, int]:
    """Return a new number for each target, in an order that says nothing of the traces."""
    rows = np.sort(audit.targets["target"].unique().to_numpy())
    # Those who have the traces could otherwise look up who is who by the order of the rows.
    order = generator(int(audit.plan.get("seed", 0)), "numbers in a report").permutation(rows.size)
    return {int(row): int(place) + 1 for row, place in zip(rows, order, strict=True)}


def _panel(
    rows: pl.DataFrame, numbers: dict[int, int], place: tuple[int, int], *, detailed: bool
) -> RiskOfPeople:
    # In the order of the new numbers, so that the order of marks says nothing either.
    ordered = sorted(rows.to_dicts(), key=lambda row: numbers[row["target"]])
    aucs = [float(row["auc"]) for row in ordered]
    name, by = shortened(rows["setting"][0]), shortened(rows["attack"][0])
    about = f"of {counted(len(aucs), 'target')}, {by} against {name}"
    marked = tuple((f"{word}:", float(np.percentile(aucs, q))) for q, word in _PERCENTILES)

    def scatter(column: str, words: str, *, logarithmic: bool) -> Scatter:
        points = tuple(
            (
                float(row[column]),
                float(row["auc"]),
                f"target {numbers[row['target']]}: AUC {row['auc']:.2f}, {row[column]:.3g} {words}"
                if detailed
                else "",
            )
            for row in ordered[:_MOST_POINTS]
            if row[column] is not None
        )
        title = f"AUC against {words} {about}"
        return Scatter(title, words, "AUC of a target", points, logarithmic=logarithmic)

    return RiskOfPeople(
        *place,
        name,
        by,
        Spread(f"Spread of the AUC {about}", _AUC, tuple(aucs), marked),
        scatter("visits", "visits", logarithmic=True),
        scatter("uniqueness", "uniqueness", logarithmic=False),
    )


def _table(audit: FinishedAudit, found: Lookup) -> Table:
    present = [metric for metric in _METRICS if any(one.metric == metric for one in audit.findings)]
    heads = (
        Head("protection", "setting", numeric=False),
        Head("attack", "attack", numeric=False),
        *(Head(short_words_of(metric), metric) for metric in present),
    )
    rows = tuple(
        (
            Cell(f"{i}  {shortened(verdict.setting)}", sort=float(i)),
            name_cell(shortened(attack)),
            *(finding_cell(found.find(verdict.setting, attack, metric)) for metric in present),
        )
        for i, verdict in enumerate(audit.verdicts, 1)
        for attack in found.attacks_in(verdict.setting)
    )
    return Table("Who bears the risk, with 95 % intervals.", heads, rows)
