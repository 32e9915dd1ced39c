"""All that a mechanism's spec can name: steps, presets, and nothing at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.rounding import RandomRound, Round, Suppress
from whosthere.specs import Catalogue, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.privacy.step import Step

RAW = "raw"
"""Stands for no step at all, so it changes nothing within a longer mechanism."""
STEPS: tuple[type[Step], ...] = (Suppress, Round, RandomRound, Laplace, DiscreteLaplace, Gaussian)
"""All kinds of step that specs can name, in the order of lists."""


@dataclass(frozen=True)
class Preset:
    """A rule that publishers are known to use: its steps, and where it comes from in one line."""

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


def _of_step(kind: type[Step]) -> Kind:
    def make(**fields: Any) -> tuple[Step, ...]:  # noqa: ANN401
        return (kind(**fields),)

    return replace(Kind.of(kind), make=make)


MECHANISMS = Catalogue(
    "mechanism",
    {
        RAW: Kind(tuple, example=RAW, summary="publish the true counts"),
        **{kind.name: _of_step(kind) for kind in STEPS},
        **{
            name: Kind(lambda preset=preset: preset.steps, example=name, summary=preset.meaning)
            for name, preset in PRESETS.items()
        },
    },
)
"""Each kind makes a tuple of steps."""


def parse_steps(text: str) -> tuple[Step, ...]:
    """Read the steps of a mechanism, none for ``raw``."""
    return tuple(step for steps in MECHANISMS.parse_chain(text) for step in steps)
