"""Scores: one row for each release that an attack scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.auditing.plan import Plan, Unit

SCHEMA = pa.schema(
    [
        ("setting", pa.string()),
        ("attack", pa.string()),
        ("target", pa.int32()),
        ("release", pa.int32()),
        ("label", pa.bool_()),
        ("score", pa.float64()),
        ("threshold", pa.float64()),
        ("seconds", pa.float64()),
        ("visits", pa.int32()),
        ("uniqueness", pa.float64()),
        ("ceiling", pa.float64()),
        ("control", pa.bool_()),
    ]
)
"""One row for each release that an attack scored.

`target` is a row of the traces, `label` whether the target is in the release, `seconds` what the
score cost (with its share of the fit), `visits` how many visits the target made, `uniqueness` the
mean chance that the target is alone in a visited cell, `ceiling` the AUC of somebody who knows
where everybody else was. Where `control` is true, the target is in no release, and `label` tells
whether a stand-in took its place.
"""


def tests_and_controls(plan: Plan, scores: Mapping[Unit, pa.Table]) -> tuple[pa.Table, pa.Table]:
    """Put the scores of units together in the order of the plan, setting by setting.

    The order in which units were done leaves no trace. Units without scores are left out.
    """
    tables = [
        scores[unit]
        for setting in plan.settings
        for unit in plan.units
        if unit.setting == setting and unit in scores
    ]
    rows = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
    rows = rows.replace_schema_metadata(None)
    control = rows.column("control")
    return (
        rows.filter(pc.invert(control)).drop_columns(["control"]),
        rows.filter(control).drop_columns(["control"]),
    )
