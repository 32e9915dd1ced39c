"""Plans as TOML files."""

from __future__ import annotations

import os
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, create_model

from whosthere.auditing.choices import AuditChoices, Choice, choices_of
from whosthere.auditing.options import IN_BLOCKS, AuditOptions, Block, merged
from whosthere.auditing.toml import Several, TomlTable, read_toml
from whosthere.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_plan_file(path: str | os.PathLike[str]) -> AuditOptions:
    """Read the options of an audit from a TOML file.

    Keys of blocks at the top of the file are defaults of every block.
    """
    given = read_toml(path, _PlanFile).model_dump(exclude_unset=True)
    usual = {name: given.pop(name) for name in IN_BLOCKS if name in given}
    try:
        blocks = tuple(Block(**usual | block) for block in given.pop("blocks", None) or [{}])
        return AuditOptions(blocks, **given)
    except InputError as error:
        problem = error.problem if error.where is None else f"{error.where}: {error.problem}"
        raise InputError(problem, where=path, fix=error.fix) from None


def chosen_options(
    plan: AuditOptions | str | os.PathLike[str] | None, given: Mapping[str, Any]
) -> AuditOptions:
    """Return the options of a plan or of its file, with those given besides, which override them.

    They are given by the names of `AuditChoices`; None stands for what was not.
    """
    options = read_plan_file(plan) if isinstance(plan, str | os.PathLike) else plan
    return merged(options or AuditOptions(), given)


def _midnight(value: object) -> object:
    """Return a date as the moment when it begins."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value


_ONE: dict[type, Any] = {
    int: int,
    float: float,
    bool: bool,
    str: str,
    dict: dict[str, int],
    datetime: Annotated[datetime, BeforeValidator(_midnight)],
}
_SEVERAL: dict[type, Any] = {int: Several[int], str: Several[str]}


def _keys(choices: Mapping[str, Choice]) -> dict[str, Any]:
    """Return the fields of a model, any of which may be left out."""
    return {
        name: ((_SEVERAL if one.several else _ONE)[one.kind], None) for name, one in choices.items()
    }


_EVERYTHING = choices_of(AuditChoices)
_Block: Any = create_model(
    "_Block", __base__=TomlTable, **_keys({name: _EVERYTHING[name] for name in IN_BLOCKS})
)
_PlanFile: Any = create_model(
    "_PlanFile", __base__=TomlTable, blocks=(Several[_Block], None), **_keys(_EVERYTHING)
)
