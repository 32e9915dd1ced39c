"""What all steps of a mechanism have in common.

A step takes a whole number within a range to one within a range of its own, or withholds it, each
cell by itself. Whatever else needs to know about a step asks it here, so that a new kind of step is
one new class of one of the three shapes in `whosthere.privacy.shapes`. Only a function of a user's
own (`whosthere.privacy.own`) changes a table as a whole, and has no law.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from whosthere.arrays import own
from whosthere.privacy.exact_noise import Randomness
from whosthere.specs import check_parameters, write

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Group
    from whosthere.privacy.trade_off import TradeOff
    from whosthere.privacy.units import Guarantee, Unit

Ints: TypeAlias = "NDArray[np.integer]"
Counts: TypeAlias = "NDArray[np.int32]"
Ends: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Draw: TypeAlias = "NDArray[Any]"
"""The random numbers of one step, one for each cell."""
WITHHELD = int(np.iinfo(np.int32).min)
"""Stands among published values for a count that is withheld; less than every number."""
NO_DRAW: Draw = own(np.empty(0), np.float64)
"""What a step without chance is given."""


class Span(NamedTuple):
    """All whole numbers from the lowest to the highest, both included."""

    lowest: int
    highest: int

    def holds(self, values: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Tell which values lie in it."""
        return (self.lowest <= values) & (values <= self.highest)


class Alphabet(NamedTuple):
    """The symbols that a mechanism can publish for a group, numbered from 0 in their order.

    "Withheld" comes first, where it is possible. So compiled code, tables and tallies see plain
    numbers from 0 on, which are as small as the published values.
    """

    lowest: int
    highest: int
    withholds: bool

    @property
    def size(self) -> int:
        """How many symbols there are."""
        return self.highest - self.base + 1

    @property
    def base(self) -> int:
        """The published value of symbol 0, unless that is "withheld"."""
        return self.lowest - self.withholds

    def symbols(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the symbols of published values, `WITHHELD` among them; no copy if the same."""
        if not self.withholds:
            return values if self.base == 0 else values - np.int32(self.base)
        return np.where(values == WITHHELD, np.int32(0), values - np.int32(self.base))

    def values(self, symbols: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the published values that symbols stand for."""
        values = symbols.astype(np.int32) + np.int32(self.base)
        return np.where(symbols == 0, np.int32(WITHHELD), values) if self.withholds else values


class Correction(Enum):
    """What undoes a step's effect on the shares of regions and epochs, roughly."""

    NONE = "none"
    COMPRESS = "compress"
    """Visits are taken from quiet regions and epochs: the shares become too uneven."""
    STRETCH = "stretch"
    """About the same is added everywhere: the shares become too even."""


class Tabulated(NamedTuple):
    """A step that adds a random whole number to a count and looks the result up.

    `chances` are those of the number's values from the `lowest` on; they sum up to 1 within 1e-12.
    `results` is what sums from the lowest count on become, `WITHHELD` among them; at least for all
    counts. Sums below are taken for the lowest count, and those above for the last.
    """

    lowest: int
    chances: Floats
    results: Counts


class Step(ABC):
    """One thing that is done to counts.

    Subclass `Map` for steps without chance, `AddedNoise` for noise, and `ChanceTable` for steps
    that choose between a few results. `within` is the range of the counts that a step is given:
    from 0 to the size of the group, unless an earlier step changed that.
    """

    name: ClassVar[str]
    """What specs call it."""
    example: ClassVar[str]
    """How it is written."""
    summary: ClassVar[str]
    """One line for lists."""

    is_random: ClassVar[bool]
    """Whether anything is left to chance."""
    has_law: ClassVar[bool] = True
    """Whether a result depends on the count of its own cell alone, with chances that are known."""
    noise_of: ClassVar[Literal["cell", "people"]] = "cell"
    """Whether each cell draws its own noise, or the same people in a cell get the same noise."""
    randomness: ClassVar[Randomness] = Randomness.SYSTEM
    """Where the random numbers of `draw_securely` come from, if there are any."""
    unit: Unit | None = None
    """What the step's noise protects, if it is meant to protect one of the units."""

    @property
    def withheld(self) -> Span | None:
        """The counts that this step withholds, if any."""
        return None

    def span(self, within: Span) -> Span:
        """Return the range of the results, given that of the counts."""
        return within

    def __post_init__(self) -> None:
        """Check the parameters, of steps that have any."""
        check_parameters(self)

    # What the step does to counts

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Draw:  # noqa: ARG002
        """Draw the random numbers of this step for an array of cells."""
        return NO_DRAW

    def draw_securely(self, shape: tuple[int, ...]) -> Draw:
        """Draw the same so that nobody can predict it; `randomness` says how good that is."""
        return self.draw(shape, np.random.default_rng(secrets.randbits(256)))

    def draw_for(
        self,
        people: Group,  # noqa: ARG002 - what noise of people is made of
        shape: tuple[int, ...],
        rng: np.random.Generator | None,
    ) -> Draw:
        """Draw for one publication of some people; without a generator, securely."""
        return self.draw_securely(shape) if rng is None else self.draw(shape, rng)

    @abstractmethod
    def publish(self, values: Counts, draw: Draw, within: Span) -> Counts:
        """Return the counts after this step, as a new array; `WITHHELD` where withheld.

        Counts and random numbers broadcast against each other. A larger count never gives a
        smaller result with the same random number, if any coupling can do that.
        """

    @abstractmethod
    def describe(self) -> str:
        """Say in one public sentence what this step does, in short before its first comma."""

    @property
    def changes_counts(self) -> bool:
        """Whether anything is done at all; rounding to 1 is nothing."""
        return True

    @property
    def correction(self) -> Correction:
        """What an attacker may do about this step's effect on the shares of regions and epochs."""
        return Correction.NONE

    @property
    def guarantee(self) -> Guarantee | None:
        """The differential privacy that this step gives to true counts, if any."""
        return None

    def trade_off(self, differing: int) -> TradeOff | None:  # noqa: ARG002
        """Return the best test between true counts that differ by one in so many cells.

        None where only eps and delta are known, or nothing.
        """
        return None

    @abstractmethod
    def lands(self, counts: Span, within: Span) -> Span:
        """Return where results of some counts lie, but for less than 1e-18 of the chance."""

    @property
    def slope(self) -> float:
        """How much one person more adds to a published count that is not small."""
        return 1.0

    @property
    def scale(self) -> float:
        """Width of noise that can publish any count, in people; 0 where only some are possible.

        Chances hardly differ between counts that are much less than a scale apart.
        """
        return 0.0

    def __str__(self) -> str:
        return write(self)
