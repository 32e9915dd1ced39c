"""Larger regions, longer epochs and larger groups, as further choices of a search.

Under suppression a coarser table can be riskier than a finer one. So nothing is concluded from one
coarsening about another: each combination is searched by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from whosthere.errors import InputError
from whosthere.privacy.scheme import ORDINARY, Layout
from whosthere.privacy.table_words import joined_epochs, merged_regions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whosthere.data.traces import Traces


@dataclass(frozen=True)
class Coarsening:
    """What is larger than it was asked for."""

    words: str = ""
    """As a user writes it, such as ``epochs=4h, regions=4``; empty if nothing is larger."""
    layout: Layout = ORDINARY
    """The cells of the table. ``layout(traces)`` are the traces to publish."""
    group_size: int | None = None
    """How many people are in a release; None for as many as were asked for."""

    def of(self, what: str) -> str:
        """Return a mechanism or a family with what is larger."""
        return f"{what}, {self.words}" if self.words else what


AS_ASKED = Coarsening()
"""Nothing is larger."""


def coarsenings(given: Iterable[str], traces: Traces, group_size: int) -> tuple[Coarsening, ...]:
    """Return every combination of what may be larger, with the one where nothing is first.

    Each text names what may be larger, and values: ``epochs=4h,1d``, ``regions=2,4`` (so many
    neighbours become one; or a file of groups) or ``group_size=5000``.
    """
    readers: dict[str, Callable[[str], Any]] = {
        "epochs": lambda text: joined_epochs(text, traces.epochs, least=2),
        "regions": lambda text: merged_regions(text, traces.regions),
        "group_size": lambda text: _larger(_whole(text), group_size),
    }
    chosen: dict[str, dict[str, Any]] = {name: {"": None} for name in readers}
    for text in given:
        name, _, values = text.replace(" ", "").partition("=")
        name = name.replace("-", "_")
        if name not in readers or not values:
            raise InputError(
                f"{text!r} does not say what may be larger (`coarsen`)",
                fix="Write it like epochs=4h,1d or regions=2,4 or group_size=5000",
            )
        chosen[name] |= {f"{name}={one}": readers[name](one) for one in values.split(",")}
    made: dict[tuple[Layout, int | None], Coarsening] = {}
    for parts in product(*(one.items() for one in chosen.values())):
        words = ", ".join(part for part, _ in parts if part)
        epochs, regions, size = (value for _, value in parts)
        merged, names = regions or (None, None)
        layout = Layout(merged, epochs or 1, names=names)
        made.setdefault((layout, size), Coarsening(words, layout, size))
    return tuple(made.values())


def _larger(size: int, group_size: int) -> int:
    if size <= group_size:
        raise InputError(
            f"groups of {size} are not larger than {group_size} (`coarsen`)",
            fix=f"Give more than {group_size}, or another group size (`group_size`)",
        )
    return size


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InputError(f"{text!r} is not a whole number (`coarsen`)", fix="Write it like 4")
    return int(text)
