"""What functions are given: choices as keywords, and traces of any form."""

from __future__ import annotations

import inspect
import sys
import tempfile
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from whosthere.auditing.choices import choices_of
from whosthere.auditing.records import traces_file, what_was_read
from whosthere.data.traces import Traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from whosthere.auditing.policy import Policy
    from whosthere.auditing.result import AuditResult
    from whosthere.data.frames import AnyPath, Frame


Reported: TypeAlias = "AuditResult | AnyPath"
TracesLike: TypeAlias = "Traces | AnyPath | Frame"
PolicyLike: TypeAlias = "Policy | AnyPath | Mapping[str, float] | None"

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def takes(declared: type) -> Callable[[_Function], _Function]:
    """Let a function take the choices that a class declares, and no other keywords."""

    def with_choices(function: _Function) -> _Function:
        *own, _ = inspect.signature(function).parameters.values()
        chosen = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in choices_of(declared)
        ]
        signature = inspect.Signature([*own, *chosen])

        @wraps(function)
        def call(*positional: Any, **keywords: Any) -> Any:  # noqa: ANN401
            signature.bind(*positional, **keywords)
            return function(*positional, **keywords)

        call.__signature__ = signature  # type: ignore[attr-defined]
        return cast("_Function", call)

    return with_choices


def compiling_is_said() -> AbstractContextManager[None]:
    """Say once that kernels are compiled.

    Before several processes begin, each attack is tried in this one: they load what it compiled.
    """
    from whosthere.kernels.compiling import said_once  # noqa: PLC0415 - loads the compiler

    return said_once(lambda text: print(text, file=sys.stderr))


def loaded(traces: TracesLike) -> Traces:
    """Return traces of any form."""
    if isinstance(traces, Traces):
        return traces
    with as_file(traces) as (path, read):
        return Traces.load(path) if read is None else read


@contextmanager
def as_file(traces: TracesLike, out: AnyPath | None = None) -> Iterator[tuple[Path, Traces | None]]:
    """Give the file of traces, and the traces if they were made of records just now.

    Those in memory, and of records, are written to a file for as long as it is needed.
    """
    if not isinstance(traces, Traces):
        with traces_file(traces, out) as (path, read):
            if read is not None:
                print(*what_was_read(read), sep="\n", file=sys.stderr)
            yield path, read
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.parquet"
        traces.save(path)
        yield path, None
