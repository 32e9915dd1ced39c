"""A release that is to go out: who would be found in it, and which coarser ones would pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.auditing.release_check import AT, POOLED
from whosthere.display import counted
from whosthere.inference.vocabulary import METRICS
from whosthere.reporting.sections import parts
from whosthere.reporting.sections.parts import KEPT, Cell, Head, Lookup, Table
from whosthere.reporting.words import shortened

if TYPE_CHECKING:
    from whosthere.auditing.release_check import Exposed, ReleaseCheck


def subject_of_release(found: ReleaseCheck) -> dict[str, str]:
    """Return what the page is about."""
    tables = (f"{counted(len(one.regions), 'region')}, {one.epochs}" for one in found.releases)
    return {
        "Tables" if len(found.releases) > 1 else "Table": "; ".join(tables),
        "Rule": shortened(" + ".join(str(one.mechanism) for one in found.releases)),
        "People": f"{found.releases[0].group_size:,}",
        "Policy": found.policy.name,
    }


def exposed_table(found: ReleaseCheck) -> Table:
    """Return how many people each attack finds, a row each."""
    heads = (
        parts.ATTACK,
        Head("people found"),
        Head("expected by chance"),
        Head("found because they are in"),
        Head("found in tables made anew"),
    )
    return Table.of(
        "How many people are found at one false alarm in a hundred.",
        heads,
        (_row(one) for one in found.exposed),
    )


def _row(one: Exposed) -> tuple[Cell | str, ...]:
    because, least, most = one.beyond_chance
    return (
        one.attack,
        Cell(f"{one.people:,}", f"{one.low:,} to {one.high:,}", sort=float(one.people)),
        Cell(f"{one.chance:,.0f}", sort=one.chance),
        Cell(f"{because:,.0f}", f"{least:,.0f} to {most:,.0f}", sort=because),
        Cell(f"{one.again:.1%}", sort=one.again),
    )


def verdicts_table(found: ReleaseCheck) -> Table:
    """Return what the policy says of the release and of coarser ones, a row each."""
    look = Lookup(found.findings)
    heads: tuple[Head | str, ...] = (
        "publication",
        "verdict",
        *parts.metric_heads((AT, POOLED), found.policy),
        Head(METRICS[KEPT].words, KEPT),
    )
    rows = (
        (
            one.setting if i else f"{one.setting} (this one)",
            one,
            *(look.largest(one.setting, metric) for metric in (AT, POOLED)),
            one.left.get(KEPT),
        )
        for i, one in enumerate((found.verdict, *found.coarser))
    )
    return Table.of("The release, and coarser publications of the same people.", heads, rows)
