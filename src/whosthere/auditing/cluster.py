"""Running tasks on a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whosthere.auditing.work import Job, Outcome, Workers, work_on
from whosthere.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.game.rounds import Task

_SECONDS_TO_CONNECT = 15
_LOST = "the cluster cancelled it, or the connection to the cluster was lost"


class DaskCluster(Workers):
    """Runs tasks on the workers of a running Dask scheduler.

    The workers need the same version of whosthere, and the traces at the same path.

    Parameters
    ----------
    address
        The address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client  # noqa: PLC0415 - an optional extra
        except ImportError:
            raise MissingExtraError("A cluster", "cluster") from None
        try:
            self._client: Any = Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {address}",
                fix="Start one with `dask scheduler`, and give the address that it prints",
            ) from error

    def do(self, job: Job, tasks: Sequence[Task]) -> Iterator[Outcome]:
        from distributed import as_completed  # noqa: PLC0415 - an optional extra

        task_of = {self._client.submit(work_on, job, task, pure=False): task for task in tasks}
        for future in as_completed(task_of, loop=self._client.loop):
            task = task_of.pop(future)
            if future.status == "finished":
                yield future.result()
            else:
                lost = future.cancelled()
                yield Outcome(task, None, _LOST if lost else str(future.exception()))

    def close(self) -> None:
        self._client.close()
