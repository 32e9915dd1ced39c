"""Visits gathered from a stream of records, and traces of them with what was dropped and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from whosthere import kernels
from whosthere.arrays import own
from whosthere.data.cells import cell_at, epoch_of, region_of
from whosthere.data.epochs import DAYS_A_WEEK
from whosthere.data.ledger import Entry, Ledger
from whosthere.data.reading.distinct import Labels, Visits, sorted_order
from whosthere.data.reading.partition import NOWHERE, UNKNOWN, Locator
from whosthere.data.traces import Traces, check_cell_space
from whosthere.errors import EmptyError, RecordsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.data.epochs import Epochs
    from whosthere.data.reading.batches import Batch
    from whosthere.data.reading.passes import Filters, Window


class Fate(IntEnum):
    """How far a record got, in the order of the checks."""

    OUT_OF_WINDOW = 0
    OUT_OF_REGIONS = 1
    KEPT = 2


# By fate: a record of the time window counts for its user being inside, or against it.
_LEAN = np.array([0, -1, 1], dtype=np.int64)


@dataclass(eq=False, repr=False, kw_only=True)
class Gathering:
    """Visits, and what became of every record and user, while records stream by.

    The last of the epochs may reach past the time window. Records in a region that is not known
    are refused unless `drop`.
    """

    what: ClassVar[str] = "visit"

    locator: Locator
    epochs: Epochs
    window: Window
    users: Labels
    """Everybody who was seen, kept or not."""
    drop: bool
    records: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Fate), np.int64))
    """How many records had each `Fate`."""
    invalid: Counter[str] = field(default_factory=Counter)
    """Rows that were not valid, by reason."""
    resolved: Counter[str] = field(default_factory=Counter)
    """Local times of a clock change that were read, by problem."""
    n_unknown: int = 0
    """Records in a region that is not known."""
    at_zero: int = 0
    """Records in some region at longitude 0 and latitude 0."""
    furthest: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    """The last `Fate` of a record, by user."""
    balance: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Records of the time window inside the regions less those outside, by user."""
    visits: Visits = field(default_factory=Visits)

    @property
    def records_read(self) -> int:
        """All rows, invalid ones included."""
        return int(self.records.sum()) + self.invalid.total()

    def add(self, batch: Batch) -> None:
        """Take a batch in."""
        self.invalid.update(batch.invalid)
        self.resolved.update(batch.resolved)
        users = self.users.encode(batch.records["user"])
        fates, cells = self._located(batch)
        self.furthest = _grown(self.furthest, len(self.users))
        self.balance = _grown(self.balance, len(self.users))
        kernels.count_fates(users, fates, _LEAN, self.furthest, self.balance, self.records)
        self.visits.add(users if cells.size == users.size else users[fates == Fate.KEPT], cells)

    def rows(self, *, only_visited: bool) -> tuple[Traces, list[Entry]]:
        """Return traces of all users in the order in which they were seen, and what was dropped.

        With the visited regions alone, or all. No more can be added then.
        """
        ids = self.users.texts
        indptr, cells = self.visits.rows(len(ids))
        repeats = int(self.records[Fate.KEPT]) - int(cells.size)
        steps = [*self.unusable(), *_dropped_records(self), Entry("repeats of a visit", repeats, 0)]
        if not cells.size:
            raise nothing_left(self, steps)
        regions = self.locator.regions()
        rows = Traces(tuple(ids), own(indptr, np.int64), own(cells, np.int32), regions, self.epochs)
        return (_only_visited_regions(rows) if only_visited else rows), steps

    def notes(self) -> Iterable[str]:
        """Return what should be known of the visits themselves."""
        return ()

    def unusable(self) -> list[Entry]:
        """Return how many rows were not valid, by reason."""
        return [Entry(reason, count, 0) for reason, count in sorted(self.invalid.items())]

    def _located(self, batch: Batch) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
        """Return the fate of every record, and the cells of those kept."""
        epoch = self.epochs.index_of(batch.micros)
        fates = np.full(len(batch), Fate.KEPT, dtype=np.int8)
        fates[(epoch < 0) | ~self.window.holds(batch.micros)] = Fate.OUT_OF_WINDOW
        places, kept = batch.records, fates == Fate.KEPT
        if not kept.all():
            places, epoch = places.filter(pl.Series(kept)), epoch[kept]
        region = self.locator.locate(places)
        lost = region < 0
        if lost.any():
            at = np.flatnonzero(kept)[lost]
            unknown = region[lost] == UNKNOWN
            if unknown.any() and not self.drop:
                raise unknown_region(batch, int(at[np.argmax(unknown)]))
            self.n_unknown += int(unknown.sum())
            fates[at] = Fate.OUT_OF_REGIONS
            region, epoch, places = region[~lost], epoch[~lost], places.filter(pl.Series(~lost))
        if "lon" in places.columns:
            self.at_zero += int(((places["lon"] == 0) & (places["lat"] == 0)).sum())
        check_cell_space(int(region.max(initial=0)) + 1, self.epochs.n)
        return fates, cell_at(region, epoch, self.epochs.n)


def unknown_region(batch: Batch, index: int, places: pl.DataFrame | None = None) -> RecordsError:
    """Say that the region of a record is not known, or that of one of its `places`."""
    named = (batch.records if places is None else places)["region"][index]
    return RecordsError(
        f"region {named!r} is not in the regions table",
        where=batch.place(index),
        fix="Add it to the table, or have invalid rows dropped (`drop_invalid`)",
    )


