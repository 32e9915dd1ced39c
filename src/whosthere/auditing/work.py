"""Who does the tasks of an audit: this process, several on this machine, or a cluster.

Processes are started by loky, not forked: numba, polars and BLAS run threads, and a fork of a
thread that holds a lock can hang. A process that dies (mostly for lack of memory) takes the whole
pool with it. All tasks of that pool are tried once more, one at a time: there the one that kills
stands out, and is reported as failed.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from loky import ProcessPoolExecutor
from loky.process_executor import TerminatedWorkerError

from whosthere.auditing.manifest import versions
from whosthere.data.files import fingerprint
from whosthere.data.traces import Traces
from whosthere.errors import InputError, LostWorkersError, optional
from whosthere.game.leaks import leaks_of
from whosthere.game.rounds import Population, Task
from whosthere.game.scoring import NOTHING, Scored, TaskScores, score_task
from whosthere.kernels.threads import one_thread, usable_processors
from whosthere.specs import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from whosthere.game.plan import Plan

_DIED = "its worker process died twice, perhaps for lack of memory"
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_CONNECT = 15
_LOST = "the cluster cancelled tasks, or the connection to it was lost"
# Workers keep the traces, so they outgrow what loky takes for a leak and would be started anew.
_NO_RECYCLING = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}


@dataclass(frozen=True)
class Job:
    """What workers must know besides the task.

    They read the traces by their path, and refuse another content or other versions of the
    software. If the tasks are to find leaks (`whosthere.game.leaks`) and not to score rounds,
    `others` are the people to look at besides each target. `done` says how much of each task is
    done already, where an audit is extended.
    """

    plan: Plan
    traces: str
    traces_fingerprint: str
    versions: dict[str, str]
    others: tuple[tuple[int, ...], ...] | None = None
    done: Scored = NOTHING

    @classmethod
    def on(cls, plan: Plan, traces: Path) -> Self:
        """Return the job to do a plan on a file of traces, as it and the software are now."""
        return cls(plan, str(traces.absolute()), fingerprint(traces), versions())


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a task: its scores, or why there are none.

    Where leaks were to be found, their table stands in place of the scores. `everybody` has the
    scores of all who are asked, where that is more than the targets.
    """

    task: Task
    scores: pl.DataFrame | None
    failure: str = ""
    everybody: pl.DataFrame | None = None

    @property
    def of_task(self) -> TaskScores | None:
        """All scores of the task; None if it failed."""
        return None if self.scores is None else TaskScores(self.scores, self.everybody)


