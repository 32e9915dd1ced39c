"""Where and when people are found, in sums that show nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.data.floor import LEAST_PEOPLE
from whosthere.display import counted
from whosthere.reporting.charts.shades import DAYS, Place, RegionMap, Week, shade
from whosthere.reporting.lookup import Lookup
from whosthere.reporting.sections.parts import PROTECTION, Cell, Head, Panel, Table, span_cell
from whosthere.reporting.words import shortened, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.auditing.result import AuditResult
    from whosthere.reporting.charts.svg import Chart

_TOP = 10
_MOST_PLACES = 5000
"""Regions that all maps together show at most, to keep a page small."""
_LEFT = "cells_kept"
_LETTERS = 60


@dataclass(frozen=True, eq=False)
class Where:
    """All of the section.

    Attributes
    ----------
    panels
        Where and when each protection lets people be found; a map needs positions.
    left_out
        How many protections there was no room for.
    people
        How many people the amounts are sums over.
    """

    panels: tuple[Panel, ...]
    what_if: Table | None
    left_out: int
    people: int


def where_section(audit: AuditResult) -> Where | None:
    """Return where and when people are found, None where that was not measured."""
    panels: list[Panel] = []
    if not audit.leaks.is_empty():
        shown = _with_enough_people(audit.leaks)
        settings = [verdict.setting for verdict in audit.verdicts]
        most = _MOST_PLACES // max(audit.regions.height, 1)
        chosen = Lookup(audit.findings).riskiest(settings, most)
        for i, setting in enumerate(settings, 1):
            here = shown.filter(pl.col("setting") == setting)
            if setting in chosen and not here.is_empty():
                panels.append(_panel(here, audit.regions, i, shortened(setting)))
    changes = _what_if(audit)
    if not panels and not changes:
        return None
    left_out = len(audit.verdicts) - len(panels) if panels else 0
    return Where(tuple(panels), changes, left_out, audit.people_looked_at)


def _with_enough_people(leaks: pl.DataFrame) -> pl.DataFrame:
    """Hide what too few people contribute to, whatever the file says."""
    enough = pl.col("targets") >= LEAST_PEOPLE
    return leaks.with_columns(leak=pl.when(enough).then(pl.col("leak").fill_nan(None)))


def _panel(here: pl.DataFrame, regions: pl.DataFrame, i: int, setting: str) -> Panel:
    by_region = regions.select("index", "id", "lon", "lat").join(
        here.filter(pl.col("axis") == "region"), on="index", how="left", maintain_order="left"
    )
    figures: dict[str, Chart] = {}
    placed = by_region.drop_nulls(["lon", "lat"])
    if not placed.is_empty():
        figures["map"] = _map(placed, setting)
    hours = here.filter(pl.col("axis") == "hour")
    if not hours.is_empty():
        figures["week"] = _week(hours, setting)
    return Panel(i, setting, figures, _top(by_region, setting))


def _map(placed: pl.DataFrame, setting: str) -> RegionMap:
    largest = _largest(placed)
    places = tuple(
        Place(
            row["lon"],
            row["lat"],
            None if row["leak"] is None else shade(row["leak"], largest),
            f"{shortened(str(row['id']), _LETTERS)}: {_amount(row)}",
        )
        for row in placed.iter_rows(named=True)
    )
    title = f"Map of {counted(len(places), 'region')} by what they give away, {setting}"
    return RegionMap(title, places)


def _week(rows: pl.DataFrame, setting: str) -> Week:
    largest = _largest(rows)
    by_hour = {row["index"]: row for row in rows.iter_rows(named=True)}
    hours = []
    for i in range(168):
        row = by_hour.get(i, {"leak": None})
        level = None if row["leak"] is None else shade(row["leak"], largest)
        hours.append((level, f"{DAYS[i // 24]} {i % 24:02d}:00: {_amount(row)}"))
    return Week(f"Hours of the week by what they give away, {setting}", tuple(hours))


def _top(rows: pl.DataFrame, setting: str) -> Table | None:
    known = rows.filter(pl.col("leak") > 0).sort("leak", descending=True)
    if known.is_empty():
        return None
    total = float(known["leak"].sum())
    body = (
        (
            shortened(str(row["id"]), _LETTERS),
            Cell(f"{row['leak'] / total:.1%}", sort=row["leak"]),
            int(row["targets"]),
        )
        for row in known.head(_TOP).iter_rows(named=True)
    )
    heads = (Head("region", "region", numeric=False), Head("share of all"), Head("people"))
    return Table.of(f"The regions that give away most, {setting}.", heads, body)


def _largest(rows: pl.DataFrame) -> float:
    largest = rows["leak"].max()
    return float(largest) if isinstance(largest, int | float) else 0.0


def _amount(row: Mapping[str, Any]) -> str:
    if row["leak"] is None:
        return "not shown (too few people)"
    return f"{row['leak']:.3g}, from {row['targets']:,} people"


def _what_if(audit: AuditResult) -> Table | None:
    if not audit.what_if:
        return None
    heads = (
        *(PROTECTION, "change", "measure", Head("before"), Head("after")),
        Head(f"{words_of(_LEFT)} before", _LEFT),
        Head(f"{words_of(_LEFT)} after", _LEFT),
    )
    rows = (
        (
            *(one.setting, one.change, words_of(one.metric)),
            *(span_cell(*one.before), span_cell(*one.after)),
            *(one.utility_before.get(_LEFT), one.utility_after.get(_LEFT)),
        )
        for one in audit.what_if
    )
    return Table.of("What coarser places or times would change.", heads, rows)
