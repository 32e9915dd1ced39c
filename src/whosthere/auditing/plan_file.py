"""Plans as TOML files."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from whosthere.auditing.options import AuditOptions, Block
from whosthere.auditing.toml import Several, read_toml
from whosthere.errors import InputError

if TYPE_CHECKING:
    import os


class _Block(BaseModel):
    """What a block of a plan file may hold."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    mechanisms: Several[str] = ()
    group_sizes: Several[int] = ()
    knowledge: Several[str] = ()
    attacks: Several[str] = ()


class _PlanFile(_Block):
    """What a plan file may hold: keys of blocks at its top are the usual ones of every block."""

    blocks: tuple[_Block, ...] = ()
    scale: str = ""
    targets: int | None = None
    min_visits: int = 1
    users: Several[str] = ()
    releases: int | None = None
    releases_of: dict[str, int] = {}
    control_releases: int | None = None
    reference_size: int | None = None
    past_releases: int = 0
    test_from: datetime | date | None = None
    seed: int = 0


def read_plan_file(path: str | os.PathLike[str]) -> AuditOptions:
    """Read the options of an audit from a TOML file."""
    found = read_toml(path, _PlanFile)
    usual = {name: getattr(found, name) for name in _BLOCK_KEYS & found.model_fields_set}
    others = found.model_fields_set - _BLOCK_KEYS - {"blocks"}
    try:
        blocks = tuple(
            Block(**usual | {name: getattr(block, name) for name in block.model_fields_set})
            for block in found.blocks or (_Block(),)
        )
        chosen = {name: getattr(found, name) for name in others}
        if "test_from" in chosen and not isinstance(chosen["test_from"], datetime):
            chosen["test_from"] = datetime.combine(chosen["test_from"], time())
        return AuditOptions(blocks, **chosen)
    except InputError as error:
        if error.where is not None:
            raise InputError(f"{error.where}: {error.problem}", where=path, fix=error.fix) from None
        raise InputError(error.problem, where=path, fix=error.fix) from None


_BLOCK_KEYS = frozenset(_Block.model_fields)
