"""Where units of work are done: in this process, in several on this machine, or on a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

from threadpoolctl import threadpool_limits

from whosthere.auditing.store import fingerprint, versions
from whosthere.auditing.unit import score_unit
from whosthere.data.traces import Traces
from whosthere.errors import FileError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from whosthere.auditing.plan import Plan, Unit

_DIED = "its worker process died twice, perhaps for lack of memory"


@dataclass(frozen=True)
class Job:
    """What workers must know beside the unit.

    Parameters
    ----------
    plan
        The plan.
    traces
        File of the traces; every worker reads it by this path.
    traces_fingerprint
        Of the file's content, so that no worker reads another one.
    versions
        Of the software, so that no worker uses another one.
    """

    plan: Plan
    traces: str
    traces_fingerprint: str
    versions: dict[str, str]

    @classmethod
    def on(cls, plan: Plan, traces: Path) -> Self:
        """Return the job to do a plan on a file of traces, as it and the software are now."""
        return cls(plan, str(traces.absolute()), fingerprint(traces), versions())


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a unit: its scores, or why there are none."""

    unit: Unit
    scores: pa.Table | None
    failure: str | None = None


class Workers(ABC):
    """Somebody who does units of work."""

    @abstractmethod
    def do(self, job: Job, units: Sequence[Unit]) -> Iterator[Outcome]:
        """Do the units in any order, and hand each one over as soon as it is done."""

    def close(self) -> None:  # noqa: B027 - there may be nothing to let go of
        """Let go of everything, at once if work is still going on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ThisProcess(Workers):
    """Does one unit after the other, here."""

    def do(self, job: Job, units: Sequence[Unit]) -> Iterator[Outcome]:
        """Do the units in their order."""
        for unit in units:
            yield work_on(job, unit)


class LocalProcesses(Workers):
    """Does units in several processes on this machine.

    Parameters
    ----------
    n
        How many processes.
    """

    def __init__(self, n: int) -> None:
        if n < 1:
            raise InputError(f"{n} workers can do nothing", fix="Give at least 1")
        self._n = n
        self._pool: ProcessPoolExecutor | None = None
        self._not_ours = set(multiprocessing.active_children())

    def do(self, job: Job, units: Sequence[Unit]) -> Iterator[Outcome]:
        """Do the units; one whose process dies is tried again, and then given up."""
        died: list[Unit] = []
        for unit, outcome in self._side_by_side(job, units, self._n):
            if outcome is None:
                died.append(unit)
            else:
                yield outcome
        # One death takes all units in work with it; alone, the one that causes it stands out.
        for unit, outcome in self._side_by_side(job, died, 1):
            yield outcome or Outcome(unit, None, _DIED)

    def _side_by_side(
        self, job: Job, units: Sequence[Unit], n: int
    ) -> Iterator[tuple[Unit, Outcome | None]]:
        """Do the units, n at a time; without an outcome where a process died."""
        waiting = deque(units)
        running: dict[Future[Outcome], Unit] = {}
        while waiting or running:
            while waiting and len(running) < n:
                unit = waiting.popleft()
                running[self._submitted(job, unit)] = unit
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                unit = running.pop(future)
                try:
                    yield unit, future.result()
                except BrokenProcessPool:
                    yield unit, None

    def _submitted(self, job: Job, unit: Unit) -> Future[Outcome]:
        """Give a unit to the processes, or to new ones if one of these has died."""
        try:
            return self._started().submit(work_on, job, unit)
        except BrokenProcessPool:
            self._pool = None
            return self._started().submit(work_on, job, unit)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # A fresh interpreter for each: forks of threads that hold a lock can hang.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._n, context, initializer=_depend_on_parent)
        return self._pool

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            for process in set(multiprocessing.active_children()) - self._not_ours:
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)


def work_on(job: Job, unit: Unit) -> Outcome:
    """Do a unit in this process; an error is told, not raised."""
    try:
        with threadpool_limits(1):
            if versions() != job.versions:
                raise RuntimeError(f"the worker has {versions()}, the audit {job.versions}")
            traces = _traces(job.traces, job.traces_fingerprint)
            return Outcome(unit, score_unit(traces, job.plan, unit))
    except Exception:  # whatever it is, the other units go on
        return Outcome(unit, None, traceback.format_exc())


@lru_cache(maxsize=1)
def _traces(path: str, expected: str) -> Traces:
    """Read the traces once for each worker process."""
    if fingerprint(Path(path)) != expected:
        raise FileError("has changed since the audit began, or is another file here", where=path)
    return Traces.load(path)


def _depend_on_parent() -> None:
    """Leave Ctrl-C to the process that started this one, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
