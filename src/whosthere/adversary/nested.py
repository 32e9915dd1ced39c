"""Tables that nest: the counts of one are sums of the counts of another, or of a part of them.

A hidden count below a shown total is not free: the total says what the hidden counts add up to. So
tables that nest are judged together. Others in the smallest cells are independent and Poisson. What
was published of them, of their sums and of the sums of those is a tree, whose chance is found from
the leaves up: the law of a sum is the convolution of the laws of its parts, and what was published
of the sum weighs it. With the target's visits moved by what the target adds, this is exact for
every mechanism that treats cells independently, for any number of visits below the same total.

Distinct people are no sums: somebody in three hours is one person of the day. There the sum is
thinned first: each of the others' visits counts with the same chance, the people to be expected
over the visits. That is a model, and the target's own part in it is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from whosthere import kernels
from whosthere.adversary.count_tables import moved_down
from whosthere.data.cells import cell_at, region_and_epoch
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.probability import own_draws

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks.base import View
    from whosthere.adversary.scorer import Asked, Scorer, Table
    from whosthere.arrays import Floats, Ints64
    from whosthere.privacy.release import Release

    Counted: TypeAlias = Mapping[int, float]

# A chance that is not known to be 0 is not taken for a smaller part of another than this.
_LEAST_LOG_RATIO = -40.0
# Visits of others to several parts may always be those of one person, however rare that seems.
_MOST_KEPT = 0.99
# Counts are looked at up to so many deviations above what is expected, and so many more.
_FAR, _FEW = 10.0, 20


@dataclass(frozen=True, eq=False)
class Nesting:
    """How the cells of a table make up those of a coarser one.

    `region` is the coarser region of each region, shape (n_regions,), and `joined` how many epochs
    become one; `n_epochs` are those of the two tables. Their counts may not add up if somebody in
    several of the cells is one person of the coarser one.
    """

    region: Ints64
    joined: int
    n_epochs: tuple[int, int]
    adds_up: bool

    @classmethod
    def of(cls, fine: View, coarse: View) -> Nesting | None:
        """Return how one table nests in another; None where it does not."""
        same = fine.layout == coarse.layout
        adds_up = same or (_adds_up(fine) and coarse.layout.counts == "visits")
        distinct = coarse.layout.counts == "people" and coarse.facts.most_added == 1
        of, into = fine.facts.epochs, coarse.facts.epochs
        joined, rest = divmod(into.length, of.length)
        covered = of.start == into.start and not rest and -(-of.n // joined) == into.n
        if not (same or covered) or not (adds_up or distinct):
            return None
        n_finest = len(fine.layout.regions or coarse.layout.regions or fine.facts.regions.ids)
        finest = np.arange(n_finest)
        own, others = (
            finest if one.layout.regions is None else np.array(one.layout.regions)
            for one in (fine, coarse)
        )
        region = np.empty(len(fine.facts.regions), np.int64)
        region[own] = others
        if not (region[own] == others).all():
            return None
        return cls(region, joined, (of.n, into.n), adds_up)

    def parent(self, cells: Ints64) -> Ints64:
        """Return the coarser cell that each cell lies in."""
        region, epoch = region_and_epoch(cells, self.n_epochs[0])
        return np.asarray(cell_at(self.region[region], epoch // self.joined, self.n_epochs[1]))

    def parts(self, cell: int) -> Ints64:
        """Return the cells that make up a coarser one."""
        region, epoch = divmod(cell, self.n_epochs[1])
        epochs = np.arange(epoch * self.joined, min((epoch + 1) * self.joined, self.n_epochs[0]))
        regions = np.flatnonzero(self.region == region)
        return np.asarray(cell_at(regions[:, None], epochs, self.n_epochs[0]).reshape(-1))


def _adds_up(view: View) -> bool:
    layout = view.layout
    return layout.counts == "visits" or (layout.regions is None and layout.epochs == 1)


def _can_be_joined(view: View) -> bool:
    """Tell whether counts are those of the visits that are known, and cells draw independently."""
    steps, most = view.facts.mechanism.steps, view.facts.most_count
    bounded, by_people = view.facts.mechanism.bounds_visits, own_draws(steps, most)
    return bool(view.knowledge.cells.size) and not bounded and not by_people


def chains(views: Sequence[View]) -> tuple[Chain, ...]:
    """Put tables into chains, each of which nests in the next.

    All tables are in one chain, some of them alone. The finest table of a chain comes first, and
    tables that add up come before those that do not.
    """
    found: list[Chain] = []
    order = sorted(
        range(len(views)), key=lambda i: (not _adds_up(views[i]), -views[i].facts.n_cells)
    )
    for place in order:
        for i, chain in enumerate(found):
            last, this = views[chain.places[-1]], views[place]
            nesting = Nesting.of(last, this)
            if nesting is not None and _can_be_joined(last) and _can_be_joined(this):
                found[i] = Chain((*chain.places, place), (*chain.nestings, nesting))
                break
        else:
            found.append(Chain((place,), ()))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Null:
    """One person in a table."""

    table: Table
    asked: Asked

    @property
    def release(self) -> Release:
        """The release."""
        return self.table.release

    @property
    def cells(self) -> Ints64:
        """Where the person was."""
        return self.asked.cells

    @property
    def added(self) -> Ints64:
        """What the person adds there."""
        return self.asked.added

    @property
    def log_rates(self) -> Floats:
        """Logarithms of the rates of others there."""
        return np.asarray(self.table.rates.at_cells.reshape(-1)[self.cells])

    def log_levels_without(self) -> Floats:
        """Return the mean logarithm of the level at each cell, whose count is not looked at."""
        return np.asarray(self.table.log_levels_without_each().reshape(-1)[self.cells])

    def by_cell_at(self, log_rates: Floats) -> Floats:
        """Return what each cell adds to the score if rates are known, given as logarithms."""
        found, symbols = np.empty(log_rates.size), self.release.symbols.reshape(-1)[self.cells]
        for n in np.unique(self.added).tolist():
            own = self.added == n
            found[own] = self.table.tables_of(n).log_ratio_of(symbols[own], log_rates[own])
        return found


@dataclass(frozen=True, eq=False)
class ChainScorer:
    """The likelihood ratio of one person in tables of which some nest."""

    scorer: Scorer
    chains: tuple[Chain, ...]

    def __call__(self, releases: Sequence[Release]) -> Floats:
        """Score a publication, shape (1,)."""
        nulls = [Null(*self.scorer.looked_up(i, one)) for i, one in enumerate(releases)]
        scores = [chain.score([nulls[i] for i in chain.places]) for chain in self.chains]
        return np.asarray(np.maximum([sum(scores)], RULED_OUT))


@dataclass(frozen=True, eq=False)
class Chain:
    """Tables by their places in a publication, finest first, and how each nests in the next."""

    places: tuple[int, ...]
    nestings: tuple[Nesting, ...]

    def score(self, nulls: Sequence[Null]) -> float:
        """Score the tables together; minus infinity where the target cannot be in.

        By the chain rule: the score of the table that says most, as if it were alone, and what all
        others add given that one. Tables that add up have the same rates, so that is the one that
        says most about these. The rates of others say something else, and it is the one that says
        most about the target.
        """
        alone = [float(null.table.score(null.asked)[0]) for null in nulls]
        if len(nulls) == 1 or not all(map(math.isfinite, alone)):
            return min(alone)
        known = [_information(null) for null in nulls]
        coarse = 1 + int(np.argmax(known[1:]))
        first = 0 if known[0] > known[coarse] else coarse
        if not all(nesting.adds_up for nesting in self.nestings):
            first = int(np.argmax([_information_on_target(null) for null in nulls]))
        share = known[coarse] / (known[0] + known[coarse])
        return alone[first] + self._added_by_others(nulls, first, coarse, share)

    def _added_by_others(
        self, nulls: Sequence[Null], first: int, coarse: int, share: float
    ) -> float:
        """Return what all tables add to the score, given the `first`.

        Rates are those of the finest table, moved towards those of the `coarse` one by a share.
        """
        finest = nulls[0]
        own = self._levels_of(finest.cells.astype(np.int64))
        tops = np.unique(own[-1]).tolist()
        leaves = self._levels_of(np.concatenate([self._leaves(top) for top in tops]))
        log_rates = finest.table.rates.at_cells.reshape(-1)[leaves[0]]
        place = {cell: i for i, cell in enumerate(leaves[0].tolist())}
        visited = np.array([place[cell] for cell in own[0].tolist()])
        log_rates[visited] = finest.log_rates + finest.log_levels_without()
        sums, which = np.unique(leaves[coarse], return_inverse=True)
        wanted = nulls[coarse].table.rates.at_cells.reshape(-1)[sums]
        theirs = np.isin(nulls[coarse].cells, sums)
        at = np.searchsorted(sums, nulls[coarse].cells[theirs])
        wanted[at] = (nulls[coarse].log_rates + nulls[coarse].log_levels_without())[theirs]
        log_kept = self._log_kept(nulls, leaves)
        expected = np.bincount(which, np.exp(log_rates + log_kept[coarse]))
        log_rates += share * (wanted - np.log(expected))[which]
        # The same rates for the first table, which has said its part already.
        cells, of_leaf = np.unique(leaves[first], return_inverse=True)
        log_sums = np.log(np.bincount(of_leaf, np.exp(log_rates + log_kept[first])))
        mine = np.isin(nulls[first].cells, cells)
        at = np.minimum(np.searchsorted(cells, nulls[first].cells), cells.size - 1)
        said = np.where(mine, nulls[first].by_cell_at(log_sums[at]), 0.0)
        top_of_cell = dict(zip(leaves[first].tolist(), leaves[-1].tolist(), strict=True))
        added = [_by_cell(null.cells, null.added) for null in nulls]
        by_cell = _by_cell(leaves[0], log_rates)
        kept = tuple(
            _by_cell(cells, np.exp(upper - lower))
            for cells, upper, lower in zip(leaves[1:], log_kept[1:], log_kept[:-1], strict=True)
        )
        tree = Tree(tuple(null.release for null in nulls), self.nestings, kept)
        total = 0.0
        for top in tops:
            together = tree.log_ratio(top, by_cell, added)
            if together is not None:
                before = [top_of_cell.get(cell) == top for cell in nulls[first].cells.tolist()]
                total += together - float(said[before].sum())
        return total

    def _log_kept(self, nulls: Sequence[Null], leaves: Sequence[Ints64]) -> list[Floats]:
        """Return the log chance of a visit in each smallest cell to count in each of the tables.

        The counts to be expected in a cell over those in its parts. Nobody counts in these more
        often than there are parts, times what a person adds to one.
        """
        found = [np.zeros(leaves[0].size)]
        for level, nesting in enumerate(self.nestings, 1):
            chance = np.ones(leaves[0].size)
            if not nesting.adds_up:
                of, into = (
                    null.table.rates.at_cells.reshape(-1) for null in nulls[level - 1 : level + 1]
                )
                parts, one_leaf = np.unique(leaves[level - 1], return_index=True)
                cells, which = np.unique(leaves[level], return_inverse=True)
                visits = np.bincount(which[one_leaf], np.exp(of[parts]))
                ratio = np.exp(into[cells]) / visits
                most = np.bincount(which[one_leaf]) * nulls[level - 1].release.facts.most_added
                chance = np.maximum(np.minimum(ratio, _MOST_KEPT), 1 / most)[which]
            found.append(found[-1] + np.log(chance))
        return found

    def _leaves(self, top: int) -> Ints64:
        """Return the smallest cells that make up a cell of the last table."""
        cells = np.array([top])
        for nesting in reversed(self.nestings):
            cells = np.concatenate([nesting.parts(cell) for cell in cells.tolist()])
        return cells

    def _levels_of(self, cells: Ints64) -> list[Ints64]:
        """Return the cell of each table that smallest cells lie in."""
        found = [cells]
        for nesting in self.nestings:
            found.append(nesting.parent(found[-1]))
        return found


def _by_cell(cells: NDArray[np.integer], values: NDArray[Any]) -> dict[int, Any]:
    return dict(zip(cells.tolist(), values.tolist(), strict=True))


def _information(null: Null) -> float:
    """Return what a table says about a factor of all its rates."""
    at = null.release.symbols, null.table.rates.base
    return float(null.table.tables.information_on_levels(*at).sum())


def _information_on_target(null: Null) -> float:
    """Return what a table says about the rates where the target is."""
    log_rates = null.log_rates[:, None]
    everywhere = np.zeros(log_rates.shape, np.int32)
    on_logs = null.table.tables.information_on_levels(everywhere, log_rates)
    return float((on_logs * np.exp(-2 * null.log_rates)).sum())


class _Law(NamedTuple):
    """Chances of counts from `least` on with what was published of them, as for `law_of_sum`."""

    least: int
    chances: Floats
    log_scale: float
    is_whole: bool


@dataclass(frozen=True, eq=False)
class Tree:
    """Releases of a chain of tables, finest first, and how each nests in the next.

    `kept` has, for each nesting and by cell of the coarser table, the chance of a count of its
    parts to be one of its own; by default all are.
    """

    releases: tuple[Release, ...]
    nestings: tuple[Nesting, ...]
    kept: tuple[Counted, ...] = ()

    def log_ratio(self, top: int, log_rates: Counted, added: Sequence[Counted]) -> float | None:
        """Return how much likelier all is that was published in a cell of the last table.

        Logarithms of rates are given by smallest cell, and what the target adds by cell of each
        table. Minus infinity where the target cannot be in; None where all of it is too unlikely to
        tell.
        """
        nowhere: Sequence[Counted] = [{}] * len(added)
        laws = [self._law(len(self.nestings), top, log_rates, own) for own in (nowhere, added)]
        without, within = (float(one.chances.sum()) for one in laws)
        if not without > 0:
            return None
        if not within > 0:
            return -math.inf if laws[1].is_whole else _LEAST_LOG_RATIO
        ratio = math.log(within / without) + laws[1].log_scale - laws[0].log_scale
        return max(ratio, _LEAST_LOG_RATIO)

    def _law(self, level: int, cell: int, log_rates: Counted, added: Sequence[Counted]) -> _Law:
        """Return the law of the others in a cell of a table, with what was published within it."""
        parts = self.nestings[level - 1].parts(cell)
        if level == 1:
            law = self._law_of_leaves(parts, log_rates, added[0])
        else:
            law = reduce(
                _together, (self._law(level - 1, one, log_rates, added) for one in parts.tolist())
            )
        chance = self.kept[level - 1].get(cell, 1.0) if self.kept else 1.0
        least, chances, whole = kernels.thinned(law.least, law.chances, chance)
        law = _Law(least, chances, law.log_scale, law.is_whole and whole)
        release, shift = self.releases[level], int(added[level].get(cell, 0))
        most = release.facts.most_count
        there = np.minimum(law.least + np.arange(law.chances.size) + shift, most)
        value = release.values.reshape(-1)[cell]
        log_chance = release.mechanism.log_pmf(value, there.astype(np.int32), most)
        top = float(log_chance.max(initial=-np.inf))
        if math.isinf(top):
            return law._replace(chances=np.empty(0))
        chances = law.chances * np.exp(log_chance - top)
        return law._replace(chances=chances, log_scale=law.log_scale + top)

    def _law_of_leaves(self, cells: Ints64, log_rates: Counted, added: Counted) -> _Law:
        """Return the law of the sum of the others in smallest cells, with what was published."""
        release, own = self.releases[0], cells.tolist()
        logs = np.array([log_rates[cell] for cell in own])
        shifts = np.array([added.get(cell, 0) for cell in own], np.int64)
        values, which = np.unique(release.values.reshape(-1)[cells], return_inverse=True)
        rate, facts = math.exp(logs.max()), release.facts
        shown = int(values.max() / facts.mechanism.slope)
        expected = max(shown + moved_down(facts.mechanism, facts.most_count), rate)
        most = min(facts.most_count, math.ceil(expected + _FAR * math.sqrt(rate)) + _FEW)
        there = np.arange(most + 1, dtype=np.int32)
        log_chances = facts.mechanism.log_pmf(values[:, None], there, facts.most_count)
        law = _Law(*kernels.law_of_sum(logs, log_chances, which, shifts))
        reaches_all = most == facts.most_count or bool(np.isneginf(log_chances[:, -1]).all())
        return law._replace(is_whole=law.is_whole and reaches_all)


def _together(one: _Law, other: _Law) -> _Law:
    """Return the law of the sum of two independent counts."""
    if not one.chances.size or not other.chances.size:
        return one._replace(chances=np.empty(0), is_whole=one.is_whole and other.is_whole)
    summed = np.convolve(one.chances, other.chances)
    top = float(summed.max())
    scale = one.log_scale + other.log_scale + math.log(top)
    whole = one.is_whole and other.is_whole
    return _Law(one.least + other.least, summed / top, scale, whole)
