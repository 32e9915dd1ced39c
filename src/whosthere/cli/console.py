"""What commands share when they talk to a person: tables, progress, errors."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.table import Table

    from whosthere.progress import Move
    from whosthere.search.trials import TrialProgress

out = Console(highlight=False, markup=False, emoji=False)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)


_WIDTH_OF_NAMES = 26
_WIDTH_OF_NAMES_IN_NEED = 16
_WIDEST = 10_000
_SECONDS_BETWEEN_LINES = 30.0
# What changes how a terminal shows the text around it: controls, and marks of direction.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def inert(text: str) -> str:
    """Return text from anywhere so that a terminal only shows it; the rest is seen as escapes."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str) -> None:
    """Print a line; nothing in it is taken for markup. On a terminal it is wrapped at words."""
    _print(out, Text(inert(text)))


def complain(text: str) -> None:
    """Print what went wrong to the error stream."""
    _print(err, Text.assemble(("error:", "bold red"), " ", inert(text)))


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=not console.is_terminal)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers stand on the right, all else on the left."""
    from rich.table import Table

    grid = Table(
        title=Text(inert(title)) if title else None,
        title_justify="left",
        title_style="bold",
        show_header=any(header),
    )
    for i, name in enumerate(header):
        numeric = any(isinstance(row[i], int | float) for row in rows)
        # Names are hard to read in pieces, so that the first column gives way last.
        longest = max((len(str(row[i])) for row in rows), default=0) if i == 0 else 0
        grid.add_column(
            Text(inert(name)),
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=min(longest, _WIDTH_OF_NAMES) or None,
        )
    for row in rows:
        grid.add_row(*(Text(inert(_shown(value))) for value in row))
    if out.is_terminal:
        _fit(grid, out.width)
    out.print(grid, soft_wrap=not out.is_terminal)


def _fit(grid: Table, width: int) -> None:
    """Make a table narrower that is too wide, so that no column is cut off."""

    def too_wide() -> bool:
        return grid.__rich_measure__(out, out.options.update(max_width=_WIDEST)).minimum > width

    if too_wide():
        grid.padding = (0, 0)
    if too_wide() and grid.columns:
        grid.columns[0].min_width = _WIDTH_OF_NAMES_IN_NEED


def heading(text: str) -> None:
    """Print a heading, with a line left free before it."""
    _print(out, Text.assemble("\n", (inert(text), "bold")))


def entry(name: str, meaning: str, *, indent: int = 2, width: int = 28) -> None:
    """Print a name and what it means, side by side, wrapped to the width of the terminal."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=width, max_width=width, overflow="fold")
    grid.add_column(overflow="fold")
    style = "bold" if indent == 2 else ""
    grid.add_row(Text(" " * indent + inert(name), style=style), Text(inert(meaning)))
    out.print(grid, soft_wrap=not out.is_terminal)


def _shown(value: object) -> str:
    if value is None:
        return "not defined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


@contextmanager
def progress() -> Iterator[Move]:
    """Show a bar on a terminal, nothing elsewhere; give the function that moves it."""
    from whosthere.progress import progress as bar

    with bar(err) as move:
        yield move


@contextmanager
def steps() -> Iterator[Move]:
    """Show bars on a terminal, a line now and then elsewhere; give the function that moves them."""
    if sys.stderr.isatty():
        with progress() as move:
            yield move
        return
    import time

    begun: dict[str, tuple[float, int]] = {}
    last_done: dict[str, int] = {}
    last_said: dict[str, int] = {}

    def say_now_and_then(what: str, done: int, total: int | None) -> None:
        if done < last_done.get(what, done):
            del begun[what]  # It begins anew, as in the next experiment of a study.
        last_done[what] = done
        start, first = begun.setdefault(what, (time.monotonic(), done))
        most = total or 1
        tenth = 10 * done // most
        if tenth == last_said.get(what):
            return
        last_said[what] = tenth
        left = ""
        if first < done < most:
            seconds = (time.monotonic() - start) / (done - first) * (most - done)
            left = f", about {duration(seconds)} left"
        _print(err, Text(inert(f"{done} of {most} {what} done{left}")))

    yield say_now_and_then


@contextmanager
def trials() -> Iterator[Callable[[TrialProgress], None]]:
    """Show a bar for each trial on a terminal, lines elsewhere; give the function that moves it."""
    if sys.stderr.isatty():
        from whosthere.progress import progress as bar

        with bar(err, one_bar=True) as move:
            yield lambda now: move(now.title, now.done, now.total)
        return
    import time

    number, last_said = 0, 0.0

    def say_now_and_then(now: TrialProgress) -> None:
        nonlocal number, last_said
        if now.number == number and time.monotonic() - last_said < _SECONDS_BETWEEN_LINES:
            return
        number, last_said = now.number, time.monotonic()
        _print(err, Text(inert(str(now))))

    yield say_now_and_then


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


_COLOURS = {"accept": "green", "reject": "red"}


def verdict(decision: str, about: str, *, useless: bool = False) -> None:
    """Print a decision, in its colour unless nothing worth publishing is left, and its object."""
    colour = "yellow" if useless else _COLOURS.get(decision, "yellow")
    shown = Text.assemble("  ", (decision.upper(), f"bold {colour}"), "  ", inert(about))
    _print(out, shown)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something goes on, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    with err.status(Text(inert(what))):
        yield


def print_json(value: dict[str, Any]) -> None:
    """Print strict JSON to the output stream, with no decoration."""
    import json

    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")
