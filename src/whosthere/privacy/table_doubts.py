"""What a reader of a table of counts must doubt: counts that add up, totals, gaps, empty cells."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

from whosthere.display import counted
from whosthere.errors import RecordsError
from whosthere.privacy.table_rows import is_empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whosthere.privacy.mechanism import Mechanism

# Counts that hardly ever fall are cumulative: so many rises at least, over so many times or so many
# days. In fewer hours, all counts may rise with the morning. Corrections are a few falls.
_FEWEST_RISES, _FEWEST_TIMES, _FEWEST_DAYS = 20, 12, 5
_MOST_FALLS = 0.05


def refuse_cumulative(cells: pl.DataFrame) -> None:
    """Refuse counts of all who came so far: one person is in each of them from then on.

    `cells` has a row for each published count, with region, micros (UTC), count and withheld.
    """
    shown = cells.filter(~pl.col("withheld")).sort("region", "micros")
    times = shown["micros"].unique().sort()
    days = len(times) and timedelta(microseconds=times[-1] - times[0]) / timedelta(days=1)
    if len(times) < (_FEWEST_DAYS if days >= _FEWEST_DAYS - 1 else _FEWEST_TIMES):
        return
    steps = shown.select(pl.col("count").diff().over("region")).to_series()
    rises, falls = int((steps > 0).sum()), int((steps < 0).sum())
    if rises >= _FEWEST_RISES and falls <= _MOST_FALLS * (rises + falls):
        raise RecordsError(
            f"its counts hardly ever fall: {rises:,} rise from one time of a region to the next, "
            f"and {falls:,} fall. So they seem to be sums of all that was counted so far, and "
            "whoever was counted once is in all later ones",
            fix="Give what is new in each epoch: each count less the one before",
        )


def warnings_of(*, has_totals: bool, mechanism: Mechanism, n_missing: int, n: int) -> Iterator[str]:
    """Say what makes wrong whatever is found out from a table, as read, in sentences.

    It has `n` epochs, of which so many are missing in it.
    """
    if has_totals and mechanism.changes_counts:
        yield (
            "the table has totals, which are left out. They can give away what is withheld or "
            "changed beside them, as a single count that is withheld is the total less all others. "
            "So more can be found out than is found here"
        )
    if n_missing:
        yield (
            f"{n_missing:,} of {counted(n, 'epoch')} have no row in the table. They are read as 0, "
            "which is taken for proof that nobody was anywhere. If they were not published, read "
            "the parts between them as tables of their own"
        )


def empty_cells(cells: pl.DataFrame) -> Iterator[str]:
    """Say how many empty cells are read as 0, which they may not have been."""
    empty = int((is_empty(cells["marker"]) & ~cells["withheld"]).sum())
    if empty:
        yield (
            f"{counted(empty, 'empty cell')} read as 0. If they stand for withheld counts, say so "
            "(`markers`): ''"
        )
