"""The likelihood ratio: a direct test that needs no training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from whosthere import kernels, specs
from whosthere.adversary.attacks.base import (
    Answer,
    AttackOnEverybody,
    AttackOnTables,
    Auxiliary,
    FittedAttack,
    check_people,
    check_same_facts,
)
from whosthere.adversary.components import completion
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.knowledge import Habits, chance_of_being_counted
from whosthere.adversary.levels import Levels
from whosthere.adversary.nested import Chain, chains
from whosthere.adversary.rates import RANK_ONE, USUAL, Part, Rates, fit_rates
from whosthere.adversary.scorer import Table
from whosthere.errors import InputError
from whosthere.inference.scores import RULED_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks.base import View
    from whosthere.adversary.knowledge import Known
    from whosthere.data.traces import Traces
    from whosthere.kernels.lines import Scales
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

# Counts that are drawn for a p-value, and releases that they belong to.
_DRAWN, _FEWEST_DRAWS, _MOST_DRAWS = 2**17, 2000, 2**15
# People who are scored at a time.
_BLOCK = 4096


RatesFrom = Literal["low-rank", "rank-one"]
"""How much structure the rates may have: components that stand out of the noise, or none."""
_PARTS: dict[RatesFrom, tuple[Part, ...]] = {"low-rank": USUAL, "rank-one": RANK_ONE}


@dataclass(frozen=True)
class LikelihoodAnswer(Answer):
    """An answer whose score is the log of a likelihood ratio.

    Scores of different targets can be compared as they are: equal ones say equally much. `null` is
    None where only places are known, or where the target cannot be in.
    """

    null: Null | None = field(default=None, repr=False, compare=False)

    @cached_property
    def p_value(self) -> float | None:
        """Chance of at least this score if the target is out.

        None where only places are known, where noise belongs to people and not to cells, or where
        the target counts more than once in a cell.

        It is found by simulation, always with the same random numbers, when it is first asked
        for. Where the model holds it is hardly ever too small: its standard error, some percent of
        it, is added twice.
        """
        if self.is_certain:
            return 1.0
        return None if self.null is None else self.null.p_value()

    def posterior(self, prior: float = 0.5) -> float:
        """Return the probability that the target is in, given one before the release is seen."""
        if not 0 < prior < 1:
            raise InputError(f"a prior of {prior:g} is not between 0 and 1", fix="Try 0.5")
        odds = self.score + math.log(prior / (1 - prior))
        return 1 / (1 + math.exp(-odds)) if odds > -500 else 0.0

    def explain(self, *, prior: float) -> list[str]:
        said = [f"Probability of being in, from {prior:g} before: {self.posterior(prior):.3f}."]
        if self.p_value is not None:
            said.append(f"Chance of such a score for somebody who is out: {self.p_value:.3g}.")
        said.append(
            "That holds as far as the model does: other people's visits independent, their rates "
            "as regular as the release shows. The decision may be wrong: how often it is, is what "
            "an audit over many people measures."
        )
        return said

    def to_json(self, *, prior: float = 0.5) -> dict[str, Any]:
        posterior = self.posterior(prior)
        return super().to_json() | {"p_value": self.p_value, "posterior": posterior}


@dataclass(frozen=True)
class LikelihoodRatio(AttackOnTables, AttackOnEverybody):
    """Ask at each of the target's visits whether the count is likelier with one person more.

    Parameters
    ----------
    rates
        "low-rank" follows all structure that stands out of the release's noise. "rank-one" takes a
        factor of the region times one of the epoch, as earlier versions did.
    """

    rates: RatesFrom = specs.parameter(
        specs.OneOf(get_args(RatesFrom)),
        "how much structure the rates of others may have",
        default="low-rank",
    )

    name: ClassVar[str] = "likelihood-ratio"
    summary: ClassVar[str] = (
        "tests the counts at the target's visits against rates fitted to the release through "
        "its mechanism; needs nothing else and no training"
    )
    needs_law = True

    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:  # noqa: ARG002
        each = []
        for one in views:
            completion(one.facts.mechanism, one.facts.most_count)
            each.append(_Test(one.facts, one.knowledge, _PARTS[self.rates]))
        return each[0] if len(each) == 1 else _TestOfTables(tuple(each), chains(views))

    def score_everybody(
        self,
        release: Release,
        people: Traces,
        auxiliary: Auxiliary | None = None,  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Score a release for many people at once, whose whole traces are known.

        The rates are fitted once, so a person takes as long as it takes to add up their visits. The
        scores are those that `fit` and `score` give to one after the other, shape (n_users,).
        """
        check_people(release, people)
        rates = fit_rates(release, _PARTS[self.rates])
        blocks = [null.by_person(n) for n, null in nulls_of_everybody(release, people, rates)]
        scores = np.concatenate([np.empty(0), *blocks])
        return np.where(np.isinf(scores), RULED_OUT, scores)


