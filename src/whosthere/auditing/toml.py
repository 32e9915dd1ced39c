"""Reading TOML files strictly: every key must be known, and every value must have its type.

What a file may hold is said by a pydantic model. The first error that pydantic finds becomes a
message that names the file, the key and what was found there.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from whosthere.data.files import existing
from whosthere.errors import FileError, InputError, quote, shown, suggestion

if TYPE_CHECKING:
    import os

    from pydantic_core import ErrorDetails


class TomlTable(BaseModel):
    """Base of the models of TOML tables: no other keys, no conversions."""

    model_config = ConfigDict(strict=True, extra="forbid")


M = TypeVar("M", bound=TomlTable)
T = TypeVar("T")

Several = Annotated[
    list[T], BeforeValidator(lambda value: value if isinstance(value, list) else [value])
]
"""A list in a file, where a single value stands for a list of one."""


def read_toml(path: str | os.PathLike[str], model: type[M]) -> M:
    """Read a TOML file as a model; the first mistake in it becomes an `InputError`."""
    file = Path(path)
    if existing(file).is_dir():
        raise FileError("is a folder", where=file, fix="Name a file")
    try:
        # Some editors put a byte-order mark in front, which TOML does not know.
        return model.model_validate(tomllib.loads(file.read_text(encoding="utf-8-sig")))
    except ValidationError as error:
        raise _refusal(file, model, error.errors(include_url=False)[0]) from None
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror or error})", where=file) from error
    except UnicodeDecodeError as error:
        fix = "Save it as plain text in UTF-8"
        raise FileError("is not text in UTF-8", where=file, fix=fix) from error
    # Besides TOML's own errors: a number of thousands of digits, brackets within brackets.
    except (ValueError, RecursionError) as error:
        fix = "Write lines like key = value, with text in double quotes"
        raise InputError(f"is not valid TOML: {error}", where=file, fix=fix) from error


def _refusal(path: Path, model: type[TomlTable], error: ErrorDetails) -> InputError:
    """Return a pydantic error as one that names the place in the file."""
    *above, last = error["loc"]
    if error["type"] == "extra_forbidden":
        within = f" in {_place(above)}" if above else ""
        known = suggestion(str(last), _keys_at(model, above))
        return InputError(f"there is no key {quote(str(last))}{within}", where=path, fix=known)
    # Such as "Input should be a valid integer".
    rule = error["msg"].removeprefix("Input ")
    found = _found(error["input"])
    return InputError(f"{_place(error['loc'])} {rule}, found {found}", where=path)


def _place(loc: tuple[int | str, ...] | list[int | str]) -> str:
    """Write where in a file a value is, such as ``limits.auc`` or ``blocks, number 2, seed``."""
    text = ""
    for step, before in zip(loc, (None, *loc), strict=False):
        if isinstance(step, int):
            text += f", number {step + 1}"
        else:
            text += {int: ", ", str: "."}.get(type(before), "") + shown(step)
    return text


def _keys_at(model: type[BaseModel], loc: list[int | str]) -> list[str]:
    """Return the keys that a table within the file may have."""
    for key in (step for step in loc if isinstance(step, str)):
        [model] = get_args(model.model_fields[key].annotation)
    return list(model.model_fields)


def _found(value: object) -> str:
    """Write a value as TOML does; of lists and tables only what they are."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    if isinstance(value, bool):
        return str(value).lower()
    return quote(value) if isinstance(value, str) else shown(str(value))
