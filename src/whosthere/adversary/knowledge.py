"""What an attacker has of a target: visits, or only places.

Rules say how well an attacker knows all of its targets. They are written as specs: ``all``,
``share(0.1)``, ``regions(top=2)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np

from whosthere import specs
from whosthere.arrays import frozen
from whosthere.data.cells import cell_at, epoch_of, region_of
from whosthere.display import counted
from whosthere.errors import InputError, SpecError, suggestion
from whosthere.privacy.scheme import ORDINARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.scheme import Layout

    GetHabits: TypeAlias = Callable[[], "Habits"]

Guess: TypeAlias = Literal["greedy", "random"]
GUESSES: tuple[str, ...] = get_args(Guess)
# However often a place is visited, no single visit there is taken for more certain than this.
_MOST_LIKELY_VISIT = 0.9
# No visit that a bound could have dropped is taken for more certainly counted than this, however
# few visits are known: one that is not known may have taken its place.
_SUREST = 0.999
_NO_CELLS = frozen([], np.int32)


class Habits(NamedTuple):
    """When and how often people are seen, as far as an attacker can tell.

    `time` is the probability that a visit is in each epoch, shape (n_epochs,), and `mean_visits`
    how many visits a person makes.
    """

    time: NDArray[np.float64]
    mean_visits: float


class Known(ABC):
    """What an attacker has of one target.

    An attack never asks what kind of knowledge it is given: what is certain, likely and believed
    is for the knowledge to say. Habits are passed as a function, as most knowledge needs none.
    """

    added: NDArray[np.int32] | int = 1
    """What the target adds to the counts of the believed trace."""

    @property
    @abstractmethod
    def certain(self) -> NDArray[np.int32]:
        """The cells that the target surely visited, sorted; none where times are unknown."""

    @abstractmethod
    def believed_trace(self, habits: GetHabits, rng: np.random.Generator) -> NDArray[np.int32]:
        """Return a trace to put in the target's place: sorted cells, int32."""

    @abstractmethod
    def likely_visits(self, habits: GetHabits) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return cells that the target may have visited, and the chance of each; shapes (k,)."""

    @abstractmethod
    def places(self, n_epochs: int) -> tuple[int, ...]:
        """Return the regions that the target surely visited, as rows of the regions."""

    @abstractmethod
    def lies_within(self, facts: Facts) -> bool:
        """Tell whether all of it is about regions and epochs of a release with these facts."""

    def weighed(self, trace: NDArray[np.int32], added: NDArray[np.int32] | int) -> Known:  # noqa: ARG002
        """Return the same with what the target adds to the counts of its trace, where known."""
        return self

    @abstractmethod
    def over(self, layout: Layout, traces: Traces) -> Known:
        """Return the same over the cells of a table, laid out from the cells of traces."""


@dataclass(frozen=True, eq=False)
class KnownVisits(Known):
    """Some or all visits of the target: each really took place."""

    cells: NDArray[np.int32]
    """The visited cells (`whosthere.data.cells`); kept sorted and distinct, int32."""
    added: NDArray[np.int32] | int = 1
    """What the target adds to the counts of these cells."""

    def __post_init__(self) -> None:
        cells = np.unique(np.asarray(self.cells))
        if not cells.size:
            raise InputError("nothing is known of the target", fix="Give at least one visit")
        if cells.dtype.kind not in "iu":
            raise InputError("known visits are numbers of cells", fix="Give whole numbers from 0")
        if cells[0] < 0 or cells[-1] > np.iinfo(np.int32).max:
            raise InputError("a known visit lies in no cell")
        object.__setattr__(self, "cells", frozen(cells, np.int32))

    def __repr__(self) -> str:
        return f"<KnownVisits: {counted(self.cells.size, 'visit')}>"

    @classmethod
    def fraction(cls, trace: ArrayLike, share: float, rng: np.random.Generator) -> KnownVisits:
        """Know a random share of a trace, rounded up to whole visits.

        The same random numbers give nested knowledge: a smaller share is a part of a larger one.
        """
        visits = np.asarray(trace)
        # The guard keeps 0.1 * 30 visits at 3 where floating point makes it a little more.
        known = math.ceil(_checked_share(share) * visits.size - 1e-9)
        return cls(rng.permutation(visits)[:known])

    @property
    def certain(self) -> NDArray[np.int32]:
        return self.cells

    def believed_trace(self, habits: GetHabits, rng: np.random.Generator) -> NDArray[np.int32]:  # noqa: ARG002
        return self.cells

    def likely_visits(self, habits: GetHabits) -> tuple[NDArray[np.int32], NDArray[np.float64]]:  # noqa: ARG002
        return self.cells, np.ones(self.cells.size)

    def places(self, n_epochs: int) -> tuple[int, ...]:
        return tuple(np.unique(region_of(self.cells, n_epochs)).tolist())

    def lies_within(self, facts: Facts) -> bool:
        return bool(self.cells[-1] < facts.n_cells)

    def weighed(self, trace: NDArray[np.int32], added: NDArray[np.int32] | int) -> Known:
        if isinstance(added, int):
            return self
        return replace(self, added=added[np.searchsorted(trace, self.cells)])

    def over(self, layout: Layout, traces: Traces) -> Known:
        if layout == ORDINARY:
            return self
        weights = None if isinstance(self.added, int) else self.added
        alone = replace(
            traces,
            users=("",),
            indptr=np.array([0, self.cells.size]),
            cells=self.cells,
            weights=weights,
            friends=None,
        )
        laid = layout(alone)
        return KnownVisits(laid.cells, laid.added(0))


@dataclass(frozen=True, eq=False)
class KnownRegions(Known):
    """Places that the target visited, without the times."""

    regions: tuple[int, ...]
    """Rows of the regions, most visited first."""
    guess: Guess = "greedy"
    """How an attacker makes a trace of them: "greedy" takes every epoch of each region, "random"
    spreads the mean number of visits evenly over the regions, at epochs drawn from the time
    marginal."""

    def __post_init__(self) -> None:
        if not self.regions:
            raise InputError("nothing is known of the target", fix="Give at least one region")
        if len(set(self.regions)) < len(self.regions) or min(self.regions) < 0:
            raise InputError("the known regions must be distinct rows of the regions")
        check_guess(self.guess)

    def __repr__(self) -> str:
        return f"<KnownRegions: {counted(len(self.regions), 'region')}, {self.guess} guess>"

    @classmethod
    def most_visited(
        cls, trace: ArrayLike, n_epochs: int, *, top: int | None = None, guess: Guess = "greedy"
    ) -> KnownRegions:
        """Know the `top` most visited regions of a trace (default: all), ties by number."""
        regions, visits = np.unique(region_of(np.asarray(trace), n_epochs), return_counts=True)
        order = np.argsort(-visits, kind="stable")[:top]
        return cls(tuple(regions[order].tolist()), guess)

    @property
    def certain(self) -> NDArray[np.int32]:
        return _NO_CELLS

    def believed_trace(self, habits: GetHabits, rng: np.random.Generator) -> NDArray[np.int32]:
        time, mean_visits = habits()
        if self.guess == "greedy":
            return np.sort(self._all_cells(time.size))
        regions = np.array(self.regions)
        visits = max(1, round(mean_visits / regions.size))
        epochs = rng.choice(time.size, size=(regions.size, visits), p=time)
        return np.unique(cell_at(regions[:, None], epochs, time.size)).astype(np.int32)

    def likely_visits(self, habits: GetHabits) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        (time, mean_visits), n = habits(), len(self.regions)
        chance = np.minimum(time * mean_visits / n, _MOST_LIKELY_VISIT)
        return self._all_cells(time.size), np.tile(chance, n)

    def places(self, n_epochs: int) -> tuple[int, ...]:  # noqa: ARG002
        return self.regions

    def lies_within(self, facts: Facts) -> bool:
        return max(self.regions) < len(facts.regions)

    def over(self, layout: Layout, traces: Traces) -> Known:  # noqa: ARG002
        if layout.regions is None:
            return self
        merged = dict.fromkeys(layout.regions[region] for region in self.regions)
        return replace(self, regions=tuple(merged))

    def _all_cells(self, n_epochs: int) -> NDArray[np.int32]:
        """Return every epoch of each region, region by region."""
        regions = np.array(self.regions)[:, None]
        return cell_at(regions, np.arange(n_epochs), n_epochs).reshape(-1).astype(np.int32)


class Knowledge(ABC):
    """A rule for what is known of each target, given where the target really was."""

    name: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[str]

    @classmethod
    def parse(cls, given: Knowledge | str) -> Knowledge:
        """Return what a spec such as ``share(0.1)`` describes; a rule is returned as it is."""
        return given if isinstance(given, Knowledge) else cast("Knowledge", KNOWLEDGE.parse(given))

    @abstractmethod
    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Known:
        """Return what is known of the person with this trace."""

    @property
    def words(self) -> str:
        """What is known, in a sentence about several people."""
        return self.summary

    def __str__(self) -> str:
        return specs.write(self)


@dataclass(frozen=True)
class All(Knowledge):
    """Every visit is known."""

    name: ClassVar[str] = "all"
    summary: ClassVar[str] = "every visit"
    example: ClassVar[str] = "all"
    words = "all their visits"

    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Known:  # noqa: ARG002
        return KnownVisits(trace)


@dataclass(frozen=True)
class Share(Knowledge):
    """A share of the visits is known, chosen at random and rounded up to whole visits."""

    share: float = specs.parameter(
        specs.NUMBER, "how much of the visits, above 0 and at most 1", bare=True
    )

    name: ClassVar[str] = "share"
    summary: ClassVar[str] = "a share of the visits, chosen at random"
    example: ClassVar[str] = "share(0.1)"

    def __post_init__(self) -> None:
        # As a spec reads it: 1 and 1.0 have the same random numbers.
        object.__setattr__(self, "share", float(_checked_share(self.share)))

    @property
    def words(self) -> str:
        return f"{100 * self.share:g} % of their visits"

    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Known:  # noqa: ARG002
        return KnownVisits.fraction(trace, self.share, rng)


@dataclass(frozen=True)
class Regions(Knowledge):
    """The most visited regions are known, without the times."""

    top: int | None = specs.parameter(
        specs.WHOLE, "how many, the most visited ones; all by default", default=None
    )
    guess: Guess = specs.parameter(
        specs.OneOf(GUESSES),
        "how an attacker that needs a trace makes one: every epoch, or a usual number of visits",
        default="greedy",
    )

    name: ClassVar[str] = "regions"
    summary: ClassVar[str] = "the regions that were visited, without the times"
    example: ClassVar[str] = "regions(top=2)"

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise SpecError(f"{self.top} regions are nothing to know", fix="Give at least 1")
        check_guess(self.guess)

    @property
    def words(self) -> str:
        which = "they visited" if self.top is None else "they visit most"
        return f"the {'' if self.top is None else f'{self.top} '}regions {which}, without the times"

    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Known:  # noqa: ARG002
        return KnownRegions.most_visited(trace, n_epochs, top=self.top, guess=self.guess)


KNOWLEDGE = specs.Catalogue.of("knowledge", All, Share, Regions)


def check_guess(guess: str) -> None:
    """Refuse what is no way to make a trace of regions."""
    if guess not in GUESSES:
        fix = suggestion(str(guess), GUESSES)
        raise SpecError(f"there is no way to guess called {guess!r}", fix=fix)


def _checked_share(share: float) -> float:
    if not 0 < share <= 1:
        raise SpecError(
            f"a share of {share:g} of the visits cannot be known",
            fix="Give a share above 0 and at most 1",
        )
    return share


def may_be_dropped(cells: NDArray[np.int32], facts: Facts) -> NDArray[np.bool_]:
    """Tell of each visit whether the publisher may have dropped it, shape (n_visits,).

    It may have wherever a person can make more visits in a period than are counted in it. How
    many the target made does not matter: the attacker may not know all of them.
    """
    found = np.zeros(cells.size, dtype=bool)
    for unit in facts.mechanism.units:
        period = unit.period(facts.epochs)
        if period is not None:
            most_made = len(facts.regions) * np.bincount(period) * facts.most_added
            found |= unit.most_visits < most_made[period[epoch_of(cells, facts.epochs.n)]]
            found |= unit.max_regions is not None and unit.max_regions < len(facts.regions)
    return found


def chance_of_being_counted(
    cells: NDArray[np.int32],
    facts: Facts,
    person: NDArray[np.int64] | int = 0,
    *,
    added: NDArray[np.int32] | int | None = None,
) -> NDArray[np.float64]:
    """Chance that each known visit was among those that the publisher's bound let through.

    The publisher draws them anew for each publication, so that no release tells which they were.
    The chance is that of somebody who made the known visits and no others, but it is below 1
    wherever other visits, if there were some, could have displaced a known one. `person` says
    whose visits they are, numbered from 0, shape (n_visits,); one person's by default. `added` is
    how many visits there are to each cell, one by default.
    """
    chance = np.ones(cells.size)
    many = None if isinstance(added, int) else added
    if not facts.mechanism.bounds_visits:
        return chance
    for unit in facts.mechanism.units:
        period = unit.period(facts.epochs)
        if period is not None:
            of_visit = period[epoch_of(cells, facts.epochs.n)].astype(np.int64)
            of_visit += person * (int(period.max()) + 1)
            together = np.bincount(of_visit, many)[of_visit]
            if unit.max_regions is None:
                chance = np.minimum(chance, unit.most_visits / together)
                continue
            # Regions are chosen first, and then visits to those, of which so many are left.
            region = of_visit * len(facts.regions) + region_of(cells, facts.epochs.n)
            pairs, pair = np.unique(region, return_inverse=True)
            regions = np.bincount(pairs // len(facts.regions))[of_visit]
            kept = np.minimum(1.0, unit.max_regions / regions)
            left = np.maximum(together * kept, np.bincount(pair, many)[pair])
            chance = np.minimum(chance, kept * np.minimum(1.0, unit.most_visits / left))
    return np.where(may_be_dropped(cells, facts), np.minimum(chance, _SUREST), chance)
