"""The steps that protect counts, what they can protect, and what is needed to write another."""

from whosthere.privacy.cell_key import CellKey as CellKey, Ptable as Ptable
from whosthere.privacy.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from whosthere.privacy.guarantees import game_guarantee as game_guarantee
from whosthere.privacy.mechanism import Family as Family, Mechanism as Mechanism
from whosthere.privacy.noise import (
    DiscreteLaplace as DiscreteLaplace,
    Gaussian as Gaussian,
    Laplace as Laplace,
    PrivateNoise as PrivateNoise,
)
from whosthere.privacy.own import own as own
from whosthere.privacy.rounding import (
    Floor as Floor,
    RandomRound as RandomRound,
    Round as Round,
    RoundBySize as RoundBySize,
    Scale as Scale,
    Suppress as Suppress,
)
from whosthere.privacy.shapes import (
    AddedNoise as AddedNoise,
    ChanceTable as ChanceTable,
    Choices as Choices,
    Map as Map,
)
from whosthere.privacy.step import Correction as Correction, Span as Span, Step as Step
from whosthere.privacy.units import (
    Event as Event,
    Unit as Unit,
    User as User,
    UserDay as UserDay,
    UserPeriod as UserPeriod,
    UserWeek as UserWeek,
)
from whosthere.specs import (
    NUMBER as NUMBER,
    WHOLE as WHOLE,
    Value as Value,
    parameter as parameter,
)
