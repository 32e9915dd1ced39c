"""The steps that a mechanism can be made of."""

from __future__ import annotations

from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.rounding import RandomRound, Round, Suppress
from whosthere.privacy.step import Step

__all__ = [
    "STEPS",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "RandomRound",
    "Round",
    "Step",
    "Suppress",
]

STEPS: tuple[type[Step], ...] = (Suppress, Round, RandomRound, Laplace, DiscreteLaplace, Gaussian)
"""All kinds of step that specs can name, in the order of lists."""
