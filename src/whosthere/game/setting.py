"""One point of a study: what is published, and what is known of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.adversary.knowledge_rules import AllVisits, Familiarity

if TYPE_CHECKING:
    from whosthere.privacy.mechanism import Mechanism


@dataclass(frozen=True)
class Scheme:
    """What is published.

    Parameters
    ----------
    mechanism
        What is done to the counts.
    group_size
        People in a release, m.
    """

    mechanism: Mechanism
    group_size: int

    def __str__(self) -> str:
        return f"{self.mechanism}, m={self.group_size}"


@dataclass(frozen=True)
class Setting:
    """What is published, and what is known of the target; never what the attacker does.

    Parameters
    ----------
    scheme
        What is published.
    knowledge
        How well the attacker knows its targets.
    """

    scheme: Scheme
    knowledge: Familiarity = AllVisits()

    def __str__(self) -> str:
        """Write the setting as tables and files name it; that all is known goes without saying."""
        known = "" if self.knowledge == AllVisits() else f", knows {self.knowledge}"
        return f"{self.scheme}{known}"
