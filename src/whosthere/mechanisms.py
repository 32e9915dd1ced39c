"""The steps that protect counts, what they can protect, and what is needed to write another."""

from whosthere.privacy.guarantees import GuaranteeLedger, game_guarantee
from whosthere.privacy.mechanism import MECHANISMS, PRESETS, Family, Mechanism
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace, PrivateNoise
from whosthere.privacy.publish import Publication
from whosthere.privacy.rounding import RandomRound, Round, Suppress
from whosthere.privacy.shapes import AddedNoise, ChanceTable, Choices, Map
from whosthere.privacy.step import Correction, Step
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
