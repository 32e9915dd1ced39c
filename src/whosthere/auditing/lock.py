"""Keeping two audits, searches or studies out of the same folder."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from whosthere.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK = ".lock"
"""The name of the lock file. It may stay behind in the folder, but then locks nothing."""


@contextmanager
def only_one(folder: Path, what: str = "audit") -> Iterator[None]:
    """Hold the lock of a folder, or refuse at once if somebody else holds it.

    The operating system releases the lock when the process ends, even if it is killed. The folder
    is created if it does not exist. `what` is at work in such a folder, for the message.
    """
    lock = FileLock(folder / LOCK, blocking=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise FileError(
            f"another {what} is at work in this folder",
            where=folder,
            fix="Wait until it has ended",
        ) from None
    except OSError as error:
        problem = f"cannot be written or locked ({error.strerror or error})"
        raise FileError(problem, where=folder, fix="Name another folder") from error
    try:
        yield
    finally:
        lock.release()
