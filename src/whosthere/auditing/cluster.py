"""Units of work on a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whosthere.auditing.work import Job, Outcome, Workers, work_on
from whosthere.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.auditing.plan import Unit

_SECONDS_TO_CONNECT = 15
_LOST = "the cluster gave it up, or is lost"


class DaskCluster(Workers):
    """Does units on the workers of a running Dask scheduler.

    The workers need the same version of whosthere, and the traces under the same path.

    Parameters
    ----------
    address
        Of the scheduler, such as ``tcp://10.0.0.1:8786``.
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

    def do(self, job: Job, units: Sequence[Unit]) -> Iterator[Outcome]:
        """Do the units; those of a lost worker are done again by another."""
        from distributed import as_completed  # noqa: PLC0415 - an optional extra

        unit_of = {self._client.submit(work_on, job, unit, pure=False): unit for unit in units}
        for future in as_completed(unit_of, loop=self._client.loop):
            unit = unit_of.pop(future)
            if future.status == "finished":
                yield future.result()
            else:
                lost = future.cancelled()
                yield Outcome(unit, None, _LOST if lost else str(future.exception()))

    def close(self) -> None:
        """Leave the cluster; what is still going on there is given up."""
        self._client.close()
