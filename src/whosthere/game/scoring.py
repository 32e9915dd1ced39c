"""Scoring a task: every attack on every round of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import polars as pl

from whosthere.inference.scores import RELEASES_FOR_UTILITY, SCHEMA
from whosthere.inference.vocabulary import CEILING
from whosthere.privacy.scheme import ORDINARY
from whosthere.privacy.utility import utility

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from whosthere.arrays import Floats, Ints32, Ints64
    from whosthere.game.plan import Contest, Plan, Setting
    from whosthere.game.rounds import GameRound, Player, Population, Rounds, Task
    from whosthere.privacy.publish import PublishedTable
    from whosthere.privacy.scheme import Layout

# Cells and copied visits of the rounds that are scored together.
_MOST_IN_BLOCK = 2**20


@dataclass(frozen=True)
class Scored:
    """How much of a task is done.

    By what is known and by attack, or the ceiling: how many test and control releases were scored,
    or would have been if the attack applied. Settings under one scheme differ in what is known.
    """

    parts: tuple[tuple[str, str, int, int], ...] = ()

    @classmethod
    def wanted(cls, plan: Plan, task: Task) -> Self:
        """Return what a plan asks of a task."""
        contests, controls = plan.contests_under(task.scheme), len(plan.game.controls(plan, task))
        tests = {one.attack: len(plan.game.tests(plan, task, one.attack)) for one in contests}
        parts = [
            (str(one.setting.knowledge), str(one.attack), tests[one.attack], controls)
            for one in contests
        ]
        most, known = max(tests.values()), dict.fromkeys(part[0] for part in parts)
        return cls((*parts, *((one, CEILING, most, 0) for one in known)))

    def without(self, unused: Iterable[Setting]) -> Self:
        """Return it without the ceiling of settings in which no attack applies."""
        never = {(str(one.knowledge), CEILING) for one in unused}
        return replace(self, parts=tuple(part for part in self.parts if part[:2] not in never))

    @classmethod
    def from_json(cls, described: list[list[Any]]) -> Self:
        """Read what `to_json` wrote."""
        return cls(tuple((str(one), str(by), int(n), int(m)) for one, by, n, m in described))

    def to_json(self) -> list[list[Any]]:
        """Return it as a JSON list."""
        return [list(part) for part in self.parts]

    def by(self, attack: str, knowledge: object) -> tuple[int, int]:
        """Return how many test and control releases an attack has scored that knows so much."""
        return self._by.get((str(knowledge), attack), (0, 0))

    @cached_property
    def _by(self) -> dict[tuple[str, str], tuple[int, int]]:
        return {part[:2]: part[2:] for part in self.parts}

    def lacks(self, knowledge: str, attack: str, tests: int, controls: int) -> bool:
        """Tell whether so much is not done; a setting in which no attack applies has no ceiling."""
        done = self.by(attack, knowledge)
        return (done[0] > 0 or attack != CEILING) and (tests > done[0] or controls > done[1])

    def covers(self, wanted: Scored) -> bool:
        """Tell whether all is done that is wanted."""
        return bool(self.parts) and not any(self.lacks(*part) for part in wanted.parts)


NOTHING = Scored()


ASKED = ("release", "person", "label")
"""The columns of everybody's scores besides those of attacks."""


class TaskScores(NamedTuple):
    """What came of a task.

    `targets` has the scores of targets, with the columns of `SCHEMA`. `everybody` has those of all
    who are asked, where that is more than targets: a row for each `release` and `person`, with the
    `label`, the household (`unit`) where there are any, and a column for each attack and the
    ceiling in each setting, such as "likelihood-ratio in raw, m = 500".
    """

    targets: pl.DataFrame
    everybody: pl.DataFrame | None = None


