"""The likelihood ratio: a direct test that needs no training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks.base import (
    RULED_OUT,
    Answer,
    Attack,
    Auxiliary,
    FittedAttack,
    check_same_facts,
    flat_counts,
    needed,
)
from whosthere.adversary.bounding import chance_of_being_counted
from whosthere.adversary.completion import completion
from whosthere.adversary.count_tables import CountTables, count_tables
from whosthere.adversary.null_law import NullLaw
from whosthere.adversary.rates import FLAT, Rates, fit_rates, reference_shape
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

# A chance that is as good as none, and above 0.
_NEVER = 1e-12
# People who are scored at a time.
_BLOCK = 4096


RatesFrom = Literal["low-rank", "rank-one"]
"""How much structure the rates may have: components that stand out of the noise, or none."""


@dataclass(frozen=True)
class LikelihoodAnswer(Answer):
    """An answer whose score is the log of a likelihood ratio.

    Scores of different targets can be compared as they are: equal ones say equally much.

    Attributes
    ----------
    null
        What the counts are like if the target is out; None where only places are known, or where
        the target cannot be in.
    """

    null: Null | None = field(default=None, repr=False, compare=False)

    @cached_property
    def p_value(self) -> float | None:
        """Chance of at least this score if the target is out; None where only places are known.

        Where the model holds it is never too small: P(p <= a) <= a for every a if the target is
        out. It is computed when first asked for.
        """
        if self.is_certain:
            return 1.0
        return None if self.null is None else self.null.law().p_value(self.score)

    def posterior(self, prior: float = 0.5) -> float:
        """Return the probability that the target is in, given one before the release is seen."""
        if not 0 < prior < 1:
            raise InputError(f"a prior of {prior:g}", fix="Give a probability between 0 and 1")
        odds = self.score + math.log(prior / (1 - prior))
        return 1 / (1 + math.exp(-odds)) if odds > -500 else 0.0

    def explain(self, *, prior: float) -> list[str]:
        """Return sentences on what the score means, given a probability of being in before."""
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
        """Return the answer as a JSON object."""
        posterior = self.posterior(prior)
        return super().to_json() | {"p_value": self.p_value, "posterior": posterior}


@dataclass(frozen=True)
class LikelihoodRatio(Attack):
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

    def __post_init__(self) -> None:
        if self.rates not in get_args(RatesFrom):
            fix = suggestion(self.rates, get_args(RatesFrom))
            raise InputError(f"there are no rates {self.rates!r}", fix=fix)

    def _fit(
        self,
        facts: Facts,
        knowledge: Knowledge | None,
        auxiliary: Auxiliary,
        seed: int,  # noqa: ARG002 - nothing is drawn
    ) -> FittedAttack:
        """Make the mechanism's tables; the rates wait for the release."""
        completion(facts.mechanism, facts.group_size)
        low_rank = self.rates == "low-rank"
        return _Test(facts, needed(knowledge), self._shape(auxiliary), low_rank=low_rank)

    def score_everybody(
        self, release: Release, people: Traces, auxiliary: Auxiliary | None = None
    ) -> NDArray[np.float64]:
        """Score a release for many people at once, whose whole traces are known.

        The rates are fitted once, so a person takes as long as it takes to add up their visits.

        Returns
        -------
        NDArray[np.float64]
            The scores that `fit` and `score` give to one after the other, shape (n_users,).
        """
        if (people.regions, people.epochs) != (release.facts.regions, release.facts.epochs):
            raise InputError(
                "the traces lie over other regions or epochs than the release",
                fix="Give traces of the same places and times",
            )
        shape = self._shape(auxiliary or Auxiliary())
        rates = fit_rates(release, shape, low_rank=self.rates == "low-rank")
        tables = count_tables(release.mechanism, release.group_size)
        cells = np.arange(people.n_cells)
        by_cell = tables.log_ratio_of(flat_counts(release), rates.log_rates(cells))
        scores = np.empty(people.n_users)
        for first in range(0, people.n_users, _BLOCK):
            ends = people.indptr[first : first + _BLOCK + 1]
            visited = people.cells[ends[0] : ends[-1]]
            person = np.repeat(np.arange(ends.size - 1), np.diff(ends))
            ratios = by_cell[visited]
            if release.mechanism.bounds_visits:
                chance = chance_of_being_counted(visited, release.facts, person)
                ratios = _terms(ratios, chance)
            scores[first : first + _BLOCK] = np.bincount(person, ratios, ends.size - 1)
        return np.where(np.isinf(scores), RULED_OUT, scores)

    def _shape(self, auxiliary: Auxiliary) -> NDArray[np.float64]:  # noqa: ARG002 - has none
        """Return how rates differ from region times epoch, as far as that is known."""
        return FLAT


