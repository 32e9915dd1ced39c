"""The three shapes of a step: a map, added noise, a table of chances.

A step is a law P(result | count). A map gives its function, noise the law of the number that it
adds, a chance table its rows. All else that is asked of a step follows from that, here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from whosthere.privacy.step import (
    WITHHELD,
    Correction,
    Counts,
    Draw,
    Floats,
    Ints,
    Span,
    Step,
    Tabulated,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Values of noise that are worth a table.
_WIDEST_TABLE = 2**18
# No draw reaches this.
_NEVER = 2.0


class Map(Step):
    """A step without chance that never reverses the order of two counts.

    A subclass gives `apply`, and `withheld` if it withholds counts.
    """

    is_random: ClassVar[bool] = False

    @abstractmethod
    def apply(self, values: Counts, within: Span) -> Counts:
        """Return what counts become, those to be withheld included; the given array stays."""

    def lands(self, counts: Span, within: Span) -> Span:
        return Span(*self.apply(np.array(counts, np.int32), within).tolist())

    def publish(self, values: Counts, draw: Draw, within: Span) -> Counts:  # noqa: ARG002
        mapped = self.apply(values, within)
        if self.withheld is None:
            return mapped
        return np.where(self.withheld.holds(values), np.int32(WITHHELD), mapped)


class AtRandom(Step):
    """A step that leaves something to chance."""

    is_random: ClassVar[bool] = True

    @abstractmethod
    def log_landing(self, values: Ints, lo: Ints, hi: Ints, within: Span) -> Floats:
        """Return the log of the chance to land in lo..hi; all arrays broadcast.

        `hi` is not below the range of the results.
        """

    def tabulated(self, within: Span) -> Tabulated | None:  # noqa: ARG002
        """Return the step as tables, by which many counts are published at once.

        A step that gives None is as good as any other, only slower.
        """
        return None


class AddedNoise(AtRandom):
    """A random whole number Z that is added to a count; the sum is kept within the range.

    A subclass gives `draw`, `log_cdf`, `log_sf`, `window` and `scale`.
    """

    @property
    @abstractmethod
    def window(self) -> tuple[int, int]:
        """Lowest and highest noise; beyond lies less than 1e-18 of the chance."""

    def lands(self, counts: Span, within: Span) -> Span:
        lowest, highest = (end + most for end, most in zip(counts, self.window, strict=True))
        return Span(max(lowest, within.lowest), min(highest, within.highest))

    @abstractmethod
    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Draw:
        """Draw independent noise for an array of cells, int32, quickly, for trials."""

    @abstractmethod
    def log_cdf(self, z: ArrayLike) -> Floats:
        """Return log P(Z <= z), to full precision in the low tail, for whole or infinite z."""

    @abstractmethod
    def log_sf(self, z: ArrayLike) -> Floats:
        """Return log P(Z > z), to full precision in the high tail, for whole or infinite z."""

    @property
    def correction(self) -> Correction:
        return Correction.STRETCH

    def log_between(self, lo: ArrayLike, hi: ArrayLike) -> Floats:
        """Return log P(lo <= Z <= hi), minus infinity where lo > hi; the ends may be infinite."""
        # Of the tails on the interval's own side, where both are small, so that nothing cancels.
        lo, hi = np.asarray(lo, np.float64), np.asarray(hi, np.float64)
        right = lo >= 0
        larger = np.where(right, self.log_sf(lo - 1), self.log_cdf(hi))
        smaller = np.where(right, self.log_sf(hi), self.log_cdf(lo - 1))
        return larger + _log1mexp(np.minimum(smaller - larger, 0))

    def publish(self, values: Counts, draw: Draw, within: Span) -> Counts:
        noisy = np.asarray(np.add(values, draw, dtype=np.int32))
        return np.clip(noisy, *within, out=noisy)

    def log_landing(self, values: Ints, lo: Ints, hi: Ints, within: Span) -> Floats:
        # Whatever falls outside of the range is collected at its ends.
        low = np.where(lo <= within.lowest, -np.inf, lo - values)
        high = np.where(hi >= within.highest, np.inf, hi - values)
        nowhere = lo > np.minimum(hi, within.highest)
        return np.where(nowhere, -np.inf, self.log_between(low, high))

    def tabulated(self, within: Span) -> Tabulated | None:
        lowest, highest = self.window
        if highest - lowest >= _WIDEST_TABLE:
            return None
        first = np.arange(lowest, highest + 1.0)
        last = first.copy()
        # What is further out is less than 1e-18, and goes with the ends.
        first[0], last[-1] = -np.inf, np.inf
        chances = np.exp(self.log_between(first, last))
        kept = np.arange(within.lowest, within.highest + 1, dtype=np.int32)
        return Tabulated(lowest, chances, kept)


class Choices(NamedTuple):
    """The `results` of counts, ascending along the last axis, and their `chances`: (..., j)."""

    results: Counts
    chances: Floats


class ChanceTable(AtRandom):
    """A few results for each count, and their chances.

    A subclass gives `choices`. A cell draws one number between 0 and 1 and takes the result at
    which the chances so far exceed it. So two groups that share the draw differ as little as they
    can.
    """

    @abstractmethod
    def choices(self, values: Counts, within: Span) -> Choices:
        """Return what counts may become, and with what chances."""

    def lands(self, counts: Span, within: Span) -> Span:
        results, _ = self.choices(np.array(counts, np.int32), within)
        return Span(int(results[0].min()), int(results[1].max()))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Draw:
        return rng.random(shape)

    def publish(self, values: Counts, draw: Draw, within: Span) -> Counts:
        # There are mostly far fewer counts than cells.
        most = int(values.max(initial=within.lowest))
        if most - within.lowest < values.size:
            given = np.arange(within.lowest, most + 1, dtype=np.int32)
            row = values.astype(np.intp) - within.lowest
        else:
            given, row = values.reshape(-1), np.arange(values.size).reshape(values.shape)
        results, chances = self.choices(given, within)
        limits = np.cumsum(chances, axis=-1)
        # Rounding must not let a draw slip past the last result that is possible.
        left = np.cumsum(chances[..., ::-1], axis=-1)[..., ::-1]
        limits[..., :-1][left[..., 1:] <= 0] = _NEVER
        place = row * results.shape[-1] + np.zeros(draw.shape, np.int8)
        for limit in limits.T[:-1]:
            place += draw >= np.take(limit, row)
        return np.asarray(np.take(results, place))

    def log_landing(self, values: Ints, lo: Ints, hi: Ints, within: Span) -> Floats:
        results, chances = self.choices(values.astype(np.int32, copy=False), within)
        shape = np.broadcast_shapes(values.shape, lo.shape, hi.shape)
        total = np.zeros(shape)
        for i in range(results.shape[-1]):
            inside = (lo <= results[..., i]) & (results[..., i] <= hi)
            total += inside * chances[..., i]
        with np.errstate(divide="ignore"):
            return np.log(total)


def _log1mexp(x: Floats) -> Floats:
    """Return log(1 - exp(x)) for x <= 0 without cancellation."""
    with np.errstate(divide="ignore"):
        return np.where(x > -math.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))