@dataclass(frozen=True, eq=False, repr=False)
class _Test(FittedAttack):
    facts: Facts
    knowledge: Known
    parts: Sequence[Part]

    def score(self, release: Release) -> LikelihoodAnswer:
        check_same_facts(release, self.facts)
        rates = fit_rates(release, self.parts)
        return log_likelihood_ratio(release, self.knowledge, rates)


@dataclass(frozen=True, eq=False, repr=False)
class _TestOfTables(FittedAttack):
    """Tests of several tables.

    Tables that nest are judged together. The scores of all others add up as if the tables were
    independent.
    """

    tests: tuple[_Test, ...]
    chains: tuple[Chain, ...]

    def score(self, release: Release) -> Answer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> LikelihoodAnswer:
        nulls = []
        for test, one in zip(self.tests, releases, strict=True):
            check_same_facts(one, test.facts)
            rates = fit_rates(one, test.parts)
            nulls.append(_null(one, test.knowledge, rates))
        scores = [chain.score([nulls[i] for i in chain.places]) for chain in self.chains]
        # One table that rules the target out is enough.
        return LikelihoodAnswer(sum(scores) if all(map(math.isfinite, scores)) else RULED_OUT, 0.0)


def log_likelihood_ratio(release: Release, knowledge: Known, rates: Rates) -> LikelihoodAnswer:
    """Score a release for a target, by rates that were fitted to it."""
    null = _null(release, knowledge, rates)
    (score,) = null.by_person(1).tolist()
    if math.isinf(score):
        return LikelihoodAnswer(RULED_OUT, 0.0)
    once = not null.table.tables.draws and null.added.max(initial=1) == 1
    known = knowledge.certain.size > 0 and once
    return LikelihoodAnswer(score, 0.0, null=null if known else None)


