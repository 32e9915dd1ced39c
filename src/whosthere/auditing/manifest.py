"""What keeps the folder of an audit, a search or a study its own: a manifest, looks, and a lock.

The manifest holds all that decides the scores (plan, traces, software), so that nothing else is
done in the folder later, and what was seen at each look (`whosthere.inference.looks`).
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from whosthere._version import __version__
from whosthere.data.files import (
    FULL,
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    add_checksum,
    checksums,
    fingerprint,
    new_file,
    refuse_existing,
)
from whosthere.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LOCK = ".lock"
"""The name of the lock file. It may stay behind in the folder, but then locks nothing."""
CHECKSUMS = "checksums.txt"
"""What each file of the folder held whenever it was written."""
_PAGE = "page"
# Scores may differ in their last digits between versions of these.
_DECISIVE = ("numba", "numpy", "scipy")
# Every task asks for them.
version = cache(metadata.version)
_NEW_FOLDER = "Name a new folder"
_CHANGED = "Put the original back; or delete it, and repeat the command that wrote it"
# What may grow where an audit is extended.
_GROWS = ("targets", "releases", "control_releases", "releases_of")


@contextmanager
def only_one(folder: Path, what: str = "audit") -> Iterator[None]:
    """Hold the lock of a folder, or refuse at once if somebody else holds it.

    The operating system releases the lock when the process ends, even if it is killed. The folder
    is created, for its owner alone, if it does not exist. What a process that was killed left half
    written is removed. `what` is at work in such a folder, for the message.
    """
    lock = FileLock(folder / LOCK, mode=PRIVATE_FILE, blocking=False)
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        lock.acquire()
        for half_written in folder.rglob(".*.part"):
            half_written.unlink()
    except Timeout:
        problem = f"another {what} is at work in this folder"
        raise FileError(problem, where=folder, fix="Wait until it has ended") from None
    except OSError as error:
        if error.errno in FULL:
            raise
        problem = f"cannot be written or locked ({error.strerror or error})"
        raise FileError(problem, where=folder, fix="Name another folder") from error
    try:
        yield
    finally:
        lock.release()


def versions() -> dict[str, str]:
    """Return the versions of all software that decides the last digits of scores."""
    return {"whosthere": __version__, **{name: version(name) for name in _DECISIVE}}


def check_manifest(
    manifest: Path, wanted: dict[str, Any], what: str, *, extend: bool = False, begun: bool = True
) -> None:
    """Refuse a folder that holds anything but an audit or a search of the same identity.

    `wanted` must be the same: format, traces, versions, and the plan of an audit. To extend an
    audit, the same one with fewer targets, releases or attacks will do. Where nothing is done yet
    (`begun`), plan and versions may be others.
    """
    folder = manifest.parent
    if not manifest.exists():
        _refuse_other_content(manifest, what)
        return
    found = json_object(manifest)
    if found.get("format") != wanted["format"]:
        raise FileError("is of another format", where=folder, fix=_NEW_FOLDER)
    refuse_changed(folder, [manifest])
    fix = f"{_NEW_FOLDER}, or repeat the command that began this one"
    if found.get("traces") != wanted["traces"]:
        problem = f"holds {what} of other traces, or the traces have changed since"
        raise FileError(problem, where=folder, fix=fix)
    if not begun:
        return
    before, now = found.get("plan", {}), wanted.get("plan", {})
    why = obstacle(before, now) if _differ(before, now) else None
    if extend and why is not None:
        problem = f"holds {what} that cannot be extended like this: {why}"
        fix = "Repeat the command that began it with more targets, releases or attacks"
        raise FileError(problem, where=folder, fix=fix)
    if _differ(before, now) and not extend:
        if why is None:
            fix = "Have it extended (`extend`), or name a new folder"
        problem = f"holds {what} by another plan ({_changes(before, now)})"
        raise FileError(problem, where=folder, fix=fix)
    before, now = found.get("versions", {}), wanted["versions"]
    if before != now:
        problem = f"holds {what} by other software ({_changes(before, now)})"
        raise FileError(problem, where=folder, fix=fix)


def changed(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Return which files, of those that are there, hold anything but what was written.

    This finds accidents: a slip in an editor, a copy that broke off, a disk that fails. Whoever
    changes a file on purpose can change the record as well.
    """
    found = {path: fingerprint(path) if path.is_file() else "" for path in paths if path.exists()}
    # Read last: somebody at work in the folder records a file before it is there.
    known = checksums(folder / CHECKSUMS)
    named = {path: path.relative_to(folder).as_posix() for path in found}
    return [path for path, content in found.items() if (content, named[path]) not in known]


