"""Opening other programs' tables: files, archives, and folders of them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote

import polars as pl

from whosthere.data.files import existing
from whosthere.data.reading.delimited import open_delimited
from whosthere.data.reading.formats import open_geojson, open_ndjson, open_parquet, open_workbook
from whosthere.data.reading.source import FrameSource, Source, Stored, empty, readable
from whosthere.errors import FileError, RecordsError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

_TEXTS = (".csv", ".tsv", ".csv.gz", ".csv.zst")
_ZIP = ".zip"
_OPENERS: dict[str, Callable[[Stored], FrameSource]] = {
    ".ndjson": open_ndjson,
    ".jsonl": open_ndjson,
    ".geojson": open_geojson,
    ".parquet": open_parquet,
    ".xlsx": open_workbook,
    ".ods": open_workbook,
}
_EXPECTED = ", ".join((*_TEXTS, *_OPENERS, _ZIP))
# Files and folders that begin so are marks that other programs left for themselves.
_HIDDEN = (".", "_")


def open_sources(
    path: str | os.PathLike[str] | Sequence[Path], *, encoding: str | None = None
) -> tuple[list[Source], list[str]]:
    """Open a file, or every readable file of a folder and its subfolders in name order; or several.

    Folders called ``name=value``, as databases write them, give their files a column of that name.

    Returns
    -------
    The tables, and the names of the files in the folder whose extension is unknown.
    """
    if isinstance(path, Sequence) and not isinstance(path, str):
        opened = [open_sources(one, encoding=encoding) for one in path]
        return [*chain(*(one for one, _ in opened))], [*chain(*(others for _, others in opened))]
    path = existing(Path(path))
    if not path.is_dir():
        return _open(path, encoding), []
    sources: list[Source] = []
    not_read = []
    for file in sorted(path.rglob("*")):
        below = file.relative_to(path)
        known, hidden = _ending(file.name) is not None, file.name.startswith(_HIDDEN)
        if any(part.startswith(_HIDDEN) for part in below.parts[:-1]) or not file.is_file():
            continue
        if known and not hidden:
            sources += [_with_keys(source, below) for source in _open(file, encoding)]
        elif known or not hidden:
            not_read.append(str(below))
    if not sources:
        raise FileError(
            "is a folder without files of records",
            where=path,
            fix=f"Expected extensions: {_EXPECTED}",
        )
    return sources, not_read


def read_single(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a table that is one file, whole."""
    path = existing(Path(path))
    if path.is_dir():
        raise FileError("is a folder", where=path, fix="Name a file")
    return only_table(_open(path, None), path).whole()


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


def _open(path: Path, encoding: str | None) -> list[Source]:
    ending = _ending(path.name)
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
            return _open_zip(path, encoding)
        return [_open_one(Stored(path), ending, encoding)]


def _open_one(stored: Stored, ending: str, encoding: str | None) -> Source:
    if ending == ".csv":
        return open_delimited(stored, encoding=encoding)
    return _OPENERS[ending](stored)


def _open_zip(path: Path, encoding: str | None) -> list[Source]:
    """Open all tables in an archive."""
    with zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if not m.is_dir()]
    if any(member.flag_bits & 1 for member in members):
        raise RecordsError("is locked by a password", where=path, fix="Unpack it first")
    sources = []
    for member in sorted(members, key=lambda m: m.filename):
        name = member.filename
        ending = _ending(name)
        hidden = PurePosixPath(name).name.startswith(_HIDDEN)
        if ending is not None and ending != _ZIP and not hidden and member.file_size:
            stored = Stored(path / name, partial(_open_member, path, name))
            sources.append(_open_one(stored, ending, encoding))
    if not sources:
        raise RecordsError("is a zip file without tables", where=path, fix=f"Expected: {_EXPECTED}")
    return sources


def _open_member(path: Path, name: str) -> IO[bytes]:
    return zipfile.ZipFile(path).open(name)


def _with_keys(source: Source, file: Path) -> Source:
    """Add the columns that the names of folders give, as in ``day=2024-03-30``."""
    constants: dict[str, str | None] = {}
    for folder in file.parts[:-1]:
        name, is_key, value = folder.partition("=")
        name = unquote(name)
        if is_key and name and name not in source.schema:
            missing = value == "__HIVE_DEFAULT_PARTITION__"
            constants[name] = None if missing else unquote(value)
    schema = {**source.schema, **dict.fromkeys(constants, pl.String())}
    return replace(source, schema=schema, constants=constants)
