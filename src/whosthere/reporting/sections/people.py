"""Who is found, and what risk goes with; where and when, in sums that show nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from whosthere.data.floor import LEAST_PEOPLE
from whosthere.display import counted
from whosthere.game.leaks import REGIONS
from whosthere.reporting.charts.people import DAYS, Place, RegionMap, Scatter, Spread, Week, shade
from whosthere.reporting.sections import parts
from whosthere.reporting.sections.parts import PROTECTION, Cell, Head, Lookup, Panel, Table
from whosthere.reporting.words import shortened, words_of
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from whosthere.auditing.follow_up import WhatIf
    from whosthere.auditing.result import AuditResult
    from whosthere.game.together import Together
    from whosthere.reporting.charts.svg import Chart

_METRICS = ("auc_p90", "share_auc_90")
_MOST_TITLES, _MOST_POINTS, _MOST_PLACES, _NUMBERS_A_PLACE = 6000, 400, 5000, 16
"""To keep a page small: points with a text of their own, points of one picture, regions that all
maps together show, and numbers of an outline that count as one region."""
_PERCENTILES = ((50, "median"), (90, "90 %"))
_AUC = "AUC of a target (0.5: guessing, 1: certain)"
_TOP = 10
_LEFT = "pattern_correlation"
_LETTERS = 60


class Who(NamedTuple):
    """How the success of each attack is spread over the targets, under each protection.

    `releases` is how many an AUC of a target rests on, at least. `together` is how many people
    share most of their visits with somebody else; None where it is rare, or was not measured.
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
        (PROTECTION, parts.ATTACK, *parts.metric_heads(_METRICS)),
        (
            (
                *(parts.protection_cell(i, setting), attack),
                *(found.find(setting, attack, metric) for metric in _METRICS),
            )
            for i, setting, attack in contests
        ),
    )
    releases = min(audit.targets["releases"])
    return Who(tuple(panels), table, releases, together_table(audit.together))


def together_table(found: Together | None) -> Table | None:
    """Return how many people share most of their visits; None where it is rare, or not known."""
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


class Where(NamedTuple):
    """Where and when each protection lets people be found; a map needs positions.

    `tables` has what single tables of several give away, and `most` says which gives away most.
    `left_out` is how many protections there was no room for, and `people` how many people the
    amounts are sums over.
    """

    panels: tuple[Panel, ...]
    what_if: Table | None
    tables: Table | None
    most: tuple[str, ...]
    left_out: int
    people: int


def where_section(audit: AuditResult) -> Where | None:
    """Return where and when people are found, None where that was not measured."""
    panels: list[Panel] = []
    if not audit.leaks.is_empty():
        # What too few people contribute to is hidden, whatever the file says.
        enough = pl.col("targets") >= LEAST_PEOPLE
        shown = audit.leaks.with_columns(leak=pl.when(enough).then(pl.col("leak").fill_nan(None)))
        settings = [verdict.setting for verdict in audit.verdicts]
        most = _MOST_PLACES // max(_size(audit.regions), 1)
        chosen = Lookup(audit.findings).riskiest(settings, most)
        for i, setting in enumerate(settings, 1):
            here = shown.filter(pl.col("setting") == setting)
            if setting in chosen and not here.is_empty():
                panels.append(leak_panel(here, audit.regions, i, shortened(setting)))
    coarser = [one for one in audit.what_if if not one.tables]
    fewer = [one for one in audit.what_if if one.tables]
    changes = _what_if("What coarser places or times would change.", coarser)
    tables = _what_if("What leaving tables out would change.", fewer)
    if not panels and not changes and not tables:
        return None
    left_out = len(audit.verdicts) - len(panels) if panels else 0
    said = tuple(_gives_most_away(fewer))
    return Where(tuple(panels), changes, tables, said, left_out, audit.people_looked_at)


def _gives_most_away(tried: Sequence[WhatIf]) -> Iterator[str]:
    """Say of each publication which of its tables by itself gives most away."""
    by_setting: dict[str, list[WhatIf]] = {}
    for one in tried:
        if len(one.tables) == 1 and one.after.estimate is not None:
            by_setting.setdefault(one.setting, []).append(one)
    for setting, alone in by_setting.items():
        most = max(alone, key=lambda one: one.after.estimate or 0.0)
        together = "" if most.before.estimate is None else f", all together {most.before[0]:.3f}"
        yield (
            f"{setting}: the table {most.tables[0]} gives most away. By itself it lets the "
            f"likelihood ratio reach a mean AUC of {most.after.estimate:.3f}{together}."
        )


def _size(regions: pl.DataFrame) -> int:
    """Return how much room the regions take on a map: one each, and more for many corners."""
    numbers = regions["outline"].explode().list.len().sum()
    return max(regions.height, int(numbers or 0) // _NUMBERS_A_PLACE)


def leak_panel(here: pl.DataFrame, regions: pl.DataFrame, i: int, setting: str) -> Panel:
    """Return where and when people are found, given leaks of one setting."""
    by_region = regions.select(REGIONS.keys()).join(
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
    largest = max(placed["leak"].drop_nulls(), default=0.0)
    places = tuple(
        Place(
            row["lon"],
            row["lat"],
            shade(row["leak"], largest),
            f"{shortened(str(row['id']), _LETTERS)}: {_amount(row)}",
            row["outline"] or (),
        )
        for row in placed.iter_rows(named=True)
    )
    title = f"Map of {counted(len(places), 'region')} by what they give away, {setting}"
    return RegionMap(title, places)


def _week(rows: pl.DataFrame, setting: str) -> Week:
    largest = max(rows["leak"].drop_nulls(), default=0.0)
    by_hour = {row["index"]: row for row in rows.iter_rows(named=True)}
    hours = []
    for i in range(168):
        row = by_hour.get(i, {"leak": None})
        said = f"{DAYS[i // 24]} {i % 24:02d}:00: {_amount(row)}"
        hours.append((shade(row["leak"], largest), said))
    return Week(f"Hours of the week by what they give away, {setting}", tuple(hours))


def _amount(row: Mapping[str, Any]) -> str:
    if row["leak"] is None:
        return "not shown (too few people)"
    return f"{row['leak']:.3g}, from {row['targets']:,} people or more"


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
    heads = (
        *(Head("region", "region", numeric=False), Head("share of all")),
        Head("people (at least)"),
    )
    return Table.of(f"The regions that give away most, {setting}.", heads, body)


def _what_if(caption: str, tried: Sequence[WhatIf]) -> Table | None:
    if not tried:
        return None
    heads: tuple[Head | str, ...] = (
        *(PROTECTION, "change", "measure", Head("before"), Head("after")),
        *(Head(f"{words_of(_LEFT)} {when}", _LEFT) for when in ("before", "after")),
    )
    rows = (
        (
            *(one.setting, one.change, words_of(one.metric)),
            *(parts.span_cell(*one.before), parts.span_cell(*one.after)),
            *(one.utility_before.get(_LEFT), one.utility_after.get(_LEFT)),
        )
        for one in tried
    )
    return Table.of(caption, heads, rows)
