"""All that the spec of a mechanism can name: steps, and presets of rules that publishers use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from whosthere.display import told
from whosthere.privacy.cell_key import CellKey, Ptable
from whosthere.privacy.discrete_gaussian import DiscreteGaussian
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.rounding import Floor, RandomRound, Round, RoundBySize, Scale, Suppress
from whosthere.specs import Catalogue, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.privacy.step import Step

RAW = "raw"
"""Stands for no step at all, so it changes nothing within a longer mechanism."""
STEPS: tuple[type[Step], ...] = (
    Suppress,
    Floor,
    Round,
    RoundBySize,
    RandomRound,
    CellKey,
    Ptable,
    Scale,
    Laplace,
    DiscreteLaplace,
    Gaussian,
    DiscreteGaussian,
)
"""All kinds of step that specs can name, in the order of lists."""


@dataclass(frozen=True)
class Preset:
    """A rule that a publisher is known to use: its spec, what it means, and where that is told.

    `assumed` is what the publisher does not say, if anything.
    """

    spec: str
    meaning: str
    publisher: str
    year: int
    source: str
    assumed: str = ""


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {name: Preset(**one) for name, one in told("whosthere.privacy", "presets").items()}
)
"""The rules of presets.toml by name."""


MECHANISMS = Catalogue(
    "mechanism",
    {
        RAW: Kind(tuple, example=RAW, summary="publish the true counts"),
        **{
            kind.name: replace(Kind.of(kind), make=lambda kind=kind, **fields: (kind(**fields),))
            for kind in STEPS
        },
        **{
            name: Kind(
                lambda preset=preset: steps_of(preset.spec),
                example=name,
                summary=preset.meaning,
            )
            for name, preset in PRESETS.items()
        },
    },
)
"""Each kind makes a tuple of steps."""


def steps_of(spec: str) -> tuple[Step, ...]:
    """Return the steps that a spec names, in order."""
    return tuple(step for steps in MECHANISMS.parse_chain(spec) for step in steps)
