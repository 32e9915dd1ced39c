"""Everything between true counts and published counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from whosthere.errors import InputError, SpecError
from whosthere.privacy.parameters import MOST_COUNT, format_number
from whosthere.privacy.probability import log_probability
from whosthere.privacy.spec import RAW, parse_steps
from whosthere.privacy.steps import Gaussian, IntegerNoise, Map, Step
from whosthere.privacy.units import UNITS, Unit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from whosthere.data.traces import Traces

Noise: TypeAlias = "tuple[NDArray[np.int32], ...]"
"""One array of noise for each noise step of a mechanism."""


@dataclass(frozen=True)
class Guarantee:
    """(eps, delta) differential privacy for adding or removing one unit."""

    eps: float
    delta: float
    unit: Unit


@dataclass(frozen=True)
class Bounded:
    """Traces that hold no more visits than a mechanism allows, and the share dropped for that."""

    traces: Traces
    share_dropped: float


@dataclass(frozen=True)
class Mechanism:
    """Steps that turn true counts into published counts, each cell by itself.

    A publisher first lets it `bound` the traces, counts, and lets it `apply` itself to the
    counts. All of it is public but the noise.

    Parameters
    ----------
    steps
        What is done, in order; nothing at all for raw counts.
    """

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        for step in self.steps:
            if not isinstance(step, Map | IntegerNoise):
                raise SpecError(f"{step!r} is not a step of a mechanism")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a mechanism from text such as ``laplace(eps=1, unit=event) | suppress(k=1)``."""
        return cls(parse_steps(text))

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps)) or RAW

    @property
    def noise_steps(self) -> tuple[IntegerNoise, ...]:
        """The steps that draw noise, in order."""
        return tuple(step for step in self.steps if isinstance(step, IntegerNoise))

    @property
    def guarantee(self) -> Guarantee | None:
        """The differential privacy that the mechanism gives, where it can be claimed.

        Noise must come first: then all later steps only process what is private already. Steps
        before it would change how far one unit moves the counts. So would bounding for a later
        step with a wider unit, where one visit more can push another one out.
        """
        first = self.steps[0] if self.steps else None
        widths = [list(UNITS).index(step.unit.name) for step in self.noise_steps]
        if not isinstance(first, IntegerNoise) or max(widths) > widths[0]:
            return None
        delta = first.delta if isinstance(first, Gaussian) else 0.0
        return Guarantee(first.eps, delta, first.unit)

    def bound(self, traces: Traces, rng: np.random.Generator) -> Bounded:
        """Drop visits at random until every noise step's unit is within its bound."""
        bounded = traces
        for unit in self._units:
            bounded = unit.bound(bounded, rng)
        dropped = traces.n_visits - bounded.n_visits
        return Bounded(bounded, dropped / max(traces.n_visits, 1))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Noise:
        """Draw the noise of every noise step for counts of the given shape."""
        return tuple(step.draw(shape, rng) for step in self.noise_steps)

    def publish(self, counts: ArrayLike, noise: Noise, m: int) -> NDArray[np.int32]:
        """Return what is published for true counts in 0..m, given the noise.

        Counts and noise broadcast against each other, so one draw can serve several groups of
        m people. No given array is changed.
        """
        if len(noise) != len(self.noise_steps):
            raise InputError(
                f"{self} needs {len(self.noise_steps)} arrays of noise, not {len(noise)}",
                fix="Draw the noise with the same mechanism",
            )
        values = _checked(counts, m, "counts").copy()
        remaining = iter(noise)
        for step in self.steps:
            if isinstance(step, Map):
                values = step.apply(values, m)
            else:
                values = np.asarray(np.add(values, next(remaining), dtype=np.int32))
                np.clip(values, 0, m, out=values)
        return np.asarray(values)

    def apply(self, counts: ArrayLike, m: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Return what is published for true counts in 0..m of a group of m people."""
        return self.publish(counts, self.draw(np.shape(counts), rng), m)

    def log_pmf(self, published: ArrayLike, true: ArrayLike, m: int) -> NDArray[np.float64]:
        """Return log P(published | true count) in a group of m, minus infinity where impossible.

        Both arrays hold counts in 0..m and broadcast against each other. Precise in the far
        tails too; with several noise steps only down to a chance of about 1e-18.
        """
        values = _checked(true, m, "true counts")
        ends = _checked(published, m, "published counts").astype(np.int64)
        return np.asarray(log_probability(self.steps, values, ends, ends, m))

    def pmf(self, published: ArrayLike, true: ArrayLike, m: int) -> NDArray[np.float64]:
        """Return P(published | true count) in a group of m people, exactly.

        Both arrays hold counts in 0..m and broadcast against each other.
        """
        return np.asarray(np.exp(self.log_pmf(published, true, m)))

    def describe(self) -> str:
        """Say in public words what is done to the counts and what that guarantees."""
        sentences = [unit.describe_bound() for unit in self._units]
        sentences += [step.describe() for step in self.steps]
        if not self.steps:
            sentences.append("The true counts are published unchanged.")
        sentences.append(self._describe_guarantee())
        return " ".join(filter(None, sentences))

    @property
    def _units(self) -> list[Unit]:
        """The distinct units of the noise steps, in order."""
        return list(dict.fromkeys(step.unit for step in self.noise_steps))

    def _describe_guarantee(self) -> str:
        given = self.guarantee
        if given is not None:
            delta = f" and delta {format_number(given.delta)}" if given.delta else ""
            size = f"eps {format_number(given.eps)}{delta}"
            return (
                f"{given.unit.protects} (differential privacy with {size} per {given.unit.name})."
            )
        if not self.noise_steps:
            return "Nothing is left to chance, so no formal guarantee is given."
        if isinstance(self.steps[0], Map):
            return "Noise does not come first, so no formal guarantee is given."
        return "The noise steps protect different units, so no formal guarantee is given."


def _checked(counts: ArrayLike, m: int, what: str) -> NDArray[np.int32]:
    """Return counts as int32, or refuse those outside 0..m."""
    if not 1 <= m <= MOST_COUNT:
        raise InputError(f"a group must have 1 to {MOST_COUNT} people, not {m}")
    array = np.asarray(counts)
    if array.dtype.kind not in "iu":
        raise InputError(f"the {what} must be whole numbers, not {array.dtype}")
    if array.size and not 0 <= array.min() <= array.max() <= m:
        raise InputError(
            f"the {what} must lie in 0..{m}, the size of the group; "
            f"they reach from {array.min()} to {array.max()}"
        )
    return array.astype(np.int32, copy=False)
