"""What commands share when they talk to a person: tables, progress, errors."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whosthere.progress import Move

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


_WIDTH_OF_NAMES = 26


def say(text: str) -> None:
    """Print a line; nothing in it is taken for markup."""
    out.print(text, markup=False)


def complain(text: str) -> None:
    """Print what went wrong to the error stream."""
    err.print(f"[bold red]error:[/] {escape(text)}")


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers stand on the right, all else on the left."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(
        title=Text(title) if title else None,
        title_justify="left",
        title_style="bold",
        show_header=any(header),
    )
    for i, name in enumerate(header):
        numeric = any(isinstance(row[i], int | float) for row in rows)
        # Names are hard to read in pieces, so that the first column gives way last.
        longest = max((len(str(row[i])) for row in rows), default=0) if i == 0 else 0
        grid.add_column(
            Text(name),
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=min(longest, _WIDTH_OF_NAMES) or None,
        )
    for row in rows:
        grid.add_row(*(Text(_shown(value)) for value in row))
    out.print(grid)


def heading(text: str) -> None:
    """Print a heading, with a line left free before it."""
    out.print(f"\n[bold]{escape(text)}[/]")


def entry(name: str, meaning: str, *, indent: int = 2, width: int = 28) -> None:
    """Print a name and what it means, side by side, wrapped to the width of the terminal."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=width, max_width=width, overflow="fold")
    grid.add_column(overflow="fold")
    style = "bold" if indent == 2 else ""
    grid.add_row(Text(" " * indent + name, style=style), Text(meaning))
    out.print(grid)


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
def steps(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal, a line now and then elsewhere; give the function that moves it."""
    if sys.stderr.isatty():
        with progress() as move:
            yield lambda done, total: move(what, done, total)
        return
    import time

    begun, first, last_said = time.monotonic(), -1, -1

    def say_now_and_then(done: int, total: int) -> None:
        nonlocal first, last_said
        if first < 0:
            first = done
        tenth = 10 * done // max(total, 1)
        if tenth == last_said:
            return
        last_said = tenth
        left = ""
        if first < done < total:
            seconds = (time.monotonic() - begun) / (done - first) * (total - done)
            left = f", about {duration(seconds)} left"
        err.print(f"{done} of {total} {what} done{left}", markup=False)

    yield say_now_and_then


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


_COLOURS = {"accept": "green", "reject": "red"}


def verdict(decision: str, about: str) -> None:
    """Print a decision, in its colour, and what it is about."""
    colour = _COLOURS.get(decision, "yellow")
    out.print(f"  [bold {colour}]{decision.upper()}[/]  {escape(about)}")


@contextmanager
def narrator() -> Iterator[Callable[[str], None]]:
    """Give a function that says what goes on: in place on a terminal, as lines elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: err.print(text, markup=False)
        return
    with err.status("") as status:
        yield lambda text: status.update(escape(text))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something goes on, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    with err.status(what):
        yield


def print_json(value: dict[str, Any]) -> None:
    """Print strict JSON to the output stream, with no decoration."""
    import json

    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")
