"""How far work has come: a bar on a terminal or in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

Move: TypeAlias = "Callable[[str, int, int | None], None]"
"""Called with what is done, how much of it is done, and how much there is, if that is known."""


@contextmanager
def progress(console: Console | None = None, *, one_bar: bool = False) -> Iterator[Move]:
    """Give the function that moves the bar.

    On a terminal each thing that is done has a bar of its own, or takes the place of the one
    before if there is to be `one_bar`; a notebook has one in any case.
    """
    if in_notebook():
        yield _notebook_bar()
    elif sys.stderr.isatty():
        with _terminal_bar(console, one_bar=one_bar) as move:
            yield move
    else:
        yield lambda *_: None


def in_notebook() -> bool:
    """Tell whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _notebook_bar() -> Move:
    # There in a notebook only, and without types.
    module: Any = import_module("IPython.display")
    HTML, display = module.HTML, module.display  # noqa: N806 - as IPython calls it

    handle = display(HTML(""), display_id=True)

    def move(what: str, done: int, total: int | None) -> None:
        most = "" if total is None else f' max="{total}"'
        shown = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        bar = f'<progress value="{done}"{most}></progress> {shown} {escape(what)}'
        handle.update(HTML("" if done == total else bar))

    return move


@contextmanager
def _terminal_bar(console: Console | None, *, one_bar: bool) -> Iterator[Move]:
    from rich.console import Console  # noqa: PLC0415 - slow import
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console or Console(stderr=True),
        transient=True,
    )
    tasks: dict[str, TaskID] = {}
    last_done: dict[str, int] = {}

    def move(what: str, done: int, total: int | None) -> None:
        if what not in tasks:
            if one_bar:
                for task in tasks.values():
                    bars.remove_task(task)
                tasks.clear()
            tasks[what] = bars.add_task(what, total=total)
        if done < last_done.get(what, done):
            bars.reset(tasks[what])  # It begins anew, as in the next experiment of a study.
        last_done[what] = done
        bars.update(tasks[what], completed=done, total=total)

    with bars:
        yield move
