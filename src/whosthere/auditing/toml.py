"""Reading TOML files strictly: every key must be known, and every value must have its type.

What a file may hold is said by a pydantic model. Here the errors that pydantic finds become
messages that name the place in the file and show how to write it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from whosthere.data.files import existing
from whosthere.errors import FileError, InputError, suggestion

if TYPE_CHECKING:
    import os

    from pydantic_core import ErrorDetails

_SHOWN = 60


class TomlTable(BaseModel):
    """Base of the models of TOML tables: no other keys, no conversions, no changes afterwards.

    Mistakes are explained best for fields of type str, int, float, bool, date, datetime, a
    ``Literal`` of texts or another table; `Several`, ``tuple[..., ...]`` or ``dict[str, ...]`` of
    one of these; and any of them ``| None``. TOML has no null, so None can only be a default.
    `model_fields_set` has the keys that the file gave.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


def _as_tuple(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


Several = Annotated[tuple[T, ...], BeforeValidator(_as_tuple)]
"""A list in a file, where a single value stands for a list of one."""


def read_toml(path: str | os.PathLike[str], model: type[M]) -> M:
    """Read a TOML file as a model; the first mistake in it becomes an `InputError`.

    Parameters
    ----------
    model
        What the file may hold, best as a subclass of `TomlTable`. Lists become tuples.
    """
    file = Path(path)
    table = _table(file)
    try:
        return model.model_validate(table, strict=True)
    except ValidationError as error:
        raise _refusal(file, table, model, _first(error)) from None


def _table(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        return {key: _with_tuples(value) for key, value in tomllib.loads(text).items()}
    # Besides TOML's own errors: a number of thousands of digits, brackets within brackets.
    except (ValueError, RecursionError) as error:
        fix = "Write lines like key = value, with text in double quotes"
        raise InputError(f"is not valid TOML: {error}", where=path, fix=fix) from error


def _with_tuples(value: object) -> object:
    """Return a value with tuples for lists, which is what strict models of frozen values take."""
    if isinstance(value, list):
        return tuple(_with_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _with_tuples(item) for key, item in value.items()}
    return value


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


_UNKNOWN, _MISSING, _REFUSED = "extra_forbidden", "missing", "value_error"
_WRONG_TYPE = {
    "bool_type",
    "date_type",
    "datetime_type",
    "dict_type",
    "float_type",
    "int_type",
    "literal_error",
    "model_type",
    "string_type",
    "tuple_type",
}


def _first(error: ValidationError) -> ErrorDetails:
    """Return the error to report: an unknown key if there is one.

    It is often the misspelling of a key that is reported as missing as well.
    """
    errors = error.errors(include_url=False)
    return next((one for one in errors if one["type"] == _UNKNOWN), errors[0])


def _refusal(path: Path, table: dict[str, Any], model: type, error: ErrorDetails) -> InputError:
    """Return a pydantic error in our words."""
    kind, loc = error["type"], error["loc"]
    whole = _Place("", "", table, model, model)
    if kind in {_UNKNOWN, _MISSING}:
        return _key_refusal(path, whole.at(loc[:-1]), str(loc[-1]), kind)
    place, cause = whole.at(loc), error.get("ctx", {}).get("error")
    if kind == _REFUSED and isinstance(cause, InputError):
        return InputError(cause.problem, where=path, fix=cause.fix)
    found, wanted, written = _found(place.value), _kind(place.wanted), _kind(place.written)
    if kind in _WRONG_TYPE and wanted is not None and written is not None:
        fix = f"Write it like {written.line(place.key)}"
        return InputError(f"{place.name} is {found}, not {wanted.words}", where=path, fix=fix)
    rule = error["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return InputError(f"{place.name} is {found}, but {rule}", where=path)


def _key_refusal(path: Path, place: _Place, key: str, kind: str) -> InputError:
    within = f" in {place.name.removesuffix(',')}" if place.name else ""
    fields = place.wanted.model_fields if _is_model(place.wanted) else {}
    if kind == _UNKNOWN:
        known = suggestion(key, fields)
        return InputError(f"there is no key {key!r}{within}", where=path, fix=known)
    wanted = _kind(_core(fields[key].annotation))
    fix = None if wanted is None else f"Add a line such as {wanted.line(key)}"
    return InputError(f"the key {key!r} is missing{within}", where=path, fix=fix)


@dataclass(frozen=True)
class _Place:
    """A place in a file, found by following the location of a pydantic error.

    Attributes
    ----------
    name
        How a message calls it, such as ``blocks, table 2, group_sizes``; "" for the whole file.
    key
        The key that is written in the file, such as ``group_sizes``.
    value
        What the file has there.
    wanted, written
        The type that the model wants there, and that of the whole value of `key`. They differ for
        an item of a list.
    """

    name: str
    key: str
    value: object
    wanted: object
    written: object

    def at(self, loc: tuple[int | str, ...]) -> _Place:
        """Follow the location, as far as the file and the model have it."""
        place = self
        for step in loc:
            found = place._item(step) if isinstance(step, int) else place._under(step)
            if found is None:
                break
            place = found
        return place

    def _item(self, index: int) -> _Place | None:
        wanted = _item_type(self.wanted)
        if isinstance(self.value, tuple):
            item = self.value[index]
            what = "table" if isinstance(item, dict) and _is_model(wanted) else "item"
            key = "" if what == "table" else self.key
            return _Place(f"{self.name}, {what} {index + 1},", key, item, wanted, self.written)
        # A single table stands for a list of one. Anything else here should have been a list.
        single = isinstance(self.value, dict) and _is_model(wanted)
        return replace(self, wanted=wanted) if single else None

    def _under(self, key: str) -> _Place | None:
        if not isinstance(self.value, dict) or key not in self.value:
            return None
        if _is_model(self.wanted):
            wanted = _core(self.wanted.model_fields[key].annotation)
        else:
            wanted = _core(get_args(self.wanted)[1]) if get_origin(self.wanted) is dict else None
        joint = " " if self.name.endswith(",") else "." if self.name else ""
        dotted = f"{self.key}.{key}" if self.key else key
        return _Place(f"{self.name}{joint}{key}", dotted, self.value[key], wanted, wanted)


@dataclass(frozen=True)
class _Kind:
    """A type of values: what it is called, and how one is written.

    Attributes
    ----------
    words, plural
        What one of them, and several, are called.
    example
        What a value looks like.
    header
        What a table begins with, with ``{}`` for its key; "" for values that are not tables.
    """

    words: str
    plural: str
    example: str
    header: str = ""

    def line(self, key: str) -> str:
        """Return a line of a file that gives a key such a value."""
        return self.header.format(key) if self.header else f"{key} = {self.example}"


_SCALARS: dict[object, _Kind] = {
    str: _Kind("text", "texts", '"some text"'),
    int: _Kind("a whole number", "whole numbers", "10"),
    float: _Kind("a number", "numbers", "0.5"),
    bool: _Kind("true or false", "true or false", "true"),
    date: _Kind("a date", "dates", "2024-05-31"),
    datetime: _Kind("a date", "dates", "2024-05-31"),
}


def _kind(type_: object) -> _Kind | None:
    """Describe a type; None if it is none of those that `TomlTable` names."""
    origin, inside = get_origin(type_), get_args(type_)
    if origin is Literal:
        choices = " or ".join(repr(choice) for choice in inside)
        return _Kind(choices, f"texts out of {choices}", f'"{inside[0]}"')
    if origin in {Union, UnionType}:
        kinds = {_kind(one) for one in inside if one is not NoneType}
        return kinds.pop() if len(kinds) == 1 else None
    if origin is tuple and (item := _kind(_item_type(type_))):
        header = f"[{item.header}]" if item.header else ""
        return _Kind(f"a list of {item.plural}", "lists", f"[{item.example}]", header)
    if origin is dict and (value := _kind(_core(inside[1]))):
        return _Kind(f"a table of {value.plural}", "tables", f"{{ name = {value.example} }}")
    if _is_model(type_):
        return _Kind("a table", "tables", "{ }", "[{}]")
    return _SCALARS.get(type_)


def _core(annotation: object) -> object:
    """Return a type without what is said about it, and without None, which TOML does not have."""
    if get_origin(annotation) is Annotated:
        return _core(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return _core(kinds[0]) if len(kinds) == 1 else annotation
    return annotation


def _item_type(type_: object) -> object:
    """Return the type of the items of a list; None if the type is not one of lists."""
    item, *rest = get_args(type_) or (None,)
    return _core(item) if rest == [Ellipsis] else None


def _is_model(type_: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(type_, type) and issubclass(type_, BaseModel)


def _found(value: object) -> str:
    """Describe a value of a file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "a list"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, str):
        return f"the text {_short(value)!r}"
    kind = "date" if isinstance(value, date) else "time" if isinstance(value, time) else "number"
    return f"the {kind} {_short(str(value))}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
