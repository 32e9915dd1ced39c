"""A whole mechanism as tables, by which compiled code publishes many counts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from whosthere import kernels
from whosthere.privacy.alphabet import WITHHELD
from whosthere.privacy.probability import alphabet_of, placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.kernels.stages import Stages
    from whosthere.privacy.step import Step

# The guide of a law has so many entries for each of its values that few of them leave a choice,
# and never more bits than the compiled code looks at first.
_ENTRIES_PER_VALUE = 32
_FEWEST_BITS, _MOST_BITS = 10, 16
_ALL = 2.0**64
_Scalar = TypeVar("_Scalar", bound=np.generic)


def tabulate(steps: Sequence[Step], m: int) -> Stages | None:
    """Return steps as stages for groups of m people; None where a step has no tables.

    They publish symbols of the mechanism's alphabet.
    """
    stages = _stages(steps, m)
    return None if stages is None else _packed(stages)


def expected(steps: Sequence[Step], m: int, withheld: float) -> NDArray[np.float64] | None:
    """Return the mean of what is published for each count in 0..m; None as in `tabulate`.

    Withheld counts are taken for the given number.
    """
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
    """A stage of `kernels.Stages`: the number of its counts, and what `Tabulated` has.

    Results are numbered from 0 on, as the next stage counts them. Those of the last stage are
    symbols of the mechanism's alphabet.
    """

    n_counts: int
    lowest: int
    chances: NDArray[np.float64]
    results: NDArray[np.int32]

    @property
    def is_random(self) -> bool:
        return self.chances.size > 1 or self.lowest != 0


def _stages(steps: Sequence[Step], m: int) -> list[_Stage] | None:
    """Return the tables of steps; those without chance are put into the table before them.

    None where a step has no tables, or where something is withheld before more noise is added.
    """
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
            return None
        else:
            stages[-1] = stages[-1]._replace(results=numbers)
            stages.append(stage)
    if stages:
        symbols = alphabet_of(steps, m).symbols(stages[-1].results)
        stages[-1] = stages[-1]._replace(results=symbols)
    return stages


def _packed(stages: Sequence[_Stage]) -> Stages:
    """Put the tables of all stages into one array each."""
    limits = [_limits(stage.chances) for stage in stages]
    guides = [_guide(limit) for limit in limits]
    results = [stage.results for stage in stages]
    return kernels.Stages(
        n=len(stages),
        is_random=np.array([stage.is_random for stage in stages], dtype=np.bool_),
        lowest=np.array([stage.lowest for stage in stages], dtype=np.int64),
        guide=_joined(guides, np.int32),
        guide_bits=np.array([guide.size.bit_length() - 1 for guide in guides], dtype=np.int64),
        guide_start=_starts(guides),
        limits=_joined(limits, np.uint64),
        limits_start=_starts(limits),
        results=_joined(results, np.int32),
        results_start=_starts(results),
        looks_up=np.array([(np.diff(r, prepend=-1) != 1).any() for r in results], dtype=np.bool_),
    )


def _limits(chances: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the chances of each value or a lower one, times 2^64, for all values but the last.

    Either half is summed from its own end, where chances are smallest, so that both tails are
    exact to the last of the 64 bits.
    """
    below, above = np.cumsum(chances)[:-1], np.cumsum(chances[::-1])[-2::-1]
    low = np.minimum(below, 0.5) * _ALL
    # 2^64 less something, in whole numbers; at least one of 2^64 is left for what comes after.
    high = ~np.maximum(np.minimum(above, 0.5) * _ALL - 1, 0).astype(np.uint64)
    return np.where(below < 0.5, low.astype(np.uint64), high)


def _guide(limits: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return which value the first random bits decide for, or -1 less the first that they may."""
    wanted = int(_ENTRIES_PER_VALUE * (limits.size + 1)).bit_length()
    bits = min(max(wanted, _FEWEST_BITS), _MOST_BITS)
    # Entry i holds all 64-bit numbers from i * 2^(64 - bits) up to the next entry's.
    slot = (limits >> np.uint64(64 - bits)).astype(np.int64)
    starts_slot = (limits << np.uint64(bits)) == 0
    passed = np.cumsum(np.bincount(slot, minlength=2**bits))
    inside = np.bincount(slot[~starts_slot], minlength=2**bits)
    return np.where(inside > 0, -1 - (passed - inside), passed).astype(np.int32)


def _joined(arrays: Sequence[NDArray[_Scalar]], dtype: type[_Scalar]) -> NDArray[_Scalar]:
    return np.concatenate([np.empty(0, dtype), *arrays])


def _starts(arrays: Sequence[NDArray[np.generic]]) -> NDArray[np.int64]:
    return np.cumsum([0, *(array.size for array in arrays)], dtype=np.int64)
