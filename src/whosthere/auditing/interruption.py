"""How an audit stops that a user or a lost machine interrupts: nothing is lost, or judged."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from whosthere.errors import LostWorkersError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from whosthere.auditing.store import RunFolder


class InterruptedAudit(KeyboardInterrupt):
    """The user stopped an audit; what was done is kept."""


@contextmanager
def resumable(
    folder: RunFolder, done: Callable[[], int], total: int
) -> Iterator[Callable[[], None]]:
    """Tell a user whose audit stops what is kept.

    Gives a function that ends the audit if somebody asked for it. Compiled code turns the interrupt
    that Python raises in it into an error of another kind, or loses it, so that whatever came of a
    moment in which a signal arrived counts as interrupted.
    """
    with _signals() as arrived:

        def stop_if_asked() -> None:
            if arrived:
                raise KeyboardInterrupt

        try:
            yield stop_if_asked
            stop_if_asked()
        except (KeyboardInterrupt, Exception) as error:
            asked = bool(arrived) or isinstance(error, KeyboardInterrupt)
            if not asked and not isinstance(error, LostWorkersError):
                raise
            kind, why = (InterruptedAudit, "interrupted") if asked else (type(error), str(error))
            folder.log(why)
            kept = f"{done()} of {total} tasks are done and kept"
            raise kind(f"{why}; {kept}. The same command resumes there") from None


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Note the signals to stop that arrive, beside whatever is done about them already."""
    arrived: list[int] = []
    before = {}
    # Others than the main thread cannot be interrupted.
    if threading.current_thread() is threading.main_thread():
        before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    heard = [one for one, handler in before.items() if callable(handler)]
    for one in heard:
        signal.signal(one, note)
    try:
        yield arrived
    finally:
        for one in heard:
            signal.signal(one, before[one])
