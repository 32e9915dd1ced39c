"""Labelled aggregates that an attacker makes up to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from whosthere import kernels
from whosthere.adversary.count_matrix import CountMatrix
from whosthere.data.arrays import own
from whosthere.errors import GroupError
from whosthere.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.kernels.stages import Stages

Sampling: TypeAlias = Literal["paired", "independent"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Published counts of groups with and without the target.

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
        indptr, visits = kernels.restrict_rows(reference.indptr, reference.cells, place)
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
    counts: NDArray[np.unsignedinteger] = np.empty((n, n_cells), np.uint8)
    done = 0
    while done < n:
        done = kernels.publish_groups(indptr, cells, target, m, stages, key, done, counts)
        if done < n:
            counts = _wider(counts)
    return CountMatrix.single(counts)


def _pairs(people: _People, n: int, m: int, stages: Stages, key: np.uint64) -> CountMatrix:
    """Make `n` groups in pairs: the target is in the first and one other person in the second."""
    indptr, cells, target, n_cells = people
    n_pairs = n // 2
    counts: NDArray[np.unsignedinteger] = np.empty((n_pairs, n_cells), np.uint8)
    most = n_pairs * (target.size + int(np.diff(indptr).max(initial=0)))
    bounds, changed, changes = (
        np.zeros(n_pairs + 1, np.int64),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
    )
    done = 0
    while done < n_pairs:
        done = kernels.publish_pairs(
            indptr, cells, target, m, stages, key, done, counts, bounds, changed, changes
        )
        if done < n_pairs:
            counts = _wider(counts)
    kept = bounds[-1]
    return CountMatrix(kernels.Rows(counts, 2, bounds, changed[:kept], changes[:kept]))


def _wider(counts: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Return the counts in the next larger type: most releases fit into the smallest."""
    return counts.astype(np.dtype(f"u{2 * counts.itemsize}"))


def _nothing(m: int) -> Stages:
    """Return the tables that leave counts as they are."""
    stages = Mechanism().tabulated(m)
    assert stages is not None  # noqa: S101 - no step, so none without tables
    return stages


def _published(
    true: CountMatrix, mechanism: Mechanism, m: int, rng: np.random.Generator
) -> CountMatrix:
    """Publish true counts by a mechanism without tables, one draw for each group or pair."""
    rows = true.rows
    counts = np.empty(rows.base.shape, np.min_scalar_type(m))
    changes = np.empty_like(rows.changes)
    for i, others in enumerate(rows.base):
        noise = mechanism.draw(others.shape, rng)
        counts[i] = mechanism.publish(others, noise, m)
        part = slice(rows.bounds[i], rows.bounds[i + 1])
        where = rows.changed[part]
        replaced = others[where].astype(np.int32) + rows.changes[part]
        drawn = tuple(draw[where] for draw in noise)
        changes[part] = mechanism.publish(replaced, drawn, m) - counts[i, where].astype(np.int32)
    return CountMatrix(rows._replace(base=counts, changes=changes))
