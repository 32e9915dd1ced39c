"""The likelihood ratio: tables of a release, and one pass over the visits of all who are asked.

Cells of a line are independent given the line's level. So the likelihood ratio of a line is the
mean, over its levels, of the product of its cells' ratios. Once a release, all ratios are looked up
by cell and level. A person then costs a few multiplications a visit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere import kernels
from whosthere.adversary.count_tables import CountTables, count_tables
from whosthere.adversary.counting import Rows, rows_of_places, rows_of_visits
from whosthere.adversary.evidence import Evidence
from whosthere.adversary.levels import Levels, Lines
from whosthere.adversary.nested import Trees, VisitsBelow
from whosthere.adversary.nesting import Chain
from whosthere.adversary.rates import USUAL, Part, Rates, fit_rates
from whosthere.adversary.suspects import Habits, Known, Places
from whosthere.inference.scores import RULED_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.arrays import Floats, Floats32, Ints32, Ints64
    from whosthere.kernels.lines import Scales
    from whosthere.privacy.release import Release

# Counts that are drawn for a p-value, and releases that they belong to.
_DRAWN, _FEWEST_DRAWS, _MOST_DRAWS = 2**17, 2000, 2**15
# Scores that differ by rounding alone are the same.
_SAME = 1e-6
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows of people in the order of lines: the same in every release, so made once.

    A place is a cell that somebody of them may have visited, and what that one adds there.
    """

    indptr: Ints64
    places: Ints32
    chance: Floats32
    order: Ints64
    """Which visit of the rows, as they were given, each is."""
    cells: Ints64
    line: Ints64
    added: Ints64
    """The cell of each place, the line of that, and what is added there, shape (n_places,)."""

    @classmethod
    def of(cls, rows: Rows, lines: Lines) -> Asked:
        """Put the cells of each person in order, and number the places."""
        heaviest = int(rows.added.max(initial=1))
        keys = lines.places()[rows.cells] * heaviest + (rows.added - 1)
        # Mostly they are in order, which this way of sorting makes use of.
        order = np.argsort(rows.person * (lines.cells.size * heaviest) + keys, kind="stable")
        visited = np.zeros(lines.cells.size * heaviest, np.bool_)
        visited[keys] = True
        place = np.cumsum(visited, dtype=np.int32)[keys[order]] - np.int32(1)
        at, added = np.divmod(np.flatnonzero(visited), heaviest)
        chance = rows.chance[order] if rows.chance.size else rows.chance
        cells, line = lines.cells.reshape(-1)[at], at // lines.cells.shape[1]
        return cls(rows.indptr, place, chance, order, cells, line, added + 1)

    @property
    def rows(self) -> tuple[Ints64, Ints32, Floats32]:
        """Where each person's places begin, the places, and the chances of having been there."""
        return self.indptr, self.places, self.chance


