"""Threads: of compiled loops, which let go of the interpreter's lock, and of libraries."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Result = TypeVar("_Result")
_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep to one thread, where others use the other processors or there is little to do at once.

    A library that starts threads for small matrices lets them wait busily, for longer than the work
    takes.
    """
    token = _alone.set(True)
    try:
        with _libraries(len(sys.modules)).limit(limits=1):
            yield
    finally:
        _alone.reset(token)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:  # noqa: ARG001 - asked for as a key
    """Find the libraries that start threads: again once more modules are loaded, and so others."""
    return ThreadpoolController()


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
