"""Everything between true counts and published counts, and all that its spec can name."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from whosthere.errors import InputError, SpecError
from whosthere.privacy.catalogue import MECHANISMS, RAW, steps_of
from whosthere.privacy.cell_key import Ptable
from whosthere.privacy.change_file import TableFile
from whosthere.privacy.law import Law
from whosthere.privacy.ledger import describe_guarantee
from whosthere.privacy.step import NO_DRAW, WITHHELD, Correction, Draw, Span, Step
from whosthere.specs import MOST_COUNT, OPEN, Kind, content

if TYPE_CHECKING:
    from datetime import timedelta

    from numpy.typing import ArrayLike, NDArray

    from whosthere.data.traces import Group, Traces
    from whosthere.privacy.step import Alphabet, Tabulated
    from whosthere.privacy.units import Guarantee, Unit

Noise: TypeAlias = "tuple[Draw, ...]"
"""The random numbers of a mechanism: one array for each of its random steps."""
_FAMILY = f"laplace(eps={OPEN}, unit=event)"


@dataclass(frozen=True)
class Mechanism:
    """The `steps` that turn true counts into published values, each cell by itself, in order.

    At most one of them leaves something to chance. A published value is a whole number, or
    `WITHHELD`. Without a step, counts are published as they are.

    A publisher first lets it `bound` the traces, counts, and lets it `apply` itself to the
    counts. All of it is public but the noise.
    """

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        for step in self.steps:
            if not isinstance(step, Step):
                raise SpecError(f"{step!r} is not a step of a mechanism")
        if len(self.random_steps) > 1:
            first, second = self.random_steps[:2]
            raise SpecError(
                f"{first} and {second} both leave something to chance, and the chance of what "
                "comes of both is not computed",
                fix="Leave one of them out, or write both as one step of your own",
            )

    @classmethod
    def parse(cls, given: Mechanism | str) -> Mechanism:
        """Return what a spec such as ``laplace(eps=1, unit=event) | suppress(k=1)`` describes.

        A mechanism is returned as it is.
        """
        if isinstance(given, Mechanism):
            return given
        return cls(steps_of(given))

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps)) or RAW

    @property
    def content(self) -> str:
        """A text that is the same exactly for equal mechanisms, for keys of random numbers."""
        return repr(tuple(content(step) for step in self.steps))

    def law(self, most: int) -> Law:
        """Return what it does to counts from 0 to `most`."""
        return Law(self.steps, most)

    def alphabet(self, m: int) -> Alphabet:
        """Return what can be published for groups of m people: a range, and whether to withhold."""
        return self.law(m).alphabet

    @property
    def withheld(self) -> Span | None:
        """The least and the largest count that some step withholds; None if nothing ever is."""
        held = [step.withheld for step in self.steps if step.withheld is not None]
        return Span(min(held).lowest, max(one.highest for one in held)) if held else None

    @property
    def slope(self) -> float:
        """How much one person more adds to a published count that is not small."""
        return math.prod(step.slope for step in self.steps)

    @property
    def random_steps(self) -> tuple[Step, ...]:
        """The steps that leave something to chance, in order."""
        return tuple(step for step in self.steps if step.is_random)

    @property
    def has_law(self) -> bool:
        """Whether the chance of a published count is known, given the true count of its cell."""
        return all(step.has_law for step in self.steps)

    @property
    def tables(self) -> list[str]:
        """Fingerprints of tables of changes that steps have read from files."""
        return [TableFile.of(step.file).digest for step in self.steps if isinstance(step, Ptable)]

    @property
    def units(self) -> tuple[Unit, ...]:
        """The distinct units that steps protect, in order."""
        found = (step.unit for step in self.steps if step.unit is not None)
        return tuple(dict.fromkeys(found))

    def within(self, time: timedelta) -> Mechanism:
        """Return what it does to one long table that is published in parts of so much time each.

        What is bounded by person is bounded in each part by itself.
        """
        bounded = {step: step.unit.within(time) for step in self.steps if step.unit is not None}
        steps = (
            replace(cast("Any", step), unit=bounded[step]) if step in bounded else step
            for step in self.steps
        )
        return Mechanism(tuple(steps))

    @property
    def bounds_visits(self) -> bool:
        """Whether visits are dropped where a person has too many."""
        return any(unit.bounds_visits for unit in self.units)

    @property
    def changes_counts(self) -> bool:
        """Whether anything is done to counts at all."""
        return any(step.changes_counts for step in self.steps)

    @property
    def correction(self) -> Correction:
        """What undoes the effect on the shares of regions and epochs, roughly."""
        asked = {step.correction for step in self.steps}
        # What noise adds everywhere outweighs what suppression takes away.
        order = (Correction.STRETCH, Correction.COMPRESS)
        return next((one for one in order if one in asked), Correction.NONE)

    @property
    def guarantee(self) -> Guarantee | None:
        """The differential privacy that the mechanism gives, where it can be claimed.

        Noise must come first: then all later steps only process what is private already. Steps
        before it would change how far one unit moves the counts.
        """
        given = self.steps[0].guarantee if self.steps else None
        # Nobody can check what else a function of a user's own looks at.
        return given if self.has_law else None

    def bound(self, traces: Traces, rng: np.random.Generator) -> Traces:
        """Drop visits at random until every step's unit is within its bound."""
        for unit in self.units:
            traces = unit.bound(traces, rng)
        return traces

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Noise:
        """Draw the random numbers of every random step for counts of the given shape."""
        return tuple(step.draw(shape, rng) for step in self.random_steps)

    def draw_for(
        self, people: Group, shape: tuple[int, ...], rng: np.random.Generator | None
    ) -> Noise:
        """Draw the random numbers of one publication; without a generator, securely."""
        return tuple(step.draw_for(people, shape, rng) for step in self.random_steps)

    def publish(self, counts: ArrayLike, noise: Noise, m: int) -> NDArray[np.int32]:
        """Return what is published for true counts in 0..m, given the random numbers.

        `WITHHELD` stands where a count is withheld. No later step sees such a cell. Counts and
        random numbers broadcast against each other, so one draw can serve several groups of m
        people. No given array is changed.
        """
        needed = len(self.random_steps)
        if len(noise) != needed:
            raise InputError(
                f"{self} needs {needed} arrays of noise, not {len(noise)}",
                fix="Draw the noise with the same mechanism",
            )
        values = _checked(counts, Span(0, m), m, "counts")
        if not self.steps:
            return values.copy()
        remaining, held = iter(noise), None
        for step, within in self.law(m).placed:
            draw = next(remaining) if step.is_random else NO_DRAW
            if held is None:
                values = step.publish(values, draw, within)
            else:
                seen = np.where(held, np.int32(within.lowest), values)
                values = np.where(held, np.int32(WITHHELD), step.publish(seen, draw, within))
            if step.withheld is not None:
                held = values == WITHHELD
        return np.asarray(values)

    def apply(self, counts: ArrayLike, m: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Return what is published for true counts in 0..m of a group of m people."""
        return self.publish(counts, self.draw(np.shape(counts), rng), m)

    def tabulated(self, m: int) -> Tabulated | None:
        """Return the mechanism as one table, whose results are symbols of the `alphabet`.

        None where a step has none, or where something is done to counts before noise is added.
        """
        return self.law(m).tabulated()

    def expected(self, m: int, *, withheld: float = 0.0) -> NDArray[np.float64] | None:
        """Return the mean published count for each true count in 0..m, shape (m + 1,).

        Withheld counts are taken for the given number. None where a step has no table.
        """
        return self.law(m).expected(withheld)

    def log_pmf(self, published: ArrayLike, true: ArrayLike, m: int) -> NDArray[np.float64]:
        """Return log P(published | true count) in a group of m, minus infinity where impossible.

        Both arrays broadcast against each other. Published values lie in the `alphabet`.
        Precise in the far tails too.
        """
        law, values = self.law(m), _checked(true, Span(0, m), m, "true counts")
        lowest, highest, withholds = law.alphabet
        given = np.asarray(published)
        shown = np.where(given == WITHHELD, lowest, given) if withholds else given
        _checked(shown, Span(lowest, highest), m, "published counts")
        return law.log_pmf(given, values)

    def pmf(self, published: ArrayLike, true: ArrayLike, m: int) -> NDArray[np.float64]:
        """Return P(published | true count) in a group of m people, exactly; see `log_pmf`."""
        return np.asarray(np.exp(self.log_pmf(published, true, m)))

    def describe(self) -> str:
        """Say in public words what is done to the counts and what that guarantees."""
        return f"{self.describe_steps()} {self.describe_guarantee()}"

    def describe_steps(self) -> str:
        """Say in public words what is done to the counts."""
        sentences = [unit.describe_bound() for unit in self.units]
        sentences += [step.describe() for step in self.steps]
        if not self.steps:
            sentences.append("The true counts are published unchanged.")
        return " ".join(filter(None, sentences))

    @property
    def in_words(self) -> str:
        """What is done to the counts in short, such as ``counts of 1 are published as 0``."""
        sentences = self.describe_steps().rstrip(".").split(". ")
        clauses = (one.partition(",")[0] for one in sentences)
        return "; ".join(one[:1].lower() + one[1:] for one in clauses)

    def describe_guarantee(self) -> str:
        """Say in public words what noise that cannot be predicted would guarantee."""
        if self.guarantee is not None:
            return describe_guarantee(self, self.guarantee)
        if not self.has_law:
            reason = "What the publisher's own function does cannot be checked"
        elif not self.random_steps:
            reason = "Nothing is left to chance"
        elif not any(step.guarantee for step in self.steps):
            reason = "What is left to chance follows no privacy budget"
        else:
            reason = "Noise does not come first"
        return f"{reason}, so no formal guarantee is given."


def _checked(counts: ArrayLike, within: Span, m: int, what: str) -> NDArray[np.int32]:
    """Return counts as int32, or refuse those outside of a range."""
    if not 1 <= m <= MOST_COUNT:
        raise InputError(f"a group must have 1 to {MOST_COUNT} people, not {m}")
    array = np.asarray(counts)
    if array.dtype.kind not in "iu":
        raise InputError(f"the {what} must be whole numbers, not {array.dtype}")
    if array.size and not within.lowest <= array.min() <= array.max() <= within.highest:
        raise InputError(
            f"the {what} must lie in {within.lowest}..{within.highest} in a group of {m} people; "
            f"they reach from {array.min()} to {array.max()}"
        )
    return array.astype(np.int32, copy=False)


class Member(NamedTuple):
    """A mechanism of a family, and what sets it apart, such as ``k=3``."""

    choice: str
    mechanism: Mechanism


@dataclass(frozen=True)
class Family:
    """Mechanisms that differ in one parameter, for searches.

    The template is a mechanism's spec with ``?`` for the parameter, such as ``suppress(k=?)``.
    """

    template: str

    def __post_init__(self) -> None:
        self.members()

    @property
    def parameter(self) -> str:
        """The name of the open parameter."""
        return self._open()[0]

    def members(self) -> tuple[Member, ...]:
        """Return its mechanisms, from the weakest to the strongest."""
        key, ladder = self._open()
        return tuple(Member(f"{key}={value:g}", self._with(f"{value:g}")) for value in ladder)

    def _open(self) -> tuple[str, tuple[float, ...]]:
        """Return the open parameter, and the values that it takes."""
        found = [
            (part.name, key)
            for part in MECHANISMS.read_chain(self.template)
            for key, value in part.arguments or ()
            if key and value.name == OPEN and value.arguments is None
        ]
        if len(found) == 1 and self.template.count(OPEN) == 1:
            [(name, key)] = found
            kind = MECHANISMS.kinds.get(name)
            if kind is None or key not in kind.keys:
                # Any value will do to be told what is wrong.
                self._with("1")
            elif ladder := _ladders(kind).get(key):
                return key, ladder
        keys = dict.fromkeys(key for kind in MECHANISMS.kinds.values() for key in _ladders(kind))
        raise SpecError(
            "a family needs one open parameter",
            where=repr(self.template),
            fix=f"Write one {OPEN} for {' or '.join(keys)}, as in {_FAMILY!r}",
        )

    def _with(self, value: str) -> Mechanism:
        return Mechanism.parse(self.template.replace(OPEN, value))


def _ladders(kind: Kind) -> dict[str, tuple[float, ...]]:
    """Return the values that a search tries, by parameter."""
    return {one.key: one.ladder for one in kind.parameters if one.ladder}
