"""Whole households: in or out together with the target, and the best test of that.

The best test is that of `whosthere.game.optimum`, with households in the place of people: what a
household adds to a cell is what its members add. Whoever knows the others knows their households,
and so which ones of the same size are left that may be in the target's place. All of these are as
likely. Where none is left, several households make up the number, in more ways than can be gone
through. This attacker is then told which ones it would be, and so is stronger still.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from whosthere.arrays import own
from whosthere.data.traces import Group
from whosthere.game.optimum import Candidates, optimal_scores
from whosthere.game.rounds import GameRound
from whosthere.privacy.publish import Publication

if TYPE_CHECKING:
    from whosthere.arrays import Ints64
    from whosthere.data.traces import Traces
    from whosthere.game.target import TargetRounds
    from whosthere.privacy.scheme import Scheme


@dataclass(frozen=True, eq=False, kw_only=True)
class HouseholdRound(GameRound):
    """One draw of whole households; `instead` are in the place of the target's, if that is out."""

    instead: Ints64


def has_ceiling(scheme: Scheme) -> bool:
    """Tell whether the best test of a household is known.

    Where noise belongs to people, cells of one household can have the noise of different members.
    """
    steps = (step for mechanism in scheme.mechanisms for step in mechanism.random_steps)
    return scheme.has_law and not any(step.noise_of == "people" for step in steps)


def optimum_of_household(rounds: TargetRounds, drawn: GameRound) -> float | None:
    """Return the log of the best test's ratio for the target's household; None if it is unknown."""
    if not isinstance(drawn, HouseholdRound) or not has_ceiling(rounds.task.scheme):
        return None
    n = rounds.household.size
    rows = drawn.publication.tables[0].group.rows
    blocks = rounds.of_same_size
    if np.isin(blocks[:-1, 0], rows[:-n]).all():
        blocks = np.stack([drawn.instead, rounds.household])
    known = np.flatnonzero(np.isin(blocks[:, 0], rows[:-n]))
    last = np.flatnonzero(np.isin(blocks[:, 0], rows[-n:]))
    members = own(np.append(known, last), np.int64)
    tables, candidates = [], []
    for made, table in zip(drawn.publication.tables, rounds.tables, strict=True):
        people = table.households if blocks is rounds.of_same_size else as_one(table.traces, blocks)
        counted = people
        if table.mechanism.bounds_visits:
            bounding = rounds.rng("would-be bounding", *rounds.task.scheme.key, drawn.key[1])
            some = table.mechanism.bound(table.traces.select(blocks.ravel()), bounding)
            counted = as_one(some, np.arange(blocks.size).reshape(blocks.shape))
        in_place = as_one(made.counted.everybody, made.counted.rows[-n:][None])
        tables.append(replace(made, group=Group(people, members), counted=Group.all_of(in_place)))
        candidates.append(Candidates(Group.all_of(people), Group.all_of(counted)))
    return next(optimal_scores([Publication(tuple(tables))], [candidates]))


def as_one(traces: Traces, blocks: Ints64) -> Traces:
    """Return a row for each of some blocks of people, shape (n_blocks, n_people)."""
    unit = np.repeat(np.arange(len(blocks)), blocks.shape[1])
    return Group(traces, own(blocks.ravel(), np.int64)).together(unit)
