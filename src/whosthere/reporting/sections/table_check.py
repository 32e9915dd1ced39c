"""What a table gives away, from the table alone: by number of visits, and where and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.display import counted
from whosthere.reporting.charts.risk import Dot, DotChart, Protection, numbered_keys
from whosthere.reporting.sections import parts
from whosthere.reporting.sections.parts import Cell, Head, Lookup, Table
from whosthere.reporting.words import shortened, texts, words_of

if TYPE_CHECKING:
    from whosthere.game.table_check import TableCheck

_METRICS = ("pooled_auc", "tpr_at_fpr_1pct")


def subject_of_table(found: TableCheck) -> dict[str, str]:
    """Return what the page is about."""
    release = found.release
    return {
        "Table": f"{counted(len(release.regions), 'region')}, {release.epochs}",
        "Rule": shortened(str(release.mechanism)),
        "People": f"{release.group_size:,}",
    }


def error_in_words(found: TableCheck) -> str:
    """Say how far off such estimates were found to be, if tables of that kind were tried."""
    return str(texts()["check"]["error_known" if found.error_is_known else "error_unknown"])


def risk_table(found: TableCheck) -> Table:
    """Return the risk of people by their number of visits, a row each."""
    look = Lookup(found.findings)
    (attack,) = look.attacks
    bands = dict.fromkeys(one.setting for one in found.findings)
    rows = (
        (Cell(band, sort=float(i)), *(look.find(band, attack, metric) for metric in _METRICS))
        for i, band in enumerate(bands)
    )
    heads: tuple[Head | str, ...] = ("visits of a person", *parts.metric_heads(_METRICS))
    return Table.of("How well people would be found, by their number of visits.", heads, rows)


def risk_chart(found: TableCheck) -> DotChart:
    """Draw the same."""
    keys = numbered_keys([words_of(metric) for metric in _METRICS])
    bands = dict.fromkeys(one.setting for one in found.findings)
    rows = tuple(
        Protection(
            f"{band} visits",
            tuple(
                dot
                for one in found.findings
                if one.setting == band
                for dot in Dot.of(keys[words_of(one.metric)], one, f"{band} visits:")
            ),
        )
        for band in bands
    )
    title = "How well people would be found, by their number of visits"
    return DotChart(title, "AUC (0.5 is guessing), share found", rows, None, 0.0, 1.0)
