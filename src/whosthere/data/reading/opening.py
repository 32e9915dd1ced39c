"""Opening other programs' tables: files, archives, and folders of them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

import polars as pl

from whosthere.data.files import existing
from whosthere.data.frames import AnyPath, Frame, is_frame, path_of
from whosthere.data.reading.delimited import open_delimited, open_plt
from whosthere.data.reading.formats import (
    open_frame,
    open_geojson,
    open_ndjson,
    open_parquet,
    open_workbook,
)
from whosthere.data.reading.queries import Query
from whosthere.data.reading.source import FrameSource, Source, Stored, empty, readable, skipping
from whosthere.data.reading.times import looks_like_time
from whosthere.errors import FileError, InputError, RecordsError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_TEXTS = tuple(text + packed for packed in ("", ".gz", ".zst") for text in (".csv", ".tsv"))
_ZIP = ".zip"
USER_FROM_PATH = "(path)"
"""The column with the user, where the path names it."""
_OPENERS: dict[str, Callable[[Stored], FrameSource]] = {
    ".ndjson": open_ndjson,
    ".jsonl": open_ndjson,
    ".geojson": open_geojson,
    ".parquet": open_parquet,
    ".xlsx": open_workbook,
    ".ods": open_workbook,
    ".plt": open_plt,
}
_EXPECTED = ", ".join((*_TEXTS, *_OPENERS, _ZIP))
# Files and folders that begin so are marks that other programs left for themselves.
_HIDDEN = (".", "_")


def open_sources(
    path: AnyPath | Sequence[AnyPath] | Query | Frame,
    *,
    encoding: str | None = None,
    user_from_path: bool = False,
    skipped: list[InputError] | None = None,
) -> tuple[list[Source], list[str]]:
    """Open a file, or every readable file of a folder and its subfolders in name order; or several.

    Or a query, or a frame.

    Folders called ``name=value``, as databases write them, give their files a column of that name.
    With `user_from_path`, the first folder below (or the file's own name) is the column
    `USER_FROM_PATH`. Files that cannot be opened are left out and `skipped` where that is a list.
    Returns the tables, and the names of the files in the folder whose extension is unknown.
    """
    if isinstance(path, Query):
        return [path.open()], []
    if is_frame(path):
        return [open_frame(path)], []
    if isinstance(path, Sequence) and not isinstance(path, str):
        how: Any = {"encoding": encoding, "user_from_path": user_from_path, "skipped": skipped}
        opened = [open_sources(path_of(one), **how) for one in path]
        return [*chain(*(one for one, _ in opened))], [*chain(*(others for _, others in opened))]
    path = existing(path_of(path))
    is_folder = path.is_dir()
    sources: list[Source] = []
    not_read = []
    for file in _once(path) if is_folder else [path]:
        known, hidden = _ending(file.name) is not None, file.name.startswith(_HIDDEN)
        # A folder here is one that may not be read.
        if not is_folder or file.is_dir() or (known and not hidden):
            with skipping(skipped):
                sources += _open(file, encoding, skipped)
        elif known or not hidden:
            not_read.append(str(file.relative_to(path)))
    if not sources and not skipped:
        raise FileError(
            "is a folder without files of records",
            where=path,
            fix=f"Expected extensions: {_EXPECTED}",
        )
    top = path if is_folder or _ending(path.name) == _ZIP else path.parent
    sources = [_with_keys(source, top, user_from_path=user_from_path) for source in sources]
    if user_from_path:
        _refuse_other_levels([source.constants[USER_FROM_PATH] for source in sources], path)
    return sources, not_read


def _once(folder: Path) -> Iterable[Path]:
    """Return the files below a folder in name order; what links lead to again is there once."""
    top = folder.resolve()
    found: dict[Path, Path] = {}
    for file in _walk(folder, frozenset({top})):
        real = file.resolve() if file.exists() else file
        if real not in found or top / file.relative_to(folder) == real:
            found[real] = file
    return found.values()


def _walk(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Yield the files below a folder in name order, also links that lead nowhere."""
    for entry in sorted(folder.iterdir()):
        if not entry.is_dir() or not os.access(entry, os.R_OK):
            yield entry
        elif not entry.name.startswith(_HIDDEN) and (real := entry.resolve()) not in above:
            yield from _walk(entry, above | {real})


def read_single(table: AnyPath | Frame) -> pl.DataFrame:
    """Read a table that is one file or a frame, whole."""
    if is_frame(table):
        return open_frame(table).whole()
    path = existing(Path(table))
    if path.is_dir():
        raise FileError("is a folder", where=path, fix="Name a file")
    return only_table(_open(path), path).whole()


def only_table(sources: list[Source], path: Path) -> Source:
    """Return the one table that was opened, refusing several."""
    if len(sources) != 1:
        raise RecordsError(f"holds {len(sources)} tables", where=path, fix="Name one file")
    return sources[0]


def _ending(name: str) -> str | None:
    lower = name.lower()
    if lower.endswith((_ZIP, *_TEXTS)):
        return _ZIP if lower.endswith(_ZIP) else ".csv"
    lower = lower.removesuffix(".gz")
    return next((ending for ending in _OPENERS if lower.endswith(ending)), None)


def _open(
    path: Path, encoding: str | None = None, skipped: list[InputError] | None = None
) -> list[Source]:
    ending = _ending(existing(path).name)
    if ending is None:
        raise FileError(
            f"has an unknown extension ({path.suffix or 'none'})",
            where=path,
            fix=f"Expected: {_EXPECTED}",
        )
    with readable(path):
        if path.stat().st_size == 0:
            raise empty(path)
        if ending == _ZIP:
            return _open_zip(path, encoding, skipped)
        return [_open_one(Stored(path), ending, encoding)]


def _open_one(stored: Stored, ending: str, encoding: str | None) -> Source:
    source: Source
    if ending == ".csv":
        source = open_delimited(stored, encoding=encoding)
    else:
        source = _OPENERS[ending](stored)
    if source.row_word != "line" or not stored.has_open_end:
        return source
    note = f"{stored.path.name} does not end with a line end: its last row may be cut"
    return replace(source, notes=(*source.notes, note))


def _open_zip(path: Path, encoding: str | None, skipped: list[InputError] | None) -> list[Source]:
    """Open all tables in an archive."""
    with zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if not m.is_dir()]
    if any(member.flag_bits & 1 for member in members):
        raise RecordsError("is locked by a password", where=path, fix="Unpack it first")
    sources: list[Source] = []
    not_read = []
    n_skipped = len(skipped or ())
    for member in sorted(members, key=lambda m: m.filename):
        name = member.filename
        ending = _ending(name)
        if PurePosixPath(name).name.startswith(_HIDDEN):
            continue
        if ending is None or ending == _ZIP:
            not_read.append(name)
            continue
        # A member may be named like a file elsewhere.
        shown = path / name.lstrip("/")
        with skipping(skipped), readable(shown):
            if not member.file_size:
                raise empty(shown)
            stored = Stored(shown, partial(_open_member, path, member))
            sources.append(_open_one(stored, ending, encoding))
    if not sources and len(skipped or ()) == n_skipped:
        raise RecordsError("is a zip file without tables", where=path, fix=f"Expected: {_EXPECTED}")
    if sources and not_read:
        note = f"not read in {path.name}, for their extensions are unknown: {listed(not_read)}"
        sources[0] = replace(sources[0], notes=(*sources[0].notes, note))
    return sources


