"""The chance of a published count, given the true one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.privacy.maps import Map

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.privacy.noise import IntegerNoise
    from whosthere.privacy.steps import Step

# How many numbers a sum over the noise of a step may hold in memory at a time.
_BLOCK = 2**18


def log_probability(
    steps: Sequence[Step],
    values: NDArray[np.int32],
    lo: NDArray[np.int64],
    hi: NDArray[np.int64],
    m: int,
) -> NDArray[np.float64]:
    """Return the log of the chance that the steps take `values` into the interval lo..hi.

    All arrays broadcast against each other. Maps are peeled off both ends, the last by pulling
    the interval back and the first by applying them, until noise is at both ends. A single
    noise step then has a closed form. Of several, the first is summed over.
    """
    if not steps:
        return np.where((lo <= values) & (values <= hi), 0.0, -np.inf)
    first, last = steps[0], steps[-1]
    if isinstance(last, Map):
        return log_probability(steps[:-1], values, *last.preimage(lo, hi, m), m)
    if isinstance(first, Map):
        return log_probability(steps[1:], first.apply(values, m), lo, hi, m)
    if len(steps) == 1:
        return _log_landing(first, values, lo, hi, m)

    shape = np.broadcast_shapes(values.shape, lo.shape)
    total = np.full(shape, -np.inf)
    values, lo, hi = values[..., None], lo[..., None], hi[..., None]
    for noise in _blocks(first, values, m, size=total.size):
        middle = values + noise
        inside = (middle >= 0) & (middle <= m)
        log_first = np.where(inside, _log_landing(first, values, middle, middle, m), -np.inf)
        log_rest = log_probability(steps[1:], np.clip(middle, 0, m), lo, hi, m)
        terms = np.logaddexp.reduce(log_first + log_rest, axis=-1)
        total = np.logaddexp(total, terms)
    return total


def _log_landing(
    noise: IntegerNoise,
    values: NDArray[np.int32],
    lo: NDArray[np.int64] | NDArray[np.int32],
    hi: NDArray[np.int64] | NDArray[np.int32],
    m: int,
) -> NDArray[np.float64]:
    """Return the log of the chance that noise, then limiting to 0..m, lands in lo..hi."""
    # Whatever falls below 0 or above m is collected there.
    low = np.where(lo <= 0, -np.inf, lo - values)
    high = np.where(hi >= m, np.inf, hi - values)
    return np.where(lo > hi, -np.inf, noise.log_between(low, high))


def _blocks(
    noise: IntegerNoise, values: NDArray[np.int32], m: int, *, size: int
) -> Iterator[NDArray[np.int32]]:
    """Yield all noise that matters and keeps some value within 0..m, in arrays of fit length."""
    lowest, highest = noise.window
    first = max(lowest, -int(values.max(initial=0)))
    end = min(highest, m - int(values.min(initial=m))) + 1
    length = max(1, _BLOCK // max(size, 1))
    for start in range(first, end, length):
        yield np.arange(start, min(start + length, end), dtype=np.int32)
