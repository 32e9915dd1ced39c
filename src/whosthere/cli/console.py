"""What commands share when they talk to a person: tables, progress, errors."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from whosthere import progress as moving
from whosthere.display import counted, duration, inert
from whosthere.errors import AuditFailedError, LostWorkersError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rich.status import Status
    from rich.table import Table

out = Console(highlight=False, markup=False, emoji=False)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)
_WIDTH_OF_NAMES = 26
_WIDTH_OF_NAMES_IN_NEED = 16
_WIDEST = 10_000
_SECONDS_BETWEEN_LINES = 30.0


def say(*lines: str, begin: str = "") -> None:
    """Print lines, each with its beginning; on a terminal they are wrapped at words.

    Nothing in them is taken for markup.
    """
    for line in lines:
        _print(out, Text(inert(begin + line)))


def complain(text: str) -> None:
    """Print what went wrong to the error stream."""
    _print(err, Text.assemble(("error:", "bold red"), " ", inert(text)))


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=not console.is_terminal)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, with numbers on the right and everything else on the left."""
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
        first = [line for row in rows for line in str(row[0]).split("\n")] if i == 0 else []
        longest = max(map(len, first), default=0)
        grid.add_column(
            Text(inert(name)),
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=min(longest, _WIDTH_OF_NAMES) or None,
        )
    for row in rows:
        grid.add_row(*(Text(inert(_shown(value))) for value in row))
    if out.is_terminal and not _fit(grid, out.width):
        _one_below_another(title, header, rows)
    else:
        out.print(grid, soft_wrap=not out.is_terminal)


def _one_below_another(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table for which a terminal is too narrow, a line for each cell that is not empty."""
    say(*filter(None, [title]))
    for row in rows:
        for i, (name, value) in enumerate(zip(header, map(_shown, row), strict=True)):
            begin = "- " if i == 0 else "  "
            if value:
                say(f"{begin}{name}: {' '.join(value.split())}" if name else begin + value)


def _fit(grid: Table, width: int) -> bool:
    """Make a table narrower that is too wide, and tell whether no column is cut off then."""

    def too_wide() -> bool:
        return grid.__rich_measure__(out, out.options.update(max_width=_WIDEST)).minimum > width

    if too_wide():
        grid.padding = (0, 0)
    if too_wide() and grid.columns:
        names = grid.columns[0]
        names.width = min(names.min_width or 0, _WIDTH_OF_NAMES_IN_NEED) or None
    return not too_wide()


def heading(text: str) -> None:
    """Print a heading after an empty line."""
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


def expected(seconds: float, parts: int, workers: int | None, cluster: str | None) -> str:
    """Say how long so many parts take, given the seconds of one processor for all of them."""
    from whosthere.kernels.threads import usable_processors

    if cluster:
        return f"about {duration(seconds)} with one worker of the cluster"
    n = workers or usable_processors()
    return f"about {duration(seconds / max(min(n, parts), 1))} with {counted(n, 'worker')}"


_COLOURS = {"accept": "green", "reject": "red"}


def verdict(decision: str, about: str, *, useless: bool = False, width: int = 0) -> None:
    """Print a decision, in its colour unless nothing worth publishing is left, and its object."""
    colour = "yellow" if useless else _COLOURS.get(decision.lower(), "yellow")
    label = decision.upper().ljust(width)
    _print(out, Text.assemble("  ", (label, f"bold {colour}"), "  ", inert(about)))


def beneath(text: str, *, indent: int) -> None:
    """Print what belongs to the line above, further to the right."""
    lines = wrap(inert(text), out.width - indent) if out.is_terminal else [inert(text)]
    for line in lines:
        _print(out, Text(" " * indent + line, style="dim"))


def side_by_side(parts: Sequence[str], *, indent: int) -> None:
    """Print parts in a line, or in several where the terminal is narrow; none is broken."""
    lines: list[str] = []
    for part in map(inert, parts):
        if lines and len(lines[-1]) + len(part) + 3 + indent <= out.width:
            lines[-1] += f"   {part}"
        else:
            lines.append(part)
    for line in lines:
        _print(out, Text(" " * indent + line))


def working(what: str) -> Status:
    """Show on a terminal that work is in progress, nothing elsewhere."""
    return err.status(Text(inert(what)))


@contextmanager
def trying(what: str) -> Iterator[None]:
    """Show the same, and say in any case if it takes long because kernels are compiled."""
    from whosthere.kernels.compiling import said_once

    with working(what), said_once(lambda text: _print(err, Text(text))):
        yield


def progress(*, one_bar: bool = False) -> AbstractContextManager[moving.Move]:
    """Show how far work has come; where there is no terminal, by few lines."""
    return moving.progress(err, one_bar=one_bar, lines_every=_SECONDS_BETWEEN_LINES)


@contextmanager
def failures(log: Path) -> Iterator[Callable[[object, str], None]]:
    """Give a function to tell of tasks that failed: a line for each reason follows at the end."""
    by_reason: dict[str, list[object]] = {}
    try:
        yield lambda task, why: by_reason.setdefault(why.strip().splitlines()[-1], []).append(task)
    except LostWorkersError:
        raise
    except AuditFailedError:  # all of them did, and it says why
        by_reason.clear()
        raise
    finally:
        for why, tasks in by_reason.items():
            more = f" and {counted(len(tasks) - 1, 'other task')}" if len(tasks) > 1 else ""
            complain(f"{tasks[0]}{more} failed: {why} (more in {log})")


def result(value: dict[str, Any], show: Callable[[], None], *, json: bool) -> None:
    """Print a result: as JSON, or as `show` does for a person."""
    if json:
        print_json(value)
    else:
        show()


def print_json(value: dict[str, Any]) -> None:
    """Print strict JSON to the output stream, with no decoration."""
    import json

    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")
