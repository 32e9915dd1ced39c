"""How risk is spread over everybody, where all people are asked: tables, and what they are about.

Only the table of single people stays in the house. All others say nothing of fewer than five.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs

from whosthere.data.cells import region_and_epoch
from whosthere.data.floor import LEAST_PEOPLE, in_fives
from whosthere.data.reading.tables import NOT_GIVEN
from whosthere.display import Shown
from whosthere.inference.everybody import roc
from whosthere.inference.naming import PRECISIONS, named
from whosthere.inference.risk import OTHERS, PERCENTILES, by_group, risk_of_people, spread
from whosthere.inference.vocabulary import CEILING, RATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.arrays import Ints64
    from whosthere.data.traces import Traces
    from whosthere.inference.panel import Panel
    from whosthere.inference.scores import Scores

_OF = {"setting": pl.String(), "attack": pl.String()}
PEOPLE = _OF | {
    "person": pl.Int32(),
    "rounds_in": pl.Int32(),
    "rounds_out": pl.Int32(),
    "auc": pl.Float64(),
    "tpr": pl.Float64(),
    "expected_auc": pl.Float64(),
    "expected_tpr": pl.Float64(),
}
"""Columns of `people.parquet`, which stays in the house: what was measured of each person, and what
to expect of them given all others; `person` is a row of the traces."""
_INTERVAL = {"value": pl.Float64(), "low": pl.Float64(), "high": pl.Float64()}
SPREAD = _OF | {"metric": pl.String(), "percentile": pl.Float64()} | _INTERVAL
"""Columns of `spread.parquet`: which true risk a share of people, `percentile`, do not exceed."""
GROUPS = _OF | {"by": pl.String(), "group": pl.String(), "people": pl.Int64()}
GROUPS |= {
    f"{metric}{end}": pl.Float64()
    for metric in ("auc", "tpr", "share_auc_90")
    for end in ("", "_low", "_high")
}
"""Columns of `groups.parquet`: the risk of groups of people, by what they are groups."""
NAMED = _OF | {"precision": pl.Float64()} | _INTERVAL
"""Columns of `named.parquet`: how many people would be named correctly in a release if that share
of the named must be right, and each person in question is in with a chance of 1/2; in fives."""
CURVES = _OF | dict.fromkeys(("fpr", "tpr", "low", "high"), pl.Float64())
"""Columns of `curves.parquet`: the share of people found, `tpr`, at each rate of false alarms."""

_VISITS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)
_FIFTHS = 5
# Evenly in both pictures, of which one enlarges the low rates.
_FALSE_ALARMS = np.union1d(
    np.geomspace(1e-4, 1, 60, endpoint=False), [*RATES.values(), *np.linspace(0.05, 0.95, 19)]
)
# More places than these are put together as others.
_MOST_REGIONS = 30


@dataclass(frozen=True, eq=False, repr=False)
class EverybodysRisk(Shown):
    """How risk is spread over all who were asked; empty where only targets were."""

    people: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PEOPLE))
    spread: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SPREAD))
    groups: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=GROUPS))
    named: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=NAMED))
    curves: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CURVES))

    def _facts(self) -> dict[str, object]:
        people = in_fives(self.people["person"].n_unique())
        contests = self.people.select("setting", "attack").n_unique()
        return {"people": people, "attacks on a protection": contests}

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables by the names of their files; none where only targets were asked."""
        if self.people.is_empty():
            return {}
        return {one.name: getattr(self, one.name) for one in fields(self)}


TABLES: dict[str, dict[str, Any]] = {
    "people": PEOPLE,
    "spread": SPREAD,
    "groups": GROUPS,
    "named": NAMED,
    "curves": CURVES,
}
"""The columns of each table, by the name of its file."""


def everybodys_risk(scores: Scores, groupings: Mapping[str, Sequence[str]]) -> EverybodysRisk:
    """Measure it; `groupings` name the group of each person, by what people are grouped."""
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    for (setting, attack), asked in scores.everybody.items():
        panel, people = asked.tests(), asked.people()
        each = {"curves": roc(panel, _FALSE_ALARMS.tolist())}
        if attack != CEILING:
            each |= {
                "people": risk_of_people(panel).with_columns(person=people),
                "spread": _spread(panel),
                "groups": _groups(panel, groupings),
                "named": _named(panel),
            }
        for name, table in each.items():
            about = (pl.lit(setting).alias("setting"), pl.lit(attack).alias("attack"))
            kept = table.with_columns(about).select(list(TABLES[name]))
            found[name].append(kept.cast(TABLES[name]))  # type: ignore[arg-type]
    return EverybodysRisk(**{
        name: pl.concat([pl.DataFrame(schema=TABLES[name]), *tables])
        for name, tables in found.items()
    })  # fmt: skip


