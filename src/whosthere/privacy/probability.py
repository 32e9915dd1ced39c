"""The chance of what is published, given the true count.

Maps never reverse the order of counts, so what they send to a published value is an interval of
counts, and its chance is a difference of two tails of the noise. It is taken on the side where both
are small, in logarithms. Random rounding is one of several maps, each equally likely, so it is
pulled back as well. Only a random step before the last that cannot be pulled back is summed over.

A whole mechanism can also be put into tables, by which compiled code publishes many counts at once.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from whosthere.privacy.step import (
    NO_DRAW,
    WITHHELD,
    Alphabet,
    Counts,
    Ends,
    Floats,
    Span,
    Step,
    Tabulated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


Placed: TypeAlias = tuple[Step, Span]
"""A step, and the range of the counts that it is given."""
# How many numbers a sum over the results of a step may hold in memory at a time.
_BLOCK = 2**18


def placed(steps: Sequence[Step], m: int) -> tuple[list[Placed], Span]:
    """Return steps with the ranges of their counts in groups of m, and the range of the results."""
    found, within = [], Span(0, m)
    for step in steps:
        found.append((step, within))
        within = step.span(within)
    return found, within


def alphabet_of(steps: Sequence[Step], m: int) -> Alphabet:
    """Return what steps can publish for groups of m people."""
    withholds = any(step.withheld is not None for step in steps)
    return Alphabet(*placed(steps, m)[1], withholds)


def log_probability(steps: Sequence[Step], values: Counts, lo: Ends, hi: Ends, m: int) -> Floats:
    """Return the log of the chance that the steps take `values` to a number in lo..hi.

    All arrays broadcast against each other. What is withheld is no number.
    """
    return _log_probability(placed(steps, m)[0], values, lo, hi)


def log_withheld(steps: Sequence[Step], values: Counts, m: int) -> Floats:
    """Return the log of the chance that some step withholds counts, minus infinity if none does."""
    return _log_withheld(placed(steps, m)[0], values)


def _log_withheld(steps: Sequence[Placed], values: Counts) -> Floats:
    # A step withholds what is a number until then, so that the chances of several steps add up.
    logs = [
        _log_probability(steps[:i], values, np.array(held.lowest), np.array(held.highest))
        for i, held in enumerate(step.withheld for step, _ in steps)
        if held is not None
    ]
    return reduce(np.logaddexp, logs, np.full(values.shape, -np.inf))


class OwnDraw(NamedTuple):
    """What becomes of somebody alone in a cell, by one of the draws that this person may have.

    The logarithm of its chance, what it makes of the count, and the steps that are still to come.
    """

    log_chance: float
    made: Counts
    rest: Sequence[Placed]

    def log_probability(self, lo: Ends, hi: Ends) -> Floats:
        """Return the log of the chance that a number in lo..hi is published."""
        return _log_probability(self.rest, self.made, lo, hi)

    def log_withheld(self) -> Floats:
        """Return the log of the chance that the count is withheld."""
        return _log_withheld(self.rest, self.made)


def own_draws(steps: Sequence[Step], m: int) -> list[OwnDraw]:
    """Return the draws that somebody has once and for all, in all cells where nobody else is.

    There are none where each cell draws for itself.
    """
    stages, count = placed(steps, m)[0], np.array([1], np.int32)
    for i, (step, within) in enumerate(stages):
        if step.noise_of == "people":
            return [
                OwnDraw(float(log_chance), np.array(value), stages[i + 1 :])
                for values, log_chances in step.split(count, within, block=_BLOCK)
                for value, log_chance in zip(values[0], log_chances[0], strict=True)
                if log_chance > -np.inf
            ]
        if step.is_random or step.withheld is not None:
            break
        count = step.publish(count, NO_DRAW, within)
    return []


def _log_probability(steps: Sequence[Placed], values: Counts, lo: Ends, hi: Ends) -> Floats:
    """Do the same for steps with their ranges.

    Steps without chance are peeled off the end by pulling the interval back, and off the beginning
    by applying them. A single step that is left knows its chances. Of several, those at the end
    that can be pulled back are, and the results of the first are summed over.

    Pulling back comes first because it is not what published the counts: checks rest on that.
    """
    if not steps:
        return np.where((lo <= values) & (values <= hi), 0.0, -np.inf)
    (first, within), (last, before_last) = steps[0], steps[-1]
    pulled = None if last.is_random else last.pull_back(lo, hi, before_last)
    if pulled is None and not first.is_random:
        after = first.publish(values, NO_DRAW, within)
        if first.withheld is None:
            return _log_probability(steps[1:], after, lo, hi)
        held = after == WITHHELD
        rest = _log_probability(steps[1:], np.where(held, within.lowest, after), lo, hi)
        return np.where(held, -np.inf, rest)
    if pulled is None and len(steps) == 1:
        return first.log_landing(values, lo, hi, within)

    pulled = last.pull_back(lo, hi, before_last) if pulled is None else pulled
    if pulled is not None:
        terms = (
            log_chance + _log_probability(steps[:-1], values, low, high)
            for log_chance, low, high in pulled
        )
        return reduce(np.logaddexp, terms)
    total = np.full(np.broadcast_shapes(values.shape, lo.shape), -np.inf)
    block = max(1, _BLOCK // max(total.size, 1))
    for middle, log_chances in first.split(values, within, block=block):
        rest = _log_probability(steps[1:], middle, lo[..., None], hi[..., None])
        total = np.logaddexp(total, np.logaddexp.reduce(log_chances + rest, axis=-1))
    return total


def tabulate(steps: Sequence[Step], m: int) -> Tabulated | None:
    """Return steps as one table that publishes symbols; see `Mechanism.tabulated`."""
    stages = _stages(steps, m)
    if stages is None or len(stages) > 1:
        return None
    if not stages:
        return Tabulated(0, np.ones(1), np.arange(m + 1, dtype=np.int32))
    return Tabulated(stages[0].lowest, stages[0].chances, stages[0].results)


def expected(steps: Sequence[Step], m: int, withheld: float) -> NDArray[np.float64] | None:
    """Return the mean of what is published for each count; see `Mechanism.expected`."""
    stages = _stages(steps, m)
    if stages is None:
        return None
    alphabet = alphabet_of(steps, m)
    mean = np.arange(alphabet.base, alphabet.highest + 1.0)
    if alphabet.withholds:
        mean[0] = withheld
    for n_counts, lowest, chances, results in reversed(stages):
        means = mean[results]
        # All sums of a count and the number added, those beyond the table at its ends.
        sums = np.arange(lowest, n_counts + lowest + chances.size - 1)
        mean = np.correlate(means[np.clip(sums, 0, results.size - 1)], chances)
    return mean


class _Stage(NamedTuple):
    """The number of counts, and what `Tabulated` has; results as the next stage numbers them."""

    n_counts: int
    lowest: int
    chances: NDArray[np.float64]
    results: NDArray[np.int32]

    @property
    def is_random(self) -> bool:
        return self.chances.size > 1 or self.lowest != 0


def _stages(steps: Sequence[Step], m: int) -> list[_Stage] | None:
    """Return the tables of steps; those without chance are put into the table before them."""
    stages: list[_Stage] = []
    for step, within in placed(steps, m)[0]:
        tables = step.tabulated(within)
        if tables is None:
            return None
        stage = _Stage(within.highest - within.lowest + 1, *tables)
        if not stages:
            stages.append(stage)
            continue
        before = stages[-1].results
        held = before == WITHHELD
        numbers = np.where(held, 0, before - np.int32(within.lowest))
        if not stage.is_random:
            results = np.where(held, np.int32(WITHHELD), stage.results[numbers])
            stages[-1] = stages[-1]._replace(results=results)
        elif held.any():
            return None  # something is withheld before more noise is added
        else:
            stages[-1] = stages[-1]._replace(results=numbers)
            stages.append(stage)
    if stages:
        symbols = alphabet_of(steps, m).symbols(stages[-1].results)
        stages[-1] = stages[-1]._replace(results=symbols)
    return stages
