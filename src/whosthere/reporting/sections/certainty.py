"""How sure the findings are: curves, controls, all numbers, and what attackers estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from whosthere.display import counted
from whosthere.inference.vocabulary import (
    CEILING,
    EXCESS,
    GUARANTEE,
    MUST_BE,
    UTILITY,
)
from whosthere.reporting.charts.roc import RocChart
from whosthere.reporting.charts.scatter import Scatter
from whosthere.reporting.curves import roc_curve
from whosthere.reporting.lookup import FOUND, Lookup, short_words_of, words_of
from whosthere.reporting.numbers import shortened
from whosthere.reporting.sections.places import riskiest
from whosthere.reporting.sections.tables import Cell, Head, Table, finding_cell, name_cell

if TYPE_CHECKING:
    from whosthere.auditing.finished import FinishedAudit
    from whosthere.inference.finding import Finding

_SHOWN = (
    *("auc", "pooled_auc", "accuracy", "tpr_at_fpr_10pct", FOUND),
    *("tpr_at_fpr_01pct", "share_auc_90", "empirical_eps", "empirical_eps_ceiling"),
)
_MOST_PANELS, _MOST_POINTS = 12, 200


@dataclass(frozen=True, eq=False)
class Curves:
    """The ROC curves of one protection, on linear and on logarithmic axes."""

    setting: int
    setting_name: str
    linear: RocChart
    logarithmic: RocChart


@dataclass(frozen=True)
class Estimated:
    """What an attacker estimates of all people of a protection's release, against the truth."""

    setting: int
    setting_name: str
    charts: tuple[Scatter, ...]


@dataclass(frozen=True, eq=False)
class Certainty:
    """All of the section."""

    curves: tuple[Curves, ...]
    attacks: Table
    controls: Table | None
    marginals: tuple[Estimated, ...]


def certainty_section(audit: FinishedAudit) -> Certainty:
    """Return how sure the findings are."""
    found = Lookup.of(audit)
    return Certainty(
        tuple(
            curves
            for i, verdict in enumerate(audit.verdicts, 1)
            if (curves := _curves(audit, found, i, verdict.setting)) is not None
        ),
        _attacks(audit, found),
        _controls(audit),
        _marginals(audit),
    )


def _curves(audit: FinishedAudit, found: Lookup, i: int, setting: str) -> Curves | None:
    if not audit.scores.width:
        return None
    here = audit.scores.filter(pl.col("setting") == setting)
    names = [*found.attacks_in(setting), CEILING]
    curves, n_out = [], 1
    for name in names:
        rows = here.filter(pl.col("attack") == name)
        n_in, without = int(rows["label"].sum()), int((~rows["label"]).sum())
        if not n_in or not without:
            continue
        n_out = max(n_out, without)
        style = "ceiling" if name == CEILING else f"s{found.attacks.index(name) % 6}"
        seed = int(audit.plan.get("seed", 0))
        curves.append(roc_curve(rows, name=shortened(name), class_=style, seed=seed))
    if not curves:
        return None
    title = f"ROC curves of {counted(len(curves), 'attack')} against {shortened(setting)}"
    smallest = max(10.0 ** -math.floor(math.log10(n_out)), 1e-4)
    linear = RocChart(title, tuple(curves), found.guarantee(setting, FOUND), None)
    logarithmic = replace(linear, title=f"{title}, logarithmic axes", smallest=min(smallest, 0.1))
    return Curves(i, shortened(setting), linear, logarithmic)


def _attacks(audit: FinishedAudit, found: Lookup) -> Table:
    """Return every attack in every setting, and the lines that bound them."""
    numbers = {verdict.setting: i for i, verdict in enumerate(audit.verdicts, 1)}
    places = dict.fromkeys(
        (one.setting, one.attack)
        for one in audit.findings
        if one.holds is None and one.attack != UTILITY and one.setting in numbers
    )
    order = sorted(places, key=lambda place: (numbers[place[0]], _rank(found, place[1])))
    present = [m for m in _SHOWN if any(one.metric == m for one in audit.findings)]
    sizes = ("targets", "releases with", "releases without")
    heads = (
        Head("protection", "setting", numeric=False),
        Head("attack", "attack", numeric=False),
        *(Head(short_words_of(metric), metric) for metric in present),
        *(Head(words, "target" if words == "targets" else "release") for words in sizes),
    )
    rows = []
    for setting, attack in order:
        own = [found.find(setting, attack, metric) for metric in present]
        sample = next((one for one in own if one is not None), None)
        rows.append(
            (
                Cell(f"{numbers[setting]}  {shortened(setting)}", sort=float(numbers[setting])),
                name_cell(shortened(attack)),
                *(finding_cell(one) for one in own),
                *_sample(sample),
            )
        )
    return Table("Every attack against every protection, with 95 % intervals.", heads, tuple(rows))


def _rank(found: Lookup, attack: str) -> int:
    lines = (CEILING, GUARANTEE)
    return (
        len(found.attacks) + lines.index(attack) if attack in lines else found.attacks.index(attack)
    )


def _sample(finding: Finding | None) -> tuple[Cell, ...]:
    if finding is None:
        return (Cell(""), Cell(""), Cell(""))
    sizes = (finding.n_targets, finding.n_in, finding.n_out)
    return tuple(Cell(f"{size:,}", sort=float(size)) for size in sizes)


def _controls(audit: FinishedAudit) -> Table | None:
    controls = [one for one in audit.findings if one.holds is not None]
    if not controls:
        return None
    heads = (
        Head("protection", "setting", numeric=False),
        Head("attack", "attack", numeric=False),
        Head("control", "control", numeric=False),
        Head("found"),
        Head("must be"),
        Head("holds", numeric=False),
    )
    rows = tuple(
        (
            name_cell(shortened(one.setting)),
            name_cell(shortened(one.attack)),
            name_cell(words_of(one.metric)),
            finding_cell(replace(one, note=None)),
            Cell("0 or less" if one.metric == EXCESS else f"{MUST_BE[one.metric]:g}"),
            name_cell("yes" if one.holds else "NO"),
        )
        for one in controls
    )
    return Table("The controls. Their intervals hold for all of them together (99 %).", heads, rows)


def _marginals(audit: FinishedAudit) -> tuple[Estimated, ...]:
    if audit.marginals is None:
        return ()
    names = {"region": "regions", "hour": "hours of the week"}
    found = []
    chosen = riskiest(audit, _MOST_PANELS)
    for i, verdict in enumerate(audit.verdicts, 1):
        if verdict.setting not in chosen:
            continue
        here = audit.marginals.filter(pl.col("setting") == verdict.setting)
        charts = []
        for axis, words in names.items():
            rows = here.filter(pl.col("axis") == axis).drop_nulls(["truth", "estimated"])
            # Some of many, from the largest to the smallest.
            rows = rows.sort("truth").gather_every(-(-rows.height // _MOST_POINTS) or 1)
            points = tuple(
                (truth, estimated, f"true {truth:.2%}, estimated {estimated:.2%}")
                for truth, estimated in rows.select("truth", "estimated").iter_rows()
            )
            if points:
                title = f"Estimated against true shares of {words}, {shortened(verdict.setting)}"
                x, y = f"true share of visits, {words}", "estimated share"
                charts.append(Scatter(title, x, y, points, diagonal=True))
        if charts:
            found.append(Estimated(i, shortened(verdict.setting), tuple(charts)))
    return tuple(found)
