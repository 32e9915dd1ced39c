"""How much the published count of one cell tells whether a known visit is in it.

With n others in the cell, the published count a speaks for the visit by the log ratio

    L(a) = log P(a | n + 1) - log P(a | n).

Every step of a mechanism keeps the order of counts in the sense of monotone likelihood ratios
(its noise is log-concave, its maps are monotone), so L never falls as a grows. A bin of
published counts therefore has log ratios between those of its ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.privacy.probability import log_probability
from whosthere.privacy.steps import IntegerNoise, Map, Round, Suppress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.privacy.mechanism import Mechanism

# A bin that is rarer than this under IN or OUT is taken for a proof of the other.
_RARE = 1e-14
# No bin that is left has a log ratio beyond this, as log(1 / _RARE) is 32.2.
_MOST_RATIO = 33.0
# Logs of chances that differ by less are of the same published counts.
_SAME = 1e-12
# Published counts are put together where noise is so wide that neighbours hardly differ: this
# many bins for each scale of the noise, and few beyond `_NEAR` scales, where next to nothing is
# left of normal noise and where the ratio of Laplace noise is constant.
_BINS_PER_SCALE = 64
_NEAR = 9
_FAR = (10, 12, 16, 24, 34)
# How many numbers a table may hold in memory at a time.
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class CellLaws:
    """The laws of the log ratio in several kinds of cell, as bins of published counts.

    Attributes
    ----------
    kind
        Which kind of cell each bin belongs to, ascending, shape (n_bins,).
    p_out, p_in
        Chance of each bin without and with the visit, shape (n_bins,).
    low, high
        Between which values the log ratios in each bin lie, shape (n_bins,); equal where the
        bin is a single published count.
    proof_out, proof_in
        Chance to see, without and with the visit, a count that proves it, shape (n_kinds,).
    neglected
        Chance that such a proof is wrong, shape (n_kinds,).
    """

    kind: NDArray[np.int64]
    p_out: NDArray[np.float64]
    p_in: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    proof_out: NDArray[np.float64]
    proof_in: NDArray[np.float64]
    neglected: NDArray[np.float64]

    @property
    def n_kinds(self) -> int:
        """How many kinds of cell there are."""
        return int(self.proof_out.size)

    @property
    def middle(self) -> NDArray[np.float64]:
        """The log ratio of each bin as a whole, shape (n_bins,)."""
        ratio = np.log(self.p_in) - np.log(self.p_out)
        return np.asarray(np.clip(ratio, self.low, self.high))


def alike(mechanism: Mechanism, others: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Return numbers of others that have the same laws as the given ones, as few as possible.

    Far enough from 0, from suppression and from m, only rounding knows where a count lies.
    """
    steps = mechanism.steps
    roundings = [step.to for step in steps if isinstance(step, Round)]
    thresholds = [step.k for step in steps if isinstance(step, Suppress)]
    known = all(isinstance(step, Round | Suppress | IntegerNoise) for step in steps)
    reach = sum(-noise.window[0] for noise in mechanism.noise_steps)
    far = reach + sum(roundings) + max(thresholds, default=0) + 1
    period = math.lcm(*roundings)
    moved = far + (others - far) % period
    return np.where((others > far) & (others < m - far) & known, moved, others)