def score_task(
    population: Population, plan: Plan, task: Task, done: Scored = NOTHING
) -> TaskScores:
    """Score all rounds of a task with all attacks.

    What is done already, in an audit that is extended, is left out.
    """
    rounds = plan.game.rounds(population, plan, task)
    contests, wanted = plan.contests_under(task.scheme), Scored.wanted(plan, task)
    parts = zip(contests, wanted.parts, strict=False)
    players = list(_timed(rounds, [one for one, part in parts if done.lacks(*part)]))
    taking_part = {one.player.contest.setting for one in players}
    with_ceiling = [
        (str(one), by_ceiling)
        for one in dict.fromkeys(contest.setting for contest in contests)
        if (by_ceiling := done.by(CEILING, one.knowledge)[0]) or one in taking_part
    ]
    numbers = max((plan.game.tests(plan, task, one.attack) for one in contests), key=len)
    rows: list[dict[str, Any]] = []
    with_law: list[dict[str, Any]] = []
    checks = rounds.checks()
    kept = []
    compared = numbers[:RELEASES_FOR_UTILITY]
    new_in = {i: [name for name, seen in with_ceiling if i in numbers[seen:]] for i in numbers}
    everyone = _Everyone(rounds.everybody, rounds.units)
    of_players = [one.numbers[done.by(one.attack, one.knowledge)[0] :] for one in players]
    to_draw = [
        i for i in numbers if new_in[i] or any(i in some for some in (compared, *of_players))
    ]
    for block in _blocks(rounds, to_draw):
        optima = rounds.optima({i: drawn for i, drawn in block.items() if new_in[i]})
        for i, drawn in block.items():
            if i in compared:
                tables = zip(drawn.publication.tables, task.scheme.tables, strict=True)
                left = [_left_to_publish(one, how.layout, population) for one, how in tables]
                # Of several tables, whoever wants the pattern takes the one that shows it best.
                kept.append(max(left, key=lambda one: one["pattern_correlation"] or 0.0))
            at_work = [one for one, own in zip(players, of_players, strict=True) if i in own]
            rows += _scores(at_work, drawn, i, everyone)
            about: dict[str, Any] = {}
            if new_in[i]:
                seen = [one.see(drawn) for one in checks]
                about = next((one for one in seen if one.fault), seen[0])._asdict()
            for person, best in optima.get(i, {}).items():
                row = _row(drawn, i, person, CEILING, best) | about
                made = [row | {"setting": setting} for setting in new_in[i]]
                with_law = with_law or made
                rows += made
                # A round is checked once, whoever is asked about.
                about = {}
            for setting in new_in[i]:
                everyone.add(
                    drawn, i, f"{CEILING} in {setting}", rounds.optimum_of_everybody(drawn)
                )
    for row in with_law if task.scheme.has_law else ():
        row["law"] = [sum(parts) for parts in zip(*(one.sums() for one in checks), strict=True)]
    controls = plan.game.controls(plan, task)
    for i in controls:
        at_work = [one for one in players if i in controls[done.by(one.attack, one.knowledge)[1] :]]
        if at_work:
            drawn = rounds.control(i)
            fault = next((found for one in checks if (found := one.fault_of_control(drawn))), None)
            scores = _scores(at_work, drawn, i, everyone)
            rows += [one | {"control": True, "fault": fault} for one in scores]
    people = {person: rounds.about(person) for person in {row["target"] for row in rows}}
    of_task = _means(kept)
    table = pl.DataFrame([row | people[row["target"]] | of_task for row in rows], schema=SCHEMA)
    return TaskScores(table, everyone.table())


class _Everyone:
    """Scores of all who are asked, round by round, where the game asks more than its targets."""

    def __init__(self, rows: Ints64 | None, units: Ints64 | None) -> None:
        self._rows, self._units = rows, units
        self._rounds: dict[int, dict[str, Any]] = {}

    def add(self, drawn: GameRound, i: int, what: str, scores: Floats | None) -> None:
        """Add what was said of them in a round."""
        if scores is None or self._rows is None:
            return
        of_round = {"release": np.int32(i), "person": self._rows.astype(np.int32)}
        of_round |= {"label": drawn.labels_of(self._rows)}
        if self._units is not None:
            of_round |= {"unit": self._units.astype(np.int32)}
        self._rounds.setdefault(i, of_round)[what] = scores.astype(np.float32)

    def table(self) -> pl.DataFrame | None:
        """Return a row for each round and person; None where nobody but targets was asked."""
        if not self._rounds:
            return None
        return pl.concat([pl.DataFrame(one) for one in self._rounds.values()], how="diagonal")


def _blocks(rounds: Rounds, numbers: Iterable[int]) -> Iterator[dict[int, GameRound]]:
    """Draw test rounds, as many at a time as memory easily holds."""
    block: dict[int, GameRound] = {}
    size = 0
    for i in numbers:
        block[i] = drawn = rounds.test(i)
        for table in drawn.publication.tables:
            # What bounding left of people's visits is a copy.
            visits = 0 if table.counted is table.group else table.counted.everybody.n_visits
            size += table.counts.size + visits
        if size > _MOST_IN_BLOCK:
            yield block
            block, size = {}, 0
    if block:
        yield block


