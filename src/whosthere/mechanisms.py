"""The steps that protect counts, what they can protect, and what is needed to write another."""

from whosthere.privacy.catalogue import MECHANISMS
from whosthere.privacy.families import Family
from whosthere.privacy.guarantees import GuaranteeLedger, game_guarantee
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import PrivateNoise
from whosthere.privacy.presets import PRESETS
from whosthere.privacy.publish import Publication
from whosthere.privacy.shapes import AddedNoise, ChanceTable, Choices, Map
from whosthere.privacy.step import Correction
from whosthere.privacy.steps import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomRound,
    Round,
    Step,
    Suppress,
)
from whosthere.privacy.units import Event, Unit, User, UserDay
from whosthere.privacy.utility import Utility
from whosthere.specs import NUMBER, WHOLE, parameter

__all__ = [
    "MECHANISMS",
    "NUMBER",
    "PRESETS",
    "WHOLE",
    "AddedNoise",
    "ChanceTable",
    "Choices",
    "Correction",
    "DiscreteLaplace",
    "Event",
    "Family",
    "Gaussian",
    "GuaranteeLedger",
    "Laplace",
    "Map",
    "Mechanism",
    "PrivateNoise",
    "Publication",
    "RandomRound",
    "Round",
    "Step",
    "Suppress",
    "Unit",
    "User",
    "UserDay",
    "Utility",
    "game_guarantee",
    "parameter",
]