def cell_laws(mechanism: Mechanism, others: NDArray[np.integer], m: int) -> CellLaws:
    """Return the laws for cells with the given numbers of others, shape (n_kinds,), below m."""
    offsets = _offsets(mechanism)
    block = max(1, _BLOCK // offsets.size)
    parts = [
        _laws(mechanism, others[start : start + block].astype(np.int64), offsets, m, start)
        for start in range(0, others.size, block)
    ]
    return CellLaws(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _laws(
    mechanism: Mechanism,
    others: NDArray[np.int64],
    offsets: NDArray[np.int64],
    m: int,
    first_kind: int,
) -> tuple[NDArray[np.int64] | NDArray[np.float64], ...]:
    """Return the fields of `CellLaws` for one block of kinds."""
    starts = _starts(mechanism, others, offsets, m)
    ends = np.append(starts[:, 1:] - 1, np.full((others.size, 1), m), axis=1)
    logs = _log_chances(mechanism, others[:, None], starts, np.maximum(starts, ends), m)
    # The same start twice leaves an empty bin.
    chances = np.where(starts > ends, 0.0, np.exp(logs))
    rarer = chances.min(axis=0)
    proof = rarer < _RARE
    kept = ~proof
    kind = np.nonzero(kept)[0]
    low, high = _range_within(
        mechanism, others[kind], starts[kept], ends[kept], logs=logs[:, kept], m=m
    )
    return (
        kind + first_kind,
        *chances[:, kept],
        low,
        high,
        *np.where(proof, chances, 0.0).sum(axis=2),
        np.where(proof, rarer, 0.0).sum(axis=1),
    )


def _log_chances(
    mechanism: Mechanism,
    others: NDArray[np.int64],
    lo: NDArray[np.int64],
    hi: NDArray[np.int64],
    m: int,
) -> NDArray[np.float64]:
    """Return log P(lo..hi) without and with the visit, with a new first axis for these two."""
    true = np.stack([others, others + 1]).astype(np.int32)
    return np.asarray(log_probability(mechanism.steps, true, lo, hi, m))


def _range_within(
    mechanism: Mechanism,
    others: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    *,
    logs: NDArray[np.float64],
    m: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest log ratio within each bin, each shape (n_bins,)."""
    low = logs[1] - logs[0]
    high = low.copy()
    wide = np.flatnonzero(ends > starts)
    first = _log_chances(mechanism, others[wide], starts[wide], starts[wide], m)
    # Other counts of the bin may be impossible, as a map leaves them out.
    several = (np.abs(first - logs[:, wide]) > _SAME).any(axis=0)
    wide, first = wide[several], first[:, several]
    top = _maps_at_the_end(mechanism, np.array([m]), m)[0]
    after = np.minimum(ends[wide] + 1, top)
    last = _log_chances(mechanism, others[wide], after, after, m)
    with np.errstate(invalid="ignore"):
        least, largest = first[1] - first[0], last[1] - last[0]
    # Where several noise steps make a chance too small for a number, nothing is known of it.
    low[wide] = np.fmin(low[wide], np.maximum(np.nan_to_num(least, nan=-np.inf), -_MOST_RATIO))
    high[wide] = np.fmax(high[wide], np.minimum(np.nan_to_num(largest, nan=np.inf), _MOST_RATIO))
    return low, high


def _starts(
    mechanism: Mechanism, others: NDArray[np.int64], offsets: NDArray[np.int64], m: int
) -> NDArray[np.int64]:
    """Return the first published count of each bin, all of them possible, (n_kinds, n_bins)."""
    centres = _centres(mechanism, others, m)
    within = (offsets >= -centres.max()) & (offsets <= m - centres.min())
    points = np.clip(centres[..., None] + offsets[within], 0, m).reshape(others.size, -1)
    jumps = np.tile(_jumps(mechanism, m), (others.size, 1))
    points = np.sort(np.append(points, jumps, axis=1), axis=1)
    return _maps_at_the_end(mechanism, points, m)


def _centres(mechanism: Mechanism, others: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Return the counts around which to look closely, shape (n_kinds, n_centres)."""
    if all(isinstance(step, Map) for step in mechanism.steps[1:]):
        return others[:, None]
    values = np.stack([np.zeros_like(others), others, others + 1], axis=1).astype(np.int32)
    for step in mechanism.steps:
        if isinstance(step, Map):
            values = step.apply(values, m)
    return values.astype(np.int64)


def _offsets(mechanism: Mechanism) -> NDArray[np.int64]:
    """Return where bins start, from a centre, close to each other as far as noise is common."""
    pieces = [np.array([-1, 0, 1, 2])]
    for noise in mechanism.noise_steps:
        width = max(1, int(noise.scale / _BINS_PER_SCALE))
        near = int(np.ceil(_NEAR * noise.scale))
        far = (np.array(_FAR) * noise.scale).astype(np.int64)
        pieces += [np.arange(-near, near + 1, width), -far, far]
    reach = sum(noise.window[1] for noise in mechanism.noise_steps)
    return np.unique(np.concatenate([*pieces, [-reach, reach]]))


def _jumps(mechanism: Mechanism, m: int) -> NDArray[np.int64]:
    """Return the counts around 0 and m where maps and limits make the log ratio jump."""
    jumps = [0, 1, m - 1, m]
    for step in mechanism.steps:
        if isinstance(step, Suppress):
            jumps.append(step.k + 1)
        elif isinstance(step, Round):
            jumps += [step.to - step.to // 2, m - step.to]
    return np.array(jumps).clip(0, m)


def _maps_at_the_end(mechanism: Mechanism, values: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Return what the maps after the last noise make of counts, same shape."""
    last = max(
        (i for i, step in enumerate(mechanism.steps) if isinstance(step, IntegerNoise)), default=-1
    )
    mapped = values.astype(np.int32)
    for step in mechanism.steps[last + 1 :]:
        if isinstance(step, Map):
            mapped = step.apply(mapped, m)
    return mapped.astype(np.int64)