def groupings_of(
    tested: Traces, people: Ints64, m: int, given: pl.DataFrame | None = None
) -> dict[str, list[str]]:
    """Return the group of each of some people, given by their rows, by what they are grouped.

    That is how many visits they made, how unique these are, and where they made most; and what was
    `given` of everybody, a row each, under another name where there is one of these.
    """
    visits = tested.visits_per_user()[people]
    ends = [f"{first} to {next_ - 1}" if next_ - 1 > first else f"{first}"
            for first, next_ in pairwise(_VISITS)]  # fmt: skip
    bands = np.array([*ends, f"{_VISITS[-1]} or more"])
    found = {"visits": bands[np.searchsorted(_VISITS, visits, "right") - 1].tolist()}
    fifths = np.minimum((_FIFTHS * _uniqueness(tested, people, m)).astype(int), _FIFTHS - 1)
    names = np.array([f"{i / _FIFTHS:g} to {(i + 1) / _FIFTHS:g}" for i in range(_FIFTHS)])
    found["uniqueness"] = names[fifths].tolist()
    if len(tested.regions) > 1:
        found["region of most visits"] = _main_regions(tested, people)
    if given is not None:
        of_people = given[people].rename(lambda name: f"{name} (given)" if name in found else name)
        found |= of_people.to_dict(as_series=False)
    return found


def _uniqueness(tested: Traces, people: Ints64, m: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the chance that each person is alone in a visited cell, mean over the cells."""
    others = max(tested.n_users - 1, 1)
    visitors = np.bincount(tested.cells, minlength=tested.n_cells)
    alone = np.maximum(1 - (visitors - 1) / others, 0.0) ** max(m - 1, 0)
    cells = np.maximum(np.diff(tested.indptr)[people], 1)
    return tested.sums(np.tile(alone, tested.heaviest), people) / cells


def _main_regions(tested: Traces, people: Ints64) -> list[str]:
    """Return the region of most visits of each person, the first of equals.

    All but the most common ones are others.
    """
    n_regions = len(tested.regions)
    rows = np.repeat(np.arange(tested.n_users), np.diff(tested.indptr))
    region, _ = region_and_epoch(tested.cells, tested.epochs.n)
    key, pair = np.unique(rows * n_regions + region, return_inverse=True)
    visits = np.bincount(pair, tested.weights)
    person, place = np.divmod(key, n_regions)
    order = np.lexsort((place, -visits, person))
    first = np.unique(person[order], return_index=True)
    main = np.full(tested.n_users, -1)
    main[first[0]] = place[order][first[1]]
    of_people = main[people]
    common = np.bincount(of_people[of_people >= 0], minlength=n_regions)
    shown = set(np.argsort(-common, kind="stable")[:_MOST_REGIONS].tolist())
    ids = tested.regions.ids
    return [ids[one] if one in shown else OTHERS for one in of_people.tolist()]


def _spread(panel: Panel) -> pl.DataFrame:
    """Return percentiles of both kinds of risk, of those that are about enough people."""
    enough = [q for q in PERCENTILES if min(q, 1 - q) * panel.n_people >= LEAST_PEOPLE - 1e-9]
    both = [spread(panel, risk).with_columns(metric=pl.lit(risk)) for risk in ("auc", "tpr")]
    return pl.concat(both).filter(pl.col("percentile").is_in(enough))


def _in_order(group: str) -> tuple[bool, list[float], str]:
    """Return what to sort groups by: numbers as numbers, and whoever is left last."""
    numbers = re.findall(r"\d+(?:\.\d+)?", group.replace(",", ""))
    return group in {OTHERS, NOT_GIVEN}, [float(one) for one in numbers], group


def _named(panel: Panel) -> pl.DataFrame:
    """Return how many would be named at some precisions, in fives, outwards at the ends."""
    rows = []
    for precision in PRECISIONS:
        one = named(panel, precision)
        ends = ((one.value, round), (one.low, math.floor), (one.high, math.ceil))
        in_five = (
            None if end is None else LEAST_PEOPLE * to(end / LEAST_PEOPLE) for end, to in ends
        )
        rows.append((precision, *in_five))
    return pl.DataFrame(rows, ("precision", *_INTERVAL), orient="row")


def _groups(panel: Panel, groupings: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    tables = []
    for what, groups in groupings.items():
        found = by_group(panel, groups, least=LEAST_PEOPLE).with_columns(by=pl.lit(what))
        # Exact means of a group and of parts of it would tell of the rest.
        found = found.with_columns(cs.float().round(2))
        order = sorted(range(found.height), key=lambda row: _in_order(found["group"][row]))
        tables.append(found[order])
    shown = pl.concat(tables)
    # Exact numbers of several ways to group would tell how many are in both.
    return shown.with_columns(people=pl.Series(map(in_fives, shown["people"]), dtype=pl.Int64))
