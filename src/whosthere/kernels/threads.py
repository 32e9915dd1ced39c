"""Threads for compiled loops, which let go of the interpreter's lock."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Result = TypeVar("_Result")
_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep to one thread, where other processes use the other processors."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def in_parts(work: Callable[[int, int], _Result], n: int) -> list[_Result]:
    """Do work on ranges from 0 to n, one for each processor, and return the results in order.

    Work is given the first number of a range and the one after its last.
    """
    n_parts = 1 if _alone.get() else max(min(usable_processors(), n), 1)
    ends = [n * i // n_parts for i in range(n_parts + 1)]
    if n_parts == 1:
        return [work(0, n)]
    with ThreadPoolExecutor(n_parts) as pool:
        return list(pool.map(lambda ends: work(*ends), pairwise(ends)))


def usable_processors() -> int:
    """Return how many processors this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1
