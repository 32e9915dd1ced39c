"""Joint decoding: everybody's visits are known, and who is in is found out for all at once.

Whoever has the traces of all who may be in a release (an overlapping operator, an insider) does not
need to estimate how many others went where. What is unknown is who is in. People and cells send one
another messages (belief propagation): a person tells each of its cells how likely it is to be in by
all its other cells, and a cell tells each of its visitors how much likelier the published count is
with that one, given how likely the others are to be there. Cells speak one after the other, which
takes half as many rounds as if all spoke at once. The scores are exact where no two people meet in
two cells, and elsewhere close to the truth, as far as messages come to rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

import numpy as np

from whosthere import kernels, specs
from whosthere.adversary.attacks.base import (
    AttackOnEverybody,
    AttackOnTables,
    Auxiliary,
    FittedAttack,
    NotApplicableError,
    check_people,
    check_same_facts,
)
from whosthere.adversary.attacks.likelihood_ratio import LikelihoodAnswer
from whosthere.adversary.knowledge import chance_of_being_counted
from whosthere.inference.scores import RULED_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.adversary.attacks.base import View
    from whosthere.adversary.knowledge import Known
    from whosthere.arrays import Bools, Floats, Ints32, Ints64
    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

# Messages that go round in circles for so long are damped: half of a new one is taken over.
_UNDAMPED, _MOST_ROUNDS = 64, 128
# Messages are cut here, and are at rest when none changes by more than this.
_MOST, _AT_REST = 12.0, 0.02
# Chances of published counts that are computed at a time, and that are kept.
_BLOCK, _MOST_CHANCES = 2**22, 2**27
# Chances that are so much smaller than the largest are left out, as a logarithm.
_NEVER = -92.0


class Decoded(NamedTuple):
    """What was found out: `score`, the log of how much likelier a publication is with each person.

    Shape (n_people,), `RULED_OUT` for who cannot be in. `change` is the most that a message
    still changed by in the last of so many `rounds`.
    """

    score: Floats
    change: float
    rounds: int

    @property
    def is_at_rest(self) -> bool:
        """Whether further rounds would change nothing."""
        return self.change <= _AT_REST


@dataclass(frozen=True)
class JointDecoding(AttackOnTables, AttackOnEverybody):
    """Find out who is in for everybody at once, from everybody's traces.

    Parameters
    ----------
    judged
        Whether settings are judged by it, as by any attack. By default they are not: nobody outside
        has everybody's traces.
    """

    judged: bool = specs.parameter(
        specs.YES_NO, "whether settings are judged by it, as by any attack", default=False
    )

    name: ClassVar[str] = "joint-decoding"
    needs_whole_traces = True
    summary: ClassVar[str] = (
        "has the traces of everybody who may be in, and finds out for all of them together who is"
    )
    uses = frozenset({"everybody"})
    needs_law = True

    @property
    def is_study_only(self) -> bool:
        return not self.judged

    def check(self, facts: Facts, knowledge: Known, auxiliary: Auxiliary) -> None:
        super().check(facts, knowledge, auxiliary)
        if not knowledge.certain.size:
            raise NotApplicableError(f"{self.name} needs visits of the target, and not only places")
        _check_once(facts)

    def fit_views(
        self,
        views: Sequence[View],
        *,
        seed: int,  # noqa: ARG002 - nothing is drawn
    ) -> FittedAttack:
        parts = []
        for one in views:
            everybody, own = cast("Traces", one.auxiliary.everybody), one.knowledge.certain
            visits = np.append(everybody.visits_per_user(), own.size)
            parts.append(Visitors.of(one.facts, np.append(everybody.cells, own), visits))
        return _Decoder(tuple(one.facts for one in views), tuple(parts))

    def score_everybody(
        self, release: Release, people: Traces, auxiliary: Auxiliary | None = None
    ) -> Floats:
        """Score a release for people who may be in it: they are all, unless `auxiliary` says."""
        having = auxiliary or Auxiliary(everybody=people)
        return self.score_everybody_in((release,), (people,), (having,))

    def score_everybody_in(
        self, releases: Sequence[Release], people: Sequence[Traces], auxiliary: Sequence[Auxiliary]
    ) -> Floats:
        everybody = [cast("Traces", one.everybody) for one in auxiliary]
        score = decode(releases, everybody).score
        return score if people[0].users == everybody[0].users else score[_rows(people, everybody)]


def _rows(people: Sequence[Traces], everybody: Sequence[Traces]) -> Ints64:
    """Return where people are among everybody."""
    row = {user: i for i, user in enumerate(everybody[0].users)}
    rows = np.array([row.get(user, -1) for user in people[0].users])
    for some, all_of_them in zip(people, everybody, strict=True):
        visits = all_of_them.visits_per_user()[rows]
        if (rows < 0).any() or (visits != some.visits_per_user()).any():
            raise NotApplicableError("whoever has everybody's traces knows all visits of everybody")
    return rows


def decode(
    releases: Sequence[Release], everybody: Sequence[Traces], log_odds: Floats | None = None
) -> Decoded:
    """Find out who is in a publication, among all who may be.

    They are given over the cells of each of its tables. `log_odds` are those of being in before the
    publication is seen, shape (n_users,), by default those of m among all.
    """
    parts = []
    for release, people in zip(releases, everybody, strict=True):
        check_people(release, people)
        _check_once(release.facts)
        parts.append(Visitors.of(release.facts, people.cells, people.visits_per_user()))
    return _decoded(parts, releases, log_odds)


def _check_once(facts: Facts) -> None:
    if facts.most_added > 1:
        raise NotApplicableError("joint-decoding knows tables in which everybody counts once")


@dataclass(frozen=True, eq=False, repr=False)
class _Decoder(FittedAttack):
    facts: tuple[Facts, ...]
    parts: tuple[Visitors, ...]

    def score(self, release: Release) -> LikelihoodAnswer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> LikelihoodAnswer:
        for release, facts in zip(releases, self.facts, strict=True):
            check_same_facts(release, facts)
        return LikelihoodAnswer(_decoded(self.parts, releases).score[-1], 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Visitors:
    """Who may be in each cell of a table, of `n_people` in all.

    Visits are sorted by cell. Those of the cell number ``cells[c]`` stand from ``starts[c]`` to
    ``starts[c + 1]``: whose each is (`person`), and the chance that it is counted if that one is in
    (`counted`).
    """

    n_people: int
    cells: Ints32
    starts: Ints64
    person: Ints32
    counted: Floats

    @classmethod
    def of(cls, facts: Facts, visited: Ints32, visits: Ints64) -> Visitors:
        """Sort visits, of which each person made so many, one person after the other."""
        person = np.repeat(np.arange(visits.size, dtype=np.int32), visits)
        counted = chance_of_being_counted(visited, facts, person.astype(np.int64))
        order = np.argsort(visited, kind="stable")
        cells, starts = np.unique(visited[order], return_index=True)
        starts = np.append(starts, visited.size)
        return cls(visits.size, cells, starts, person[order], counted[order])


def _decoded(
    parts: Sequence[Visitors], releases: Sequence[Release], log_odds: Floats | None = None
) -> Decoded:
    """Find out who is in a publication, by messages between people and the cells of all tables."""
    each = [_laws(*one) for one in zip(parts, releases, strict=True)]
    n_laws = np.cumsum([0, *(laws.fewest.size for laws, _, _ in each)])
    n_visits = np.cumsum([0, *(one.person.size for one in parts)])
    n_chances = np.cumsum([0, *(laws.chances.size for laws, _, _ in each)])
    starts = [one.starts[:-1] + n for one, n in zip(parts, n_visits, strict=False)]
    first = [laws.starts[:-1] + n for (laws, _, _), n in zip(each, n_chances, strict=False)]
    of_cell = [of_cell + n for (_, of_cell, _), n in zip(each, n_laws, strict=False)]
    laws = kernels.Laws(
        np.concatenate([laws.chances for laws, _, _ in each]),
        np.append(np.concatenate(first), n_chances[-1]),
        np.concatenate([laws.fewest for laws, _, _ in each]),
    )
    graph = (
        np.append(np.concatenate(starts), n_visits[-1]),
        np.concatenate([one.person for one in parts]),
        np.concatenate([one.counted for one in parts]),
        laws,
        np.concatenate(of_cell, dtype=np.int32),
    )
    n_people = parts[0].n_people
    prior = log_odds
    if prior is None:
        share = releases[0].group_size / n_people
        prior = np.full(n_people, math.log(share / (1 - share)) if share < 1 else _MOST)
    messages, score, rounds, change = np.zeros(n_visits[-1]), np.zeros(n_people), 0, math.inf
    while change > _AT_REST and rounds < _MOST_ROUNDS:
        taken = 1.0 if rounds < _UNDAMPED else 0.5
        change = kernels.pass_messages(*graph, prior, taken, _MOST, messages, score)
        rounds += 1
    for one, (_, law_of_cell, impossible) in zip(parts, each, strict=True):
        ruled_out = np.repeat(impossible[law_of_cell], np.diff(one.starts)) & (one.counted == 1)
        score[one.person[ruled_out]] = RULED_OUT
    return Decoded(score, change, rounds)


def _laws(visitors: Visitors, release: Release) -> tuple[kernels.Laws, Ints32, Bools]:
    """Return the chances of each published symbol by how many are there.

    And which symbol each cell has, shape (n_cells,), and which cannot be published of anybody,
    shape (n_symbols,). Chances are relative to the largest of their symbol.
    """
    published = release.symbols.reshape(-1)[visitors.cells]
    symbols, of_cell = np.unique(published, return_inverse=True)
    most = np.zeros(symbols.size, np.int64)
    np.maximum.at(most, of_cell, np.diff(visitors.starts))
    mechanism, m = release.mechanism, release.facts.most_count
    values = mechanism.alphabet(m).values(symbols)
    chances, fewest, impossible = [np.zeros(0)], np.zeros(symbols.size, np.int64), []
    at_a_time = max(_BLOCK // int(most.max(initial=0) + 1), 1)
    for first in range(0, symbols.size, at_a_time):
        some = slice(first, first + at_a_time)
        # More than are in the group cannot be there.
        there = np.minimum(np.arange(most[some].max() + 1), m)[:, None]
        logs = mechanism.log_pmf(values[some], there, m)
        impossible.append(np.isneginf(logs[1:]).all(axis=0))
        logs -= np.maximum(logs.max(axis=0), -1e300)
        for i, (one, n) in enumerate(zip(logs.T, most[some], strict=True), first):
            likely = np.flatnonzero(one[: n + 1] > _NEVER)
            if likely.size:
                fewest[i] = likely[0]
            chances.append(np.exp(one[likely[0] : likely[-1] + 1]) if likely.size else np.zeros(0))
        if sum(map(len, chances)) > _MOST_CHANCES:
            raise NotApplicableError(
                f"{symbols.size:,} different counts of up to {most.max():,} visitors are too many",
                fix="Give fewer people, or smaller cells",
            )
    starts = np.cumsum([len(one) for one in chances])
    laws = kernels.Laws(np.concatenate(chances), starts, fewest)
    return laws, of_cell.astype(np.int32), np.concatenate([np.zeros(0, np.bool_), *impossible])
