"""Messages between people and cells: who is in, told by what was published where they were.

The true count of a cell is a sum of people who are there or not, each with a chance of its own. The
chances of the sum are those of a Poisson-binomial law. One person is taken out of it again by a
division, from either end of the law as far as errors shrink on the way. So no approximation is
needed, however many people may be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Ints32, Ints64

# Sums with a smaller chance than this are left out.
_NEVER = 1e-100


class Laws(NamedTuple):
    """The chance of what was published in a cell by how many are there, in any unit.

    The chances of law l begin in `chances` at ``starts[l]``, for ``fewest[l]`` people and more.
    Elsewhere they are 0.
    """

    chances: Floats
    starts: Ints64
    fewest: Ints64


@kernel()
def pass_messages(
    starts: Ints64,
    person: Ints32,
    counted: Floats,
    laws: Laws,
    law_of_cell: Ints32,
    prior: Floats,
    taken: float,
    most: float,
    messages: Floats,
    score: Floats,
) -> float:
    """Let each cell, one after the other, tell its visitors what it knows of them.

    The visits to cell c stand from ``starts[c]`` to ``starts[c + 1]``: whose each is, and the
    chance that it is counted if that one is in. A message is the logarithm of how much likelier
    its visitor makes what was published, given how likely the others are to be there; cut at `most`
    on either side. Of a new message the share `taken` is taken over into `messages`. The messages
    that somebody gets add up to the `score`; the log odds of being in without any are `prior`, both
    of shape (n_people,). Returns the most by which a new message differed from the last one.
    """
    score[:] = 0.0
    largest, change = 0, 0.0
    for c in range(starts.size - 1):
        largest = max(largest, starts[c + 1] - starts[c])
        for v in range(starts[c], starts[c + 1]):
            score[person[v]] += messages[v]
    there, sums = np.empty(largest), np.empty(largest + 1)
    for c in range(starts.size - 1):
        first, n, law = starts[c], starts[c + 1] - starts[c], law_of_cell[c]
        chances = laws.chances[laws.starts[law] : laws.starts[law + 1]]
        for i in range(n):
            v = first + i
            odds = prior[person[v]] + score[person[v]] - messages[v]
            there[i] = counted[v] / (1.0 + np.exp(-odds))
        low, high = _summed(there[:n], sums)
        for i in range(n):
            v = first + i
            more, fewer = _expected(there[i], sums, low, high, chances, laws.fewest[law])
            said = _log_ratio(more, fewer, most)
            if counted[v] < 1.0:
                # A visit that was not counted says nothing.
                said = np.log1p(counted[v] * np.expm1(said))
            change = max(change, abs(said - messages[v]))
            step = taken * (said - messages[v])
            messages[v] += step
            score[person[v]] += step
    return change


@part()
def _summed(there: Floats, sums: Floats) -> tuple[int, int]:
    """Write the chances of how many are there, and return the least and the largest number."""
    low, high = 0, 0
    sums[0] = 1.0
    for chance in there:
        sums[high + 1] = chance * sums[high]
        for s in range(high, low, -1):
            sums[s] = (1.0 - chance) * sums[s] + chance * sums[s - 1]
        sums[low] *= 1.0 - chance
        high += 1
        while sums[high] < _NEVER:
            high -= 1
        while sums[low] < _NEVER:
            low += 1
    return low, high


@part()
def _expected(
    chance: float, sums: Floats, low: int, high: int, law: Floats, fewest: int
) -> tuple[float, float]:
    """Return the mean chance of what was published with somebody, and without that one.

    `chance` is that of this one being there, and `sums` has the chances of all, from `low` to
    `high`.
    """
    most, absent = fewest + law.size - 1, 1.0 - chance
    if chance <= absent:
        end = min(high, most) + 1
        more, fewer, at = _divided(sums, low, end, absent, chance, law, fewest)
        if at < end and chance > _NEVER:
            end = max(at, fewest - 1)
            rest = _divided(sums, high, end, chance, absent, law, fewest)
            more, fewer = more + rest[0], fewer + rest[1]
    else:
        end = max(low, fewest) - 1
        more, fewer, at = _divided(sums, high, end, chance, absent, law, fewest)
        if at > end and absent > _NEVER:
            end = min(at, most + 1)
            rest = _divided(sums, low, end, absent, chance, law, fewest)
            more, fewer = more + rest[0], fewer + rest[1]
    return more, fewer


@part()
def _divided(
    sums: Floats, at: int, end: int, kept: float, moved: float, law: Floats, fewest: int
) -> tuple[float, float, int]:
    """Take somebody out of sums from one end on, and return the same means over what was found.

    And where it ended, which is before `end` where errors would grow from there on. From above, a
    sum has the person in it.
    """
    more, fewer, without = 0.0, 0.0, 0.0
    scale, carried = 1.0 / kept, moved / kept
    step = 1 if end > at else -1
    within = fewest if step > 0 else fewest + 1
    while (end - at) * step > 0:
        taken = carried * without
        without = sums[at] * scale - taken
        if taken > without:
            break
        others = at - within
        if 0 <= others < law.size:
            fewer += without * law[others]
        if -1 <= others < law.size - 1:
            more += without * law[others + 1]
        at += step
    return more, fewer, at


@part()
def _log_ratio(more: float, fewer: float, most: float) -> float:
    if more <= 0.0:
        # Impossible either way says nothing.
        return -most if fewer > 0.0 else 0.0
    if fewer <= 0.0:
        return most
    return min(max(float(np.log(more / fewer)), -most), most)
