"""How well an attacker knows its targets, as specs: ``all``, ``share(0.1)``, ``regions(top=2)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from whosthere import specs
from whosthere.adversary.knowledge import GUESSES, Guess, Knowledge, KnownRegions, KnownVisits
from whosthere.errors import SpecError, suggestion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class KnowledgeRule(ABC):
    """A rule for what is known of each target, given where the target really was."""

    name: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[str]

    @abstractmethod
    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Knowledge:
        """Return what is known of the person with this trace."""

    @property
    def words(self) -> str:
        """What is known, in a sentence about several people."""
        return self.summary

    def __str__(self) -> str:
        return specs.write(self)


@dataclass(frozen=True)
class AllVisits(KnowledgeRule):
    """Every visit is known."""

    name: ClassVar[str] = "all"
    summary: ClassVar[str] = "every visit"
    example: ClassVar[str] = "all"

    @property
    def words(self) -> str:
        return "all their visits"

    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Knowledge:  # noqa: ARG002
        return KnownVisits(trace)


@dataclass(frozen=True)
class ShareOfVisits(KnowledgeRule):
    """A share of the visits is known, chosen at random and rounded up to whole visits."""

    share: float = specs.parameter(
        specs.NUMBER, "how much of the visits, above 0 and at most 1", bare=True
    )

    name: ClassVar[str] = "share"
    summary: ClassVar[str] = "a share of the visits, chosen at random"
    example: ClassVar[str] = "share(0.1)"

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise SpecError(
                f"a share of {self.share:g} of the visits cannot be known",
                fix="Give a share above 0 and at most 1",
            )
        # As a spec reads it: 1 and 1.0 have the same random numbers.
        object.__setattr__(self, "share", float(self.share))

    @property
    def words(self) -> str:
        return f"{100 * self.share:g} % of their visits"

    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Knowledge:  # noqa: ARG002
        return KnownVisits.fraction(trace, self.share, rng)


@dataclass(frozen=True)
class OnlyRegions(KnowledgeRule):
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
        if self.guess not in GUESSES:
            fix = suggestion(self.guess, GUESSES)
            raise SpecError(f"there is no way to guess called {self.guess!r}", fix=fix)

    @property
    def words(self) -> str:
        which = (
            "regions they visited" if self.top is None else f"{self.top} regions they visit most"
        )
        return f"the {which}, without the times"

    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Knowledge:  # noqa: ARG002
        return KnownRegions.most_visited(trace, n_epochs, top=self.top, guess=self.guess)


KNOWLEDGE_RULES = specs.Catalogue.of("knowledge", AllVisits, ShareOfVisits, OnlyRegions)


def knowledge_rule(given: KnowledgeRule | str) -> KnowledgeRule:
    """Return what a spec describes; a rule is returned as it is."""
    if isinstance(given, KnowledgeRule):
        return given
    return cast("KnowledgeRule", KNOWLEDGE_RULES.parse(given))
