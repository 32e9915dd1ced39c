"""The steps that a mechanism is made of."""

from __future__ import annotations

from typing import TypeAlias

from whosthere.privacy.maps import Map, Round, Suppress
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, IntegerNoise, Laplace

__all__ = [
    "DiscreteLaplace",
    "Gaussian",
    "IntegerNoise",
    "Laplace",
    "Map",
    "Round",
    "Step",
    "Suppress",
]

Step: TypeAlias = Map | IntegerNoise
