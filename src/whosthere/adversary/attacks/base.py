"""The one shape of every attack: fit on what it may see, then score releases."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from whosthere.adversary.knowledge import KnownVisits
from whosthere.errors import InputError
from whosthere.privacy.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release

# The score of a release that cannot hold the target: below any other, and still finite.
RULED_OUT = -1e9


class NotApplicableError(InputError):
    """An attack was given something that it cannot work on."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """A past release of which the attacker knows whether the target was in it."""

    release: Release
    target_in: bool


@dataclass(frozen=True, eq=False)
class Auxiliary:
    """What an attacker may have beside the release and knowledge of the target.

    Parameters
    ----------
    reference
        Real traces of other people over the same regions and epochs, without the target.
    friends
        Rows of the reference that belong to the target's friends.
    past
        Releases with known membership.
    """

    reference: Traces | None = None
    friends: tuple[int, ...] = ()
    past: Sequence[Labelled] = ()

    @property
    def real_traces(self) -> Traces:
        """The reference, for attacks that need one."""
        if self.reference is None:
            raise NotApplicableError("there are no reference traces", fix="Give some")
        return self.reference


@dataclass(frozen=True)
class Answer:
    """What an attack says about one release.

    Attributes
    ----------
    score
        Higher means more likely in; `RULED_OUT` where it is certain that the target is not.
    threshold
        Scores above it are called in; tuned by the attacker beforehand.
    """

    score: float
    threshold: float

    @property
    def says_in(self) -> bool:
        """The decision."""
        return self.score > self.threshold


class FittedAttack(ABC):
    """An attack on one target, ready to score releases that share its facts."""

    @abstractmethod
    def score(self, release: Release) -> Answer:
        """Score a release; the same release always gets the same answer."""


class Attack(ABC):
    """A way to find out whether a target is in a release.

    Attributes
    ----------
    name
        How it is called on the command line.
    summary
        One sentence: what it does and what it needs.
    uses
        Which parts of `Auxiliary` it reads; all others are never touched.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    uses: ClassVar[frozenset[str]] = frozenset()

    needs_knowledge: ClassVar[bool] = True

    def check(self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary) -> None:
        """Raise `NotApplicableError` if the attack does not apply, before any work is done."""
        if self.needs_knowledge and knowledge is None:
            raise NotApplicableError(
                f"{self.name} needs to know something of the target", fix="Give some visits"
            )
        if knowledge is not None and not _lies_within(knowledge, facts):
            raise NotApplicableError(
                "the target's visits or places lie outside the release's regions and epochs"
            )
        for part in sorted(self.uses):
            if not getattr(auxiliary, part):
                raise NotApplicableError(
                    f"{self.name} needs {_WORDS[part]}", fix="Give them, or use another attack"
                )
        if "reference" in self.uses and auxiliary.reference is not None:
            self._check_reference(facts, auxiliary.reference)

    def _check_reference(self, facts: Facts, reference: Traces) -> None:
        if reference.regions.ids != facts.regions.ids or reference.epochs != facts.epochs:
            raise NotApplicableError(
                "the reference traces lie over other regions or epochs than the release",
                fix="Read them with the release's own regions, epochs and time zone",
            )
        if reference.n_users < facts.group_size:
            raise NotApplicableError(
                f"{self.name} needs at least {facts.group_size} reference traces, "
                f"not {reference.n_users}",
                fix="Give more, or use zero-knowledge, which needs none",
            )

    def fit(
        self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary, *, seed: int
    ) -> FittedAttack:
        """Prepare for one target and for releases with these facts."""
        self.check(facts, knowledge, auxiliary)
        return self._fit(facts, knowledge, auxiliary, seed)

    @abstractmethod
    def _fit(
        self, facts: Facts, knowledge: Knowledge | None, auxiliary: Auxiliary, seed: int
    ) -> FittedAttack:
        """Prepare, knowing that the attack applies."""


def needed(knowledge: Knowledge | None) -> Knowledge:
    """Return what is known of the target, for attacks that need it."""
    if knowledge is None:
        raise NotApplicableError("nothing is known of the target", fix="Give some visits")
    return knowledge


def _lies_within(knowledge: Knowledge, facts: Facts) -> bool:
    if isinstance(knowledge, KnownVisits):
        return bool(knowledge.cells[-1] < facts.n_cells)
    return max(knowledge.regions) < len(facts.regions)


_WORDS = {
    "reference": "reference traces",
    "friends": "the target's friends among the reference traces",
    "past": "past releases with known membership",
}


def generator_for(seed: int, release: Release, role: str) -> np.random.Generator:
    """Return random numbers that depend on nothing but a seed, a release and a role.

    So a score does not depend on which releases were scored before, or by which worker.
    """
    digest = hashlib.blake2b(role.encode(), digest_size=16)
    digest.update(np.ascontiguousarray(release.counts).tobytes())
    words = np.frombuffer(digest.digest(), dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence([seed, *words.tolist()]))


def flat_counts(release: Release) -> NDArray[np.int32]:
    """Return the published counts by cell, shape (n_cells,)."""
    return release.counts.reshape(-1)