def _grown(array: NDArray[np.signedinteger], size: int) -> NDArray[np.signedinteger]:
    return array if size == array.size else np.pad(array, (0, size - array.size))


REASONS = {
    Fate.OUT_OF_WINDOW: "outside the time window",
    Fate.OUT_OF_REGIONS: "in no region",
}


def assembled(
    gathering: Gathering,
    filters: Filters,
    *,
    only_visited: bool,
    notes: tuple[str, ...],
    not_read: tuple[str, ...],
    bad_files: tuple[str, ...],
    columns: dict[str, str],
) -> Traces:
    """Make traces of all records, users sorted by id, with a ledger that adds notes on the ids."""
    ids = gathering.users.texts
    rows, steps = gathering.rows(only_visited=only_visited)

    by_id = sorted_order(ids)
    kept = rows.visits_per_user() > 0
    for reason, keeps in _user_filters(rows, gathering, filters):
        lost = kept & ~keeps
        steps.append(Entry(reason, int(rows.visits_per_user()[lost].sum()), int(lost.sum())))
        kept &= keeps
    if not kept.any():
        raise nothing_left(gathering, steps)
    chosen = rows.select(by_id[kept[by_id]])
    ledger = Ledger(
        records_read=gathering.records_read,
        users_read=len(ids),
        entries=tuple(step for step in steps if step.records or step.users),
        visits=chosen.n_visits,
        users=chosen.n_users,
        notes=(
            *notes,
            *gathering.notes(),
            *_notes_on_ids("user", ids),
            *_notes_on_ids("region", gathering.locator.regions().ids),
            *_notes_on_gaps(rows),
        ),
        not_read=not_read,
        bad_files=bad_files,
        columns=columns,
    )
    return replace(chosen, ledger=ledger)


def _dropped_records(gathering: Gathering) -> Iterator[Entry]:
    unknown = gathering.n_unknown
    for fate, reason in REASONS.items():
        records, users = int(gathering.records[fate]), int((gathering.furthest == fate).sum())
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
        yield "of users mostly outside", gathering.balance > 0
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


_MOST_GAPS = 6
# How ids of one person or place may differ between two files.
_ALIKE: dict[str, Callable[[pl.Series], pl.Series]] = {
    "characters that are not seen": lambda ids: ids.str.replace_all(r"\p{Cf}", ""),
    "spaces or quotes": lambda ids: ids.str.replace_all(r"""[\s"']""", ""),
    "leading zeros or a plus": lambda ids: ids.str.replace(r"^\+?0*(\d+)$", "$1"),
    "upper and lower case": lambda ids: ids.str.to_lowercase(),
    "the Unicode form of letters": lambda ids: ids.str.normalize("NFKC"),
}


def _doubtful(ids: pl.Series, besides: str = "") -> pl.Series:
    """Return the ids that others would equal if they were written alike in all ways but one."""
    alike = ids
    for difference, made_alike in _ALIKE.items():
        alike = alike if difference == besides else made_alike(alike)
    return ids.filter(alike.is_duplicated())


def _notes_on_ids(role: str, ids: Sequence[str]) -> Iterator[str]:
    texts = pl.Series(ids, dtype=pl.String)
    doubtful = _doubtful(texts)
    if len(doubtful):
        needed = [way for way in _ALIKE if len(_doubtful(doubtful, way)) < len(doubtful)]
        yield (
            f"{len(doubtful):,} {role} ids differ from one another only by {' or '.join(needed)}, "
            f"and count as different {role}s. If they are not, write them alike"
        )
    n = int(texts.str.contains(r"[\x00-\x1f\x7f]").sum())
    if n:
        yield f"{n:,} {role} ids hold control characters, such as line ends or NUL"


def _notes_on_gaps(rows: Traces) -> Iterator[str]:
    """Say when nobody was seen, for then records may be missing."""
    epochs = rows.epochs
    empty = np.bincount(epoch_of(rows.cells, epochs.n), minlength=epochs.n) == 0
    day = epochs.days
    days, first = np.unique(day, return_index=True)
    empty_days = np.array([bool(empty[day == one].all()) for one in days])
    if empty_days.any():
        names = [epochs.local_starts[i].strftime("%Y-%m-%d") for i in first]
        yield _gaps("days", names, empty_days, len(names))
    others = empty & ~np.isin(day, days[empty_days])
    if others.any():
        names = [start.strftime("%Y-%m-%d %H:%M") for start in epochs.local_starts]
        yield _gaps("epochs" if not empty_days.any() else "other epochs", names, others, epochs.n)


def _gaps(what: str, names: list[str], empty: NDArray[np.bool_], n: int) -> str:
    edges = np.diff(empty.astype(np.int8), prepend=0, append=0)
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    told = f"{int(empty.sum()):,} of {n:,} {what} have no visit"
    if first.size > _MOST_GAPS:
        longest = int(np.argmax(last - first))
        first, last = first[longest : longest + 1], last[longest : longest + 1]
        told += f", in {edges[edges == 1].size:,} gaps. The longest"
    spans = zip(first.tolist(), last.tolist(), strict=True)
    shown = (names[a] if a == b else f"{names[a]} to {names[b]}" for a, b in spans)
    return f"{told}: {', '.join(shown)}"


def nothing_left(gathering: Gathering, steps: list[Entry]) -> EmptyError:
    """Say that all records were dropped, and why."""
    drops = "; ".join(f"{step.records} {step.reason}" for step in steps if step.records)
    return EmptyError(
        f"no {gathering.what} is left of {gathering.records_read} records ({drops})",
        fix="Loosen the filters, or check the time zone and that lon and lat are not swapped",
    )
