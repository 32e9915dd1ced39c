"""Whether test releases are what they claim to be, found out anew by paths of their own.

A release claims a group: m different people, the target among them if it is labelled IN. Its true
counts are added up once more from the visits of these people, or from those that bounding kept of
them. Two things follow:

- Its own random numbers must turn these counts into what was published, exactly.
- Each published value must lie in the mechanism's law given its true count like a draw from it.

The second needs many values. A value between F(a - 1) and F(a), the chances of less and of no more
than it, stands for all numbers in between (its probability integral transform). Such numbers are
spread evenly if the law is right. The sums of Legendre polynomials over them then have mean 0: the
first sees a shift, the second a wrong spread, two more a wrong shape.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from whosthere.data.cells import epoch_of, region_of
from whosthere.data.traces import Group
from whosthere.game.optimum import distinct
from whosthere.inference.control import MOMENTS, ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from whosthere.game.rounds import GameRound, RoundTable
    from whosthere.game.target import TargetTable
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.mechanism import Mechanism, Noise
    from whosthere.privacy.publish import PublishedTable

# Polynomials are rounded to this, so that their sums are exact in whatever order they are added.
_FINE = 2.0**20
# Integrates polynomials up to the fifth degree exactly.
_NODES, _WEIGHTS = leggauss(3)
# Logarithm of a chance so small that no audit sees such a value, however many it looks at.
_IMPOSSIBLE = -60.0
# Pairs that are kept before they are counted, and visits that are looked at together.
_MANY = 2**20
# What chance repeats more often than once in exp(this) says nothing if it is repeated.
_LEAST_SURPRISE = 45.0


class Seen(NamedTuple):
    """What was seen of one release: what is wrong with it, and numbers for what was drawn for it.

    `fault` is None for a sound release. `noise` stands for its random numbers, `others` for its
    people besides the target. Releases that share what was drawn share these numbers, and hardly
    any others do. They are None where chance alone repeats it.
    """

    fault: str | None
    noise: int | None
    others: int | None


class RoundChecks(ABC):
    """The checks of the releases of one table, in rounds of any game."""

    def __init__(self, table: RoundTable) -> None:
        self.table, self.mechanism = table, table.mechanism

    @abstractmethod
    def see(self, drawn: GameRound) -> Seen:
        """Check one test release; where its values lie in their law is kept for `sums`."""

    @abstractmethod
    def fault_of_control(self, drawn: GameRound) -> str | None:
        """Return what is wrong with a control release."""

    @abstractmethod
    def sums(self) -> list[float]:
        """Return what follows from all values seen, for `whosthere.inference.control.law_control`.

        For each of `ROLES`: how many values there were and how many of them are impossible, the sum
        of each polynomial, and of its square. Nothing where there is no law.
        """

    def _recounted(self, drawn: GameRound) -> tuple[PublishedTable, NDArray[np.int32]]:
        """Return the table, and true counts of its group, or of what bounding kept of its visits.

        By cell, shape (n_cells,), and not by what counted them first.
        """
        made = drawn.publication.tables[self.table.place]
        group = made.counted if self.mechanism.bounds_visits else made.group
        everybody, counts = group.everybody, np.zeros(group.everybody.n_cells, np.int32)
        for (part,) in _few_at_a_time(group):
            at = part.visits()[0]
            weights = None if everybody.weights is None else everybody.weights[at]
            counts += np.bincount(everybody.cells[at], weights, counts.size).astype(np.int32)
        return made, counts

    def _fault_of_counts(
        self, publication: PublishedTable, counts: NDArray[np.int32]
    ) -> str | None:
        """Return the first thing that is wrong with how a group was counted and protected."""
        mechanism = self.mechanism
        if mechanism.bounds_visits and not bounded_rightly(publication, mechanism):
            return "other visits were counted than the bound allows"
        if not np.array_equal(counts, publication.counts.reshape(-1)):
            return "the true counts are not those of the group"
        noise, whole = publication.noise, counts.reshape(publication.counts.shape)
        if len(noise) == len(mechanism.random_steps):
            made = mechanism.publish(whole, noise, publication.release.facts.most_count)
            if np.array_equal(publication.release.values, made):
                return None
        return "the published counts do not follow from the true ones"


class Checks(RoundChecks):
    """The checks of the releases of one table, in the rounds of one target under a scheme.

    The table says what releases are claimed to be made of: the target, the traces, the people of
    the pool, how many of them, and by which mechanism.
    """

    def __init__(self, table: TargetTable) -> None:
        super().__init__(table)
        self._target, pool = table.rounds.target, table.rounds.pool
        self._of_target, self._m = table, table.rounds.task.scheme.group_size
        self._people = table.rounds.people_in_all
        self._tallies = tuple(Tally() for _ in ROLES)
        self._in_pool = np.zeros(table.traces.n_users, np.bool_)
        self._in_pool[pool] = True
        self._own, self._households = table.rounds.household, table.rounds.plan.game.households
        # As many units, at least, are drawn from as many.
        largest = 1 if self._households is None else int(self._households.sizes.max())
        n, m = pool.size // largest, self._m // largest
        log_choices = math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)
        # Whole clusters can be drawn in far fewer ways.
        few = table.rounds.groups is not None
        self._repeats_people = few or log_choices < _LEAST_SURPRISE

    def see(self, drawn: GameRound) -> Seen:
        (publication, counts), holds_target = self._recounted(drawn), drawn.labels[self._target]
        fault = self._fault(publication, counts, holds_target=holds_target)
        published = publication.release.symbols.reshape(-1)
        own = self._of_target.cells_of_target(publication)
        if self.mechanism.has_law:
            everywhere, within, without = self._tallies
            cells = independent_cells(publication, self.mechanism)
            everywhere.add(counts[cells], published[cells])
            if not isinstance(cells, slice):
                own = np.intersect1d(own, cells)
            (within if holds_target else without).add(counts[own], published[own])
        noise, used_twice = noise_of_cells(publication, self.mechanism)
        return Seen(fault or used_twice, noise, self._others(publication.group))

    def fault_of_control(self, drawn: GameRound) -> str | None:
        """Return what is wrong with a control release, which never holds the target."""
        return self._fault(*self._recounted(drawn), holds_target=False)

    def sums(self) -> list[float]:
        if not self.mechanism.has_law:
            return []
        most = self.table.facts.most_count
        return [one for tally in self._tallies for one in tally.sums(self.mechanism, most)]

    def _others(self, group: Group) -> int | None:
        """Return a number for the people of a group besides the target, in whatever order."""
        if self._repeats_people:
            return None
        n = self._own.size
        others = group.rows[: -n if group.rows[-1] == self._target else None]
        return number_of(others, self._in_pool.size)

    def _is_drawn(self, made: PublishedTable, others: NDArray[np.int64]) -> bool:
        """Tell whether a group is as many people as it should be, each once, who may be in it."""
        group, n = made.group, self._people
        if not self._is_whole(made) or group.n_users != n:
            return False
        different = np.zeros(self._in_pool.size, np.bool_)
        different[group.rows] = True
        if self._households is not None and not self._households.are_whole(group.rows):
            return False
        return np.count_nonzero(different) == n and bool(self._in_pool[others].all())

    def _is_whole(self, made: PublishedTable) -> bool:
        """Tell whether people have all of their visits, or all from when they come until they go.

        Whoever is last in the group is there from first to last, and all tables hold m people.
        """
        stays, everybody = made.stays, self.table.traces
        if stays is None:
            return made.group.everybody is everybody and self._people == self._m
        is_there = stays.first[-1] == 0 and stays.until[-1] == stays.sizes().size
        same = np.array_equal(made.group.everybody.cells, stays.within(everybody).cells)
        return bool(is_there and (stays.sizes() == self._m).all() and same)

    def _fault(
        self, publication: PublishedTable, counts: NDArray[np.int32], *, holds_target: bool
    ) -> str | None:
        """Return the first thing that is wrong with a release."""
        group = publication.group
        n = self._own.size
        others = group.rows[:-n] if holds_target else group.rows
        own = group.rows[others.size :]
        if np.isin(others, self._own).any() or not np.array_equal(own, self._own[: own.size]):
            return "the label is not that of the group"
        if not self._is_drawn(publication, others):
            return "the group is not as many different people of the pool as it should be"
        return self._fault_of_counts(publication, counts)


def independent_cells(made: PublishedTable, mechanism: Mechanism) -> slice | NDArray[np.intp]:
    """Return cells whose noise was drawn for each of them alone, or first for them."""
    cells: slice | NDArray[np.intp] = slice(None)
    for step, draw in zip(mechanism.random_steps, made.noise, strict=False):
        if step.noise_of == "people":
            # What the same people got in another cell is no further evidence.
            cells = np.unique(draw, return_index=True)[1]
    return cells


def noise_of_cells(made: PublishedTable, mechanism: Mechanism) -> tuple[int | None, str | None]:
    """Return a number for the random numbers of a release, and what is wrong with these."""
    drawn_for = zip(mechanism.random_steps, made.noise, strict=False)
    # Not the noise that the same people must get again.
    of_cells = tuple(draw for step, draw in drawn_for if step.noise_of == "cell")
    numbers = np.sort(fingerprints(of_cells))
    used_twice = (numbers[1:] == numbers[:-1]).any()
    fault = "the noise of some cells was used for others" if used_twice else None
    return int(numbers[0]) if numbers.size else None, fault


def _few_at_a_time(*groups: Group) -> Iterator[tuple[Group, ...]]:
    """Yield the same people of groups, as many as have few visits together."""
    n_parts = groups[0].n_visits // _MANY + 1
    for rows in zip(*(np.array_split(one.rows, n_parts) for one in groups), strict=True):
        yield tuple(Group(one.everybody, own) for one, own in zip(groups, rows, strict=True))


def bounded_rightly(publication: PublishedTable, mechanism: Mechanism) -> bool:
    """Tell whether each person was counted for visits of their own, as many as the bound allows."""
    group, counted = publication.group, publication.counted
    return group.n_users == counted.n_users and all(
        _are_bounded(some, kept, publication.release.facts, mechanism)
        for some, kept in _few_at_a_time(group, counted)
    )


def _are_bounded(group: Group, counted: Group, facts: Facts, mechanism: Mechanism) -> bool:
    n_cells, epochs = group.everybody.n_cells, facts.epochs
    (at, made_by), (left, kept_by) = group.visits(), counted.visits()
    people, keepers = (np.repeat(np.arange(sizes.size), sizes) for sizes in (made_by, kept_by))
    cells = group.everybody.cells[at].astype(np.int64)
    kept = counted.everybody.cells[left].astype(np.int64)
    # Both are sorted by person and cell.
    made_at, kept_at = people * n_cells + cells, keepers * n_cells + kept
    place = np.searchsorted(made_at, kept_at)
    added, counted_there = (
        np.ones(own.size) if who.everybody.weights is None else who.everybody.weights[own]
        for who, own in ((group, at), (counted, left))
    )
    own_visits = np.array_equal(made_at.take(place, mode="clip"), kept_at)
    if not own_visits or (counted_there > added[place]).any():
        return False
    units = [unit for unit in mechanism.units if unit.bounds_visits]
    for unit in units:
        period = np.asarray(unit.period(epochs))
        n = int(period.max(initial=0)) + 1
        unit_of = people * n + period[epoch_of(cells, epochs.n)]
        before, after = (
            np.bincount(own, times, group.n_users * n)
            for own, times in ((unit_of, added), (unit_of[place], counted_there))
        )
        most = np.minimum(before, unit.most_visits)
        # Another unit may have dropped more, but nobody keeps more than any of them allows.
        if (after > most).any():
            return False
        if len(units) == 1 and unit.max_regions is None and (after < most).any():
            return False
        if unit.max_regions is not None:
            n_regions = len(facts.regions)
            of_kept = unit_of[place] * n_regions + region_of(kept, epochs.n)
            if (np.bincount(np.unique(of_kept) // n_regions) > unit.max_regions).any():
                return False
    return True


def fingerprints(noise: Noise) -> NDArray[np.int64]:
    """Return a number for the random numbers of each block of neighbouring cells.

    Blocks are as small as they can be without chance repeating one. Where all cells are too few for
    that, there is none. Releases that share all noise share all numbers, and the least of them.
    Those that share a part of it share the least with a chance of at least half that part.
    """
    drawn = np.concatenate([np.empty(0, np.uint64), *map(_as_words, noise)])
    # The chance that two releases draw the same in a cell, seen in neighbouring cells.
    alike = float(np.count_nonzero(drawn[1:] == drawn[:-1]) + 1) / max(drawn.size, 1)
    surprise = -math.log(min(alike, 1.0))
    if surprise * drawn.size < _LEAST_SURPRISE:
        return np.empty(0, np.int64)
    # A power of 2, which is nearly always the same for all releases of a mechanism.
    width = min(2 ** math.ceil(math.log2(_LEAST_SURPRISE / surprise)), drawn.size)
    whole = drawn[: drawn.size // width * width].reshape(-1, width)
    return np.asarray((whole @ _weights(width)).view(np.int64))


def number_of(people: NDArray[np.int64], n_people: int) -> int:
    """Return a number for a set of people, in whatever order, of n in all."""
    return int(_weights(n_people)[people].sum(dtype=np.uint64).view(np.int64))


def places(
    mechanism: Mechanism, true: NDArray[np.int64], symbols: NDArray[np.int64], m: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return where published symbols lie in their laws, and which of them are impossible.

    Where is the mean of each of the Legendre polynomials 1 to 4 between F(a - 1) and F(a), on -1 to
    1, shape (n_values, 4); it has mean 0 and is at most 1 in size if the law is right.
    """
    given, law = true.astype(np.int32), mechanism.law(m)
    alphabet = law.alphabet
    value = symbols + alphabet.base
    log_chance = law.log_between(given, value, value)
    lowest, less = np.full_like(value, alphabet.lowest), np.maximum(value - 1, alphabet.lowest)
    log_below = law.log_between(given, lowest, less)
    below = np.where(value > alphabet.lowest, np.exp(log_below), 0.0)
    if alphabet.withholds:
        # The lowest of all symbols.
        log_held, is_held = law.log_withheld(given), symbols == 0
        log_chance = np.where(is_held, log_held, log_chance)
        below = np.where(is_held, 0.0, below + np.exp(log_held))
    chance = np.exp(log_chance)
    middle = np.minimum(2 * below + chance, 2.0) - 1
    points = np.clip(middle[:, None] + chance[:, None] * _NODES, -1, 1)
    where = _WEIGHTS @ legvander(points, len(MOMENTS))[..., 1:] / 2
    return np.round(where * _FINE) / _FINE, log_chance < _IMPOSSIBLE


