"""How risk is spread over everybody, where all people were asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from whosthere.inference.risk import RISKS
from whosthere.reporting.charts.risk import Dot, DotChart, Protection, numbered_keys
from whosthere.reporting.sections import parts
from whosthere.reporting.sections.parts import ATTACK, PROTECTION, Cell, Head, Panel, Shown, Table
from whosthere.reporting.sections.people import together_table
from whosthere.reporting.words import shortened, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    import polars as pl

    from whosthere.auditing.result import AuditResult

_VISITS = "visits"


class Everybody(NamedTuple):
    """How the risk of all people is spread, under each protection; tables of numbers and groups.

    `groups` are by what people are grouped. `together` is as for targets.
    """

    panels: tuple[Panel, ...]
    named: Table
    groups: dict[str, Table]
    together: Table | None


def everybody_section(audit: AuditResult) -> Everybody | None:
    """Return how risk is spread over everybody, None where only targets were asked."""
    found = audit.everybody
    if found.spread.is_empty():
        return None
    numbers = {verdict.setting: i for i, verdict in enumerate(audit.verdicts, 1)}
    contests = found.spread.select("setting", "attack").unique(maintain_order=True).rows()
    attacks = list(dict.fromkeys(attack for _, attack in contests))
    panels = []
    for setting, attack in contests:
        own = {"setting": setting, "attack": attack}
        spread, groups = found.spread.filter(**own), found.groups.filter(**own, by=_VISITS)
        charts = {"everybody_spread": _chart("everybody_spread", _of_percentiles(spread))}
        if groups.height > 1:
            charts["everybody_visits"] = _chart("everybody_visits", _of_groups(groups))
        place, by = attacks.index(attack) + 1, shortened(attack)
        name = shortened(setting)
        panels.append(Panel(numbers[setting], name, charts, attack_number=place, attack=by))
    ways = found.groups["by"].unique(maintain_order=True)
    by_way = {shortened(by): _groups(found.groups.filter(by=by), numbers) for by in ways}
    named = _named(found.named, numbers)
    return Everybody(tuple(panels), named, by_way, together_table(audit.together))


def _chart(what: str, rows: Iterable[Protection]) -> DotChart:
    said = texts()
    return DotChart(said["figures"][what], said["everybody"]["axis"], tuple(rows), None, 0.0, 1.0)


def _of_percentiles(spread: pl.DataFrame) -> Iterator[Protection]:
    for share in spread["percentile"].unique().sort():
        label = texts()["everybody"]["percentile"].format(share=f"{100 * share:.0f} %")
        rows = spread.filter(percentile=share).iter_rows(named=True)
        found = {row["metric"]: (row["value"], row["low"], row["high"]) for row in rows}
        yield Protection(label, tuple(_dots(label, found)))


def _of_groups(groups: pl.DataFrame) -> Iterator[Protection]:
    for row in groups.iter_rows(named=True):
        visits = "visit" if row["group"] == "1" else "visits"
        label = f"{row['group']} {visits} ({row['people']:,} people)"
        yield Protection(label, tuple(_dots(label, {risk: _ends(row, risk) for risk in RISKS})))


def _dots(
    label: str, found: Mapping[str, tuple[float | None, float | None, float | None]]
) -> Iterator[Dot]:
    said: dict[str, str] = texts()["everybody"]
    keys = numbered_keys([said[risk] for risk in RISKS])
    for risk in RISKS:
        value, low, high = found[risk]
        if value is not None:
            yield Dot(keys[said[risk]], value, low, high, f"{label}: {value:.3f}")


def _ends(row: Mapping[str, Any], name: str) -> tuple[float | None, float | None, float | None]:
    return row[name], row[f"{name}_low"], row[f"{name}_high"]


def _named(named: pl.DataFrame, numbers: Mapping[str, int]) -> Table:
    """Return how many people would be named, by the share of the named that is right."""
    shares = named["precision"].unique().sort().to_list()
    rows: list[tuple[Shown, ...]] = []
    for own in named.partition_by("setting", "attack", maintain_order=True):
        setting, attack = str(own["setting"][0]), shortened(own["attack"][0])
        by = {row["precision"]: row for row in own.iter_rows(named=True)}
        cells = (_people(by[share]) for share in shares)
        rows.append((parts.protection_cell(numbers[setting], setting), attack, *cells))
    heads = (Head(f"if {100 * share:.0f} % must be right") for share in shares)
    return Table.of(texts()["everybody"]["named"], (PROTECTION, ATTACK, *heads), rows)


def _people(row: Mapping[str, Any]) -> Cell:
    if row["value"] is None:
        return Cell("not resolvable")
    ends = f"{row['low']:,.0f} to {row['high']:,.0f}"
    return Cell(f"{row['value']:,.0f}", ends, sort=row["value"])


def _groups(rows: pl.DataFrame, numbers: Mapping[str, int]) -> Table:
    """Return the risk of each group by one way to group people."""
    said: dict[str, str] = texts()["everybody"]
    names = ("auc", "tpr", "share_auc_90")
    of_risk = (Head(said[f"head_{one}"]) for one in names)
    heads: tuple[Head | str, ...] = (PROTECTION, ATTACK, "group", Head("people"), *of_risk)
    body: list[tuple[Shown, ...]] = [
        (
            parts.protection_cell(numbers[row["setting"]], row["setting"]),
            *(shortened(row["attack"]), shortened(row["group"]), int(row["people"])),
            *(parts.span_cell(*_ends(row, name)) for name in names),
        )
        for row in rows.iter_rows(named=True)
    ]
    return Table.of(said["groups"].format(by=shortened(rows["by"][0])), heads, body)
