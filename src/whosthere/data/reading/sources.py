"""Opening other programs' tables: text, JSON, Parquet, workbooks, archives, and folders of them."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote

import polars as pl

from whosthere.data.files import existing
from whosthere.data.reading.delimited import DelimitedSource, open_delimited
from whosthere.data.reading.geojson import open_geojson
from whosthere.data.reading.geoparquet import point_column
from whosthere.data.reading.source import FrameSource, Source, empty, readable
from whosthere.data.reading.workbooks import open_workbook
from whosthere.errors import FileError, RecordsError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    Stored = Callable[[], IO[bytes]]

_TEXTS = (".csv", ".tsv", ".csv.gz", ".csv.zst")
_ZIP = ".zip"


@dataclass(frozen=True, eq=False)
class Opened:
    """What was opened, and the files of a folder that were not.

    Attributes
    ----------
    sources
        The tables, in the order of their names.
    not_read
        Names of the files in the folder whose ending is not known, relative to it.
    """

    sources: list[Source]
    not_read: tuple[str, ...] = ()


def open_sources(path: str | os.PathLike[str], *, encoding: str | None = None) -> Opened:
    """Open a file, or every readable file of a folder and its subfolders in name order.

    Folders called ``name=value``, as databases write them, give their files a column of that name.
    """
    path = existing(Path(path))
    if not path.is_dir():
        sources = _open(path, encoding)
        return Opened(sources)
    sources, not_read = [], []
    for file in _files_below(path):
        if _ending(file.name) is None or file.name.startswith((".", "_")):
            not_read.append(str(file.relative_to(path)))
            continue
        keys = _partition_keys(file.relative_to(path))
        sources += [_with_keys(source, keys) for source in _open(file, encoding)]
    if not sources:
        raise FileError(
            "is a folder without files of records",
            where=path,
            fix=f"Expected endings: {', '.join(_ENDINGS)}",
        )
    return Opened(sources, tuple(not_read))


def read_single(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a table that is one file, whole."""
    path = existing(Path(path))
    if path.is_dir():
        raise FileError("is a folder", where=path, fix="Name a file")
    return single(_open(path, None), path).whole()


def single(sources: list[Source], path: Path) -> Source:
    """Return the one table that was opened, refusing several."""
    if len(sources) != 1:
        raise RecordsError(f"holds {len(sources)} tables", where=path, fix="Name one file")
    return sources[0]


def _files_below(folder: Path) -> list[Path]:
    """Return all files in a folder, but marks that other programs left for themselves."""
    found = []
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if not file.is_file() or any(part.startswith((".", "_")) for part in parts[:-1]):
            continue
        if file.name.startswith((".", "_")) and _ending(file.name) is None:
            continue
        found.append(file)
    return found


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
            f"has an ending that is not known ({path.suffix or 'none'})",
            where=path,
            fix=f"Expected: {', '.join(_ENDINGS)}",
        )
    with readable(path):
        if path.stat().st_size == 0:
            raise empty(path)
        if ending == _ZIP:
            return _open_zip(path, encoding)
        return [_open_one(path, ending, encoding, None)]


def _open_one(path: Path, ending: str, encoding: str | None, stored: Stored | None) -> Source:
    if ending == ".csv":
        return open_delimited(path, stored=stored, encoding=encoding)
    return _OPENERS[ending](path, stored=stored)


def _open_zip(path: Path, encoding: str | None) -> list[Source]:
    """Open all tables in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise RecordsError("is no whole zip file", where=path, fix="Copy it again") from error
    locked = next((m for m in members if m.flag_bits & 1), None)
    if locked is not None:
        raise RecordsError("is locked by a password", where=path, fix="Unpack it first")
    sources = []
    for member in sorted(members, key=lambda m: m.filename):
        ending = _ending(member.filename)
        name = PurePosixPath(member.filename).name
        if ending is None or ending == _ZIP or name.startswith((".", "_")) or not member.file_size:
            continue
        stored = partial(_member, path, member.filename)
        sources.append(_open_one(path / member.filename, ending, encoding, stored))
    if not sources:
        raise RecordsError(
            "is a zip file without tables", where=path, fix=f"Expected: {', '.join(_ENDINGS)}"
        )
    return sources


def _member(path: Path, name: str) -> IO[bytes]:
    try:
        return zipfile.ZipFile(path).open(name)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise RecordsError("is no whole zip file", where=path, fix="Copy it again") from error


def _partition_keys(file: Path) -> dict[str, str | None]:
    """Return the columns that the names of folders give, as in ``day=2024-03-30``."""
    pairs = (part.split("=", 1) for part in file.parts[:-1] if "=" in part)
    missing = "__HIVE_DEFAULT_PARTITION__"
    return {
        unquote(name): None if value == missing else unquote(value) for name, value in pairs if name
    }


def _with_keys(source: Source, keys: dict[str, str | None]) -> Source:
    constants = {name: value for name, value in keys.items() if name not in source.schema}
    if not constants:
        return source
    schema = {**source.schema, **dict.fromkeys(constants, pl.String())}
    literals = [pl.lit(value, pl.String).alias(name) for name, value in constants.items()]
    if isinstance(source, FrameSource):
        return replace(source, schema=schema, frame=source.frame.with_columns(literals))
    if isinstance(source, DelimitedSource):
        return replace(source, schema=schema, constants=constants)
    return source


def _open_ndjson(path: Path, *, stored: Stored | None = None) -> FrameSource:
    origin = path if stored is None else io.BytesIO(_content(stored))
    try:
        frame = pl.scan_ndjson(origin, infer_schema_length=10_000)
        schema = frame.collect_schema()
    except pl.exceptions.ComputeError as error:
        raise RecordsError(
            "is not a table of JSON objects, one a line",
            where=_first_bad_line(path, stored),
            fix="Correct the line",
        ) from error
    return FrameSource(path=path, schema=schema, row_word="line", frame=frame)


def _first_bad_line(path: Path, stored: Stored | None) -> str:
    with stored() if stored is not None else path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        lines = gzip.GzipFile(fileobj=file) if packed else file
        for number, line in enumerate(lines, start=1):
            try:
                good = not line.strip() or isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                good = False
            if not good:
                return f"{path}, line {number:,}"
    return str(path)


def _open_parquet(path: Path, *, stored: Stored | None = None) -> FrameSource:
    origin = path if stored is None else io.BytesIO(_content(stored))
    frame = pl.scan_parquet(origin, glob=False, hive_partitioning=False)
    rows = frame.select(pl.len()).collect().item()
    schema = frame.collect_schema()
    points = point_column(origin, path) if pl.Binary in schema.values() else None
    return FrameSource(path=path, schema=schema, rows=rows, frame=frame, points=points)


def _content(stored: Stored) -> bytes:
    with stored() as file:
        return file.read()


_OPENERS: dict[str, Callable[..., FrameSource]] = {
    ".ndjson": _open_ndjson,
    ".jsonl": _open_ndjson,
    ".geojson": open_geojson,
    ".parquet": _open_parquet,
    ".xlsx": open_workbook,
    ".ods": open_workbook,
}
_ENDINGS = (*_TEXTS, *_OPENERS, _ZIP)
