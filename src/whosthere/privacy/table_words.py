"""Tables as users write them: which cells they have, and what is done to their counts.

``epochs=1d, counts=visits: suppress(k=5)`` has days for epochs. Which cells these are is known once
there are traces, so a table is first read as words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from whosthere.data.epochs import format_length, parse_length
from whosthere.data.flows import Pairs
from whosthere.data.reading.tables import read_pairs
from whosthere.errors import EmptyError, InputError, RecordsError, SpecError, quote, suggestion
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import FINEST, ORDINARY, WEEK, Counts, Layout, TableScheme
from whosthere.specs import whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release

_KEYS = ("regions", "epochs", "counts")
_LIKE = "Write it like finest, or 'epochs=1d: suppress(k=5)', or 'regions=districts.csv, epochs=1d'"


@dataclass(frozen=True)
class WrittenTable:
    """A table as a user gives it.

    Parameters
    ----------
    cells
        A layout, or what says which one, by the names of its parts.
    mechanism
        What is done to its counts; None if each mechanism is to be tried.
    """

    cells: Layout | tuple[tuple[str, str], ...] = ()
    mechanism: Mechanism | None = None

    @classmethod
    def parse(cls, given: Any) -> WrittenTable:  # noqa: ANN401 - whatever a user gave
        """Read a text, or a `TableScheme`, or a layout with or without a mechanism."""
        if isinstance(given, WrittenTable):
            return given
        if isinstance(given, TableScheme):
            return cls(given.layout, given.mechanism)
        cells, mechanism = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if isinstance(cells, str) and mechanism is None:
            # A colon with a space after it goes before others, which may belong to a path.
            parts = re.split(r":\s+|:$", cells, maxsplit=1)
            cells, *rest = parts if len(parts) == 2 else cells.split(":", 1)
            mechanism = rest[0] if rest else None
        if not isinstance(cells, str | Layout):
            raise SpecError(f"{cells!r} is no table (`tables`)", fix=_LIKE)
        words = cells if isinstance(cells, Layout) else _words(cells)
        return cls(words, None if mechanism is None else Mechanism.parse(mechanism))

    def over(self, traces: Traces | Release | None) -> Layout:
        """Return the cells of the table over the cells of traces, or of a finer table."""
        if isinstance(self.cells, Layout):
            return self.cells
        given, layout = dict(self.cells), ORDINARY
        if traces is None:
            raise InputError("which cells a table has (`tables`) is known once there are traces")
        if "regions" in given:
            new, names = merged_regions(given["regions"], traces.regions)
            layout = replace(layout, regions=new, names=names)
        if "epochs" in given:
            layout = replace(layout, epochs=joined_epochs(given["epochs"], traces.epochs))
        layout = replace(layout, counts=cast("Counts", given.get("counts", ORDINARY.counts)))
        return layout if layout == ORDINARY else replace(layout, words=str(self))

    def __str__(self) -> str:
        if isinstance(self.cells, Layout):
            return self.cells.written
        return ", ".join(f"{key}={value}" for key, value in self.cells) or FINEST


def tables_of(
    tables: Sequence[TableScheme | str],
    mechanism: Mechanism | str | None,
    traces: Traces,
    *,
    weeks: int | None = None,
    every: timedelta | str | None = None,
) -> tuple[TableScheme, ...]:
    """Return the tables of one publication; a mechanism is for those that have none.

    With `weeks` they are those of the first weeks, each of which covers a week, or the time
    `every`.
    """
    if weeks is None and every is not None:
        problem = "`every` is about tables that are published again and again"
        raise InputError(problem, fix="Say how often (`weeks`), or leave it out")
    often = (
        {} if weeks is None else {"times": read_weeks(weeks), "every": parse_length(every or WEEK)}
    )
    given = None if mechanism is None else Mechanism.parse(mechanism)
    written = [WrittenTable.parse(one) for one in tables] or [WrittenTable()]
    is_open = [one.mechanism is None for one in written]
    if given is None and any(is_open):
        fix = "Give one (`mechanism`), such as 'suppress(k=1)'"
        raise InputError("it is not said what is done to the counts", fix=fix)
    if given is not None and not any(is_open):
        fix = "Leave the mechanism (`mechanism`) out"
        raise InputError("all tables (`tables`) say what is done to them", fix=fix)
    made = tuple(
        TableScheme(
            cast("Mechanism", one.mechanism or given),
            replace(one.over(traces), **cast("Any", often)),
        )
        for one in written
    )
    for table in made:
        covered = traces.epochs.part(0, table.layout.n_covered(traces.epochs))
        table.check(covered, table.layout(traces).most_added)
    return made


def read_weeks(given: int) -> int:
    """Read how often a table is published."""
    weeks = whole(given, "the number of weeks")
    if weeks < 1:
        raise InputError(f"{weeks} weeks publish nothing (`weeks`)", fix="Give at least 1")
    return weeks


def _words(text: str) -> tuple[tuple[str, str], ...]:
    """Read words such as ``epochs=1d, counts=visits``, in the order of `_KEYS`."""
    found: dict[str, str] = {}
    for word in filter(None, (one.strip() for one in text.split(","))):
        key, _, value = (part.strip() for part in word.partition("="))
        if word == FINEST:
            continue
        if key not in _KEYS or not value:
            fix = f"{suggestion(key, (FINEST, *_KEYS))}. {_LIKE}"
            raise SpecError(f"{word!r} does not say which cells a table has (`tables`)", fix=fix)
        if key in found:
            raise SpecError(f"{key} is given twice in {text.strip()!r} (`tables`)", fix=_LIKE)
        found[key] = value
    if not text.strip():
        raise SpecError("a table has no name (`tables`)", fix=_LIKE)
    if found.get("counts", "people") not in get_args(Counts):
        fix = suggestion(found["counts"], get_args(Counts))
        raise SpecError(f"a table cannot count {found['counts']!r} (`tables`)", fix=fix)
    return tuple((key, found[key]) for key in _KEYS if key in found)


def joined_epochs(text: str, epochs: Epochs, *, least: int = 1) -> int:
    """Return how many epochs become one: a number, or a length such as ``1d``."""
    length = format_length(epochs.length)
    if text.isascii() and text.isdigit():
        joined, rest = int(text), False
    else:
        joined, left = divmod(parse_length(text), epochs.length)
        rest = bool(left)
    if rest or not least <= joined <= epochs.n:
        most = format_length(epochs.n * epochs.length)
        longer = "longer than that and " if least > 1 else ""
        raise InputError(
            f"{epochs} cannot become epochs of {text}",
            fix=f"Give a multiple of {length}, {longer}{most} at most, or how many become one",
        )
    return joined


def merged_regions(text: str, regions: Regions) -> tuple[tuple[int, ...], tuple[str, ...] | None]:
    """Return the new number of each region, and the names of the new ones if they have some.

    A number says how many neighbours become one. Anything else is a file that says which group each
    region belongs to. Of flows, these are the regions at both ends.
    """
    if isinstance(regions, Pairs):
        of_places, named = merged_regions(text, regions.places)
        names_of_pairs = None if named is None else regions.names(of_places, named)
        return regions.joined(of_places), names_of_pairs
    if text.isascii() and text.isdigit():
        return regions.in_groups_of(int(text)), None
    if not re.search(r"[^\W\d]", text):
        problem = f"{quote(text)} is neither a whole number nor a file (`regions`)"
        raise InputError(problem, fix="Write it like regions=4 or regions=districts.csv")
    path = Path(text)
    pairs = read_pairs(path, ("region", "group")).drop_nulls().unique(maintain_order=True)
    group_of: Mapping[str, str] = dict(pairs.iter_rows())
    if len(group_of) < pairs.height:
        fix = "Give each region one group"
        raise RecordsError("has regions in several groups", where=path, fix=fix)
    missing = [region for region in regions.ids if region not in group_of]
    if missing:
        problem = f"has no group for {len(missing)} of {len(regions)} regions"
        fix = f"Add them, such as {quote(missing[0])}, with the ids of the traces"
        raise EmptyError(problem, where=path, fix=fix)
    names, new = np.unique([group_of[region] for region in regions.ids], return_inverse=True)
    return tuple(new.tolist()), tuple(names.tolist())
