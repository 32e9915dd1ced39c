"""Joint decoding: everybody's visits are known, and who is in is found out for all at once.

Whoever has the traces of all who may be in a release (an overlapping operator, an insider) does not
need to estimate how many others went where. What is unknown is who is in. People and cells send one
another messages (belief propagation): a person tells each of its cells how likely it is to be in by
all its other cells, and a cell tells each of its visitors how much likelier the published count is
with that one, given how likely the others are to be there. The messages are exact where no two
people meet in two cells. Elsewhere they are damped, and close to the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

import numpy as np
from scipy.special import expit

from whosthere import kernels
from whosthere.adversary.attacks.base import (
    Attack,
    Auxiliary,
    FittedAttack,
    NotApplicableError,
    check_same_facts,
)
from whosthere.adversary.attacks.likelihood_ratio import LikelihoodAnswer
from whosthere.adversary.knowledge import chance_of_being_counted
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.probability import log_probability, log_withheld
from whosthere.privacy.step import WITHHELD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.adversary.knowledge import Known
    from whosthere.arrays import Floats, Ints32, Ints64
    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

_ROUNDS = 60
# The share of a new message that is taken over. All of it makes neighbours answer one another.
_TAKEN = 0.5
# Messages are cut here, and are at rest when none changes by more than this.
_MOST, _AT_REST = 12.0, 0.01
# Chances of published counts that are held at a time, by count and by how many are there.
_MOST_CHANCES = 2**27


class Decoded(NamedTuple):
    """What was found out: `score`, the log of how much likelier the release is with each person.

    Shape (n_people,), `RULED_OUT` for who cannot be in. `change` is the most that a message
    still changed by in the last round.
    """

    score: Floats
    change: float


@dataclass(frozen=True)
class JointDecoding(Attack):
    """Find out who is in for everybody at once, from everybody's traces."""

    name: ClassVar[str] = "joint-decoding"
    summary: ClassVar[str] = (
        "has the traces of everybody who may be in, and finds out for all of them together who is"
    )
    uses = frozenset({"everybody"})
    needs_law = True

    def check(self, facts: Facts, knowledge: Known, auxiliary: Auxiliary) -> None:
        super().check(facts, knowledge, auxiliary)
        if not knowledge.certain.size:
            raise NotApplicableError(f"{self.name} needs visits of the target, and not only places")
        if facts.most_added > 1:
            raise NotApplicableError(f"{self.name} knows tables in which everybody counts once")

    def fit(
        self,
        facts: Facts,
        knowledge: Known,
        auxiliary: Auxiliary,
        *,
        seed: int,  # noqa: ARG002 - nothing is drawn
    ) -> FittedAttack:
        everybody, own = cast("Traces", auxiliary.everybody), knowledge.certain
        n = everybody.n_users
        person = np.repeat(np.arange(n + 1), np.append(everybody.visits_per_user(), own.size))
        return _Decoder(facts, Visitors.of(facts, np.append(everybody.cells, own), person, n + 1))

    def score_everybody(self, release: Release, people: Traces) -> NDArray[np.float64]:
        """Score a release for everybody who may be in it, shape (n_users,)."""
        person = np.repeat(np.arange(people.n_users), people.visits_per_user())
        visitors = Visitors.of(release.facts, people.cells, person, people.n_users)
        return visitors.decoded(release).score


@dataclass(frozen=True, eq=False, repr=False)
class _Decoder(FittedAttack):
    facts: Facts
    visitors: Visitors

    def score(self, release: Release) -> LikelihoodAnswer:
        check_same_facts(release, self.facts)
        return LikelihoodAnswer(self.visitors.decoded(release).score[-1], 0.0)


@dataclass(frozen=True, eq=False)
class Visitors:
    """Who may be in each cell, `n_people` in all.

    Visits are sorted by cell. Those of the cell number ``cells[c]`` stand from ``starts[c]`` to
    ``starts[c + 1]``: whose each is (`person`), and the chance that it is counted if that one is in
    (`counted`).
    """

    n_people: int
    cells: Ints32
    starts: Ints64
    person: Ints64
    counted: Floats

    @classmethod
    def of(cls, facts: Facts, visited: Ints32, person: Ints64, n_people: int) -> Visitors:
        """Sort the visits of people."""
        counted = chance_of_being_counted(visited, facts, person)
        order = np.argsort(visited, kind="stable")
        cells, starts = np.unique(visited[order], return_index=True)
        starts = np.append(starts, visited.size)
        return cls(n_people, cells, starts, person[order], counted[order])

    def decoded(self, release: Release) -> Decoded:
        """Find out who is in, by messages between people and cells until these are at rest."""
        laws, law_of_cell = self._laws(release)
        share = release.group_size / self.n_people
        prior = math.log(share / (1 - share)) if share < 1 else _MOST
        messages, change = np.zeros(self.person.size), math.inf
        for _ in range(_ROUNDS):
            score = self._added_up(messages)
            there = expit(prior + score[self.person] - messages) * self.counted
            said = kernels.log_ratios_of_visitors(self.starts, there, laws, law_of_cell, _MOST)
            # A visit that was not counted says nothing.
            said = np.log1p(self.counted * np.expm1(said))
            change = float(np.abs(said - messages).max(initial=0.0))
            messages += _TAKEN * (said - messages)
            if change < _AT_REST:
                break
        score = self._added_up(messages)
        impossible = (laws[:, 1:].max(axis=1) == 0)[law_of_cell]
        ruled_out = np.repeat(impossible, np.diff(self.starts)) & (self.counted == 1)
        score[self.person[ruled_out]] = RULED_OUT
        return Decoded(score, change)

    def _added_up(self, messages: Floats) -> Floats:
        return np.bincount(self.person, messages, self.n_people).astype(np.float64, copy=False)

    def _laws(self, release: Release) -> tuple[Floats, Ints32]:
        """Return the chances of each published symbol by how many are there, and that of each cell.

        The chances are relative to the largest of their symbol, shape (n_symbols, n_there).
        """
        facts = release.facts
        published, law_of_cell = np.unique(
            release.symbols.reshape(-1)[self.cells], return_inverse=True
        )
        most = int(np.diff(self.starts).max(initial=0))
        if published.size * (most + 2) > _MOST_CHANCES:
            raise NotApplicableError(
                f"{published.size:,} different counts of up to {most:,} visitors are too many",
                fix="Give fewer people, or smaller cells",
            )
        values = facts.mechanism.alphabet(facts.most_count).values(published)
        held = values == WITHHELD
        shown = np.where(held, 0, values).astype(np.int64)
        steps, there = facts.mechanism.steps, np.arange(most + 1, dtype=np.int32)[:, None]
        # More than are in the group cannot be there.
        n = np.minimum(there, facts.most_count)
        logs = log_probability(steps, n, shown, shown, facts.most_count)
        if held.any():
            logs = np.where(held, log_withheld(steps, n, facts.most_count), logs)
        chances = np.exp(logs - np.maximum(logs.max(axis=0), -1e300)).T
        return np.ascontiguousarray(chances), law_of_cell.astype(np.int32)
