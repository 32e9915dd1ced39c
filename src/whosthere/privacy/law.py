"""The chance of what is published, given the true count.

A mechanism is maps, at most one step that leaves something to chance, and maps. Maps before it are
applied. Those after it never reverse the order of counts, so what they send to a published value is
an interval, found by bisection, and the step knows the chance to land there: as a difference of two
tails, taken where both are small, in logarithms. Nothing is summed over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from whosthere.privacy.shapes import AtRandom, ChanceTable, Map
from whosthere.privacy.step import NO_DRAW, WITHHELD, Alphabet, Span, Step, Tabulated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whosthere.arrays import Bools, Floats, Ints32, Ints64


Placed: TypeAlias = tuple[Step, Span]
"""A step, and the range of the counts that it is given."""


class _Parts(NamedTuple):
    """Maps before what is left to chance, that step if there is one, and maps after it.

    If there is none, all maps come after: so their law does not rest on what publishes counts,
    which checks compare with it.
    """

    before: Sequence[Placed]
    chance: AtRandom | None
    within: Span
    """The range of the counts that are left to chance."""
    after: Sequence[Placed]


@dataclass(frozen=True)
class Law:
    """What steps do to counts from 0 to `most`."""

    steps: tuple[Step, ...]
    most: int

    @cached_property
    def placed(self) -> tuple[Placed, ...]:
        """The steps with the ranges of their counts."""
        found, within = [], Span(0, self.most)
        for step in self.steps:
            found.append((step, within))
            within = step.span(within)
        return tuple(found)

    @cached_property
    def alphabet(self) -> Alphabet:
        """What can be published."""
        *_, last = (Span(0, self.most), *(step.span(within) for step, within in self.placed))
        return Alphabet(*last, any(step.withheld is not None for step in self.steps))

    @cached_property
    def _parts(self) -> _Parts:
        for i, (step, within) in enumerate(self.placed):
            if isinstance(step, AtRandom):
                return _Parts(self.placed[:i], step, within, self.placed[i + 1 :])
        return _Parts((), None, Span(0, self.most), self.placed)

    def log_pmf(self, published: Ints32, true: Ints32) -> Floats:
        """Return the log chance of published values, `WITHHELD` among them; both broadcast."""
        held = published == WITHHELD
        shown = np.where(held, self.alphabet.lowest, published).astype(np.int64)
        found = self.log_between(true, shown, shown)
        return np.where(held, self.log_withheld(true), found) if held.any() else found

    def log_between(self, true: Ints32, lo: Ints64, hi: Ints64) -> Floats:
        """Return the log of the chance that a number in lo..hi is published; all broadcast."""
        counts, held = self._before(true)
        return np.where(held, -np.inf, self._landing(counts, lo, hi, self._parts.after))

    def log_withheld(self, true: Ints32) -> Floats:
        """Return the log of the chance that a count is withheld, by any of the steps."""
        counts, held = self._before(true)
        logs = [np.where(held, 0.0, -np.inf)]
        after = self._parts.after
        for i, (step, _) in enumerate(after):
            if step.withheld is not None:
                lo, hi = (np.array(end, np.int64) for end in step.withheld)
                landing = self._landing(counts, lo, hi, after[:i])
                logs.append(np.where(held, -np.inf, landing))
        return reduce(np.logaddexp, logs)

    def landing(self, counts: Span) -> Span:
        """Return where results of some counts lie, but for less than 1e-18 of the chance."""
        return reduce(lambda span, one: one[0].lands(span, one[1]), self.placed, counts)

    def own_draws(self) -> list[tuple[float, int]]:
        """Return the draws that somebody has once and for all, in all cells where nobody else is.

        The log of the chance of each, and what is published then. There are none where each cell
        draws for itself.
        """
        before, chance, within, after = self._parts
        count, held = _through(before, np.array([1], np.int32))
        if not isinstance(chance, ChanceTable) or chance.noise_of != "people" or held.any():
            return []
        results, chances = (one[0] for one in chance.choices(count, within))
        shown, held = _through(after, results)
        published = np.where(held, WITHHELD, shown).tolist()
        return [
            (math.log(one), value)
            for one, value in zip(chances.tolist(), published, strict=True)
            if one > 0
        ]

    def tabulated(self) -> Tabulated | None:
        """Return the steps as one table, whose results are symbols of the `alphabet`.

        None where a step has no table, or where something is done to counts before chance is.
        """
        before, _, _, after = self._parts
        table = None if before else self._of_chance()
        if table is None:
            return None
        shown, held = _through(after, table.results)
        return table._replace(results=self.alphabet.symbols(np.where(held, WITHHELD, shown)))

    def expected(self, withheld: float) -> Floats | None:
        """Return the mean published count of each true count, shape (most + 1,).

        Withheld counts are taken for the given number. None where a step has no table.
        """
        _, _, within, after = self._parts
        table = self._of_chance()
        if table is None:
            return None
        counts, held = self._before(np.arange(self.most + 1, dtype=np.int32))
        shown, held_after = _through(after, table.results)
        means = np.where(held_after, withheld, shown)
        # All sums of a count and the number added, those beyond the table at its ends.
        first = int(counts.min())
        sums = np.arange(first, int(counts.max()) + table.chances.size) + table.lowest
        means = means[np.clip(sums - within.lowest, 0, means.size - 1)]
        mean = np.correlate(means, table.chances)
        return np.where(held, withheld, mean[counts - first])

    def _of_chance(self) -> Tabulated | None:
        _, chance, within, _ = self._parts
        if chance is None:
            return Tabulated(0, np.ones(1), np.arange(self.most + 1, dtype=np.int32))
        return chance.tabulated(within)

    def _before(self, true: Ints32) -> tuple[Ints32, Bools]:
        return _through(self._parts.before, np.asarray(true, np.int32))

    def _landing(self, counts: Ints32, lo: Ints64, hi: Ints64, after: Sequence[Placed]) -> Floats:
        """Return the log of the chance to be in lo..hi after some of the last maps."""
        intervals = [(lo, hi)]
        for step, within in reversed(after):
            intervals = [part for ends in intervals for part in _sent_by(step, *ends, within)]
        chance, within = self._parts.chance, self._parts.within
        if chance is None:
            inside = reduce(
                np.logical_or, ((lo <= counts) & (counts <= hi) for lo, hi in intervals)
            )
            return np.where(inside, 0.0, -np.inf)
        landing = (chance.log_landing(counts, *ends, within) for ends in intervals)
        return reduce(np.logaddexp, landing)


def _through(maps: Sequence[Placed], counts: Ints32) -> tuple[Ints32, Bools]:
    """Return counts as maps leave them, and which were withheld."""
    held = np.zeros(counts.shape, np.bool_)
    for step, within in maps:
        after = step.publish(np.where(held, np.int32(within.lowest), counts), NO_DRAW, within)
        held = held | (after == WITHHELD)
        counts = np.where(held, np.int32(0), after)
    return counts, held


def _sent_by(step: Step, lo: Ints64, hi: Ints64, within: Span) -> list[tuple[Ints64, Ints64]]:
    """Return the counts that a map sends into lo..hi, around those that it withholds."""
    first, last = _sent_into(lambda values: cast("Map", step).apply(values, within), lo, hi, within)
    if step.withheld is None:
        return [(first, last)]
    lowest, highest = step.withheld
    return [(first, np.minimum(last, lowest - 1)), (np.maximum(first, highest + 1), last)]


def _sent_into(
    apply: Callable[[Ints32], Ints32], lo: Ints64, hi: Ints64, within: Span
) -> tuple[Ints64, Ints64]:
    """Return the first and the last number that a rising function sends into lo..hi.

    There is none where the first is above the last. Found by bisection, for all ends at once.
    """
    # The last is the one before the first that goes beyond.
    wanted = np.stack(np.broadcast_arrays(lo, hi + 1))
    size = within.highest - within.lowest + 1
    below = np.zeros(wanted.shape, np.int64)
    step = 1 << (size.bit_length() - 1)
    while step:
        further = below + step
        at = np.minimum(within.lowest + further - 1, within.highest)
        below += step * ((further <= size) & (apply(at.astype(np.int32)) < wanted))
        step //= 2
    return within.lowest + below[0], within.lowest + below[1] - 1