@dataclass(frozen=True)
class LikelihoodRatioWithReference(LikelihoodRatio):
    """The likelihood ratio with rates whose shape comes from real traces of other people."""

    name: ClassVar[str] = "likelihood-ratio-reference"
    summary: ClassVar[str] = (
        "the likelihood ratio with rates shaped by real traces of other people, then fitted to "
        "the release"
    )

    @property
    def uses(self) -> frozenset[str]:
        """Real traces of others."""
        return frozenset({"reference"})

    def _shape(self, auxiliary: Auxiliary) -> NDArray[np.float64]:
        return reference_shape(auxiliary.real_traces)


@dataclass(frozen=True, eq=False, repr=False)
class _Test(FittedAttack):
    facts: Facts
    knowledge: Knowledge
    shape: NDArray[np.float64]
    low_rank: bool

    def score(self, release: Release) -> LikelihoodAnswer:
        check_same_facts(release, self.facts)
        rates = fit_rates(release, self.shape, low_rank=self.low_rank)
        return log_likelihood_ratio(release, self.knowledge, rates)


def log_likelihood_ratio(release: Release, knowledge: Knowledge, rates: Rates) -> LikelihoodAnswer:
    """Score a release for a target; rates that were fitted once serve any number of targets."""
    cells, null = _known_cells(release, knowledge, rates)
    score = float(null.terms(flat_counts(release)[cells]).sum())
    if math.isinf(score):
        return LikelihoodAnswer(RULED_OUT, 0.0)
    return LikelihoodAnswer(score, 0.0, null=null if knowledge.certain.size else None)


def terms_by_cell(
    release: Release, knowledge: Knowledge, rates: Rates
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the cells that the score of a target looks at, and what each adds to it.

    Both have the shape (n_cells,). A term is minus infinity where the target cannot be in.
    """
    cells, null = _known_cells(release, knowledge, rates)
    return cells, null.terms(flat_counts(release)[cells])


def _known_cells(
    release: Release, knowledge: Knowledge, rates: Rates
) -> tuple[NDArray[np.int32], Null]:
    """Return where the target is or may be, and what counts are like there without the target."""
    cells, chance = knowledge.likely_visits(_HabitsIn(rates, release.group_size))
    if knowledge.certain.size:
        chance = chance * chance_of_being_counted(cells, release.facts)
    tables = count_tables(release.mechanism, release.group_size)
    return cells, Null(tables, rates.log_rates(cells), chance)


def _terms(ratios: NDArray[np.float64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each cell adds to the score, minus infinity where the target cannot be in."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(chance * np.expm1(ratios)))


@dataclass(frozen=True, eq=False)
class Null:
    """Counts in the known cells if the target is out.

    Attributes
    ----------
    tables
        Of the mechanism.
    log_rates, chance
        Logarithms of the rates of others, and the chance that the target's visit was counted,
        shape (n_cells,).
    """

    tables: CountTables
    log_rates: NDArray[np.float64]
    chance: NDArray[np.float64]

    def terms(self, counts: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return what each cell adds to the score if these counts are published in them."""
        return _terms(self.tables.log_ratio_of(counts, self.log_rates), self.chance)

    def law(self) -> NullLaw:
        """Return the law of the score, which is minus infinity at times."""
        cell, ratio, p = self.tables.null_ratios(self.log_rates)
        value = _terms(ratio, self.chance[cell])
        possible = np.isfinite(value)
        if not possible.all():
            cell, value, p = cell[possible], value[possible], p[possible]
        closed = np.flatnonzero(np.bincount(cell, minlength=self.log_rates.size) == 0)
        if closed.size:
            # Cells that always rule the target out, as in a group of one: a value that never
            # occurs.
            order = np.argsort(np.append(cell, closed), kind="stable")
            cell = np.append(cell, closed)[order]
            value = np.append(value, np.zeros(closed.size))[order]
            p = np.append(p, np.full(closed.size, _NEVER))[order]
        return NullLaw(cell, value, p)


@dataclass(frozen=True, eq=False)
class _HabitsIn:
    """When and how often people are seen, by rates that were fitted to a release of m people."""

    rates: Rates
    m: int

    def time_marginal(self) -> NDArray[np.float64]:
        return self.rates.time_marginal()

    def mean_visits(self) -> float:
        return self.rates.total() / self.m