def _open_member(path: Path, member: zipfile.ZipInfo) -> IO[bytes]:
    # Not by its name, which another one may bear too.
    return zipfile.ZipFile(path).open(member)


def _with_keys(source: Source, top: Path, *, user_from_path: bool) -> Source:
    """Add the columns that the names of folders give, as in ``day=2024-03-30``."""
    constants: dict[str, str | None] = {}
    below = source.path.relative_to(top).parts
    for folder in below[:-1]:
        name, is_key, value = folder.partition("=")
        name = unquote(name)
        if is_key and name and name not in source.schema:
            missing = value == "__HIVE_DEFAULT_PARTITION__"
            constants[name] = None if missing else unquote(value)
    if user_from_path:
        constants[USER_FROM_PATH] = below[0] if len(below) > 1 else below[0].partition(".")[0]
    schema = {**source.schema, **dict.fromkeys(constants, pl.String())}
    return replace(source, schema=schema, constants=constants)


def _refuse_other_levels(users: Sequence[str | None], path: Path) -> None:
    """Refuse a folder below which not people are told apart, but all of them, or days."""
    names = {str(user) for user in users}
    wrong = "one name for all" if len(names) == 1 < len(users) else ""
    if any(map(looks_like_time, names)):
        wrong = "dates"
    if wrong:
        raise RecordsError(
            f"the first folders or files below it are {wrong}, not one for each user",
            where=path,
            fix="Name the folder that holds one folder or file for each user",
        )
