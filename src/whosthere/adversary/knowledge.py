"""Rules for how well an attacker knows its targets: all visits, some of them, or only places.

They are written as specs: ``all``, ``share(0.1)``, ``regions(top=2)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from whosthere import specs
from whosthere.adversary.suspects import GUESSES, Guess, Known, Places, check_guess, share_known
from whosthere.errors import SpecError

if TYPE_CHECKING:
    import numpy as np

    from whosthere.data.traces import Traces


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
    def of(self, traces: Traces, rng: np.random.Generator) -> Known:
        """Return what is known of each of the people with these traces."""

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

    def of(self, traces: Traces, rng: np.random.Generator) -> Known:  # noqa: ARG002
        return traces


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

    def of(self, traces: Traces, rng: np.random.Generator) -> Known:
        return share_known(traces, self.share, rng)


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

    def of(self, traces: Traces, rng: np.random.Generator) -> Known:  # noqa: ARG002
        return Places.most_visited(traces, self.top, self.guess)


KNOWLEDGE = specs.Catalogue.of("knowledge", All, Share, Regions)


def _checked_share(share: float) -> float:
    if not 0 < share <= 1:
        raise SpecError(
            f"a share of {share:g} of the visits cannot be known",
            fix="Give a share above 0 and at most 1",
        )
    return share
