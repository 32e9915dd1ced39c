"""Scoring a task: every attack on every round of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import polars as pl

from whosthere.inference.scores import RELEASES_FOR_UTILITY, SCHEMA
from whosthere.inference.vocabulary import CEILING
from whosthere.privacy.utility import utility

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from whosthere.adversary.attacks import Attack
    from whosthere.game.plan import Contest, Plan
    from whosthere.game.rounds import GameRound, Player, Population, Rounds, Task
    from whosthere.privacy.publish import PublishedTable

# Cells and copied visits of the rounds that are scored together.
_MOST_IN_BLOCK = 2**20


@dataclass(frozen=True)
class Scored:
    """How much of a task is done: test releases by attack, or the ceiling, and control releases."""

    releases: tuple[tuple[str, int], ...] = ()
    controls: int = 0

    @classmethod
    def wanted(cls, plan: Plan, task: Task) -> Self:
        """Return what a plan asks of a task."""
        attacks = dict.fromkeys(one.attack for one in plan.contests_under(task.scheme))
        releases = {str(one): len(plan.game.tests(plan, task, one)) for one in attacks}
        releases[CEILING] = max(releases.values())
        return cls(tuple(sorted(releases.items())), len(plan.game.controls(plan, task)))

    @classmethod
    def of(cls, rows: pl.DataFrame) -> Self:
        """Return what the rows of a task hold."""
        tests, controls = rows.filter(~pl.col("control")), rows.filter("control")
        counted = tests.group_by("attack").agg(pl.col("release").n_unique())
        return cls(tuple(sorted(counted.iter_rows())), controls["release"].n_unique())

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        releases = tuple(sorted(described["releases"].items()))
        return cls(releases, int(described["controls"]))

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"releases": dict(self.releases), "controls": self.controls}

    def by(self, attack: str) -> int:
        """Return how many test releases an attack has scored."""
        return dict(self.releases).get(attack, 0)

    def covers_all_by(self, attack: Attack, wanted: Scored) -> bool:
        """Tell whether an attack has scored all that is wanted of it."""
        tested = self.by(str(attack)) >= wanted.by(str(attack))
        return tested and self.controls >= wanted.controls

    def covers(self, wanted: Scored) -> bool:
        """Tell whether all is done that is wanted; attacks that do not apply have no rows."""
        tested = all(n >= wanted.by(attack) for attack, n in self.releases)
        return bool(self.releases) and tested and self.controls >= wanted.controls


NOTHING = Scored()


def score_task(
    population: Population, plan: Plan, task: Task, done: Scored = NOTHING
) -> pl.DataFrame:
    """Score all rounds of a task with all attacks; the columns are those of `SCHEMA`.

    What is done already, in an audit that is extended, is left out.
    """
    rounds = plan.game.rounds(population, plan, task)
    contests, wanted = plan.contests_under(task.scheme), Scored.wanted(plan, task)
    finished = [one for one in contests if done.covers_all_by(one.attack, wanted)]
    players = list(_timed(rounds, (one for one in contests if one not in finished)))
    taking_part = {*finished, *(one.player.contest for one in players)}
    in_use = dict.fromkeys(one.setting for one in contests if one in taking_part)
    settings = [str(one) for one in in_use]
    numbers = max((plan.game.tests(plan, task, one.attack) for one in contests), key=len)
    rows: list[dict[str, Any]] = []
    with_law: list[dict[str, Any]] = []
    checks = rounds.checks()
    kept = []
    compared, new = numbers[:RELEASES_FOR_UTILITY], numbers[done.by(CEILING) :]
    of_players = [one.numbers[done.by(one.attack) :] for one in players]
    to_draw = [i for i in numbers if any(i in some for some in (compared, new, *of_players))]
    for block in _blocks(rounds, to_draw):
        optima = rounds.optima({i: drawn for i, drawn in block.items() if i in new})
        for i, drawn in block.items():
            if i in compared:
                kept += [_left_to_publish(table) for table in drawn.publication.tables]
            at_work = (one for one, own in zip(players, of_players, strict=True) if i in own)
            rows += _scores(at_work, drawn, i)
            about: dict[str, Any] = {}
            if i in new:
                seen = [one.see(drawn) for one in checks]
                about = next((one for one in seen if one.fault), seen[0])._asdict()
            for person, best in optima.get(i, {}).items():
                row = _row(drawn, i, person, CEILING, best) | about
                made = [row | {"setting": setting} for setting in settings]
                with_law = with_law or made
                rows += made
                # A round is checked once, whoever is asked about.
                about = {}
    for row in with_law if task.scheme.has_law else ():
        row["law"] = [sum(parts) for parts in zip(*(one.sums() for one in checks), strict=True)]
    for i in plan.game.controls(plan, task)[done.controls :]:
        drawn = rounds.control(i)
        fault = next((found for one in checks if (found := one.fault_of_control(drawn))), None)
        rows += [one | {"control": True, "fault": fault} for one in _scores(players, drawn, i)]
    people = {person: rounds.about(person) for person in {row["target"] for row in rows}}
    of_task = _means(kept)
    return pl.DataFrame([row | people[row["target"]] | of_task for row in rows], schema=SCHEMA)


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


def _left_to_publish(table: PublishedTable) -> dict[str, float | None]:
    """Return what a release leaves of the true counts, by the names of `OF_UTILITY`."""
    found = utility(table.release.counts, table.truth)
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
    for name in rows[0]:
        defined = [value for row in rows if (value := row[name]) is not None]
        means[name] = fmean(defined) if defined else None
    return means


class _Timed(NamedTuple):
    """A player, the test rounds that it scores, and what its preparation costs for each score."""

    player: Player
    attack: str
    setting: str
    numbers: range
    seconds: float


def _timed(rounds: Rounds, contests: Iterable[Contest]) -> Iterator[_Timed]:
    plan, task = rounds.plan, rounds.task
    begun = time.perf_counter()
    for player in rounds.players(contests):
        attack, setting = player.contest.attack, player.contest.setting
        numbers = plan.game.tests(plan, task, attack)
        scores = len(player.fitted) * (len(numbers) + len(plan.game.controls(plan, task)))
        seconds = (time.perf_counter() - begun) / scores
        yield _Timed(player, str(attack), str(setting), numbers, seconds)
        begun = time.perf_counter()


def _scores(players: Iterable[_Timed], drawn: GameRound, i: int) -> Iterator[dict[str, Any]]:
    """Let attacks score a round; a row for each of them and each person asked."""
    for one in players:
        begun = time.perf_counter()
        answers = one.player.answers(drawn.publication)
        seconds = (time.perf_counter() - begun) / len(answers)
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
    return by_setting(map(str, plan.settings), [scores[one] for one in plan.tasks if one in scores])


def by_setting(
    settings: Iterable[str], tables: Iterable[pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the same of the tables of tasks, which come in the order of the plan."""
    rows = pl.concat([pl.DataFrame(schema=SCHEMA), *tables])
    order = {setting: i for i, setting in enumerate(settings)}
    place = pl.col("setting").replace_strict(order, return_dtype=pl.Int32)
    # Within a setting the order of the tasks stays: target by target, release by release.
    rows = rows.sort(place, maintain_order=True)
    tests = rows.filter(~pl.col("control")).drop("control")
    return tests, rows.filter("control").drop("control")