def _left_to_publish(
    table: PublishedTable, layout: Layout, population: Population
) -> dict[str, float | None]:
    """Return what a release leaves of the true counts, by the names of `OF_UTILITY`.

    These are the counts of the regions and epochs of the traces, also where a table has larger
    ones: detail that is lost is lost.
    """
    published: Ints32 | Floats = table.release.people
    truth = table.truth
    if layout != ORDINARY:
        covered = population.under(layout.in_finest_cells).tested
        published = layout.spread(table.release.people, covered.epochs)
        covered = covered if table.stays is None else table.stays.within(covered)
        truth = covered.counts(table.group.rows)
    found = utility(published, truth)
    return {
        "visits_kept": found.visits_kept,
        "cells_kept": found.cells_kept,
        "relative_error": found.mean_relative_error,
        # Counts that are all the same show no pattern.
        "pattern_correlation": found.pattern_correlation or 0.0,
    }


def _means(rows: list[dict[str, float | None]]) -> dict[str, float | None]:
    """Return the mean of each measure over those rows where it is defined."""
    means: dict[str, float | None] = {}
    for name in rows[0] if rows else ():
        defined = [value for row in rows if (value := row[name]) is not None]
        means[name] = fmean(defined) if defined else None
    return means


class _Timed(NamedTuple):
    """A player, the test rounds that it scores, and what its preparation costs for each score."""

    player: Player
    attack: str
    setting: str
    knowledge: str
    numbers: range
    seconds: float


def _timed(rounds: Rounds, contests: Iterable[Contest]) -> Iterator[_Timed]:
    plan, task = rounds.plan, rounds.task
    begun = time.perf_counter()
    for player in rounds.players(contests):
        attack, setting = player.contest.attack, player.contest.setting
        numbers = plan.game.tests(plan, task, attack)
        scores = max(len(player.fitted), 1) * (len(numbers) + len(plan.game.controls(plan, task)))
        seconds = (time.perf_counter() - begun) / scores
        yield _Timed(player, str(attack), str(setting), str(setting.knowledge), numbers, seconds)
        begun = time.perf_counter()


def _scores(
    players: Iterable[_Timed], drawn: GameRound, i: int, everyone: _Everyone
) -> Iterator[dict[str, Any]]:
    """Let attacks score a round; a row for each of them and each target."""
    for one in players:
        begun = time.perf_counter()
        answers, of_everybody = one.player.said(drawn)
        n = len(answers) if of_everybody is None else of_everybody.size
        seconds = (time.perf_counter() - begun) / n
        everyone.add(drawn, i, str(one.player.contest), of_everybody)
        for person, answer in answers.items():
            yield _row(drawn, i, person, one.attack, answer.score) | {
                "setting": one.setting,
                "threshold": answer.threshold,
                "calibrated": answer.calibrated,
                "seconds": seconds + one.seconds,
            }


def _row(drawn: GameRound, i: int, person: int, attack: str, score: float | None) -> dict[str, Any]:
    """Return the row of a test round; by default scores mean the same for everybody."""
    return {
        "attack": attack,
        "target": person,
        "release": i,
        "label": drawn.labels[person],
        "score": score,
        "threshold": 0.0,
        "calibrated": score,
        "seconds": 0.0,
        "control": False,
    }


def tests_and_controls(
    plan: Plan, scores: Mapping[Task, pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put the scores of tasks together in the order of the plan, setting by setting.

    The order in which tasks were done leaves no trace. Tasks without scores are left out.
    """
    tables = [scores[one] for one in plan.tasks if one in scores]
    rows = pl.concat([pl.DataFrame(schema=SCHEMA), *tables])
    order = {str(setting): i for i, setting in enumerate(plan.settings)}
    place = pl.col("setting").replace_strict(order, return_dtype=pl.Int32)
    # Within a setting the order of the tasks stays: target by target, release by release.
    rows = rows.sort(place, maintain_order=True)
    tests = rows.filter(~pl.col("control")).drop("control")
    return tests, rows.filter("control").drop("control")