def terms_by_cell(
    release: Release, knowledge: Known, rates: Rates
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the cells that the score of a target looks at, and what each adds to it.

    Both have the shape (n_cells,). A term is minus infinity where the target cannot be in.
    """
    null = _null(release, knowledge, rates)
    return null.cells, null.by_cell()


def nulls_of_everybody(
    release: Release, people: Traces, rates: Rates
) -> Iterator[tuple[int, Null]]:
    """Look up what counts are like where people are, block by block, with how many they are."""
    table = Table.of(release, rates=rates)
    for first in range(0, people.n_users, _BLOCK):
        ends = people.indptr[first : first + _BLOCK + 1]
        visited = people.cells[ends[0] : ends[-1]]
        person = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        added = people.weights if people.weights is None else people.weights[ends[0] : ends[-1]]
        chance = chance_of_being_counted(visited, release.facts, person, added=added)
        null = Null.of(table, visited, chance, person, added=added)
        yield ends.size - 1, null


def _null(release: Release, knowledge: Known, rates: Rates) -> Null:
    """Return what counts are like, without the target, where the target is or may be."""
    cells, chance = knowledge.likely_visits(lambda: _habits(np.exp(rates.base), release.group_size))
    if not knowledge.certain.size:
        # Whole regions are known, and nothing about epochs.
        return Null.of(Table.of(release, rates=rates, by_region=True), cells, chance)
    chance = chance * chance_of_being_counted(cells, release.facts, added=knowledge.added)
    return Null.of(Table.of(release, rates=rates), cells, chance, added=knowledge.added)


def _habits(rates: NDArray[np.float64], m: int) -> Habits:
    return Habits(rates.sum(axis=0) / rates.sum(), float(rates.sum()) / m)


@dataclass(frozen=True, eq=False)
class Null:
    """Counts in the known cells if the target is out, and how much likelier they are if it is in.

    Cells of a line are independent given the line's level. So the likelihood ratio of a line is the
    mean of the product of its cells' ratios over its levels.

    Attributes
    ----------
    cells, log_rates, chance, added
        Where the target is or may be, with the logarithms of the rates of others there, the chance
        of being counted there, and what is added to the count then, shape (n_cells,).
    place
        Which of the known lines each cell is in, shape (n_cells,).
    known, person_of_line, levels
        The known lines, whose each is where there are several people, and their levels.
    """

    table: Table
    cells: NDArray[np.int32]
    log_rates: NDArray[np.float64]
    chance: NDArray[np.float64]
    added: NDArray[np.int32]
    place: NDArray[np.int64]
    known: NDArray[np.int64]
    person_of_line: NDArray[np.int64]
    levels: Levels

    @classmethod
    def of(
        cls,
        table: Table,
        cells: NDArray[np.int32],
        chance: NDArray[np.float64],
        person: NDArray[np.int64] | None = None,
        *,
        added: NDArray[np.int32] | int | None = None,
    ) -> Null:
        """Look the lines of cells up; those of one person, who adds 1 to each, by default."""
        n_lines, n_cells = table.lines.cells.shape
        line = table.lines.places()[cells] // n_cells
        owned = line if person is None else person * n_lines + line
        key, place = np.unique(owned, return_inverse=True)
        owner, known = np.divmod(key, n_lines)
        log_rates = table.rates.at_cells.reshape(-1)[cells]
        each = np.broadcast_to(np.int32(1 if added is None else added), cells.shape)
        levels = Levels(table.levels.nodes[known], table.levels.log_weight[known])
        return cls(table, cells, log_rates, chance, each, place, known, owner, levels)

    @property
    def release(self) -> Release:
        """The release."""
        return self.table.release

    def by_person(self, n: int) -> NDArray[np.float64]:
        """Return the scores of n people, minus infinity where one is ruled out, shape (n,).

        Somebody whose draw is the same wherever nobody else is may have any of the draws.
        """
        by_draw = []
        for log_chance, ratios in self.table.tables.of_draws():
            together = self._added_up(self._terms(ratios))
            by_line = log_sums(self.levels.log_weight + together)
            summed = by_line.sum(keepdims=True)
            if n > 1:
                summed = np.bincount(self.person_of_line, by_line, n)
            by_draw.append(log_chance + summed)
        return by_draw[0] if len(by_draw) == 1 else log_sums(np.stack(by_draw, axis=1))

    def by_cell_at(self, log_rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each cell adds to the score if rates are known, given as logarithms."""
        known = Levels(np.zeros((self.known.size, 1)), np.zeros((self.known.size, 1)))
        at = replace(self, log_rates=log_rates, levels=known)
        return np.asarray(at._terms(self.table.tables.of_ratios)[:, 0])

    def log_levels_without(self) -> NDArray[np.float64]:
        """Return the mean logarithm of the level at each cell, whose counts are not looked at."""
        return np.asarray(self.table.log_levels_without_each().reshape(-1)[self.cells])

    def by_cell(self) -> NDArray[np.float64]:
        """Return what each cell adds to the score, minus infinity where it rules out.

        A line's part of the score is its cells' terms, averaged over levels on the way from those
        that are likely without the target to those that are likely with it. The mean of both ends
        is taken for all, and what is missing is shared out evenly.
        """
        terms = self._terms(self.table.tables.of_ratios)
        within = self.levels.log_weight + self._added_up(terms)
        by_line = log_sums(within)[:, None]
        out = np.isneginf(by_line)[:, 0]
        with np.errstate(invalid="ignore"):
            log_weights = self.levels.log_weight, np.where(out[:, None], -np.inf, within - by_line)
            added = sum(
                np.where(weight > 0, weight * terms, 0.0).sum(axis=1) / 2
                for weight in (np.exp(one)[self.place] for one in log_weights)
            )
            missing = by_line[:, 0] - np.bincount(self.place, added, self.known.size)
            shared = added + (missing / np.bincount(self.place))[self.place]
        return np.asarray(np.where(out[self.place], terms.max(axis=1), shared))

    def p_value(self) -> float:
        """Return the chance of at least this score if the target is out.

        Counts of the known cells are drawn anew, given those of all others, half of them with the
        target and half without. A score t weighs 2 / (1 + exp(t)) then: its chance without the
        target over that in such a mixture. So far tails are seen as well as near ones.
        """
        rng, facts = np.random.default_rng(0), self.release.facts
        said = kernels.sum_log_chances(
            self.release.symbols.reshape(-1)[self.cells, None],
            self.log_rates[:, None],
            self.levels.nodes[self.place],
            *self.table.tables.of_chances,
        )
        hidden = self.levels.log_weight.copy()
        np.subtract.at(hidden, self.place, said)
        levels = Levels(self.levels.nodes, hidden - log_sums(hidden)[:, None])
        order = np.argsort(self.place, kind="stable")
        cells, place, chance = self.cells[order], self.place[order], self.chance[order]
        n_draws = min(max(_DRAWN // cells.size, _FEWEST_DRAWS), _MOST_DRAWS)
        # A node of each line, shape (n_draws, n_lines).
        reached = np.cumsum(np.exp(levels.log_weight), axis=1)[:, :-1]
        node = (rng.random((n_draws, len(reached), 1)) > reached).sum(axis=2)
        log_rates = self.log_rates[order]
        rates = np.exp(log_rates + levels.nodes[place, node[:, place]])
        others = np.minimum(rng.poisson(rates), facts.most_count - 1)
        inside = np.arange(n_draws) % 2 == 0
        there = inside[:, None] & (rng.random(others.shape) < chance)
        drawn = facts.mechanism.apply((others + there).astype(np.int32), facts.most_count, rng)
        published = facts.mechanism.alphabet(facts.most_count).symbols(drawn)
        symbols = np.vstack([self.release.symbols.reshape(-1)[cells], published])
        starts = np.searchsorted(place, np.arange(self.known.size + 1))
        tables = self.table.tables
        by_draw = (
            symbols,
            log_rates,
            chance,
            starts,
            levels.nodes,
            levels.log_weight,
            tables.of_chances[0],
        )
        totals = kernels.scores_of_draws(*by_draw, *tables.of_ratios)
        seen, scores = totals[0], totals[1:]
        with np.errstate(over="ignore"):
            weight = np.where(scores >= seen - 1e-9, 2 / (1 + np.exp(scores)), 0.0)
            largest = 2 / (1 + math.exp(min(seen, 700.0)))
        error = float(weight.std()) / math.sqrt(n_draws) + largest / n_draws
        return float(min(max(weight.mean() + 2 * error, 0.0), 1.0))

    def _terms(self, of_ratios: tuple[NDArray[np.float64], Scales]) -> NDArray[np.float64]:
        """Return what the cells add to the score, at each node, shape (n_cells, n_nodes).

        Minus infinity where the target cannot be in.
        """
        ratios, facts = np.empty((self.cells.size, self.levels.nodes.shape[1])), self.release.facts
        kinds = np.unique(self.added).tolist()
        for added in kinds:
            own = slice(None) if len(kinds) == 1 else self.added == added
            if added > 1:
                of_ratios = count_tables(facts.mechanism, facts.most_count, added).of_ratios
            ratios[own] = kernels.log_ratios_at_nodes(
                self.release.symbols.reshape(-1)[self.cells[own]],
                self.log_rates[own],
                self.place[own],
                self.levels.nodes,
                *of_ratios,
            )
        if (self.chance == 1).all():
            return ratios
        with np.errstate(divide="ignore"):
            return np.asarray(np.log1p(self.chance[:, None] * np.expm1(ratios)))

    def _added_up(self, terms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up terms over the cells of each line, shape (n_lines, n_nodes)."""
        columns = [np.bincount(self.place, column, self.known.size) for column in terms.T]
        return np.stack(columns, axis=1)


def log_sums(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the sum of each row of numbers that are given as logarithms."""
    return np.asarray(np.logaddexp.reduce(logs, axis=1))
