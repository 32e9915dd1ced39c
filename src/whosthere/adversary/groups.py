"""Labelled aggregates that an attacker makes up to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias, TypeVar, get_args

import numpy as np

from whosthere import kernels
from whosthere.adversary.features import Features
from whosthere.arrays import own
from whosthere.errors import GroupError
from whosthere.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.kernels.count_matrix import CountMatrix
    from whosthere.kernels.stages import Stages

Sampling: TypeAlias = Literal["paired", "independent"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)
_Made = TypeVar("_Made")


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Published symbols of groups with and without the target.

    Attributes
    ----------
    counts
        A row for each group, a column for each cell.
    labels
        Whether the target is in each group, shape (n_groups,), bool. Groups with the target and
        without it take turns; of pairs, the one with the target comes first.
    """

    counts: CountMatrix
    labels: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class GroupSampler:
    """Makes aggregates of m people out of reference traces, as the publisher would.

    Parameters
    ----------
    reference
        Traces to choose others from; the target must not be among them. They are taken as
        they are: bound them first where the mechanism does.
    target
        The cells that the target is thought to have visited.
    group_size
        People in a group, m; the reference needs at least as many.
    mechanism
        What is done to the counts.
    """

    reference: Traces
    target: NDArray[np.int32]
    group_size: int
    mechanism: Mechanism

    def __post_init__(self) -> None:
        if self.group_size > self.reference.n_users:
            raise GroupError(
                f"groups of {self.group_size} cannot be made from "
                f"{self.reference.n_users} reference traces",
                fix=f"Give at least {self.group_size} reference traces, or a smaller group",
            )

    def sample(
        self,
        n: int,
        sampling: Sampling,
        rng: np.random.Generator,
        *,
        cells: NDArray[np.int64] | None = None,
    ) -> Aggregates:
        """Make `n` aggregates, half of them with the target, of some cells or (default) all.

        Cells are given in ascending order.

        Pairs share m - 1 people and the same noise draw: they differ in the target and one
        other person alone. Independent aggregates share nothing.
        """
        if n < 2 or n % 2:
            raise GroupError(f"{n} aggregates cannot be balanced", fix="Give an even number")
        people = self._people(cells)
        make = _pairs if sampling == "paired" else _singles
        key = rng.integers(0, 2**64, dtype=np.uint64)
        stages = self.mechanism.tabulated(self.group_size)
        if stages is not None:
            counts = make(people, n, self.group_size, stages, key)
        else:
            true = make(people, n, self.group_size, _nothing(self.group_size), key)
            counts = _published(true, self.mechanism, self.group_size, rng)
        return Aggregates(counts, np.arange(n) % 2 == 0)

    @property
    def features(self) -> Features:
        """What a classifier sees of its groups."""
        withholds = self.mechanism.withheld is not None
        return Features(self.reference.n_cells, withholds)

    def _people(self, cells: NDArray[np.int64] | None) -> _People:
        """Return everybody's visits to some cells, numbered anew from 0, or to all."""
        reference, target = self.reference, np.unique(self.target)
        if cells is None:
            return _People(
                reference.indptr, reference.cells, own(target, np.int32), reference.n_cells
            )
        if (np.diff(cells) <= 0).any():
            raise GroupError("cells to count must ascend")
        place = np.full(reference.n_cells, -1, np.int32)
        place[cells] = np.arange(cells.size)
        visits = place[reference.cells]
        indptr, visits = kernels.take_marked(reference.indptr, visits, visits >= 0)
        known = place[target]
        return _People(
            own(indptr, np.int64),
            own(visits, np.int32),
            own(known[known >= 0], np.int32),
            cells.size,
        )


class _People(NamedTuple):
    """Visits of the others, as compressed rows, and of the target; how many cells there are."""

    indptr: NDArray[np.int64]
    cells: NDArray[np.int32]
    target: NDArray[np.int32]
    n_cells: int


