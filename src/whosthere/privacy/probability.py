"""The chance of a published count, given the true one."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from whosthere.privacy.step import NO_DRAW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.privacy.step import Step

# How many numbers a sum over the results of a step may hold in memory at a time.
_BLOCK = 2**18


def log_probability(
    steps: Sequence[Step],
    values: NDArray[np.int32],
    lo: NDArray[np.int64],
    hi: NDArray[np.int64],
    m: int,
) -> NDArray[np.float64]:
    """Return the log of the chance that the steps take `values` into the interval lo..hi.

    All arrays broadcast against each other. Steps without chance are peeled off the end by pulling
    the interval back, and off the beginning by applying them. A single step that is left knows its
    chances. Of several, those at the end that can be pulled back are, and the results of the first
    are summed over.

    Pulling back comes first because it is not what published the counts: checks rest on that.
    """
    if not steps:
        return np.where((lo <= values) & (values <= hi), 0.0, -np.inf)
    first, last = steps[0], steps[-1]
    pulled = None if last.is_random else last.pull_back(lo, hi, m)
    if pulled is None and not first.is_random:
        return log_probability(steps[1:], first.publish(values, NO_DRAW, m), lo, hi, m)
    if pulled is None and len(steps) == 1:
        return first.log_landing(values, lo, hi, m)

    pulled = last.pull_back(lo, hi, m) if pulled is None else pulled
    if pulled is not None:
        terms = (
            log_chance + log_probability(steps[:-1], values, low, high, m)
            for log_chance, low, high in pulled
        )
        return reduce(np.logaddexp, terms)
    total = np.full(np.broadcast_shapes(values.shape, lo.shape), -np.inf)
    block = max(1, _BLOCK // max(total.size, 1))
    for middle, log_chances in first.split(values, m, block=block):
        rest = log_probability(steps[1:], middle, lo[..., None], hi[..., None], m)
        total = np.logaddexp(total, np.logaddexp.reduce(log_chances + rest, axis=-1))
    return total
