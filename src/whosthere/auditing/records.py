"""Records in place of traces, where nothing has to be asked about them."""

from __future__ import annotations

from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, cast

from whosthere.auditing.loading import is_audit
from whosthere.auditing.store import KEPT
from whosthere.data.files import existing, read_metadata
from whosthere.data.frames import is_frame, path_of
from whosthere.data.reading.read import read_records
from whosthere.display import counted
from whosthere.errors import FileError, InputError, listed, quote
from whosthere.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from whosthere.data.frames import AnyPath, Frame
    from whosthere.data.traces import Traces


class UnclearRecordsError(InputError):
    """Records about which something has to be said before they can be read."""

    command: ClassVar[str] = "ingest"

    def __init__(self, error: InputError) -> None:
        fix = "" if error.fix is None else f"{error.fix.rstrip('.')}. "
        first = "Read them with `read_records` first, which has options for that, and "
        super().__init__(error.problem, where=error.where, fix=f"{fix}{first}give the traces")


@contextmanager
def traces_file(
    given: AnyPath | Sequence[AnyPath] | Frame,
    out: AnyPath | None = None,
    console: Console | None = None,
) -> Iterator[tuple[Path, Traces | None]]:
    """Give a file of traces, and the traces if they were made of records just now.

    Records are a frame, files, folders or a pattern such as ``records/*.csv``. The file that is
    made of them is there for as long as it is needed. The folder `out` must not lie among them,
    where it would be read as records when the audit resumes.
    """
    records: Frame | list[Path]
    if is_frame(given):
        records = given
    else:
        several = given if isinstance(given, list | tuple) else [cast("AnyPath", given)]
        records = [path for one in several for path in _matching(str(path_of(one)))]
        for path in filter(is_audit, records):
            fix = f"Name the traces or records that it was made from, or its {KEPT} if it has one"
            raise FileError("is the folder of an audit", where=path, fix=fix)
        for path in filter(_is_ours, records):
            if len(records) > 1:
                raise FileError("is no file of records", where=path, fix="Name traces alone")
            yield path, None
            return
        if out is not None and set(map(Path.resolve, records)) & {*Path(out).resolve().parents}:
            fix = "Name a folder outside of them"
            raise FileError("lies in a folder of records", where=out, fix=fix)
    try:
        with progress(console) as move:
            traces = read_records(records, progress=move)
    except InputError as error:
        # What can be said with an option is named in backquotes.
        if "`" in (error.fix or ""):
            raise UnclearRecordsError(error) from error
        raise
    with TemporaryDirectory() as folder:
        path = Path(folder) / KEPT
        traces.save(path)
        yield path, traces


def what_was_read(traces: Traces) -> Iterator[str]:
    """Say what records held, which columns were read, and all that must not be overlooked."""
    ledger = traces.ledger
    if ledger is None:
        return
    columns = ", ".join(f"{role} from {quote(name)}" for role, name in ledger.columns.items())
    yield (
        f"Read {counted(ledger.records_read, 'record')} of "
        f"{counted(ledger.users_read, 'person', 'people')} ({columns}): "
        f"{counted(ledger.visits, 'visit')}, {counted(len(traces.regions), 'region')}, "
        f"{traces.epochs}."
    )
    for entry in ledger.entries:
        yield f"Dropped {counted(entry.records, 'record')}: {entry.reason}."
    yield from (f"Note: {note}." for note in ledger.notes)
    if ledger.not_read:
        yield f"Skipped: unknown extension: {listed(ledger.not_read)}"


def _matching(given: str) -> list[Path]:
    """Return the one path that a text names, or all that match it."""
    if Path(given).exists() or not has_magic(given):
        return [Path(given)]
    found = [Path(one) for one in sorted(glob(given, recursive=True))]  # noqa: PTH207 - any path
    if not found:
        raise FileError("matches no file", where=given, fix="Check the pattern")
    return found


def _is_ours(path: Path) -> bool:
    """Tell whether a file was written by whosthere; if it holds no traces, it is refused later."""
    existing(path)
    return path.suffix == ".parquet" and path.is_file() and read_metadata(path) is not None
