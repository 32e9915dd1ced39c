"""Who is found: risk over people, and what it goes with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.display import counted
from whosthere.reporting.charts.scores import Scatter, Spread
from whosthere.reporting.lookup import Lookup
from whosthere.reporting.sections.parts import (
    ATTACK,
    PROTECTION,
    Cell,
    Head,
    Panel,
    Table,
    metric_heads,
    protection_cell,
)
from whosthere.reporting.words import shortened
from whosthere.seeds import generator

if TYPE_CHECKING:
    from whosthere.auditing.result import AuditResult
    from whosthere.game.together import Together
    from whosthere.reporting.charts.svg import Chart

_METRICS = ("auc_p90", "share_auc_90")
_MOST_TITLES, _MOST_POINTS = 6000, 400
"""To keep a page small: points with a text of their own, and points of one picture."""
_PERCENTILES = ((50, "median"), (90, "90 %"))
_AUC = "AUC of a target (0.5: guessing, 1: certain)"


@dataclass(frozen=True, eq=False)
class Who:
    """All of the section.

    Attributes
    ----------
    panels
        How the success of each attack is spread over the targets, under each protection.
    releases
        How many releases an AUC of a target rests on, at least.
    together
        How many people share most of their visits with somebody else; None where it is rare, or
        was not measured.
    """

    panels: tuple[Panel, ...]
    table: Table
    releases: int
    together: Table | None


def who_section(audit: AuditResult) -> Who | None:
    """Return who is found, None where nobody was attacked."""
    found = Lookup(audit.findings)
    if not audit.targets.width or not found.attacks:
        return None
    contests = [
        (i, verdict.setting, attack)
        for i, verdict in enumerate(audit.verdicts, 1)
        for attack in found.attacks_in(verdict.setting)
    ]
    numbers = target_numbers(audit)
    detailed = 2 * len(contests) * len(numbers) <= _MOST_TITLES
    panels = []
    for i, setting, attack in contests:
        rows = audit.targets.filter((pl.col("setting") == setting) & (pl.col("attack") == attack))
        if rows.height:
            name, by = shortened(setting), shortened(attack)
            about = f"of {counted(rows.height, 'target')}, {by} against {name}"
            figures = _figures(rows, numbers, about, detailed=detailed)
            place = found.attacks.index(attack) + 1
            panels.append(Panel(i, name, figures, attack_number=place, attack=by))
    table = Table.of(
        "Who bears the risk, with 95 % intervals.",
        (PROTECTION, ATTACK, *metric_heads(_METRICS)),
        (
            (
                protection_cell(i, setting),
                attack,
                *(found.find(setting, attack, metric) for metric in _METRICS),
            )
            for i, setting, attack in contests
        ),
    )
    releases = min(audit.targets["releases"])
    return Who(tuple(panels), table, releases, _together(audit.together))


def _together(found: Together | None) -> Table | None:
    if found is None or found.is_rare:
        return None
    heads = ("visits of a person", Head("share most with one other person"), Head("by chance"))
    rows = (
        (Cell(visits, sort=float(band.least)), Cell(sharing), Cell(f"{band.by_chance:.1%}"))
        for band, (visits, sharing) in zip(found.bands, found.by_visits(), strict=True)
    )
    return Table.of("People who go together.", heads, rows)


def target_numbers(audit: AuditResult) -> dict[int, int]:
    """Return a new number for each target, in an order that says nothing of the traces."""
    rows = np.sort(audit.targets["target"].unique().to_numpy())
    # Those who have the traces could otherwise look up who is who by the order of the rows.
    order = generator(int(audit.plan["seed"]), "numbers in a report").permutation(rows.size)
    return {int(row): int(place) + 1 for row, place in zip(rows, order, strict=True)}


def _figures(
    rows: pl.DataFrame, numbers: dict[int, int], about: str, *, detailed: bool
) -> dict[str, Chart]:
    # In the order of the new numbers, so that the order of marks says nothing either.
    ordered = sorted(rows.to_dicts(), key=lambda row: numbers[row["target"]])
    aucs = tuple(float(row["auc"]) for row in ordered)
    marked = tuple((f"{word}:", float(np.percentile(aucs, q))) for q, word in _PERCENTILES)

    def scatter(column: str, *, logarithmic: bool) -> Scatter:
        points = tuple(
            (
                float(row[column]),
                float(row["auc"]),
                f"target {numbers[row['target']]}: AUC {row['auc']:.2f}, {row[column]:.3g} {column}"
                if detailed
                else "",
            )
            for row in ordered[:_MOST_POINTS]
            if row[column] is not None
        )
        title = f"AUC against {column} {about}"
        return Scatter(title, column, "AUC of a target", points, logarithmic=logarithmic)

    return {
        "spread": Spread(f"Spread of the AUC {about}", _AUC, aucs, marked),
        "visits": scatter("visits", logarithmic=True),
        "uniqueness": scatter("uniqueness", logarithmic=False),
    }
