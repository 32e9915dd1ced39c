"""The steps that protect counts, what they can protect, and what is needed to write another."""

from whosthere.privacy.catalogue import MECHANISMS
from whosthere.privacy.chance_table import ChanceTable, Choices
from whosthere.privacy.families import Family
from whosthere.privacy.guarantees import GuaranteeLedger, game_guarantee
from whosthere.privacy.maps import Map
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import IntegerNoise
from whosthere.privacy.presets import PRESETS
from whosthere.privacy.publish import Publication
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
    "ChanceTable",
    "Choices",
    "Correction",
    "DiscreteLaplace",
    "Event",
    "Family",
    "Gaussian",
    "GuaranteeLedger",
    "IntegerNoise",
    "Laplace",
    "Map",
    "Mechanism",
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
