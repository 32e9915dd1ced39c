"""Labelled groups that an attacker makes of other people, half of them with the target.

They are made in one of two ways: all at once, side by side in lanes, where the mechanism is one
table of results with one noise; else one by one, as a publisher makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from whosthere import kernels
from whosthere.adversary.features import Features
from whosthere.data.traces import Group
from whosthere.errors import GroupError
from whosthere.privacy.cell_key import people_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.arrays import Bools, Ints32, Ints64
    from whosthere.data.traces import Traces
    from whosthere.kernels.count_matrix import CountMatrix
    from whosthere.kernels.groups import Noise
    from whosthere.privacy.mechanism import Mechanism

Sampling: TypeAlias = Literal["paired", "independent"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)
# What is added to a count is looked up by so many random numbers, each equally likely.
_NUMBERS = 2**16
# The numbers that noise is drawn by have keys of their own, one for each table.
_NOISE_KEY = np.uint64(2**40)
_COUNTS_AT_A_TIME = 2**20


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Published symbols of groups with and without the target.

    A row of `counts` for each group, a column for each cell. `labels` tells whether the target is
    in each group, shape (n_groups,). Groups with the target and without it take turns; of pairs,
    the one with the target comes first.
    """

    counts: CountMatrix
    labels: Bools


@dataclass(frozen=True, eq=False, repr=False)
class GroupSampler:
    """Makes groups of m people out of reference traces, and publishes them as the publisher would.

    The target must not be in the reference, which is taken as it is: bound it first where the
    mechanism does. `target` holds the cells that the target is thought to have visited, sorted,
    and `added` what the target adds to their counts.
    """

    reference: Traces
    target: Ints32
    group_size: int
    mechanism: Mechanism
    added: Ints32 | int = 1

    def __post_init__(self) -> None:
        if self.group_size > self.reference.n_users:
            raise GroupError(
                f"groups of {self.group_size} cannot be made from "
                f"{self.reference.n_users} reference traces",
                fix=f"Give at least {self.group_size} reference traces, or a smaller group",
            )

    def sample(
        self, n: int, sampling: Sampling, rng: np.random.Generator, *, cells: Ints64 | None = None
    ) -> Aggregates:
        """Make `n` groups, an even number, half of them with the target.

        They are of all cells, or of some that are given in ascending order. Pairs share m - 1
        people and the same noise draw: they differ in the target and one other person alone.
        Independent groups share nothing.
        """
        return sample_tables([self], n, sampling, rng, cells=[cells])[0]

    @property
    def features(self) -> Features:
        """What a classifier sees of its groups."""
        return Features(self.reference.n_cells, self.mechanism.withheld is not None)

    @property
    def most_count(self) -> int:
        """The largest true count that a cell can have."""
        return self.group_size * self.reference.most_added

    def noise(self) -> Noise | None:
        """Return the mechanism as tables, with noise to 1 in 65,536; None if there are none.

        There are none either where noise belongs to people, or where visits add up.
        """
        if self.reference.weights is not None:
            return None
        if any(step.noise_of == "people" for step in self.mechanism.steps):
            return None
        table = self.mechanism.tabulated(self.most_count)
        if table is None:
            return None
        middles = (np.arange(_NUMBERS) + 0.5) / _NUMBERS
        added = np.searchsorted(np.cumsum(table.chances), middles) + table.lowest
        return kernels.Noise(added.astype(np.int32), table.results)

    def noise_seeds(self, n: int, rng: np.random.Generator) -> Sequence[int]:
        """Return the seeds of the noise of `n` groups or pairs that are made one by one."""
        return [int(seed) for seed in rng.integers(2**63, size=n)]