class Workers(ABC):
    """Somebody who does tasks."""

    @abstractmethod
    def do(self, job: Job, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Do the tasks in any order, and hand each one over as soon as it is done."""

    def close(self) -> None:  # noqa: B027 - there may be nothing to let go of
        """Let go of everything, at once if work is still going on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ThisProcess(Workers):
    """Does one task after the other, here."""

    def do(self, job: Job, tasks: Sequence[Task]) -> Iterator[Outcome]:
        for task in tasks:
            yield work_on(job, task)


class LocalProcesses(Workers):
    """Does tasks in several processes on this machine.

    They are fresh interpreters that do not import the caller's script again, so that scripts need
    no guard and attacks that were written in a notebook can be used.
    """

    def __init__(self, n: int) -> None:
        if n < 1:
            raise InputError(f"{n} workers can do nothing", fix="Give at least 1")
        self._n = n
        self._pool: ProcessPoolExecutor | None = None

    def do(self, job: Job, tasks: Sequence[Task]) -> Iterator[Outcome]:
        died: list[Task] = []
        for task, outcome in self._side_by_side(job, tasks, self._n):
            if outcome is None:
                died.append(task)
            else:
                yield outcome
        # One death takes all tasks in work with it; alone, the one that causes it stands out.
        for task, outcome in self._side_by_side(job, died, 1):
            yield outcome or Outcome(task, None, _DIED)

    def _side_by_side(
        self, job: Job, tasks: Sequence[Task], n: int
    ) -> Iterator[tuple[Task, Outcome | None]]:
        """Do the tasks, n at a time; without an outcome where a process died."""
        waiting = deque(tasks)
        running: dict[Future[Outcome], Task] = {}
        while waiting or running:
            while waiting and len(running) < n:
                task = waiting.popleft()
                running[self._submitted(job, task)] = task
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                task = running.pop(future)
                try:
                    yield task, future.result()
                except TerminatedWorkerError:
                    yield task, None
                except LostWorkersError:
                    raise
                except Exception as error:
                    yield task, Outcome(task, None, f"it cannot be sent to a worker: {error}")

    def _submitted(self, job: Job, task: Task) -> Future[Outcome]:
        """Give a task to the processes, or to new ones if one of these has died."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._n, initializer=_depend_on_parent, initargs=(os.getpid(),), env=_NO_RECYCLING
            )
        try:
            future: Future[Outcome] = self._pool.submit(work_on, job, task)
        except BrokenProcessPool:
            self._pool = None
            return self._submitted(job, task)
        return future

    def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.shutdown(wait=True, kill_workers=True)


class DaskCluster(Workers):
    """Does tasks on the workers of a running Dask scheduler, such as ``tcp://10.0.0.1:8786``.

    The workers need the same version of whosthere, and the traces at the same path.
    """

    def __init__(self, address: str) -> None:
        client = optional("distributed", "A cluster", "cluster").Client
        try:
            self._client: Any = client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {address}",
                fix="Start one with `dask scheduler`, and give the address that it prints",
            ) from error

    def do(self, job: Job, tasks: Sequence[Task]) -> Iterator[Outcome]:
        from distributed import as_completed  # noqa: PLC0415 - an optional extra

        try:
            self._client.wait_for_workers(1)
            for worker, found in self._client.run(versions).items():
                if found != job.versions:
                    problem = f"the worker {worker} has {found}, the audit {job.versions}"
                    raise InputError(problem, fix="Install the same versions on all workers")
            task_of = {self._client.submit(work_on, job, task, pure=False): task for task in tasks}
            for future in as_completed(task_of, loop=self._client.loop):
                task = task_of.pop(future)
                if future.status == "finished":
                    yield future.result()
                elif future.cancelled():
                    raise LostWorkersError(_LOST)
                elif isinstance(error := future.exception(), LostWorkersError):
                    raise error
                else:
                    yield Outcome(task, None, str(error))
        except (OSError, TimeoutError) as error:
            raise LostWorkersError(_LOST) from error

    def close(self) -> None:
        self._client.close()


def chosen_workers(given: int | str | Workers | None = None) -> Workers:
    """Return that many processes of this machine, or the cluster with an address.

    By default there is a process for each processor; one is this process itself.
    """
    if isinstance(given, Workers):
        return given
    if isinstance(given, str):
        return DaskCluster(given)
    n = usable_processors() if given is None else whole(given, "`workers`")
    return ThisProcess() if n == 1 else LocalProcesses(n)


def work_on(job: Job, task: Task) -> Outcome:
    """Do a task in this process; an error of the task is reported, not raised."""
    if versions() != job.versions:
        raise LostWorkersError(f"a worker has {versions()}, the audit {job.versions}")
    people = _population(job.traces, job.traces_fingerprint, job.plan.first_epoch)
    try:
        with one_thread():
            if job.others is None:
                scores = score_task(people, job.plan, task, job.done)
                return Outcome(task, scores.targets, everybody=scores.everybody)
            others = dict(zip(job.plan.targets, job.others, strict=False)).get(task.number, ())
            return Outcome(task, leaks_of(people, job.plan, task, others))
    except Exception:  # whatever it is, the other tasks continue
        return Outcome(task, None, traceback.format_exc())


@lru_cache(maxsize=1)
def _population(path: str, expected: str, first_epoch: int) -> Population:
    """Read the traces once for each worker process."""
    try:
        if fingerprint(Path(path)) == expected:
            return Population.of(Traces.load(path), first_epoch)
    except InputError as error:
        raise LostWorkersError(str(error).rstrip(".")) from error
    raise LostWorkersError(f"{path} has changed since the audit began, or is another file here")


def _depend_on_parent(parent: int) -> None:
    """Leave Ctrl-C to the process that started this one, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
