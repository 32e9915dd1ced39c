"""What a user's own input can cause, each with a message that says how to fix it."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used.

    The command line prints the message and exits with code 2; no traceback is shown.

    Parameters
    ----------
    problem
        What was found, in one sentence without a final full stop; it may end in a question mark.
    where
        The file, row, column or option that it was found in.
    fix
        What the user can do about it, in one sentence without a final full stop. It names
        parameters in backquotes, and the command line shows its options instead.
    """

    command: ClassVar[str | None] = None
    """The command whose options are meant, if not the one that was called."""

    def __init__(self, problem: str, *, where: object = None, fix: str | None = None) -> None:
        self.problem = problem
        self.where = where
        self.fix = fix
        place = "" if where is None else f"{where}: "
        remedy = "" if fix is None else f" {fix}" + ("" if fix.endswith("?") else ".")
        stop = "" if problem.endswith("?") else "."
        super().__init__(f"{place}{problem}{stop}{remedy}")


class FileError(InputError):
    """A path that cannot be read or written."""


class RecordsError(InputError):
    """Records, or a table, whose content cannot be understood."""


class EmptyError(InputError):
    """Nothing is left to work on."""


class SpecError(InputError):
    """A mechanism's spec string, or a parameter of a mechanism, is wrong."""


class GroupError(InputError):
    """A group of users that the traces cannot provide."""


class MissingExtraError(InputError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs packages that are not installed",
            fix=f"Install them with: pip install '{_installed_from()}[{extra}]'",
        )


class AuditFailedError(RuntimeError):
    """An audit could not be done, or could not go on; what was done is kept."""


class LostWorkersError(AuditFailedError):
    """Whoever does the tasks cannot go on, which says nothing about the tasks."""


def optional(module: str, what: str, extra: str) -> Any:  # noqa: ANN401 - any module
    """Import what is not always installed, or say which extra to install for what is to be done."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, extra) from error


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """Say which of the known words was probably meant, and list them all."""
    choices = list(known)
    close = get_close_matches(wrong, choices, n=1)
    hint = f"Did you mean {quote(close[0])}? " if close else ""
    return f"{hint}Known: {listed(choices)}"


def listed(words: Iterable[str]) -> str:
    """Write words one after the other; of very many, only the first."""
    every = [shown(word) for word in words]
    if len(every) <= _MOST_LISTED:
        return ", ".join(every) or "none"
    return f"{', '.join(every[:_FIRST_LISTED])}, ... ({len(every):,} in all)"


def quote(word: str) -> str:
    """Write a word in quotes, shortened if it is very long."""
    return repr(_shortened(word))


def shown(word: str) -> str:
    """Shorten a very long word, and write what is no letter or sign as an escape."""
    word = _shortened(word)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in word)


def _shortened(word: str) -> str:
    return word if len(word) <= _LONGEST_WORD else f"{word[: _LONGEST_WORD - 3]}..."


_MOST_LISTED, _FIRST_LISTED, _LONGEST_WORD = 40, 12, 60


def _installed_from() -> str:
    """Return what pip calls this package: its name, or the folder that it was installed from."""
    import json  # noqa: PLC0415 - only for this message
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415

    try:
        record = distribution("whosthere").read_text("direct_url.json")
        where = json.loads(record or "{}")
    except (PackageNotFoundError, ValueError, OSError):
        return "whosthere"
    url = urlsplit(str(where.get("url", "")))
    is_folder = "dir_info" in where and url.scheme == "file"
    return unquote(url.path) if is_folder else "whosthere"
