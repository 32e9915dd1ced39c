"""How far work has come: a bar on a terminal or in a notebook, lines or nothing elsewhere."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from whosthere.display import duration, inert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.progress import Task

Move: TypeAlias = "Callable[[str, int, int | None], None]"
"""Called with what is done, how much of it is done, and how much there is, if that is known."""


@contextmanager
def progress(
    console: Console | None = None, *, one_bar: bool = False, lines_every: float | None = None
) -> Iterator[Move]:
    """Give the function that moves the bar.

    On a terminal each thing that is done has a bar of its own, or takes the place of the one
    before if there is to be `one_bar`; a notebook has one in any case. Where there is neither, a
    line is printed at each tenth of the work, but not before `lines_every` seconds have passed,
    which double with each line; none if that is None.
    """
    if in_notebook():
        yield _notebook_bar()
    elif sys.stderr.isatty() or lines_every is not None:
        with _bars(console, one_bar=one_bar, lines_every=lines_every or 0) as move:
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
def _bars(console: Console | None, *, one_bar: bool, lines_every: float) -> Iterator[Move]:
    from rich import progress as rich  # noqa: PLC0415 - slow import
    from rich.console import Console  # noqa: PLC0415

    console = console or Console(stderr=True)
    bars = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    tasks: dict[str, Task] = {}
    nothing_said: dict[str, Any] = {"tenth": -1}
    said_at, wait = -math.inf, lines_every

    def move(what: str, done: int, total: int | None) -> None:
        if what not in tasks:
            if one_bar:
                for task in tasks.values():
                    bars.remove_task(task.id)
                tasks.clear()
            bars.add_task(what, total=total, first=done, **nothing_said)
            tasks[what] = bars.tasks[-1]
        task = tasks[what]
        if done < task.completed:
            # It begins anew, as in the next experiment of a study.
            bars.reset(task.id, first=done, **nothing_said)
        bars.update(task.id, completed=done, total=total)
        if bars.disable:
            _say(task, done, total or 1)

    def _say(task: Task, done: int, most: int) -> None:
        nonlocal said_at, wait
        tenth, now = 10 * done // most, task.get_time()
        if tenth == task.fields["tenth"] or now - said_at < wait:
            return
        task.fields.update(tenth=tenth)
        # However long the work takes, there are few lines.
        said_at, wait = now, 2 * wait if said_at > -math.inf else wait
        left, first = "", task.fields["first"]
        if first < done < most:
            seconds = (task.elapsed or 0) / (done - first) * (most - done)
            left = f", about {duration(seconds)} left"
        line = inert(f"{task.description}: {done} of {most} done{left}")
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    with bars:
        yield move
