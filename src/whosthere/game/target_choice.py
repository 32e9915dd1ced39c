"""How the targets of an audit were chosen, which decides for whom its numbers speak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_AT_RANDOM, _BY_HAND = "at random", "by hand"
_NUMBERS = ("min_visits", "eligible", "people")


@dataclass(frozen=True)
class TargetChoice:
    """How targets were chosen; it holds no name and no row of anybody.

    Attributes
    ----------
    by_hand
        Whether a user named them. They are then no sample, and speak for nobody else.
    min_visits
        How many visits the people had at least from whom they were drawn at random.
    eligible, people
        How many people these were, rounded up to a multiple of 5, and how many there are.
    """

    by_hand: bool = False
    min_visits: int = 1
    eligible: int = 0
    people: int = 0

    @property
    def who(self) -> str | None:
        """Whom the numbers are about; None if they are about everybody."""
        if self.by_hand:
            return "people named by hand"
        return f"people with {self.min_visits:,} or more visits" if self.min_visits > 1 else None

    def __str__(self) -> str:
        if self.by_hand:
            return "named by hand"
        if self.who is None:
            return "drawn at random"
        return f"drawn at random from {self.who} ({self.eligible:,} of {self.people:,})"

    def to_json(self) -> dict[str, Any]:
        """Return the choice as a JSON object."""
        if self.by_hand:
            return {"how": _BY_HAND}
        return {
            "how": _AT_RANDOM,
            "min_visits": self.min_visits,
            "eligible": self.eligible,
            "people": self.people,
        }

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> TargetChoice:
        """Read what `to_json` wrote."""
        if described["how"] == _BY_HAND:
            return cls(by_hand=True)
        least, eligible, people = (int(described[name]) for name in _NUMBERS)
        return cls(min_visits=least, eligible=eligible, people=people)
