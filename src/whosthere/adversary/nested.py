"""Tables that nest: the counts of one are sums of the counts of another, or of a part of them.

A hidden count below a shown total is not free: the total says what the hidden counts add up to. So
tables that nest are judged together, for everybody at once. Others in the smaller cells are
independent and Poisson; the law of a total is that of their sum, weighed by the chance of what was
published of it. Given the rates, this is exact for every mechanism that treats cells independently.

The rates are those that fit both tables. A line of the coarser one has a level. As people stay for
a while, visits come in bunches: their sums may vary by more than those of independent ones, as far
as the release shows it.

Distinct people are no sums: somebody in three hours is one person of the day. There each of the
others' visits counts with the same chance, the people to be expected over the visits. That is a
model, and the target's own part in it is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self

import numpy as np

from whosthere import kernels
from whosthere.adversary.count_tables import moved_down
from whosthere.adversary.evidence import Evidence
from whosthere.adversary.levels import expected_levels, fitted_levels, levels_given
from whosthere.data.flows import Pairs

if TYPE_CHECKING:
    from whosthere.adversary.counting import Rows
    from whosthere.adversary.levels import Levels, Lines
    from whosthere.adversary.nesting import Nesting
    from whosthere.adversary.scorer import Table
    from whosthere.arrays import Bools, Floats, Ints32, Ints64
    from whosthere.privacy.release import Release

# A chance that is not known to be 0 is not taken for a smaller part of another than this. What is a
# smaller part of the chances of all sums is rounding.
_LEAST_RATIO, _ROUNDING = 1e-17, 1e-13
# Visits of others to several parts may always be those of one person, however rare that seems.
_MOST_KEPT = 0.99
# Counts are looked at up to so many deviations above what is expected, and so many more.
_FAR, _FEW = 10.0, 20
# Rates are fitted in so many rounds, by steps that are so much longer than those of EM, as if each
# row and column had so many visits more.
_ROUNDS, _STEP, _FEW_VISITS = 5, 1.5, 0.05
# By how many times its mean the variance of a total may exceed that of independent visits.
_BUNCHED = (0.0, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class VisitsBelow:
    """Visits of people to the cells of a table, by the total that each is a part of.

    They are the same in every release, so they are grouped once. Equal groups are judged once.
    """

    indptr: Ints64
    """Where the groups of each person begin, and the number of all."""
    groups: Ints32
    """Numbers of distinct groups, by person, in the order of lines."""
    distinct: kernels.Visits
    line: Ints64
    """The line of each distinct group."""

    @classmethod
    def of(cls, rows: Rows, nesting: Nesting, lines: Lines) -> Self:
        """Group visits; lines are those of the coarser table."""
        cells, total_of_part = nesting.parts
        heaviest = int(rows.added.max(initial=1))
        keys = np.argsort(cells)[rows.cells] * heaviest + (rows.added - 1)
        order = np.lexsort((keys, rows.person))
        known, place = np.unique(keys[order], return_inverse=True)
        part, more = known // heaviest, known % heaviest + 1
        owner, total = rows.person[order], total_of_part[part[place]]
        is_new = (np.diff(owner, prepend=-1) != 0) | (np.diff(total, prepend=-1) != 0)
        firsts = np.flatnonzero(is_new)
        starts, owner, total = np.append(firsts, place.size), owner[firsts], total[firsts]
        which, some = _numbered(starts, place)
        added = np.add.reduceat(more[place], firsts) if nesting.adds_up else np.ones_like(total)
        by_total = np.lexsort((added[some], total[some]))
        some, number = some[by_total], np.argsort(by_total)
        ends, places = kernels.take_rows(starts, place.astype(np.int32), some)
        distinct = kernels.Visits(ends, places, total[some], added[some], part, more)
        line = (lines.places() // lines.cells.shape[1])[total]
        groups = number[which][np.lexsort((line, owner))]
        indptr = np.searchsorted(owner, np.arange(rows.indptr.size))
        return cls(indptr, groups.astype(np.int32), distinct, line[some])


def _numbered(starts: Ints64, places: Ints64) -> tuple[Ints64, Ints64]:
    """Return numbers of groups of places, the same for equal ones, and one group of each number."""
    size, found = np.diff(starts), np.zeros(starts.size - 1, np.int64)
    for i in range(size.max()):
        longer = np.flatnonzero(size > i)
        keys = found[longer] * (places.max() + 1) + places[starts[longer] + i]
        found[longer] = np.unique(keys, return_inverse=True)[1]
    keys = found * (size.max() + 1) + size
    _, some, numbers = np.unique(keys, return_index=True, return_inverse=True)
    return numbers, some


@dataclass(frozen=True, eq=False)
class Trees:
    """A release of a table and of a coarser one whose counts are made of its counts."""

    fine: Table
    coarse: Table
    nesting: Nesting

    def score(self, visits: VisitsBelow) -> Floats:
        """Score people by both tables together, minus infinity where one is ruled out."""
        groups = visits.distinct
        laws = self._fitted(int(_by_group(groups, groups.more).max()))
        bunched, levels = self._levels(laws)
        weights, _ = laws.weights(levels.nodes[self._line_of_total], bunched)
        without = laws.chances(weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = laws.chances_with(groups, weights) / without[groups.total]
            logs = np.log(np.maximum(ratios, _LEAST_RATIO))
        logs[without.max(axis=1)[groups.total] < _ROUNDING] = 0.0
        logs[laws.are_impossible(groups)] = -np.inf
        evidence = Evidence.of(logs, visits.line, levels.log_weight)
        return evidence.score(visits.indptr, visits.groups)

    def _fitted(self, spare: int) -> Laws:
        """Return the laws of totals at rates that are fitted to both tables.

        A person may be `spare` of a total.
        """
        log_rates, published = self.fine.rates.at_cells, Published.of(self, spare)
        # A row of pairs of places has few trips, and a level of its own.
        sides = (0,) if isinstance(self.fine.release.regions, Pairs) else (0, 1)
        for _ in range(_ROUNDS):
            counts = published.laws(log_rates).counts
            for side in sides:
                wanted = counts.sum(axis=side, keepdims=True) + _FEW_VISITS
                now = np.exp(log_rates).sum(axis=side, keepdims=True) + _FEW_VISITS
                log_rates = log_rates + _STEP * np.log(wanted / now)
        return published.laws(log_rates)

    def _levels(self, laws: Laws) -> tuple[float, Levels]:
        """Return how bunched visits are, and the levels of lines, given all that was published."""
        fine, coarse, lines = self.fine, self.coarse, self.coarse.lines
        by_line = lines.take(coarse.release.symbols, -1), lines.take(coarse.rates.base)
        expected, spread = expected_levels(*by_line, coarse.tables, relative=lines.are_relative)
        if not lines.are_relative:
            expected += fitted_levels(by_line[1]) - fitted_levels(lines.take(laws.log_counted))
        symbols, log_rates = fine.release.symbols.reshape(-1, 1), fine.rates.base.reshape(-1, 1)
        of_cells = fine.tables.information_on_levels(symbols, log_rates)
        line_of_cell = self._line_of_total[self.nesting.parent]
        known = coarse.tables.information_on_levels(*by_line)
        known += np.bincount(line_of_cell, of_cells, known.size)
        found = partial(self._log_chances, laws)
        levels = levels_given(partial(found, 0.0), known, expected, spread)
        if not self.nesting.adds_up:
            return 0.0, levels
        prior = -(((levels.nodes - expected[:, None]) / spread) ** 2) / 2
        logs = (found(one, levels.nodes) + prior for one in _BUNCHED)
        likely = [float(np.logaddexp.reduce(one, axis=1).sum()) for one in logs]
        bunched = _BUNCHED[int(np.argmax(likely))]
        return bunched, levels_given(partial(found, bunched), known, expected, spread)

    def _log_chances(self, laws: Laws, bunched: float, nodes: Floats) -> Floats:
        """Return log chances of all that was published, by line and level."""
        weights, logs = laws.weights(nodes[self._line_of_total], bunched)
        chances = laws.chances(weights)
        logs += np.log(np.maximum(chances, _ROUNDING))
        logs[chances.max(axis=1) < _ROUNDING] = 0.0
        found = np.zeros(nodes.shape)
        np.add.at(found, self._line_of_total, logs)
        return found

    @cached_property
    def _line_of_total(self) -> Ints64:
        return np.asarray(self.coarse.lines.places() // self.coarse.lines.cells.shape[1])


@dataclass(frozen=True, eq=False)
class Published:
    """What was published of totals and of their parts, and what it may stand for."""

    parts: kernels.Parts
    totals: kernels.Totals
    most: Floats
    """The largest sum that each total may be, shape (n_totals,)."""
    part_of_cell: Ints64
    """The part that each cell of the finer table is, shape (n_regions, n_epochs)."""
    spare: int

    @classmethod
    def of(cls, trees: Trees, spare: int) -> Self:
        """Look up what the two tables show; a person may be `spare` of a total."""
        fine, coarse, nesting = trees.fine, trees.coarse, trees.nesting
        cells, total_of_part = nesting.parts
        log_rates = fine.rates.at_cells
        visits = np.bincount(nesting.parent, np.exp(log_rates.reshape(-1)))
        starts = np.searchsorted(total_of_part, np.arange(visits.size + 1))
        symbol, chances, support = _shown(fine.release, float(np.exp(log_rates.max())))
        parts = kernels.Parts(starts, np.empty(0), symbol[cells], chances, support)
        symbol, chances, support = _shown(coarse.release, float(visits.max()))
        kept, most = np.ones(visits.size), np.full(visits.size, np.inf)
        if nesting.adds_up:
            most = np.where(chances[:, -1] > 0, np.inf, support[:, 1])[symbol]
        else:
            ratio = np.exp(coarse.rates.at_cells.reshape(-1)) / visits
            # Nobody counts in the parts more often than these are, times what one adds to one.
            least = 1 / (np.diff(starts) * fine.release.facts.most_added)
            kept = np.maximum(np.minimum(ratio, _MOST_KEPT), least)
        part_of_cell = np.argsort(cells).reshape(log_rates.shape)
        totals = kernels.Totals(symbol, chances, kept)
        return cls(parts, totals, most, part_of_cell, spare)

    def laws(self, log_rates: Floats) -> Laws:
        """Return the laws of totals at rates by cell of the finer table."""
        by_part = np.empty(log_rates.size)
        by_part[self.part_of_cell] = log_rates
        parts = self.parts._replace(log_rates=by_part)
        counts, scales, radius, least, size = kernels.expected_counts(
            parts, self.totals, self.spare
        )
        circles = kernels.Circles(scales, radius, least, np.append(0, np.cumsum(size)))
        return Laws(self, parts, circles, counts[self.part_of_cell])


@dataclass(frozen=True, eq=False)
class Laws:
    """Laws of totals at some rates of their parts, together with what was published of these."""

    published: Published
    parts: kernels.Parts
    circles: kernels.Circles
    counts: Floats
    """The counts of others to be expected in cells, given all that was published."""

    @cached_property
    def _log_rates(self) -> Floats:
        """Logarithms of the rates of totals."""
        rates = np.exp(self.parts.log_rates)
        return np.asarray(np.log(np.add.reduceat(rates, self.parts.starts[:-1])))

    @property
    def log_counted(self) -> Floats:
        """The same of the visits that count."""
        return self._log_rates + np.log(self.published.totals.kept)

    @cached_property
    def _shown(self) -> Floats:
        """Chances of what was published of totals by the sum of the others, shape (n_sums,)."""
        return kernels.chances_by_sum(self.published.totals, self.circles, 0)

    @cached_property
    def _of_sums(self) -> Floats:
        """Chances of these sums, with what was published of the parts, same shape."""
        return kernels.chances_of_sums(self.parts, self.circles)

    def weights(self, levels: Floats, bunched: float) -> tuple[Floats, Floats]:
        """Return how much likelier sums are at levels of totals, (n_totals, n_levels), in bunches.

        Weights have the shape (n_sums, n_levels), and are over numbers whose logarithms are the
        second, shape of the levels.
        """
        return kernels.weights_of_sums(self.circles, self._log_rates, self._shown, levels, bunched)

    def chances(self, weights: Floats) -> Floats:
        """Return chances of all that was published of totals, shape (n_totals, n_levels)."""
        by_sum = (self._of_sums * self._shown)[:, None] * weights
        return np.asarray(np.add.reduceat(by_sum, self.circles.sums[:-1]))

    def chances_with(self, visits: kernels.Visits, weights: Floats) -> Floats:
        """Return the same with groups of visits, shape (n_groups, n_levels)."""
        kinds, kind = np.unique(visits.added, return_inverse=True)
        at = self.published.totals, self.circles
        shown = np.stack([kernels.chances_by_sum(*at, added) for added in kinds.tolist()])
        numbered = visits._replace(added=kind)
        return kernels.chances_of_visits(numbered, self.parts, self.circles, shown, weights)

    def are_impossible(self, visits: kernels.Visits) -> Bools:
        """Tell which groups make a total too large, even if all other counts are the least."""
        least = self.parts.support[self.parts.symbol, 0]
        lifted = np.maximum(visits.more - least[visits.part], 0)
        room = self.published.most - np.add.reduceat(least, self.parts.starts[:-1])
        return np.asarray(_by_group(visits, lifted) > room[visits.total])


def _by_group(visits: kernels.Visits, values: Ints64) -> Ints64:
    """Add up numbers of places over those of each group."""
    return np.asarray(np.add.reduceat(values[visits.places], visits.starts[:-1]))


def _shown(release: Release, most_expected: float) -> tuple[Ints64, Floats, Ints64]:
    """Return numbers of what cells show, and its chances by count and first and last count.

    Chances have the shape (n_shown, n_counts), first and last counts (n_shown, 2).
    """
    mechanism, most_count = release.mechanism, release.facts.most_count
    values, shown = np.unique(release.values, return_inverse=True)
    largest = float(values.max()) / mechanism.slope + moved_down(mechanism, most_count)
    expected = max(largest, most_expected)
    most = min(most_count, math.ceil(expected + _FAR * math.sqrt(expected)) + _FEW)
    counts = np.arange(most + 1, dtype=np.int32)
    chances = mechanism.pmf(values[:, None], counts, most_count)
    # What cannot be published says nothing.
    chances[~chances.any(axis=1)] = 1.0
    there = chances > 0
    last = most - there[:, ::-1].argmax(axis=1)
    return shown.reshape(-1), chances, np.stack([there.argmax(axis=1), last], axis=1)