class Tally:
    """How often each pair of a true and a published count was seen."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.integer], ...]] = []
        self._size = 0

    def add(self, true: NDArray[np.int32], published: NDArray[np.int32]) -> None:
        """Add what was seen in some cells; pairs are counted when they are many."""
        self._parts.append((true, published, np.ones(true.size, np.int64)))
        self._size += true.size
        if self._size > _MANY:
            self._parts = [self.counted()]
            self._size = self._parts[0][0].size

    def sums(self, mechanism: Mechanism, most: int) -> list[float]:
        """Return what `Checks.sums` has of one role, where a cell can hold `most` people."""
        true, published, times = self.counted()
        where, impossible = places(mechanism, true, published, most)
        found = [float(times.sum()), float(times[impossible].sum())]
        return [*found, *(times @ where).tolist(), *(times @ where**2).tolist()]

    def counted(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the true and the published count of each pair, and how often it was seen."""
        true, published, times = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        width = np.int64(published.max(initial=0)) + 1
        pairs, place = distinct(true * width + published)
        n = np.bincount(place, times, pairs.size).astype(np.int64)
        return pairs // width, pairs % width, n


def _as_words(draw: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return an array of numbers as whole numbers that differ where they do."""
    whole = draw.view(f"u{draw.itemsize}") if draw.dtype.kind == "f" else draw
    return whole.reshape(-1).astype(np.uint64)


@lru_cache(maxsize=4)
def _weights(n: int) -> NDArray[np.uint64]:
    """Return random numbers of 64 bits, always the same."""
    return np.random.default_rng(n).integers(2**64, size=n, dtype=np.uint64)
