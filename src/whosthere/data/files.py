"""Our own files: written whole or not at all, private unless published, describing themselves."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

METADATA_KEY = "whosthere"
FORMAT_VERSION = 1
_LONGEST_SHOWN = 120
_MAGIC = b"PAR1"
_FORMULA, _NUMBER = r"^'*[=+\-@\t\r]", r"^[+-]?\d+(?:[.,]\d+)?$"
_AGAIN = "Write or copy it again"
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Permissions of what may be about people: its owner may read and write it, and nobody else."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""What the system says of a disk on which there is no room."""
_MADE_BY = {
    "traces": "If it holds records, run `whosthere ingest` first",
    "release": "Make one with `whosthere release`, or of counts with `whosthere import`",
}


@contextmanager
def new_file(
    path: Path, *, force: bool = False, public: bool = False, record: Path | None = None
) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `path` when the block ends well.

    The folder is made if missing. Only the owner may read either, unless the file is `public`.
    Whatever goes wrong, Ctrl-C included, `path` is left as it was and the temporary file is
    removed. If a `record` is kept in a folder above, what is written is recorded there before, so
    that whatever bears the name is known even if the process is killed in between.
    """
    refuse_existing(path, force=force)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(0o777 if public else PRIVATE_FOLDER, parents=True, exist_ok=True)
        # Made before anything is in it, so that nobody can read it meanwhile.
        temporary.touch(0o666 if public else PRIVATE_FILE, exist_ok=False)
        yield temporary
        if record is not None:
            add_checksum(record, temporary, path.relative_to(record.parent).as_posix())
        os.replace(temporary, path)  # noqa: PTH105 - the atomic one, also onto an existing file
    except (OSError, pl.exceptions.ComputeError, pl.exceptions.PanicException) as error:
        reason = getattr(error, "strerror", None) or _reason(error)
        for code in FULL:
            if reason == os.strerror(code):
                raise OSError(code, reason, str(path)) from error
        raise FileError(f"cannot be written ({reason})", where=path) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def add_line(path: Path, line: str) -> None:
    """Add a line to a private file, which is made if missing."""
    try:
        path.touch(PRIVATE_FILE)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    except OSError as error:  # which does not always name the file
        raise OSError(error.errno, error.strerror, str(path)) from error


def fingerprint(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with existing(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def add_checksum(record: Path, path: Path, name: str) -> None:
    """Record what a file holds now, under a name."""
    add_line(record, f"{fingerprint(path)}  {name}")


def checksums(record: Path) -> set[tuple[str, str]]:
    """Return what was ever recorded, as SHA-256 and name; a line that was cut off is no matter."""
    text = record.read_text(encoding="utf-8", errors="replace") if record.is_file() else ""
    return set(re.findall(r"([0-9a-f]{64})  (\S+)$", text, re.MULTILINE))


def refuse_existing(
    path: Path, *, force: bool, inputs: Iterable[str | os.PathLike[str] | None] = ()
) -> None:
    """Refuse an output that is there already or cannot be made, before any work is done.

    An output that is one of the inputs, or a file in one, is refused even if it may be replaced.
    """
    try:
        is_folder, exists = path.is_dir(), path.exists()
        # The name may be too long for the file system, or once the temporary ending is added.
        path.with_name(f".{path.name}.{'0' * 8}.part").exists()
    except (OSError, ValueError) as error:
        raise _no_path(error, path) from error
    if is_folder:
        raise FileError("is a folder", where=path, fix="Name a file")
    if exists and any(_is_or_holds(given, path) for given in inputs if given is not None):
        raise FileError("is an input of this command", where=path, fix="Choose another name")
    if exists and not force:
        raise FileError(
            "exists already",
            where=path,
            fix="Choose another name, or allow it to be replaced (`force`)",
        )
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise FileError(
            "cannot be written there", where=path, fix=f"Make {nearest} a folder you may write to"
        )


def _is_or_holds(given: str | os.PathLike[str], path: Path) -> bool:
    try:
        below = Path(given).is_dir() and path.resolve().is_relative_to(Path(given).resolve())
        return below or path.samefile(given)
    except (OSError, ValueError):
        return False


def _no_path(error: OSError | ValueError, path: Path) -> FileError:
    reason = getattr(error, "strerror", None) or str(error)
    name = str(path) if len(str(path)) < _LONGEST_SHOWN else f"{str(path)[:_LONGEST_SHOWN]}..."
    return FileError(f"cannot be used ({reason})", where=name, fix="Check the path")


def _reason(error: BaseException) -> str:
    """Return what the system said, of all that polars says around it."""
    text = next(iter(str(error).splitlines()), type(error).__name__)
    found = re.search(r"([A-Z][a-z ]+) \(os error \d+\)", text)
    return text if found is None else found[1]


def write_table(
    frame: pl.DataFrame,
    path: Path,
    *,
    kind: str,
    metadata: dict[str, Any],
    force: bool = False,
    public: bool = False,
    record: Path | None = None,
) -> None:
    """Write a Parquet file of our own: a table with its `kind` and metadata inside."""
    head = {"kind": kind, "format": FORMAT_VERSION, **metadata}
    described = {METADATA_KEY: json.dumps(head, allow_nan=False)}
    with new_file(path, force=force, public=public, record=record) as temporary:
        frame.write_parquet(temporary, compression="zstd", metadata=described)


def read_metadata(path: Path) -> dict[str, Any] | None:
    """Read what a Parquet file says about itself; None if another program wrote it."""
    with _readable(path):
        stored = pl.read_parquet_metadata(path)
    if METADATA_KEY not in stored:
        return None
    try:
        head: dict[str, Any] = json.loads(stored[METADATA_KEY])
        version, _ = int(head["format"]), str(head["kind"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileError("has damaged whosthere metadata", where=path, fix=_AGAIN) from error
    if version > FORMAT_VERSION:
        raise FileError(
            f"was written in format {version}, this version reads up to {FORMAT_VERSION}",
            where=path,
            fix="Upgrade whosthere",
        )
    return head


def read_table(path: Path, *, kind: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Read a Parquet file of our own, which must be of the given kind, with its metadata."""
    if existing(path).is_dir():
        fix = _MADE_BY.get(kind, "Name a file")
        raise FileError(f"is a folder, not a {kind} file", where=path, fix=fix)
    with _readable(path), path.open("rb") as file:
        # A table of text, for instance, does not even begin like a Parquet file.
        is_ours = _MAGIC.startswith(file.read(len(_MAGIC)))
    head = read_metadata(path) if is_ours else None
    if head is None:
        fix = _MADE_BY.get(kind, _AGAIN)
        problem = f"is a file of another program, not a {kind} file of whosthere"
        raise FileError(problem, where=path, fix=fix)
    if head["kind"] != kind:
        problem = f"is a {head['kind']} file, not a {kind} file of whosthere"
        raise FileError(problem, where=path, fix=f"Name a {kind} file")
    with _readable(path):
        return pl.read_parquet(path, glob=False), head


def for_sheets(texts: pl.Series) -> pl.Series:
    """Write an apostrophe before texts that a spreadsheet would take for a formula, and run."""
    risky = texts.str.contains(_FORMULA) & ~texts.str.contains(_NUMBER)
    return texts.zip_with(~risky, "'" + texts)


def from_sheets(texts: pl.Series) -> pl.Series:
    """Undo `for_sheets`."""
    return texts.str.replace(rf"^'({_FORMULA[1:]})", "$1")


def existing(path: Path) -> Path:
    """Return `path` if something readable is there, and refuse it otherwise."""
    try:
        there = path.exists()
    except (OSError, ValueError) as error:
        raise _no_path(error, path) from error
    if not there:
        problem = "is a link that leads nowhere" if path.is_symlink() else "does not exist"
        raise FileError(problem, where=path, fix="Check the path")
    if not os.access(path, os.R_OK):
        raise FileError("cannot be read (permission denied)", where=path)
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise FileError("has a name that is not UTF-8", where=path, fix="Rename it") from error
    return path


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    existing(path)
    if path.is_dir():
        raise FileError("is a folder", where=path, fix="Name a file")
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(
            "is not a whole Parquet file (truncated, or of another format)",
            where=path,
            fix=_AGAIN,
        ) from error
