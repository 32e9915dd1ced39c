"""The chance of what is published, given the true count.

Maps never reverse the order of counts, so what they send to a published value is an interval of
counts, and its chance is a difference of two tails of the noise. It is taken on the side where both
are small, in logarithms. Random rounding is one of several maps, each equally likely, so it is
pulled back as well. Only a random step before the last that cannot be pulled back is summed over.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from whosthere.privacy.alphabet import WITHHELD, Alphabet, Span
from whosthere.privacy.step import NO_DRAW, Counts, Ends, Floats, Step

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    """Return the log of the chance that some step withholds counts, minus infinity if none does.

    A step withholds what is a number until then, so that the chances of several steps add up.
    """
    logs = [
        log_probability(steps[:i], values, np.array(held.lowest), np.array(held.highest), m)
        for i, held in enumerate(step.withheld for step in steps)
        if held is not None
    ]
    return reduce(np.logaddexp, logs, np.full(values.shape, -np.inf))


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
