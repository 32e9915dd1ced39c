"""The account of how records became traces: what was dropped on the way, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Entry:
    """One reason for dropping something, with how many records and users went for it."""

    reason: str
    records: int
    users: int


@dataclass(frozen=True)
class Ledger:
    """What was read, what was dropped step by step, and what was left.

    Attributes
    ----------
    records_read, users_read
        All that the files held.
    entries
        The drops, in the order in which they were made.
    visits, users
        What the traces hold.
    """

    records_read: int
    users_read: int
    entries: tuple[Entry, ...]
    visits: int
    users: int

    def to_json(self) -> dict[str, Any]:
        """Describe the account in plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Make the account that `to_json` described."""
        entries = tuple(Entry(**entry) for entry in described["entries"])
        return cls(**{**described, "entries": entries})
