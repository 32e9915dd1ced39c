"""All that a mechanism's spec can name: steps, presets, and nothing at all."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from whosthere.privacy.presets import PRESETS
from whosthere.privacy.steps import STEPS, Step
from whosthere.specs import Catalogue, Kind

if TYPE_CHECKING:
    from whosthere.privacy.presets import Preset

RAW = "raw"
"""Stands for no step at all, so it changes nothing within a longer mechanism."""


def _of_step(kind: type[Step]) -> Kind:
    """Return a kind that makes one step."""
    return replace(Kind.of(kind), make=partial(_single, kind))


def _single(kind: type[Step], **fields: Any) -> tuple[Step, ...]:  # noqa: ANN401
    return (kind(**fields),)


def _of_preset(name: str, preset: Preset) -> Kind:
    return Kind(lambda: preset.steps, example=name, summary=preset.meaning)


MECHANISMS = Catalogue(
    "mechanism",
    {
        RAW: Kind(tuple, example=RAW, summary="publish the true counts"),
        **{kind.name: _of_step(kind) for kind in STEPS},
        **{name: _of_preset(name, preset) for name, preset in PRESETS.items()},
    },
)
"""Each kind makes a tuple of steps."""


def parse_steps(text: str) -> tuple[Step, ...]:
    """Read the steps of a mechanism, none for ``raw``."""
    return tuple(step for steps in MECHANISMS.parse_chain(text) for step in steps)
