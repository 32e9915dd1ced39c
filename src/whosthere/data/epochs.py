"""The time slots of a data set."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo

import numpy as np

from whosthere.arrays import own
from whosthere.display import Shown
from whosthere.errors import InputError
from whosthere.specs import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_MICROSECOND = timedelta(microseconds=1)
_UNIX_ORIGIN = datetime(1970, 1, 1, tzinfo=UTC)
DAYS_A_WEEK = 7


def parse_length(text: str | timedelta) -> timedelta:
    """Read a length of time such as ``15min``, ``1h``, ``1d`` or ``1w``."""
    if isinstance(text, timedelta):
        return text
    match = re.fullmatch(r"\s*0*([1-9]\d{,7})\s*(s|min|h|d|w)\s*", str(text))
    if match is None:
        raise InputError(
            f"{text!r} is not a length of time", fix="Write it like 15min, 1h, 1d or 1w"
        )
    return int(match[1]) * _UNITS[match[2]]


def format_length(length: timedelta) -> str:
    """Write a length of time as `parse_length` reads it."""
    for unit, size in reversed(_UNITS.items()):
        if length % size == timedelta(0):
            return f"{length // size}{unit}"
    raise InputError(f"{length} is not a whole number of seconds")


def zone(name: str) -> ZoneInfo:
    """Look a time zone up by its IANA name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError) as error:
        raise InputError(
            f"{name!r} is not a known time zone",
            fix="Use an IANA name (`timezone`), such as Europe/Rome or UTC",
        ) from error


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970-01-01 UTC, exactly."""
    return (moment - _UNIX_ORIGIN) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment, in UTC, of a number of microseconds since 1970-01-01 UTC."""
    return _UNIX_ORIGIN + micros * _MICROSECOND


@dataclass(frozen=True, repr=False)
class Epochs(Shown):
    """Consecutive time slots of one length.

    The length is elapsed time: across a change to or from summer time an epoch of one day
    still lasts 24 hours. The day of an epoch is the local date at its start.

    Parameters
    ----------
    start
        When the first epoch begins; must carry a time zone, is kept in UTC.
    length
        How long each epoch lasts, a whole number of seconds.
    n
        How many there are.
    timezone
        IANA name of the zone whose calendar the people live by.
    """

    start: datetime
    length: timedelta
    n: int
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        if self.start.tzinfo is None:
            raise InputError(f"the first epoch's start {self.start} has no time zone")
        if self.length <= timedelta(0) or self.length % timedelta(seconds=1):
            raise InputError(f"epochs of {self.length} are not a whole number of seconds")
        object.__setattr__(self, "n", whole(self.n, "the number of epochs"))
        if self.n < 1:
            raise InputError(f"there must be at least one epoch, not {self.n}")
        zone(self.timezone)
        object.__setattr__(self, "start", self.start.astimezone(UTC))

    def __len__(self) -> int:
        return self.n

    @classmethod
    def between(
        cls, start: datetime, end: datetime, *, length: timedelta, timezone: str = "UTC"
    ) -> Self:
        """Cover [start, end) by epochs that begin at `start`; the last may reach past `end`."""
        if end <= start:
            raise InputError(
                f"the time window ends ({_local(end, timezone)}) before it starts "
                f"({_local(start, timezone)})",
                fix="Swap its start and end",
            )
        # In UTC: Python subtracts times of one zone by the clock on the wall.
        elapsed = end.astimezone(UTC) - start.astimezone(UTC)
        return cls(start, length, -(-elapsed // length), timezone)

    @classmethod
    def covering(
        cls, first: datetime, last: datetime, *, length: timedelta, timezone: str = "UTC"
    ) -> Self:
        """Cover every moment from `first` to `last`, counted from local midnight before `first`."""
        local = first.astimezone(zone(timezone))
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
        start = midnight + (first.astimezone(UTC) - midnight) // length * length
        return cls(start, length, (last.astimezone(UTC) - start) // length + 1, timezone)

    def joined(self, k: int) -> Epochs:
        """Return epochs that hold `k` of these each, from the first on; the last may hold fewer."""
        if k < 1:
            raise InputError(f"{k} epochs cannot be joined to one", fix="Give at least 1")
        return replace(self, length=k * self.length, n=-(-self.n // k))

    def part(self, first: int, n: int) -> Epochs:
        """Return `n` of these epochs, from number `first` on."""
        if n < 1 or not 0 <= first <= self.n - n:
            raise InputError(
                f"{n} epochs from number {first} on are not among these {self.n}",
                fix=f"Stay within 0 to {self.n - 1}, with at least one epoch",
            )
        return replace(self, start=self.start + first * self.length, n=n)

    @property
    def end(self) -> datetime:
        """When the last epoch is over, in UTC."""
        return self.start + self.n * self.length

    @cached_property
    def starts(self) -> NDArray[np.datetime64]:
        """Start of every epoch in UTC, datetime64[us], shape (n,)."""
        micros = to_micros(self.start) + self.length // _MICROSECOND * np.arange(self.n)
        return own(micros.astype("datetime64[us]"), np.datetime64)

    @cached_property
    def local_starts(self) -> list[datetime]:
        """Start of every epoch, in local time."""
        local = zone(self.timezone)
        return [(self.start + i * self.length).astimezone(local) for i in range(self.n)]

    @cached_property
    def days(self) -> NDArray[np.int32]:
        """Local day of every epoch, counted from 0 on the first epoch's day, shape (n,)."""
        ordinals = np.array([start.toordinal() for start in self.local_starts])
        return own(ordinals - ordinals[0], np.int32)

    @cached_property
    def hours_of_week(self) -> NDArray[np.int32]:
        """Local hour of the week in which every epoch begins, Monday 00:00 being 0, shape (n,)."""
        hours = [24 * start.weekday() + start.hour for start in self.local_starts]
        return own(np.array(hours), np.int32)

    @property
    def n_days(self) -> int:
        """How many local days the epochs touch."""
        return int(self.days[-1]) + 1

    @cached_property
    def weeks(self) -> NDArray[np.int32]:
        """Week of every epoch, in sevens of days from the first epoch's day, shape (n,)."""
        return own(self.days // DAYS_A_WEEK, np.int32)

    def index_of(self, micros: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the epoch of each moment (microseconds since 1970 UTC), -1 outside all epochs."""
        index = (micros - to_micros(self.start)) // (self.length // _MICROSECOND)
        return np.where((index >= 0) & (index < self.n), index, -1).astype(np.int32)

    def to_json(self) -> dict[str, Any]:
        """Describe the epochs in plain values."""
        return {
            "start": self.start.isoformat(),
            "length": format_length(self.length),
            "n": self.n,
            "timezone": self.timezone,
        }

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Make the epochs that `to_json` described."""
        return cls(
            datetime.fromisoformat(described["start"]),
            parse_length(described["length"]),
            int(described["n"]),
            described["timezone"],
        )

    def __str__(self) -> str:
        return f"{self.n:,} epochs of {format_length(self.length)} from {self.local_start}"

    def _facts(self) -> dict[str, object]:
        return {"epochs": str(self)}

    @property
    def local_start(self) -> str:
        """When the first epoch begins, as messages have it: local time and its zone."""
        return _local(self.start, self.timezone)


def _local(moment: datetime, timezone: str) -> str:
    return f"{moment.astimezone(zone(timezone)):%Y-%m-%d %H:%M} {timezone}"
