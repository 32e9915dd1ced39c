"""Where and when people are found, in sums that show nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.data.floor import LEAST_PEOPLE
from whosthere.display import counted
from whosthere.reporting.charts.places import DAYS, Place, RegionMap, Week, shade
from whosthere.reporting.lookup import Lookup, estimate_of, words_of
from whosthere.reporting.numbers import number, shortened
from whosthere.reporting.sections.tables import Cell, Head, Table, name_cell, value_cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.auditing.result import AuditResult
    from whosthere.auditing.what_if import Interval

_TOP = 10
_MOST_PLACES = 5000
"""Regions that all maps together show at most, to keep a page small."""
_LEFT = "cells_kept"
_LETTERS = 60


@dataclass(frozen=True)
class Leaks:
    """Where and when one protection lets people be found; `map` needs positions."""

    setting: int
    setting_name: str
    map: RegionMap | None
    week: Week | None
    top: Table | None


@dataclass(frozen=True)
class Places:
    """All of the section.

    Attributes
    ----------
    left_out
        How many protections there was no room for.
    people
        How many people the amounts are sums over; None where that is not known.
    """

    panels: tuple[Leaks, ...]
    what_if: Table | None
    left_out: int = 0
    people: int | None = None

    @property
    def total(self) -> str:
        """How many people these are, in brackets."""
        return "" if self.people is None else f" ({self.people:,} in all)"


def places_section(audit: AuditResult) -> Places | None:
    """Return where and when people are found, None where that was not measured."""
    panels: tuple[Leaks, ...] = ()
    if not audit.leaks.is_empty():
        shown = _with_enough_targets(audit.leaks)
        chosen = riskiest(audit, _MOST_PLACES // max(audit.regions.height, 1))
        panels = tuple(
            panel
            for i, verdict in enumerate(audit.verdicts, 1)
            if verdict.setting in chosen
            and (panel := _panel(shown, audit.regions, i, verdict.setting)) is not None
        )
    changes = _what_if(audit)
    left_out = len(audit.verdicts) - len(panels) if panels else 0
    if not panels and not changes:
        return None
    return Places(panels, changes, left_out, audit.people_looked_at)


def riskiest(audit: AuditResult, most: int) -> frozenset[str]:
    """Return the settings in which attacks do best: at most so many, but at least one."""
    found = Lookup.of(audit)
    risk = {
        verdict.setting: estimate_of(found.largest(verdict.setting, "auc")) or 0.0
        for verdict in audit.verdicts
    }
    return frozenset(sorted(risk, key=lambda name: -risk[name])[: max(most, 1)])


def _with_enough_targets(leaks: pl.DataFrame) -> pl.DataFrame:
    """Hide what too few people contribute to, whatever the file says."""
    enough = pl.col("targets") >= LEAST_PEOPLE
    return leaks.with_columns(leak=pl.when(enough).then(pl.col("leak").fill_nan(None)))


def _panel(leaks: pl.DataFrame, regions: pl.DataFrame, i: int, setting: str) -> Leaks | None:
    here = leaks.filter(pl.col("setting") == setting)
    if here.is_empty():
        return None
    by_region = regions.select("index", "id", "lon", "lat").join(
        here.filter(pl.col("axis") == "region"), on="index", how="left", maintain_order="left"
    )
    name = shortened(setting)
    return Leaks(
        i, name, _map(by_region, name), _week(here.filter(pl.col("axis") == "hour"), name),
        _top(by_region, name),
    )  # fmt: skip


def _map(rows: pl.DataFrame, setting: str) -> RegionMap | None:
    placed = rows.drop_nulls(["lon", "lat"])
    if placed.is_empty():
        return None
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
    return RegionMap(
        f"Map of {counted(len(places), 'region')} by what they give away, {setting}", places
    )


def _week(rows: pl.DataFrame, setting: str) -> Week | None:
    if rows.is_empty():
        return None
    largest = _largest(rows)
    by_hour = {row["index"]: row for row in rows.iter_rows(named=True)}
    nothing = {"leak": None}
    hours = []
    for i in range(168):
        row = by_hour.get(i, nothing)
        level = None if row["leak"] is None else shade(row["leak"], largest)
        hours.append((level, f"{DAYS[i // 24]} {i % 24:02d}:00: {_amount(row)}"))
    return Week(f"Hours of the week by what they give away, {setting}", tuple(hours))


def _top(rows: pl.DataFrame, setting: str) -> Table | None:
    known = rows.filter(pl.col("leak") > 0).sort("leak", descending=True)
    if known.is_empty():
        return None
    total = float(known["leak"].sum())
    body = tuple(
        (
            name_cell(shortened(str(row["id"]), _LETTERS)),
            Cell(f"{row['leak'] / total:.1%}", sort=row["leak"]),
            Cell(f"{row['targets']:,}", sort=float(row["targets"])),
        )
        for row in known.head(_TOP).iter_rows(named=True)
    )
    heads = (Head("region", "region", numeric=False), Head("share of all"), Head("people"))
    return Table(f"The regions that give away most, {setting}.", heads, body)


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
        Head("protection", "setting", numeric=False),
        Head("change", numeric=False),
        Head("measure", numeric=False),
        Head("before"),
        Head("after"),
        Head(f"{words_of(_LEFT)} before", _LEFT),
        Head(f"{words_of(_LEFT)} after", _LEFT),
    )
    rows = tuple(
        (
            name_cell(shortened(one.setting)),
            name_cell(shortened(one.change)),
            name_cell(words_of(one.metric)),
            _span_cell(one.before),
            _span_cell(one.after),
            _left_cell(one.utility_before),
            _left_cell(one.utility_after),
        )
        for one in audit.what_if
    )
    return Table("What coarser places or times would change.", heads, rows)


def _span_cell(found: Interval) -> Cell:
    if found.estimate is None:
        return Cell("not known")
    known = found.low is not None and found.high is not None
    span = f"{found.low:.2f} \u2013 {found.high:.2f}" if known else ""
    return Cell(number(found.estimate), span, sort=found.estimate)


def _left_cell(utility: Mapping[str, float | None]) -> Cell:
    """Return what is left to publish, of all measures of utility."""
    value = utility.get(_LEFT)
    return Cell("not known") if value is None else value_cell(value)
