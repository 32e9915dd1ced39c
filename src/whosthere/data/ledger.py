"""The account of how records became traces: what was dropped along the way, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Entry:
    """One reason for dropping records, with how many records and users were lost to it."""

    reason: str
    records: int
    users: int


@dataclass(frozen=True)
class FriendEntry:
    """What became of the rows of a table of friends: pairs of users in the traces are kept, once.

    Of an `unknown` row one or both ids belong to nobody in the traces; a `repeated` one names a
    pair again, either way round, or a user as their own friend.
    """

    rows_read: int
    unknown: int
    repeated: int
    kept: int


@dataclass(frozen=True)
class Ledger:
    """What was read, what was dropped step by step, and what was left."""

    records_read: int
    users_read: int
    """All that the files held."""
    entries: tuple[Entry, ...]
    """What was dropped, in order."""
    visits: int
    users: int
    """What the traces hold."""
    friends: FriendEntry | None = None
    """What became of a table of friends, where one was read."""
    notes: tuple[str, ...] = ()
    """What else should be known of the reading, in short sentences, such as encodings."""
    not_read: tuple[str, ...] = ()
    """Names of files in the folder whose extension is unknown."""
    bad_files: tuple[str, ...] = ()
    """What is wrong with each file that was left out."""
    columns: dict[str, str] = field(default_factory=dict)
    """For each of user, time, and region, lon and lat or point: the column that was read."""

    def to_json(self) -> dict[str, Any]:
        """Describe the account in plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Make the account that `to_json` described."""
        entries = tuple(Entry(**entry) for entry in described["entries"])
        friends = described["friends"] and FriendEntry(**described["friends"])
        names = ("notes", "not_read", "bad_files")
        lists = {name: tuple(described.get(name, ())) for name in names}
        return cls(**{**described, "entries": entries, "friends": friends, **lists})