@dataclass(frozen=True, eq=False)
class Table:
    """One table of a release, as whoever scores it sees it: rates, lines, levels."""

    release: Release
    rates: Rates
    lines: Lines
    levels: Levels

    @classmethod
    def of(
        cls, release: Release, parts: Sequence[Part] = USUAL, *, by_region: bool = False
    ) -> Table:
        """Fit rates and levels; lines are regions in any case where only these are known."""
        rates = fit_rates(release, parts)
        lines = Lines.of(release.regions, release.symbols.shape, by_region=by_region)
        tables = count_tables(release.mechanism, release.facts.most_count)
        at = lines.take(release.symbols, -1), lines.take(rates.base), tables
        return cls(release, rates, lines, Levels.of(*at, relative=lines.are_relative))

    @property
    def tables(self) -> CountTables:
        """What the mechanism makes of cells where one person more is."""
        return self.tables_of(1)

    def tables_of(self, added: int) -> CountTables:
        """Return the same of cells where somebody adds so much."""
        return count_tables(self.release.mechanism, self.release.facts.most_count, added)

    def at(self, cells: Ints64) -> tuple[Ints32, Floats]:
        """Return what was published in cells, and the log rates of others there."""
        return self.release.symbols.reshape(-1)[cells], self.rates.at_cells.reshape(-1)[cells]

    def rows(self, known: Known) -> Rows:
        """Return where people were, or may have been as often as the release lets expect."""
        if isinstance(known, Places):
            habits = Habits.of(np.exp(self.rates.base), self.release.group_size)
            return rows_of_places(known, habits)
        return rows_of_visits(known, self.release.facts)

    def score(self, asked: Asked) -> Floats:
        """Score people, minus infinity where one is ruled out, shape (n_people,).

        Somebody whose draw is the same wherever nobody else is may have any of the draws.
        """
        by_draw = [
            log_chance + self._evidence(asked, ratios).score(*asked.rows)
            for log_chance, ratios in self.tables.of_draws()
        ]
        return by_draw[0] if len(by_draw) == 1 else np.asarray(np.logaddexp.reduce(by_draw))

    def by_visit(self, asked: Asked) -> Floats:
        """Return what each visit adds to the scores, in the order of the rows as they were given.

        Minus infinity where it rules somebody out.
        """
        found = np.empty(asked.places.size)
        found[asked.order] = self._evidence(asked, self.tables.of_ratios).by_visit(*asked.rows)
        return found

    def _evidence(self, asked: Asked, of_one: tuple[Floats, Scales]) -> Evidence:
        """Look ratios of places up, in the tables `of_one` for whoever adds 1."""
        symbols, log_rates = self.at(asked.cells)
        found = np.empty((asked.cells.size, self.levels.nodes.shape[1]))
        for n in np.unique(asked.added).tolist():
            some, looked_up = asked.added == n, of_one if n == 1 else self.tables_of(n).of_ratios
            found[some] = kernels.log_ratios_at_nodes(
                symbols[some], log_rates[some], asked.line[some], self.levels.nodes, *looked_up
            )
        return Evidence.of(found, asked.line, self.levels.log_weight)

    def log_levels_without_each(self) -> Floats:
        """Return the mean log level at each cell, whose count is not looked at.

        Shape (n_regions, n_epochs).
        """
        symbols, log_rates = self.release.symbols, self.rates.base
        by_line = self.lines.take(symbols, -1), self.lines.take(log_rates)
        means = self.levels.means_without_each(*by_line, self.tables)
        return self.lines.put(means, log_rates.shape)

    def p_value(self, asked: Asked) -> float:
        """Return the chance of at least the score of one person, if that one is out.

        Counts of the person's cells are drawn anew, given those of all others, half of them with
        the person and half without. A score t weighs 2 / (1 + exp(t)) then: its chance without the
        person over that in such a mixture. So far tails are seen as well as near ones. Each draw is
        a row of places, a place being a cell with what is drawn there: so draws are scored as
        people are.
        """
        rng, facts, tables = np.random.default_rng(0), self.release.facts, self.tables
        known, line = np.unique(asked.line, return_inverse=True)
        (seen, log_rates), n_cells = self.at(asked.cells), asked.cells.size
        # What is known of levels without the person's cells.
        nodes, log_weight = self.levels.nodes[known], self.levels.log_weight[known]
        at = seen[:, None], log_rates[:, None], nodes[line]
        np.subtract.at(log_weight, line, kernels.sum_log_chances(*at, *tables.of_chances))
        log_weight -= np.logaddexp.reduce(log_weight, axis=1)[:, None]
        n_draws = min(max(_DRAWN // n_cells, _FEWEST_DRAWS), _MOST_DRAWS)
        reached = np.cumsum(np.exp(log_weight), axis=1)[:, :-1]
        node = (rng.random((n_draws, known.size, 1)) > reached).sum(axis=2)
        others = rng.poisson(np.exp(log_rates + nodes[line, node[:, line]]))
        chance = asked.chance if asked.chance.size else np.ones(n_cells)
        inside = (np.arange(n_draws) % 2 == 0)[:, None]
        there = inside & (rng.random(others.shape) < chance)
        counts = np.minimum(others, facts.most_count - 1) + there
        drawn = facts.mechanism.apply(counts.astype(np.int32), facts.most_count, rng)
        published = facts.mechanism.alphabet(facts.most_count).symbols(drawn)
        # The first row is what was really published.
        symbols = np.vstack([seen, published]).astype(np.int64)
        pair = np.arange(n_cells) * (int(symbols.max()) + 1) + symbols
        pairs, place = np.unique(pair.reshape(-1), return_inverse=True)
        cell, symbol = np.divmod(pairs, int(symbols.max()) + 1)
        symbol, of_place, line = symbol.astype(np.int32), log_rates[cell], line[cell]
        at = symbol[:, None], of_place[:, None], nodes[line]
        without = kernels.sum_log_chances(*at, *tables.of_chances)
        ratio = kernels.log_ratios_at_nodes(symbol, of_place, line, nodes, *tables.of_ratios)
        with np.errstate(divide="ignore"):
            within = without + np.log1p(chance[cell, None] * np.expm1(ratio))
        rows = np.arange(0, symbols.size + 1, n_cells), place.astype(np.int32)
        scores = Evidence.of(within, line, log_weight).score(*rows)
        scores -= Evidence.of(without, line, log_weight).score(*rows)
        weight = 2 / (1 + np.exp(np.minimum(scores, _LARGEST_EXPONENT)))
        reached_by = np.where(scores[1:] >= scores[0] - _SAME, weight[1:], 0.0)
        error = float(reached_by.std()) / math.sqrt(n_draws) + weight[0] / n_draws
        return float(min(reached_by.mean() + 2 * error, 1.0))


def table_for(known: Known, release: Release, parts: Sequence[Part] = USUAL) -> Table:
    """Fit a table for people of whom so much is known: by region where only these are."""
    return Table.of(release, parts, by_region=isinstance(known, Places))


class Scorer:
    """The likelihood ratio of some people in publications of some tables.

    `known` is what is known of the same people over the cells of each table. Tables of a chain are
    judged together. The scores of others add up as if these were independent.
    """

    def __init__(
        self,
        known: Sequence[Known],
        parts: Sequence[Part] = USUAL,
        chains: Sequence[Chain] | None = None,
    ) -> None:
        self._known, self._parts = known, parts
        alone = tuple(Chain((i,), ()) for i in range(len(known)))
        self._chains = alone if chains is None else chains
        self._asked: list[Asked | None] = [None] * len(known)
        self._below: dict[int, VisitsBelow] = {}

    def __call__(self, releases: Sequence[Release]) -> Floats:
        """Score a publication, `RULED_OUT` where somebody cannot be in, shape (n_people,)."""
        looked_up = [self.looked_up(i, release) for i, release in enumerate(releases)]
        tables, alone = (
            [one for one, _ in looked_up],
            [one.score(asked) for one, asked in looked_up],
        )
        scores = [self._of_chain(chain, tables, alone) for chain in self._chains]
        return np.asarray(np.maximum(np.sum(scores, axis=0), RULED_OUT))

    def _of_chain(self, chain: Chain, tables: Sequence[Table], alone: Sequence[Floats]) -> Floats:
        """Score the tables of a chain together: each given the next coarser one alone."""
        scores = [alone[i] for i in chain.places]
        if len(scores) == 1:
            return scores[0]
        pairs = []
        for fine, coarse, nesting in zip(
            chain.places, chain.places[1:], chain.nestings, strict=False
        ):
            if fine not in self._below:
                rows = tables[fine].rows(self._known[fine])
                self._below[fine] = VisitsBelow.of(rows, nesting, tables[coarse].lines)
            trees = Trees(tables[fine], tables[coarse], nesting)
            pairs.append(trees.score(self._below[fine]))
        ruled_out = np.isneginf([*scores, *pairs]).any(axis=0)
        with np.errstate(invalid="ignore"):
            found = np.sum(pairs, axis=0) - np.sum(scores[1:-1], axis=0)
        return np.where(ruled_out, -np.inf, found)

    def p_value(self, release: Release) -> float | None:
        """Return that of one person in a table.

        None where only places are known, where noise belongs to people and not to cells, or where
        the person counts more than once in a cell.
        """
        table, asked = self.looked_up(0, release)
        by_places = isinstance(self._known[0], Places)
        if by_places or table.tables.draws or not asked.cells.size or asked.added.max() > 1:
            return None
        return table.p_value(asked)

    def looked_up(self, i: int, release: Release) -> tuple[Table, Asked]:
        """Fit a table, and return it with the people in the order of its lines."""
        known, asked = self._known[i], self._asked[i]
        table = table_for(known, release, self._parts)
        if asked is None:
            asked = Asked.of(table.rows(known), table.lines)
            # How often places are visited, each release tells anew.
            self._asked[i] = None if isinstance(known, Places) else asked
        return table, asked