def refuse_changed(folder: Path, paths: Iterable[Path]) -> None:
    """Refuse a folder with a file that holds anything but what was written."""
    for path in changed(folder, paths):
        raise FileError("is not as it was written", where=path, fix=_CHANGED)


def wrote(folder: Path, page: Path) -> bool:
    """Tell whether a page somewhere is as the work in a folder wrote it last, or before."""
    written = {content for content, name in checksums(folder / CHECKSUMS) if name == _PAGE}
    return page.is_file() and fingerprint(page) in written


def note_page(folder: Path, page: Path) -> None:
    """Record a page that was written from the work in a folder."""
    add_checksum(folder / CHECKSUMS, page, _PAGE)


def obstacle(before: dict[str, Any], now: dict[str, Any]) -> str | None:
    """Return why a plan does not extend another one, both as JSON objects; None if it does.

    Targets are the first of all people in a random order, releases have numbers, and attacks meet
    the same releases. So a larger audit holds a smaller one of the same seed: what was scored
    stays, and only the rest is done.
    """
    for key in before | now:
        had, have = before.get(key), now.get(key)
        if key == "contests":
            # What is published and known stays, in its order, whoever attacks.
            had, have = list(had or ()), list(have or ())
        elif key == "code":
            # An attack that is added brings its own.
            had = had or {}
            have = had | {one: code for one, code in (have or {}).items() if one in had}
        # It may be the first that learns from past releases.
        is_first = key == "past_releases" and not had
        if had != have and not (key in _GROWS or is_first):
            words = key.replace("_", " ")
            return f"{words} would change, and only targets, releases and attacks can be added"
    for setting, attacks in before.get("contests", {}).items():
        if lost := [one for one in attacks if one not in now["contests"][setting]]:
            return f"{lost[0]} would be left out of {setting}"
    had, have = before.get("targets", []), now["targets"]
    if have[: len(had)] != had:
        return "the targets would be other people; give at least as many, chosen in the same way"
    for key in ("releases", "control_releases"):
        if now[key] < before.get(key, 0):
            return f"there would be {now[key]} {key.replace('_', ' ')} instead of {before[key]}"
    for attack, n in before.get("releases_of", {}).items():
        wanted = now.get("releases_of", {}).get(attack, now["releases"])
        if wanted < n:
            return f"{attack} would score {wanted} releases instead of {n}"
    return None


def number_of_look(manifest: Path, seen: object, *, note: bool = False) -> int:
    """Return which look it is to judge what is seen, from 1; the same again is the same look.

    If it is to `note` that, what is seen is added to the looks in the manifest.
    """
    found = json_object(manifest) if note or manifest.exists() else {"looks": []}
    looks: list[object] = found["looks"]
    if seen not in looks:
        looks = [*looks, seen]
        if note:
            write_json(manifest, found | {"looks": looks})
    return looks.index(seen) + 1


def write_json(path: Path, value: object) -> None:
    """Write strict JSON, whole or not at all, over what is there, and record it beside."""
    with new_file(path, force=True, record=path.with_name(CHECKSUMS)) as temporary:
        text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)
        temporary.write_text(f"{text}\n", encoding="utf-8")


def json_object(path: Path) -> dict[str, Any]:
    """Read a JSON object of ours."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError("is not readable JSON", where=path, fix=_NEW_FOLDER) from error
    if not isinstance(value, dict):
        raise FileError("holds no JSON object", where=path, fix=_NEW_FOLDER)
    return value


def _refuse_other_content(manifest: Path, what: str) -> None:
    """Refuse a folder without a manifest that holds anything else.

    What a killed process can leave before its manifest does not count.
    """
    folder = manifest.parent
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    left = (LOCK, CHECKSUMS)
    others = [one for one in names if one not in left and not one.startswith(f".{manifest.name}.")]
    if others or (folder.exists() and not folder.is_dir()):
        problem = f"is there already and is not the folder of {what}"
        raise FileError(problem, where=folder, fix=_NEW_FOLDER)
    refuse_existing(manifest, force=False)


def _changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Say what differs; rows of the traces are nobody's business, and help nobody."""
    said = []
    for key in before | now:
        had, have = before.get(key), now.get(key)
        if not _differ(had, have):
            continue
        if key == "targets" and isinstance(had, list) and isinstance(have, list):
            fewest = min(len(had), len(have))
            same = had[:fewest] == have[:fewest]
            counts = f": {len(had)} then, {len(have)} now"
            said.append(f"targets{counts if same else ' chosen differently'}")
        else:
            said.append(f"{key} {_short(had)} then, {_short(have)} now")
    return "; ".join(said)


def _differ(one: object, other: object) -> bool:
    """Tell whether two JSON values differ; files are named by the order of what is published."""
    return json.dumps(one) != json.dumps(other)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
