"""Rules that publishers are known to use, by name."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from whosthere.privacy.steps import RandomRound, Round, Step, Suppress

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Preset:
    """The steps that a name stands for, and one line on where they come from."""

    steps: tuple[Step, ...]
    meaning: str


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "flowkit": Preset(
            (Suppress(15),), "FlowKit publishes only the counts of more than 15 people"
        ),
        "mds": Preset(
            (Suppress(9),), "The Mobility Data Specification redacts counts of fewer than 10"
        ),
        "opensafely": Preset(
            (Suppress(7), Round(5)),
            "OpenSAFELY redacts counts of 7 or fewer, then rounds to the nearest 5",
        ),
        "stats-nz": Preset(
            (RandomRound(3),),
            "Statistics New Zealand rounds the counts of a census at random to multiples of 3",
        ),
    }
)