def sample_tables(
    samplers: Sequence[GroupSampler],
    n: int,
    sampling: Sampling,
    rng: np.random.Generator,
    *,
    cells: Sequence[Ints64 | None] | None = None,
) -> list[Aggregates]:
    """Make `n` groups in each of several tables of the same people; see `GroupSampler.sample`.

    The people of group i are the same in all tables, and so are their rows in all references.
    """
    chosen = cells or [None] * len(samplers)
    with_target, is_paired = np.arange(n) % 2 == 0, sampling == "paired"
    noises = [noise for one in samplers if (noise := one.noise()) is not None]
    made: list[CountMatrix]
    if len(noises) < len(samplers):
        drawn = _Drawn.of(samplers[0], n, rng, is_paired=is_paired)
        tables: Sequence[int | None] = range(len(samplers)) if len(samplers) > 1 else [None]
        made = [
            _one_by_one(one, drawn, with_target, some, table)
            for one, some, table in zip(samplers, chosen, tables, strict=True)
        ]
    else:
        key = rng.integers(0, 2**64, dtype=np.uint64)
        last = np.full(n // 2, -1, np.int32)
        if not is_paired:
            last = np.where(with_target, samplers[0].reference.n_users, -1).astype(np.int32)
        made = [
            _side_by_side(
                one, noise, some, key=key, last=last.copy(), table=table, is_paired=is_paired
            )
            for table, (one, noise, some) in enumerate(zip(samplers, noises, chosen, strict=True))
        ]
    return [Aggregates(counts, with_target) for counts in made]


def _side_by_side(
    sampler: GroupSampler,
    noise: Noise,
    cells: Ints64 | None,
    *,
    key: np.uint64,
    last: Ints32,
    table: int,
    is_paired: bool,
) -> CountMatrix:
    """Count and publish all groups at once; `last` says who is the last of each, if not negative.

    A pair is counted once, without the target.
    """
    rows = _Rows.of(sampler, cells)
    most = int(np.bincount(rows.cells, minlength=1).max())
    counts = np.empty((rows.n_cells, last.size), np.min_scalar_type(most))
    m, n_people = sampler.group_size, sampler.reference.n_users
    kernels.count_groups(rows.indptr, rows.cells, m, n_people, key, last, counts)
    own_key = key ^ (_NOISE_KEY + np.uint64(table))
    if not is_paired:
        return kernels.CountMatrix.single(_published(counts, noise, own_key))
    cell, group, change = rows.swaps(last)
    true = counts[cell, group].astype(np.int32) + change
    after = np.empty(cell.size, np.int32)
    kernels.publish_at(true, cell, group, noise, own_key, after)
    published = _published(counts, noise, own_key)
    after -= published[cell, group].astype(np.int32)
    kept = after != 0
    bounds = np.searchsorted(group[kept], np.arange(last.size + 1))
    return kernels.CountMatrix(published, 2, bounds, cell[kept].astype(np.int32), after[kept])


class _Rows(NamedTuple):
    """Visits of the others as compressed rows, and last those of the target."""

    indptr: Ints64
    cells: Ints32
    n_cells: int

    @classmethod
    def of(cls, sampler: GroupSampler, chosen: Ints64 | None) -> _Rows:
        """Take visits to some cells, which are numbered anew from 0, or to all."""
        reference, target = sampler.reference, np.unique(sampler.target)
        indptr = np.append(reference.indptr, reference.indptr[-1] + target.size)
        cells = np.append(reference.cells, target).astype(np.int32)
        if chosen is None:
            return cls(indptr, cells, reference.n_cells)
        place = np.full(reference.n_cells, -1, np.int32)
        place[chosen] = np.arange(chosen.size)
        cells = place[cells]
        return cls(*kernels.take_marked(indptr, cells, cells >= 0), chosen.size)

    def swaps(self, last: Ints32) -> tuple[Ints64, Ints64, Ints32]:
        """Return where the target changes counts in the place of the last person of each group.

        The cells, groups and changes, ordered by groups.
        """
        target, n = self.cells[self.indptr[-2] :], last.size
        ends = zip(self.indptr[last], self.indptr[last + 1], strict=True)
        left = np.concatenate([np.empty(0, np.int32), *(self.cells[a:b] for a, b in ends)])
        sizes = np.append(np.diff(self.indptr)[last], np.full(n, target.size))
        group = np.repeat(np.tile(np.arange(n), 2), sizes)
        cell = np.append(left, np.tile(target, n)).astype(np.int64)
        change = np.repeat([-1, 1], [left.size, target.size * n])
        keys, place = np.unique(group * self.n_cells + cell, return_inverse=True)
        total = np.bincount(place, change, keys.size).astype(np.int32)
        group, cell = np.divmod(keys[total != 0], self.n_cells)
        return cell, group, total[total != 0]


def _published(
    counts: NDArray[np.unsignedinteger], noise: Noise, key: np.uint64
) -> NDArray[np.unsignedinteger]:
    """Publish counts, in place if the results fit in."""
    highest = min(int(counts.max(initial=0)) + int(noise.added.max()), noise.results.size - 1)
    most = np.min_scalar_type(int(noise.results[: max(highest, 0) + 1].max()))
    if np.iinfo(most).max > np.iinfo(counts.dtype).max:
        counts = counts.astype(most)
    if noise.added.any():
        kernels.publish_counts(counts, noise, key)
        return counts
    results = noise.results[: int(counts.max(initial=0)) + 1].astype(counts.dtype)
    least = int(np.flatnonzero(results != np.arange(results.size)).max(initial=-1)) + 1
    if not results[:least].any():
        kernels.drop_small(counts, least)
        return counts
    for some in np.array_split(counts, counts.size // _COUNTS_AT_A_TIME + 1):
        np.take(results, some, out=some)
    return counts


class _Drawn(NamedTuple):
    """Who is in each group, the last to be replaced by the target, and the seed of its noise."""

    people: Sequence[Ints64]
    seeds: Sequence[int]

    @classmethod
    def of(
        cls, sampler: GroupSampler, n: int, rng: np.random.Generator, *, is_paired: bool
    ) -> _Drawn:
        """Draw groups; both of a pair have the same people and the same seed."""
        copies = 2 if is_paired else 1
        n_people, m = sampler.reference.n_users, sampler.group_size
        people = [rng.choice(n_people, m, replace=False) for _ in range(n // copies)]
        seeds = sampler.noise_seeds(n // copies, rng)
        return cls(
            [one for one in people for _ in range(copies)],
            [one for one in seeds for _ in range(copies)],
        )


def _one_by_one(
    sampler: GroupSampler,
    drawn: _Drawn,
    with_target: Bools,
    cells: Ints64 | None,
    table: int | None,
) -> CountMatrix:
    """Count and publish one group after the other.

    A pair has the same random numbers: people who are in both have the same keys. So have they in
    all of several tables, whose noise is otherwise their own.
    """
    mechanism, m, reference = sampler.mechanism, sampler.most_count, sampler.reference
    weights, target = reference.weights, np.unique(sampler.target).astype(np.int32)
    if weights is not None:
        weights = np.append(weights, np.broadcast_to(sampler.added, target.shape))
    everybody = replace(
        reference,
        users=(*reference.users, ""),
        indptr=np.append(reference.indptr, reference.indptr[-1] + target.size),
        cells=np.append(reference.cells, target),
        weights=weights,
        friends=None,
    )
    alphabet = mechanism.alphabet(m)
    wanted = np.arange(reference.n_cells) if cells is None else cells
    counts = np.empty((wanted.size, with_target.size), np.min_scalar_type(alphabet.size - 1))
    for i, (people, seed) in enumerate(zip(*drawn, strict=True)):
        # The target comes last, in the place of somebody else.
        rows = np.append(people[:-1], reference.n_users) if with_target[i] else people
        keys = None
        if table is not None:
            keys = people_keys(sampler.group_size, np.random.default_rng(seed))
        group = Group(everybody, rows, keys)
        noise = mechanism.draw_for(
            group, reference.shape, np.random.default_rng(seed if table is None else (seed, table))
        )
        made = mechanism.publish(group.counts(), noise, m)
        counts[:, i] = alphabet.symbols(made).reshape(-1)[wanted]
    return kernels.CountMatrix.single(counts)
