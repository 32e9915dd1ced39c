"""Reading TOML files strictly: every key must be known, and every value of the right type.

What a file may hold is said by a dataclass: its fields are the keys, their annotations the types.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from whosthere.data.files import existing
from whosthere.errors import FileError, InputError, suggestion

if TYPE_CHECKING:
    from pathlib import Path

_SHOWN = 60


def checked_table(path: Path, kind: type) -> dict[str, Any]:
    """Read a TOML file whose keys and types are those of the dataclass `kind`.

    Only the keys that the file gives are returned, so that other options can be laid over them.
    Lists become tuples, whole numbers become floats where a float is expected, and a single value
    is taken as a list of one.

    Parameters
    ----------
    kind
        A dataclass with fields of type str, int, float or bool, a ``tuple[..., ...]`` or a
        ``dict[str, ...]`` of one of these, or any of them ``| None``. Its annotations must be
        known at run time, so nothing in them may be imported for type checking only.
    """
    types = _types(kind)
    table = _table(path)
    for key in table:
        if key not in types:
            raise InputError(f"there is no key {key!r}", where=path, fix=suggestion(key, types))
    return {key: _Value(path, key, value).as_type(types[key]) for key, value in table.items()}


def _types(kind: type) -> dict[str, object]:
    hints = get_type_hints(kind)
    return {field.name: _without_none(hints[field.name]) for field in fields(kind)}


def _without_none(annotation: object) -> object:
    # TOML has no null: who means None leaves the key out.
    if get_origin(annotation) not in {Union, UnionType}:
        return annotation
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    return kinds[0] if len(kinds) == 1 else annotation


def _table(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        return tomllib.loads(text)
    # Besides TOML's own errors: a number of thousands of digits, brackets within brackets.
    except (ValueError, RecursionError) as error:
        fix = "Write lines like key = value, with text in double quotes"
        raise InputError(f"is not valid TOML: {error}", where=path, fix=fix) from error


def _text(path: Path) -> str:
    try:
        if existing(path).is_dir():
            raise FileError("is a folder", where=path, fix="Name a file")
        # Some editors put a byte-order mark in front, which TOML does not know.
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror or error})", where=path) from error
    except UnicodeDecodeError as error:
        raise FileError(
            "is not text in UTF-8", where=path, fix="Save it as plain text in UTF-8"
        ) from error


@dataclass(frozen=True)
class _Scalar:
    """A type of single values: how it is called, and what one looks like in a file."""

    kind: type
    words: str
    plural: str
    example: str

    def fits(self, value: object) -> bool:
        # Not isinstance, which takes true for a whole number.
        if self.kind is float and type(value) is int:
            return abs(value) < 2**1023  # larger ones have no float
        return type(value) is self.kind

    def read(self, value: object) -> object:
        return float(value) if isinstance(value, int) and self.kind is float else value


_SCALARS = (
    _Scalar(str, "text", "texts", '"some text"'),
    _Scalar(int, "a whole number", "whole numbers", "10"),
    _Scalar(float, "a number", "numbers", "0.5"),
    _Scalar(bool, "true or false", "true or false", "true"),
)


def _scalar(annotation: object) -> _Scalar:
    for scalar in _SCALARS:
        if scalar.kind is annotation:
            return scalar
    raise TypeError(f"a TOML value cannot be checked for {annotation}")


@dataclass(frozen=True)
class _Value:
    """One value of a file, and where it stands there."""

    path: Path
    key: str
    value: object

    def as_type(self, annotation: object) -> object:
        """Return the value as the type, or refuse it."""
        origin, inside = get_origin(annotation), get_args(annotation)
        if origin is tuple and inside[1:] == (Ellipsis,):
            return self._as_list(_scalar(inside[0]))
        if origin is dict and inside[0] is str:
            return self._as_table(_scalar(inside[1]))
        return self._as_scalar(_scalar(annotation))

    def _as_scalar(self, scalar: _Scalar) -> object:
        if not scalar.fits(self.value):
            raise self._refused(self.key, self.value, scalar.words, scalar.example)
        return scalar.read(self.value)

    def _as_list(self, scalar: _Scalar) -> tuple[object, ...]:
        example = f"[{scalar.example}]"
        if scalar.fits(self.value):
            return (scalar.read(self.value),)
        if not isinstance(self.value, list):
            raise self._refused(self.key, self.value, f"a list of {scalar.plural}", example)
        for i, item in enumerate(self.value, start=1):
            if not scalar.fits(item):
                raise self._refused(f"{self.key}, item {i},", item, scalar.words, example)
        return tuple(scalar.read(item) for item in self.value)

    def _as_table(self, scalar: _Scalar) -> dict[str, object]:
        if not isinstance(self.value, dict):
            example = f"{{ name = {scalar.example} }}"
            raise self._refused(self.key, self.value, f"a table of {scalar.plural}", example)
        return {
            name: _Value(self.path, f"{self.key}.{name}", item)._as_scalar(scalar)
            for name, item in self.value.items()
        }

    def _refused(self, what: str, found: object, wanted: str, example: str) -> InputError:
        problem = f"{what} is {_described(found)}, not {wanted}"
        return InputError(problem, where=self.path, fix=f"Write it like {self.key} = {example}")


def _described(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, str):
        return f"the text {_short(value)!r}"
    return (
        f"the number {_short(str(value))}" if isinstance(value, int | float) else "a date or time"
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
