"""What a custodian should know of how records were read, in short sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.data.reading.queries import ZONE, QuerySource
from whosthere.data.reading.times import DAY_FIRST, MONTH_FIRST, SKIPPED, TWICE, TimeReader
from whosthere.display import counted
from whosthere.errors import listed, quote

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from whosthere.data.reading.batches import RecordTable
    from whosthere.data.reading.columns import Layout
    from whosthere.data.reading.gather import Gathering
    from whosthere.data.reading.partition import Partition
    from whosthere.data.reading.passes import Survey
    from whosthere.data.reading.source import Source

# So many users with one record each are no chance.
_FEW_USERS = 20
# More notes than these, each on its own file, are put together.
_MOST_ALIKE = 5


def about_reading(
    tables: Sequence[RecordTable],
    rows: Counter[Path],
    gathering: Gathering,
    partition: Partition,
    look: Survey,
    *,
    found_forms: bool,
) -> tuple[str, ...]:
    """Return all there is to know of records that were read; `rows` counts those of each file."""
    layouts = [table.layout for table in tables]
    users = dict.fromkeys(layout.names["user"] for layout in layouts)
    return (
        *_notes_of_sources([layout.source for layout in layouts]),
        *_notes_on_files(layouts, rows),
        *(_notes_on_forms(tables) if found_forms else ()),
        *_notes_on_times(gathering.resolved, tables[0].times),
        *_notes_on_zone(layouts, tables[0].times.timezone),
        *_notes_on_users(gathering, " or ".join(users)),
        *_notes_on_places(partition, look, gathering),
    )


def _notes_of_sources(sources: Sequence[Source]) -> Iterator[str]:
    """Yield what there is to know of each; of many files alike, it is said of the first."""
    alike: dict[str, list[str]] = {}
    for source in sources:
        for note in source.notes:
            alike.setdefault(note.replace(source.path.name, ""), []).append(note)
    for notes in alike.values():
        if len(notes) <= _MOST_ALIKE:
            yield from notes
        else:
            yield f"{notes[0]}. This is so for {len(notes) - 1:,} more files"


def _notes_on_files(layouts: Sequence[Layout], rows: Counter[Path]) -> Iterator[str]:
    empty = [layout.source.path.name for layout in layouts if not rows[layout.source.path]]
    if empty:
        yield f"{len(empty):,} of {len(layouts):,} files have no rows: {listed(empty)}"


def _notes_on_forms(tables: Sequence[RecordTable]) -> Iterator[str]:
    found = {table.times.form for table in tables}
    for form, words in ((DAY_FIRST, "the day first"), (MONTH_FIRST, "the month first")):
        if form in found:
            yield f"dates such as 01/02/2024 were read with {words}, as other dates show"


def _notes_on_times(resolved: Counter[str], times: TimeReader) -> Iterator[str]:
    for problem, words in ((SKIPPED, "do not exist"), (TWICE, "exist twice")):
        if resolved[problem]:
            yield (
                f"{resolved[problem]:,} local times that {words} in {times.timezone} were read "
                f"as the {times.clock_change} moment"
            )


def _notes_on_zone(layouts: Sequence[Layout], timezone: str | None) -> Iterator[str]:
    by_query = any(isinstance(layout.source, QuerySource) for layout in layouts)
    if timezone is None and by_query and zone_of_times(layouts) is not None:
        yield (
            f"a database does not keep the time zone of its times, so days begin at midnight "
            f"{ZONE}. Say which zone is local (`timezone`)"
        )


def _notes_on_users(gathering: Gathering, column: str) -> Iterator[str]:
    n_users = len(gathering.users)
    if n_users == gathering.records.sum() and n_users > _FEW_USERS:
        yield (
            f"each of the {n_users:,} users has one record only, as if {quote(column)} numbered "
            "the rows. If it does, say which column holds the user (`user_column`)"
        )


def _notes_on_places(partition: Partition, look: Survey, gathering: Gathering) -> Iterator[str]:
    if partition.needs_box and look.strays is not None:
        yield look.strays
    if gathering.at_zero:
        yield (
            "at longitude 0 and latitude 0 exactly, which often stands for a missing position: "
            f"{counted(gathering.at_zero, 'record')}"
        )
    yield from gathering.locator.notes()


def zone_of_times(layouts: Sequence[Layout]) -> str | None:
    """Return the time zone of the columns of datetimes, where they agree on one."""
    zones = {getattr(layout.kind("time"), "time_zone", None) for layout in layouts}
    return zones.pop() if len(zones) == 1 else None
