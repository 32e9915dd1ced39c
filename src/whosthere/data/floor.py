"""The floor under every true number that leaves an audit: it is about 5 people or more.

Everything that writes numbers about real people asks here which of them it may write, and how. The
rule in words stands in docs/reference/run-folder.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Bools, Ints64

LEAST_PEOPLE = 5
"""A true number about fewer people is not written: it would say what single people did."""
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


def hidden_places(place: NDArray[np.integer], person: NDArray[np.integer], n_places: int) -> Bools:
    """Tell which of some places are hidden, given who was where, each person once a place.

    Those with too few people are. The total over all places is known, so what is hidden follows
    from it as a whole, and must belong to enough people as a whole: where it does not, the places
    with the fewest people are hidden too.
    """
    people = np.bincount(place, minlength=n_places)
    hidden = np.asarray(people < LEAST_PEOPLE)
    for next_place in np.argsort(people, kind="stable"):
        together = np.unique(person[hidden[place]]).size
        if together == 0 or together >= LEAST_PEOPLE:
            break
        hidden[next_place] = True
    return hidden


def class_ends(values: NDArray[np.integer]) -> Ints64:
    """Return round numbers up to which everybody's numbers, 0 or more, are rounded up.

    At least `LEAST_PEOPLE` people lie above each of them, up to the next, where there are as many.
    The last one is not below the largest number, and is that number if as many people have it.
    """
    most = int(values.max(initial=0))
    ends = _round_numbers(most)
    if np.count_nonzero(values == most) >= LEAST_PEOPLE:
        ends = np.append(ends[ends < most], most)
    people = np.bincount(np.searchsorted(ends, values), minlength=ends.size)
    kept: list[int] = []
    waiting = 0
    for end, many in zip(ends.tolist(), people.tolist(), strict=True):
        waiting += many
        if waiting >= LEAST_PEOPLE:
            kept.append(end)
            waiting = 0
    # Those who are left above the last one are put with the class below.
    kept[-1:] = [int(ends[-1])]
    return np.array(kept, np.int64)


def rounded_up(value: int, ends: Ints64) -> int:
    """Return the first of the ends of `class_ends` that is not below somebody's number."""
    return int(ends[np.searchsorted(ends, value)])


def in_fives(people: int) -> int:
    """Return a number of people, rounded up to a multiple of `LEAST_PEOPLE`."""
    return -(-people // LEAST_PEOPLE) * LEAST_PEOPLE


def _round_numbers(most: int) -> Ints64:
    """Return round whole numbers from 0 on, the last of them not below `most`."""
    decades = 10.0 ** np.arange(len(str(most)) + 1)
    every = np.unique(np.outer(decades, _ROUND).ravel().astype(np.int64))
    return np.append(0, every[: np.searchsorted(every, most) + 1])