def _singles(people: _People, n: int, m: int, stages: Stages, key: np.uint64) -> CountMatrix:
    """Make `n` groups, each on its own, with the target and without it in turns."""
    indptr, cells, target, n_cells = people
    lane = _lane_type(people)

    def make(counts: NDArray[np.unsignedinteger], first: int, stop: int) -> bool | None:
        lanes = _lanes(people, lane)
        fits = kernels.publish_groups(
            indptr, cells, target, m, stages, key, first, stop, lanes, counts, *_Changes.none()
        )
        return fits or None

    counts, _ = _in_smallest_type(n_cells, n, kernels.LINE // lane.itemsize, make)
    return kernels.CountMatrix.single(counts)


def _pairs(people: _People, n: int, m: int, stages: Stages, key: np.uint64) -> CountMatrix:
    """Make `n` groups in pairs: the target is in the first and one other person in the second."""
    indptr, cells, target, n_cells = people
    most = target.size + int(np.diff(indptr).max(initial=0))
    lane = _lane_type(people)

    def make(counts: NDArray[np.unsignedinteger], first: int, stop: int) -> _Changes | None:
        found = _Changes.room_for(stop - first, most)
        lanes = _lanes(people, lane)
        fits = kernels.publish_groups(
            indptr, cells, target, m, stages, key, first, stop, lanes, counts, *found
        )
        return found if fits else None

    counts, parts = _in_smallest_type(n_cells, n // 2, kernels.LINE // lane.itemsize, make)
    return kernels.CountMatrix(counts, 2, *_Changes.joined(parts))


def _lane_type(people: _People) -> np.dtype[np.unsignedinteger]:
    """Return the smallest type that counts everybody in a cell, the target too."""
    counts = np.bincount(people.cells, minlength=1)
    return np.min_scalar_type(int(counts.max()) + 1)


def _lanes(people: _People, lane: np.dtype[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    return np.empty((people.indptr.size - 1, kernels.LINE // lane.itemsize), lane)


def _in_smallest_type(
    n_cells: int,
    n: int,
    n_lanes: int,
    make: Callable[[NDArray[np.unsignedinteger], int, int], _Made | None],
) -> tuple[NDArray[np.unsignedinteger], list[_Made]]:
    """Fill in counts of the smallest type that they fit into, ranges of groups side by side.

    `make` fills in some columns, of which the first one's number is a multiple of `n_lanes`, and
    returns what else it has made, or None if they do not fit.
    """
    for width in (np.uint8, np.uint16, np.uint32):
        counts = np.empty((n_cells, n), width)

        def make_lines(
            first: int, stop: int, counts: NDArray[np.unsignedinteger] = counts
        ) -> _Made | None:
            return make(counts, first * n_lanes, min(stop * n_lanes, n))

        parts = kernels.in_parts(make_lines, -(-n // n_lanes))
        made = [part for part in parts if part is not None]
        if len(made) == len(parts):
            return counts, made
    raise AssertionError("counts of people fit into 32 bits")


class _Changes(NamedTuple):
    """How pairs differ, as in `kernels.publish_groups`."""

    bounds: NDArray[np.int64]
    changed: NDArray[np.int32]
    changes: NDArray[np.int32]

    @classmethod
    def none(cls) -> Self:
        """Return what stands for groups that are no pairs."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))

    @classmethod
    def room_for(cls, n_pairs: int, most: int) -> Self:
        """Return room for the changes of some pairs, so many in each."""
        room = n_pairs * most
        bounds = np.zeros(n_pairs + 1, np.int64)
        return cls(bounds, np.empty(room, np.int32), np.empty(room, np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put the changes of consecutive pairs into one."""
        sizes = np.concatenate([np.diff(part.bounds) for part in parts])
        return cls(
            np.append(0, np.cumsum(sizes)),
            np.concatenate([part.changed[: part.bounds[-1]] for part in parts]),
            np.concatenate([part.changes[: part.bounds[-1]] for part in parts]),
        )


def _nothing(m: int) -> Stages:
    """Return the tables that leave counts as they are."""
    stages = Mechanism().tabulated(m)
    assert stages is not None  # noqa: S101 - no step, so none without tables
    return stages


def _published(
    paired: CountMatrix, mechanism: Mechanism, m: int, rng: np.random.Generator
) -> CountMatrix:
    """Publish true counts by a mechanism without tables, one draw for each group or pair."""
    alphabet = mechanism.alphabet(m)
    counts = np.empty(paired.base.shape, np.min_scalar_type(alphabet.size - 1))
    changes = np.empty_like(paired.changes)
    for i, others in enumerate(paired.base.T):
        noise = mechanism.draw(others.shape, rng)
        published = alphabet.symbols(mechanism.publish(others, noise, m))
        counts[:, i] = published
        part = slice(paired.bounds[i], paired.bounds[i + 1])
        where = paired.changed[part]
        replaced = others[where].astype(np.int32) + paired.changes[part]
        drawn = tuple(draw[where] for draw in noise)
        after = alphabet.symbols(mechanism.publish(replaced, drawn, m))
        changes[part] = after - published[where]
    return paired._replace(base=counts, changes=changes)
