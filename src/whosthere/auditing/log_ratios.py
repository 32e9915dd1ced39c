"""How much the published count of one cell tells whether a known visit is in it.

With n others in the cell, the published count a speaks for the visit by the log ratio

    L(a) = log P(a | n + 1) - log P(a | n).

Where every step of a mechanism is monotone (`Step.is_monotone`), L never falls as a grows. A bin of
published counts therefore has log ratios between those of its ends. With any other step, each
count that matters is a bin of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.privacy.probability import log_probability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.step import Step

RARE = 1e-14
"""A bin of counts that is rarer than this under IN or OUT is taken for a proof of the other."""
# No bin that is left has a log ratio beyond this, as log(1 / RARE) is 32.2.
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

    Far enough from 0 and m for all windows, steps only know where a count lies in their period.
    """
    periods = [step.period for step in mechanism.steps if step.period is not None]
    if len(periods) < len(mechanism.steps):
        return others
    far = _reach(mechanism.steps) + 1
    moved = far + (others - far) % math.lcm(*periods)
    return np.where((others > far) & (others < m - far), moved, others)


def cell_laws(mechanism: Mechanism, others: NDArray[np.integer], m: int) -> CellLaws:
    """Return the laws for cells with the given numbers of others, shape (n_kinds,), below m."""
    block = max(1, _BLOCK // _starts(mechanism, others[:1].astype(np.int32), m).size)
    parts = [
        _laws(mechanism, others[start : start + block].astype(np.int64), m, start)
        for start in range(0, others.size, block)
    ]
    return CellLaws(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _laws(
    mechanism: Mechanism,
    others: NDArray[np.int64],
    m: int,
    first_kind: int,
) -> tuple[NDArray[np.int64] | NDArray[np.float64], ...]:
    """Return the fields of `CellLaws` for one block of kinds."""
    starts = _starts(mechanism, others.astype(np.int32), m)
    ends = np.append(starts[:, 1:] - 1, np.full((others.size, 1), m), axis=1)
    logs = _log_chances(mechanism, others[:, None], starts, np.maximum(starts, ends), m)
    # The same start twice leaves an empty bin.
    chances = np.where(starts > ends, 0.0, np.exp(logs))
    rarer = chances.min(axis=0)
    proof = rarer < RARE
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
    # Nothing that is possible lies above the start of the last bin.
    after = np.where(ends[wide] < m, ends[wide] + 1, starts[wide])
    last = _log_chances(mechanism, others[wide], after, after, m)
    with np.errstate(invalid="ignore"):
        least, largest = first[1] - first[0], last[1] - last[0]
    # Where several noise steps make a chance too small for a number, nothing is known of it.
    low[wide] = np.fmin(low[wide], np.maximum(np.nan_to_num(least, nan=-np.inf), -_MOST_RATIO))
    high[wide] = np.fmax(high[wide], np.minimum(np.nan_to_num(largest, nan=np.inf), _MOST_RATIO))
    return low, high


def _starts(mechanism: Mechanism, others: NDArray[np.int32], m: int) -> NDArray[np.int64]:
    """Return the first published count of each bin, ascending, shape (n_kinds, n_bins).

    All of them are possible, or lie right behind one that is.
    """
    steps = mechanism.steps
    last_noise = max((i for i, step in enumerate(steps) if step.scale > 0), default=None)
    if last_noise is None:
        # There are only so many counts: each is a bin, and so is what lies between two of them.
        possible = _landmarks(steps, np.stack([others, others + 1], axis=1), m)
        points = np.concatenate([possible, possible + 1], axis=1)
    else:
        centres = _centres(steps[:last_noise], others, m)
        noisy = _around_noise(steps, _landmarks((steps[last_noise],), centres, m), m)
        points = _landmarks(steps[last_noise + 1 :], noisy, m)
    first = np.zeros((others.size, 1), np.int64)
    return _without_repeats(np.append(first, np.minimum(points, m), axis=1))


def _centres(before: tuple[Step, ...], others: NDArray[np.int32], m: int) -> NDArray[np.int32]:
    """Return the counts that the last noise is added to, roughly, shape (n_kinds, n_centres)."""
    if not before:
        return others[:, None]
    return _landmarks(before, np.stack([np.zeros_like(others), others, others + 1], axis=1), m)


def _around_noise(steps: tuple[Step, ...], centres: NDArray[np.int32], m: int) -> NDArray[np.int32]:
    """Return counts after the last noise at which bins start, shape (n_kinds, n_points)."""
    offsets = _offsets(steps, m)
    offsets = offsets[(offsets >= -centres.max()) & (offsets <= m - centres.min())]
    points = np.clip(centres[..., None] + offsets, 0, m).reshape(len(centres), -1)
    jumps = [0, 1, m - 1, m, *(jump for step in steps for jump in step.jumps(m))]
    of_each = np.tile(np.clip(jumps, 0, m), (len(centres), 1))
    return np.asarray(np.append(points, of_each, axis=1), np.int32)


def _without_repeats(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort each row; as many columns are left as the row with the most different values needs."""
    ordered = np.sort(points, axis=1)
    repeated = ordered[:, 1:] == ordered[:, :-1]
    ordered[:, 1:] = np.where(repeated, ordered[:, -1:], ordered[:, 1:])
    needed = ordered.shape[1] - int(repeated.sum(axis=1).min())
    return np.sort(ordered, axis=1)[:, :needed]


def _landmarks(steps: tuple[Step, ...], values: NDArray[np.int32], m: int) -> NDArray[np.int32]:
    """Return where the results of counts lie after all steps, shape (n_kinds, n_landmarks)."""
    for step in steps:
        values = step.landmarks(values, m).reshape(len(values), -1)
    return values


def _offsets(steps: tuple[Step, ...], m: int) -> NDArray[np.int64]:
    """Return where bins start, from a centre, close to each other as far as noise is common."""
    reach = min(_reach(steps), m)
    if not all(step.is_monotone for step in steps):
        return np.arange(-reach, reach + 1)
    pieces = [np.array([-1, 0, 1, 2, -reach, reach])]
    for scale in (step.scale for step in steps if step.scale > 0):
        width = max(1, int(scale / _BINS_PER_SCALE))
        near = int(np.ceil(_NEAR * scale))
        far = (np.array(_FAR) * scale).astype(np.int64)
        pieces += [np.arange(-near, near + 1, width), -far, far]
    return np.unique(np.concatenate(pieces))


def _reach(steps: tuple[Step, ...]) -> int:
    """Return how far all steps together move a count, at most."""
    return sum(max(-step.window[0], step.window[1]) for step in steps)
