"""The time slots of a data set."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo

import numpy as np

from whosthere.arrays import own
from whosthere.display import Shown
from whosthere.errors import FileError, InputError
from whosthere.specs import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_MICROSECOND, _DAY = timedelta(microseconds=1), timedelta(days=1)
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

    Epochs of whole days begin at local midnight: where the clocks change, a day has 23 or 25 hours.
    All other lengths are elapsed time. The day of an epoch is the local date at its start.

    Parameters
    ----------
    start
        When the first epoch begins; must carry a time zone, is kept in UTC. Of days, the midnight
        before.
    length
        How long each epoch lasts, a whole number of seconds. All multiples of 24h are days.
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
        with _within_the_calendar():
            day, start = _day(self.start, self.timezone), self.start.astimezone(UTC)
            start = _midnight(day, self.timezone) if self.in_days else start
            object.__setattr__(self, "start", start)
            _day(self.end, self.timezone)

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
        one, last = cls(start, length, 1, timezone), end.astimezone(UTC) - _MICROSECOND
        passed = last - one.start
        if one.in_days:
            passed = _day(last, timezone) - _day(one.start, timezone)
        return replace(one, n=passed // length + 1)

    @classmethod
    def covering(
        cls, first: datetime, last: datetime, *, length: timedelta, timezone: str = "UTC"
    ) -> Self:
        """Cover every moment from `first` to `last`, counted from local midnight before `first`."""
        midnight = cls(first, _DAY, 1, timezone).start
        start = midnight + (first.astimezone(UTC) - midnight) // length * length
        end = last.astimezone(UTC) + _MICROSECOND
        return cls.between(start, end, length=length, timezone=timezone)

    @property
    def in_days(self) -> bool:
        """Whether they are local days, or several of them each."""
        return not self.length % _DAY

    def joined(self, k: int) -> Epochs:
        """Return epochs that hold `k` of these each, from the first on; the last may hold fewer.

        So may the first where they become days, and those of a clock change hold fewer or more.
        """
        if k < 1:
            raise InputError(f"{k} epochs cannot be joined to one", fix="Give at least 1")
        return self.covered_by(k * self.length)

    def covered_by(self, length: timedelta) -> Epochs:
        """Return epochs of another length that cover these."""
        return Epochs.between(self.start, self.end, length=length, timezone=self.timezone)

    def n_whole(self, length: timedelta) -> int:
        """Return how many epochs of another length end within these."""
        others = self.covered_by(length)
        return others.n - (others.end > self.end)

    def places_in(self, others: Epochs) -> NDArray[np.int32]:
        """Return which of other epochs holds each of these whole, -1 where none does, (n,)."""
        first, last = map(others.index_of, (self._bounds[:-1], self._bounds[1:] - 1))
        return np.where(first == last, first, np.int32(-1))

    def begun_in(self, length: timedelta) -> NDArray[np.int32]:
        """Return in which of the epochs of another length each begins, from 0, shape (n,)."""
        return self.covered_by(length).index_of(self._bounds[:-1])

    def slots(self, length: timedelta, what: str = "epochs of {}") -> NDArray[np.int32]:
        """Return in which of the epochs of another length each lies, from 0, shape (n,).

        One that lies in two is refused, in a message that says `what` these are.
        """
        place = self.places_in(self.covered_by(length))
        if (place < 0).any():
            own, parts = format_length(self.length), format_length(length)
            start = _local(self.start_of(int((place < 0).argmax())), self.timezone)
            multiple = (
                f", or a multiple of {own} instead of {parts}" if length % self.length else ""
            )
            raise InputError(
                f"{what.format(parts)} do not hold whole epochs of {own}: the epoch from {start} "
                "lies in two of them",
                fix=f"Use epochs that begin and end with the local day, such as 1h or 1d{multiple}",
            )
        return place

    def part(self, first: int, n: int) -> Epochs:
        """Return `n` of these epochs, from number `first` on."""
        if n < 1 or not 0 <= first <= self.n - n:
            raise InputError(
                f"{n} epochs from number {first} on are not among these {self.n}",
                fix=f"Stay within 0 to {self.n - 1}, with at least one epoch",
            )
        return replace(self, start=self.start_of(first), n=n)

    def start_of(self, number: int) -> datetime:
        """When an epoch begins, in UTC; the one after the last begins when that is over."""
        if not self.in_days:
            return self.start + number * self.length
        first = _day(self.start, self.timezone)
        return _midnight(first + number * self.length, self.timezone)

    @property
    def end(self) -> datetime:
        """When the last epoch is over, in UTC."""
        return self.start_of(self.n)

    @cached_property
    def starts(self) -> NDArray[np.datetime64]:
        """Start of every epoch in UTC, datetime64[us], shape (n,)."""
        return own(self._bounds[:-1].astype("datetime64[us]"), np.datetime64)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """When every epoch begins and the last one ends, microseconds since 1970 UTC, (n + 1,)."""
        if self.in_days:
            return np.array([to_micros(self.start_of(i)) for i in range(self.n + 1)])
        return to_micros(self.start) + self.length // _MICROSECOND * np.arange(self.n + 1)

    @cached_property
    def local_starts(self) -> list[datetime]:
        """Start of every epoch, in local time."""
        local = zone(self.timezone)
        return [self.start_of(i).astimezone(local) for i in range(self.n)]

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
        if self.in_days:
            index = np.searchsorted(self._bounds, micros, side="right") - 1
        else:
            index = (micros - to_micros(self.start)) // (self.length // _MICROSECOND)
        return np.where((index >= 0) & (index < self.n), index, -1).astype(np.int32)

    def to_json(self) -> dict[str, Any]:
        """Describe the epochs in plain values."""
        return {
            "start": self.start.isoformat(),
            "length": format_length(self.length),
            "n": self.n,
            "end": self.end.isoformat(),
            "timezone": self.timezone,
        }

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Make the epochs that `to_json` described.

        Earlier versions wrote no end, and took 24 hours for a day. Where the clocks change, these
        are other epochs, and refused.
        """
        start, length = (
            datetime.fromisoformat(described["start"]),
            parse_length(described["length"]),
        )
        made = cls(start, length, int(described["n"]), described["timezone"])
        if "end" in described:
            same = described["end"] == made.end.isoformat()
        else:
            same = not made.in_days or set(np.diff(made._bounds)) == {length // _MICROSECOND}
        if made.start != start or not same:
            raise FileError(
                f"its days do not begin at midnight in {made.timezone}: an earlier version, or one "
                "that knows other changes of the clocks there, made it",
                fix="Make it again from the records",
            )
        return made

    def __str__(self) -> str:
        return f"{self.n:,} epochs of {format_length(self.length)} from {self.local_start}"

    def _facts(self) -> dict[str, object]:
        return {"epochs": str(self)}

    @property
    def local_start(self) -> str:
        """When the first epoch begins, as messages have it: local time and its zone."""
        return _local(self.start, self.timezone)


@contextmanager
def _within_the_calendar() -> Iterator[None]:
    """Refuse moments that no date and time can be written for."""
    try:
        yield
    except OverflowError:
        raise InputError(
            "the epochs are not within the years 1 to 9999", fix="Check how times are written"
        ) from None


def _day(moment: datetime, timezone: str) -> date:
    return moment.astimezone(zone(timezone)).date()


def _midnight(day: date, timezone: str) -> datetime:
    """When a local day begins, in UTC: also if its clocks skip midnight, or show it twice."""
    return datetime.combine(day, time(), zone(timezone)).astimezone(UTC)


def _local(moment: datetime, timezone: str) -> str:
    return f"{moment.astimezone(zone(timezone)):%Y-%m-%d %H:%M} {timezone}"
