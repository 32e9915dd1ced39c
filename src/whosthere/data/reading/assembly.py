"""Traces made of the visits that were gathered, with the account of what was dropped and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere import kernels
from whosthere.arrays import own
from whosthere.data.cells import region_of
from whosthere.data.epochs import DAYS_A_WEEK
from whosthere.data.ledger import Entry, Ledger
from whosthere.data.reading.gather import Fate, Gathering
from whosthere.data.reading.labels import sorted_order
from whosthere.data.reading.partition.base import NOWHERE
from whosthere.data.traces import Traces
from whosthere.errors import EmptyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.data.reading.read import Filters

_REASONS = {
    Fate.OUT_OF_WINDOW: "outside the time window",
    Fate.OUT_OF_BOX: "outside the quantile box",
    Fate.OUT_OF_REGIONS: "in no region",
}


def assembled(
    gathering: Gathering,
    filters: Filters,
    *,
    only_visited: bool,
    notes: tuple[str, ...],
    not_read: tuple[str, ...],
    columns: dict[str, str],
) -> Traces:
    """Make traces, users sorted by id, with a ledger.

    Parameters
    ----------
    gathering
        All records.
    filters
        Which users to keep.
    only_visited
        Leave regions out that nobody visited.
    notes, not_read, columns
        For the ledger, which adds notes on the ids.
    """
    ids = gathering.users.texts()
    indptr, cells = gathering.visits()
    steps = [Entry(reason, count, 0) for reason, count in sorted(gathering.invalid.items())]
    steps += _dropped_records(gathering)
    steps.append(
        Entry("repeats of a visit", int(gathering.records[Fate.KEPT]) - int(cells.size), 0)
    )
    if not cells.size:
        raise _nothing_left(gathering, steps)
    regions, epochs = gathering.locator.regions(), gathering.epochs
    rows = Traces(tuple(ids), own(indptr, np.int64), own(cells, np.int32), regions, epochs)
    if only_visited:
        rows = _only_visited_regions(rows)

    by_id = sorted_order(ids)
    kept = rows.visits_per_user() > 0
    for reason, keeps in _user_filters(rows, gathering, filters):
        lost = kept & ~keeps
        steps.append(Entry(reason, int(rows.visits_per_user()[lost].sum()), int(lost.sum())))
        kept &= keeps
    if not kept.any():
        raise _nothing_left(gathering, steps)
    chosen = rows.select(by_id[kept[by_id]])
    ledger = Ledger(
        records_read=gathering.records_read,
        users_read=len(ids),
        entries=tuple(step for step in steps if step.records or step.users),
        visits=chosen.n_visits,
        users=chosen.n_users,
        notes=(*notes, *_notes_on_ids("user", ids), *_notes_on_ids("region", regions.ids)),
        not_read=not_read,
        columns=columns,
    )
    return replace(chosen, ledger=ledger)


def _dropped_records(gathering: Gathering) -> Iterator[Entry]:
    unknown = gathering.n_unknown
    for fate, reason in _REASONS.items():
        records, users = int(gathering.records[fate]), gathering.users_lost_to(fate)
        if fate == Fate.OUT_OF_REGIONS and unknown:
            # A user may have had both; they are listed under the last.
            both = records > unknown
            yield Entry("in a region that is not in the table", unknown, 0 if both else users)
            records, users = records - unknown, users if both else 0
        yield Entry(reason, records, users)


def _user_filters(
    rows: Traces, gathering: Gathering, filters: Filters
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield, for each filter of users that is on, the reason it gives and the users it keeps."""
    if filters.mostly_inside:
        yield "of users mostly outside", gathering.mostly_inside()
    if filters.min_visits > 1:
        few = f"of users with fewer than {filters.min_visits} visits"
        yield few, rows.visits_per_user() >= filters.min_visits
    if filters.min_weekly_visits > 0:
        weekly = rows.visits_per_period(rows.epochs.weeks)
        whole_weeks = max(1, rows.epochs.n_days // DAYS_A_WEEK)
        few = f"of users with fewer than {filters.min_weekly_visits} visits in some week"
        yield few, weekly[:, :whole_weeks].min(axis=1) >= filters.min_weekly_visits


def _only_visited_regions(rows: Traces) -> Traces:
    """Renumber the visited regions in the order of their ids, and leave the others out."""
    seen = np.zeros(len(rows.regions), dtype=bool)
    seen[region_of(rows.cells, rows.epochs.n)] = True
    visited = np.flatnonzero(seen)
    order = visited[sorted_order([rows.regions.ids[i] for i in visited])]
    number = np.full(len(rows.regions), NOWHERE, dtype=np.int32)
    number[order] = np.arange(order.size)
    cells = kernels.renumber_regions(rows.indptr, rows.cells, rows.epochs.n, number)
    return replace(rows, cells=own(cells, np.int32), regions=rows.regions.select(order))


def _notes_on_ids(role: str, ids: Sequence[str]) -> Iterator[str]:
    texts = pl.Series(ids, dtype=pl.String)
    stripped = texts.str.strip_chars()
    if (stripped.str.len_bytes() != texts.str.len_bytes()).any():
        n = int(stripped.is_duplicated().sum())
        if n:
            yield (
                f"{n:,} {role} ids differ from one another only by spaces around them, and count "
                f"as different {role}s. If they are not, remove the spaces"
            )
    n = int(texts.str.contains(r"[\x00-\x1f\x7f]").sum())
    if n:
        yield f"{n:,} {role} ids hold control characters, such as line ends or NUL"


def _nothing_left(gathering: Gathering, steps: list[Entry]) -> EmptyError:
    drops = "; ".join(f"{step.records} {step.reason}" for step in steps if step.records)
    return EmptyError(
        f"no visit is left of {gathering.records_read} records ({drops})",
        fix="Loosen the filters, or check the time zone and that lon and lat are not swapped",
    )
