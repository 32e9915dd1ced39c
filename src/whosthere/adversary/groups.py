"""Labelled aggregates that an attacker makes up, and what a classifier sees of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, cast, get_args

import numpy as np

from whosthere import kernels
from whosthere.arrays import own
from whosthere.data.traces import Group
from whosthere.errors import GroupError
from whosthere.privacy.cell_key import people_keys
from whosthere.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.kernels.count_matrix import CountMatrix
    from whosthere.kernels.stages import Stages
    from whosthere.privacy.mechanism import Noise

    _Counts: TypeAlias = NDArray[np.unsignedinteger]

Sampling: TypeAlias = Literal["paired", "independent"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)
_Made = TypeVar("_Made")


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Published symbols of groups with and without the target.

    A row of `counts` for each group, a column for each cell. `labels` tells whether the target is
    in each group, shape (n_groups,). Groups with the target and without it take turns; of pairs,
    the one with the target comes first.
    """

    counts: CountMatrix
    labels: NDArray[np.bool_]


class Features(NamedTuple):
    """What a classifier sees of a group: its symbols, which are counts as long as none is withheld.

    Where counts may be withheld, there are two features for each cell: the count, 0 if withheld,
    and after those of all cells whether it is withheld.
    """

    n_cells: int
    withholds: bool

    def matrix(self, symbols: CountMatrix) -> CountMatrix:
        """Return all features of groups, given the symbols of all cells."""
        if not self.withholds:
            return symbols
        base, copies, bounds, changed, changes = symbols
        pair = np.repeat(np.arange(base.shape[1]), np.diff(bounds))
        before = base[changed, pair].astype(np.int32)
        # Counts and then marks of all changed cells, in the order of their pairs again.
        after = _both(before + changes) - _both(before)
        order = np.argsort(np.tile(pair, 2), kind="stable")
        twice = np.concatenate([changed, changed + self.n_cells]).astype(np.int32)
        return kernels.CountMatrix(_both(base), copies, 2 * bounds, twice[order], after[order])

    def cells(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cells that some features are of, in ascending order."""
        return np.unique(chosen % self.n_cells) if self.withholds else chosen

    def of(self, symbols: NDArray[np.integer], chosen: NDArray[np.int64]) -> NDArray[np.integer]:
        """Return some features, shape (n, k), given the symbols of their `cells`."""
        if not self.withholds:
            return symbols
        place = np.searchsorted(self.cells(chosen), chosen % self.n_cells)
        both = np.stack([_counts(symbols), symbols == 0], axis=-1)
        return both[:, place, chosen // self.n_cells]


def _counts(symbols: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return counts above the lowest, 0 where withheld, given symbols that may be withheld."""
    return np.asarray(symbols - (symbols > 0).astype(symbols.dtype))


def _both(symbols: NDArray[np.integer]) -> NDArray[Any]:
    """Return counts, and whether each is withheld, one after the other along the first axis."""
    return np.concatenate([_counts(symbols), (symbols == 0).astype(symbols.dtype)])


class FeaturesOfTables(NamedTuple):
    """What a classifier sees of a group in several tables: the features of one after the other."""

    tables: tuple[Features, ...]

    def matrix(self, symbols: Sequence[CountMatrix]) -> CountMatrix:
        """Return all features of groups, given the symbols of all cells of each table."""
        pairs = zip(self.tables, symbols, strict=True)
        return _stacked([one.matrix(counts) for one, counts in pairs])

    def cells(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the cells of each table that some features are of, in ascending order."""
        parts = zip(self.tables, self._split(chosen), strict=True)
        return [one.cells(part) for one, part in parts]

    def of(
        self, symbols: Sequence[NDArray[np.integer]], chosen: NDArray[np.int64]
    ) -> NDArray[np.integer]:
        """Return some features, shape (n, k), given the symbols of their `cells` in each table."""
        parts = zip(self.tables, symbols, self._split(chosen), strict=True)
        return np.concatenate([one.of(some, part) for one, some, part in parts], axis=1)

    def _split(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return features, which are in ascending order, by table and as numbered there."""
        sizes = [one.n_cells * (1 + one.withholds) for one in self.tables]
        starts = np.cumsum([0, *sizes[:-1]])
        parts = np.split(chosen, np.searchsorted(chosen, starts[1:]))
        return [part - start for part, start in zip(parts, starts, strict=True)]


def _stacked(parts: Sequence[CountMatrix]) -> CountMatrix:
    """Put matrices of the same groups below one another."""
    if len(parts) == 1:
        return parts[0]
    if len({part.copies for part in parts}) > 1:
        # Where a table is made as a whole, groups are single.
        return kernels.CountMatrix.single(np.concatenate([part.dense().T for part in parts]))
    starts = np.cumsum([0, *(len(part.base) for part in parts[:-1])])
    pair = np.concatenate([np.repeat(np.arange(p.base.shape[1]), np.diff(p.bounds)) for p in parts])
    order = np.argsort(pair, kind="stable")
    changed = [part.changed + start for part, start in zip(parts, starts, strict=True)]
    return kernels.CountMatrix(
        np.concatenate([part.base for part in parts]),
        parts[0].copies,
        np.asarray(sum(part.bounds for part in parts)),
        np.concatenate(changed).astype(np.int32)[order],
        np.concatenate([part.changes for part in parts])[order],
    )


@dataclass(frozen=True, eq=False, repr=False)
class GroupSampler:
    """Makes aggregates of m people out of reference traces, as the publisher would.

    The target must not be in the reference, which is taken as it is: bound it first where the
    mechanism does. `target` holds the cells that the target is thought to have visited, sorted,
    and `added` what the target adds to their counts.
    """

    reference: Traces
    target: NDArray[np.int32]
    group_size: int
    mechanism: Mechanism
    added: NDArray[np.int32] | int = 1

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
        """Make `n` aggregates, an even number, half of them with the target.

        They are of all cells, or of some that are given in ascending order. Pairs share m - 1
        people and the same noise draw: they differ in the target and one other person alone.
        Independent aggregates share nothing.
        """
        return sample_tables([self], n, sampling, rng, cells=[cells])[0]

    @property
    def is_one_by_one(self) -> bool:
        """Whether groups are made one after the other: noise is of people, or visits add up."""
        keyed = any(step.noise_of == "people" for step in self.mechanism.steps)
        return keyed or self.reference.weights is not None

    @property
    def most_count(self) -> int:
        """The largest true count that a cell can have."""
        return self.group_size * self.reference.most_added

    def all_at_once(
        self,
        n: int,
        sampling: Sampling,
        rng: np.random.Generator,
        *,
        cells: NDArray[np.int64] | None,
        key: np.uint64,
        table: int,
    ) -> Aggregates:
        """Make aggregates of the groups that belong to a key, in one of several tables."""
        has_law = self.mechanism.has_law
        people = self._people(cells if has_law else None)
        make = partial(_pairs if sampling == "paired" else _singles, table=table)
        stages = self.stages
        if stages is not None:
            counts = make(people, n, self.group_size, stages, key)
        else:
            as_they_are = cast("Stages", Mechanism().tabulated(self.group_size))
            true = make(people, n, self.group_size, as_they_are, key)
            if has_law:
                counts = self._published(true, rng)
            else:
                counts = self._published_whole(true, cells, rng)
        return Aggregates(counts, np.arange(n) % 2 == 0)

    def one_by_one(
        self,
        groups: Sequence[tuple[int, NDArray[np.int64]]],
        cells: NDArray[np.int64] | None,
        table: int | None = None,
    ) -> Aggregates:
        """Make aggregates of given groups, each with a seed of its noise, in turns with the target.

        A pair has the same random numbers: people who are in both have the same keys. So have they
        in all of several tables, whose noise is otherwise their own.
        """
        mechanism, m, reference = self.mechanism, self.most_count, self.reference
        weights, target = reference.weights, np.unique(self.target).astype(np.int32)
        if weights is not None:
            weights = np.append(weights, np.broadcast_to(self.added, target.shape))
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
        counts = np.empty((wanted.size, len(groups)), np.min_scalar_type(alphabet.size - 1))
        for i, (seed, rows) in enumerate(groups):
            # The target comes last, in the place of somebody else.
            put_in = np.append(rows[:-1], reference.n_users)
            keys = None
            if table is not None:
                keys = people_keys(self.group_size, np.random.default_rng(seed))
            group = Group(everybody, put_in if i % 2 == 0 else rows, keys)
            own = np.random.default_rng(seed if table is None else (seed, table))
            noise = mechanism.draw_for(group, reference.shape, own)
            made = mechanism.publish(group.counts(), noise, m)
            counts[:, i] = alphabet.symbols(made).reshape(-1)[wanted]
        return Aggregates(kernels.CountMatrix.single(counts), np.arange(len(groups)) % 2 == 0)

    def _published_whole(
        self, true: CountMatrix, cells: NDArray[np.int64] | None, rng: np.random.Generator
    ) -> CountMatrix:
        """Publish true counts by a function of whole tables; some cells of them are kept, or all.

        Groups are single afterwards: any cell may differ between those of a pair.
        """
        mechanism, m, shape = self.mechanism, self.most_count, self.reference.shape
        alphabet, groups = mechanism.alphabet(m), true.dense()
        wanted = np.arange(true.shape[1]) if cells is None else cells
        counts = np.empty((wanted.size, len(groups)), np.min_scalar_type(alphabet.size - 1))
        for i, group in enumerate(groups):
            if i % true.copies == 0:
                noise = mechanism.draw(shape, rng)
            made = alphabet.symbols(mechanism.publish(group.reshape(shape), noise, m))
            counts[:, i] = made.reshape(-1)[wanted]
        return kernels.CountMatrix.single(counts)

    @property
    def stages(self) -> Stages | None:
        """The mechanism as tables, which draw their own noise; None where `noise` draws it."""
        return self.mechanism.tabulated(self.most_count)

    def noise(self, shape: tuple[int, ...], n: int, rng: np.random.Generator) -> Iterator[Noise]:
        """Draw the noise of `n` groups or pairs, one after the other."""
        return (self.mechanism.draw(shape, rng) for _ in range(n))

    def _published(self, paired: CountMatrix, rng: np.random.Generator) -> CountMatrix:
        """Publish true counts by a mechanism without tables, one draw for each group or pair."""
        mechanism, m = self.mechanism, self.most_count
        alphabet = mechanism.alphabet(m)
        counts = np.empty(paired.base.shape, np.min_scalar_type(alphabet.size - 1))
        changes = np.empty_like(paired.changes)
        n_cells, n = paired.base.shape
        for i, noise in enumerate(self.noise((n_cells,), n, rng)):
            others = paired.base[:, i]
            published = alphabet.symbols(mechanism.publish(others, noise, m))
            counts[:, i] = published
            part = slice(paired.bounds[i], paired.bounds[i + 1])
            where = paired.changed[part]
            replaced = others[where].astype(np.int32) + paired.changes[part]
            drawn = tuple(draw[where] for draw in noise)
            after = alphabet.symbols(mechanism.publish(replaced, drawn, m))
            changes[part] = after - published[where]
        return paired._replace(base=counts, changes=changes)

    @property
    def features(self) -> Features:
        """What a classifier sees of its groups."""
        return Features(self.reference.n_cells, self.mechanism.withheld is not None)

    def _people(self, cells: NDArray[np.int64] | None) -> _People:
        """Return everybody's visits to some cells, numbered anew from 0, or to all."""
        reference, target = self.reference, np.unique(self.target)
        if cells is None:
            return _People(
                reference.indptr, reference.cells, own(target, np.int32), reference.n_cells
            )
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


def sample_tables(
    samplers: Sequence[GroupSampler],
    n: int,
    sampling: Sampling,
    rng: np.random.Generator,
    *,
    cells: Sequence[NDArray[np.int64] | None] | None = None,
) -> list[Aggregates]:
    """Make `n` aggregates of each of several tables of the same people; see `GroupSampler.sample`.

    The people of group i are the same in all tables, and so are their rows in all references.
    """
    of_tables = cells or [None] * len(samplers)
    parts = list(zip(samplers, of_tables, range(len(samplers)), strict=True))
    if not any(one.is_one_by_one for one in samplers):
        key = rng.integers(0, 2**64, dtype=np.uint64)
        return [
            one.all_at_once(n, sampling, rng, cells=some, key=key, table=i)
            for one, some, i in parts
        ]
    groups: list[tuple[int, NDArray[np.int64]]] = []
    for i in range(n):
        if i % 2 and sampling == "paired":
            groups.append(groups[-1])
            continue
        seed = int(rng.integers(2**63))
        drawn = rng.choice(samplers[0].reference.n_users, samplers[0].group_size, replace=False)
        groups.append((seed, drawn))
    if len(samplers) == 1:
        return [samplers[0].one_by_one(groups, of_tables[0])]
    return [one.one_by_one(groups, some, i) for one, some, i in parts]


class _People(NamedTuple):
    """Visits of the others, as compressed rows, and of the target; how many cells there are."""

    indptr: NDArray[np.int64]
    cells: NDArray[np.int32]
    target: NDArray[np.int32]
    n_cells: int


def _singles(
    people: _People, n: int, m: int, stages: Stages, key: np.uint64, *, table: int
) -> CountMatrix:
    """Make `n` groups, each on its own, with the target and without it in turns."""
    indptr, cells, target, _ = people

    def make(counts: _Counts, lanes: _Counts, first: int, stop: int) -> bool:
        no_pairs = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32)
        return kernels.publish_groups(
            indptr, cells, target, m, stages, key, first, stop, lanes, counts, *no_pairs, table
        )

    counts, _ = _in_smallest_type(people, n, make)
    return kernels.CountMatrix.single(counts)


def _pairs(
    people: _People, n: int, m: int, stages: Stages, key: np.uint64, *, table: int
) -> CountMatrix:
    """Make `n` groups in pairs: the target is in the first and one other person in the second."""
    indptr, cells, target, _ = people
    most = target.size + int(np.diff(indptr).max(initial=0))

    def make(counts: _Counts, lanes: _Counts, first: int, stop: int) -> _Changes | None:
        bounds, room = np.zeros(stop - first + 1, np.int64), (stop - first) * most
        found = _Changes(bounds, np.empty(room, np.int32), np.empty(room, np.int32))
        fits = kernels.publish_groups(
            indptr, cells, target, m, stages, key, first, stop, lanes, counts, *found, table
        )
        return found if fits else None

    counts, parts = _in_smallest_type(people, n // 2, make)
    return kernels.CountMatrix(counts, 2, *_Changes.joined(parts))


def _in_smallest_type(
    people: _People, n: int, make: Callable[[_Counts, _Counts, int, int], _Made | None]
) -> tuple[_Counts, list[_Made]]:
    """Fill in counts of the smallest type that they fit into, ranges of groups side by side.

    `make` fills in some columns, which begin with a whole line of lanes, and returns what else it
    has made, or nothing if they do not fit.
    """
    # The smallest type that counts everybody in a cell, the target too.
    lane = np.min_scalar_type(int(np.bincount(people.cells, minlength=1).max()) + 1)
    n_lanes = kernels.LINE // lane.itemsize
    for width in (np.uint8, np.uint16, np.uint32):
        counts = np.empty((people.n_cells, n), width)

        def make_lines(first: int, stop: int, counts: _Counts = counts) -> _Made | None:
            lanes = np.empty((people.indptr.size - 1, n_lanes), lane)
            return make(counts, lanes, first * n_lanes, min(stop * n_lanes, n))

        parts = kernels.in_parts(make_lines, -(-n // n_lanes))
        made = [part for part in parts if part]
        if len(made) == len(parts):
            return counts, made
    raise AssertionError("counts of people fit into 32 bits")


class _Changes(NamedTuple):
    """How pairs differ, as in `kernels.publish_groups`."""

    bounds: NDArray[np.int64]
    changed: NDArray[np.int32]
    changes: NDArray[np.int32]

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put the changes of consecutive pairs into one."""
        sizes = np.concatenate([np.diff(part.bounds) for part in parts])
        return cls(
            np.append(0, np.cumsum(sizes)),
            np.concatenate([part.changed[: part.bounds[-1]] for part in parts]),
            np.concatenate([part.changes[: part.bounds[-1]] for part in parts]),
        )
