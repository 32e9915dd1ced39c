"""What a custodian should know of how records were read, in short sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.data.reading.queries import ZONE, QuerySource
from whosthere.data.reading.times import DAY_FIRST, MONTH_FIRST, SKIPPED, TWICE
from whosthere.display import counted
from whosthere.errors import listed, quote

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from whosthere.data.reading.batches import RecordTable
    from whosthere.data.reading.columns import Layout
    from whosthere.data.reading.gather import Gathering
    from whosthere.data.reading.source import Source

# So many users with one record each are no chance.
_FEW_USERS = 20
# More notes than these, each on its own file, are put together.
_MOST_ALIKE = 5


def about_reading(
    tables: Sequence[RecordTable],
    rows: Counter[Path],
    gathering: Gathering,
    *,
    found_forms: bool,
) -> Iterator[str]:
    """Yield all there is to know of records that were read; `rows` counts those of each file."""
    layouts, times = [table.layout for table in tables], tables[0].times
    yield from _notes_of_sources([layout.source for layout in layouts])
    empty = [layout.source.path.name for layout in layouts if not rows[layout.source.path]]
    if empty:
        yield f"{len(empty):,} of {len(layouts):,} files have no rows: {listed(empty)}"
    forms = {table.times.form for table in tables} if found_forms else set()
    for form, words in ((DAY_FIRST, "the day first"), (MONTH_FIRST, "the month first")):
        if form in forms:
            yield f"dates such as 01/02/2024 were read with {words}, as other dates show"
    for problem, words in ((SKIPPED, "do not exist"), (TWICE, "exist twice")):
        if gathering.resolved[problem]:
            yield (
                f"{gathering.resolved[problem]:,} local times that {words} in {times.timezone} "
                f"were read as the {times.clock_change} moment"
            )
    by_query = any(isinstance(layout.source, QuerySource) for layout in layouts)
    if times.timezone is None and by_query and zone_of_times(layouts) is not None:
        yield (
            f"a database does not keep the time zone of its times, so days begin at midnight "
            f"{ZONE}. Say which zone is local (`timezone`)"
        )
    n_users = len(gathering.users)
    if n_users == gathering.records.sum() and n_users > _FEW_USERS:
        column = " or ".join(dict.fromkeys(layout.names["user"] for layout in layouts))
        yield (
            f"each of the {n_users:,} users has one record only, as if {quote(column)} numbered "
            "the rows. If it does, say which column holds the user (`user_column`)"
        )
    if gathering.at_zero:
        yield (
            "at longitude 0 and latitude 0 exactly, which often stands for a missing position: "
            f"{counted(gathering.at_zero, 'record')}"
        )
    yield from gathering.locator.notes()


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


def zone_of_times(layouts: Sequence[Layout]) -> str | None:
    """Return the time zone of the columns of datetimes, where they agree on one."""
    timed = [layout for layout in layouts if "time" in layout.names]
    zones = {getattr(layout.kind("time"), "time_zone", None) for layout in timed}
    return zones.pop() if len(zones) == 1 else None
