"""Scoring a task: every attack on every round of it."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from whosthere.inference.scores import OF_CHECKS, RELEASES_FOR_UTILITY, SCHEMA
from whosthere.inference.vocabulary import CEILING
from whosthere.privacy.utility import utility

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from whosthere.adversary.attacks import Attack
    from whosthere.game.plan import Contest, Plan, Setting
    from whosthere.game.population import Population
    from whosthere.game.rounds import GameRound, Player, Rounds, Task
    from whosthere.privacy.publish import PublishedTable


@dataclass(frozen=True)
class Scored:
    """How much of a task is done.

    Attributes
    ----------
    releases
        How many test releases each attack, and the ceiling, has scored, by name.
    controls
        How many control releases were scored.
    """

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
        counted = (
            rows.filter(~pl.col("control")).group_by("attack").agg(pl.col("release").n_unique())
        )
        controls = rows.filter("control")["release"].n_unique()
        return cls(tuple(sorted(counted.iter_rows())), controls)

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
    settings = dict.fromkeys(one.setting for one in contests if one in taking_part)
    numbers = max((plan.game.tests(plan, task, one.attack) for one in contests), key=len)
    columns: dict[str, list[Any]] = defaultdict(list)
    checks = rounds.checks()
    with_law: list[int] = []
    kept = []
    for i in numbers:
        at_work = [one for one in players if i in one.numbers[done.by(one.attack) :]]
        is_new, is_compared = i in numbers[done.by(CEILING) :], i in numbers[:RELEASES_FOR_UTILITY]
        if not (at_work or is_new or is_compared):
            continue
        drawn = rounds.test(i)
        if is_compared:
            kept += [_left_to_publish(table) for table in drawn.publication.tables]
        _score(at_work, drawn, columns, release=i, control=False)
        if is_new:
            seen = [one.see(drawn) for one in checks]
            about = next((one for one in seen if one.fault), seen[0])._asdict()
            with_law = with_law or [len(columns["law"]) + place for place in range(len(settings))]
            for person, best in rounds.optimum(i, drawn).items():
                label = drawn.labels[person]
                row = {"target": person, "release": i, "label": label, "score": best}
                _add(columns, settings, row | {"calibrated": best} | about)
                # A round is checked once, whoever is asked about.
                about = dict.fromkeys(about)
    for place in with_law:
        law = zip(*(one.sums() for one in checks), strict=True)
        columns["law"][place] = [sum(parts) for parts in law]
    for i in plan.game.controls(plan, task)[done.controls :]:
        drawn = rounds.control(i)
        fault = next((found for one in checks if (found := one.fault_of_control(drawn))), None)
        _score(players, drawn, columns, release=i, control=True, fault=fault)
    return _table(rounds, columns, _means(kept))


def _table(
    rounds: Rounds, columns: Mapping[str, list[Any]], of_task: Mapping[str, object]
) -> pl.DataFrame:
    """Make a table of columns, with what is the same for all rows of a person, or of the task."""
    people = columns["target"]
    about = {person: rounds.about(person) for person in dict.fromkeys(people)}
    filled = dict(columns) | {name: [value] * len(people) for name, value in of_task.items()}
    for name in ("visits", "uniqueness"):
        filled[name] = [about[person][name] for person in people]
    return pl.DataFrame({name: filled[name] for name in SCHEMA}, schema=SCHEMA)


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


def _add(columns: dict[str, list[Any]], settings: Iterable[Setting], row: dict[str, Any]) -> None:
    """Add a row about the scheme itself to each of its settings."""
    usual = {"attack": CEILING, "threshold": 0.0, "seconds": 0.0, "control": False, "law": None}
    for setting in settings:
        for name, value in (usual | {"setting": str(setting)} | row).items():
            columns[name].append(value)


@dataclass(frozen=True, eq=False)
class _Timed:
    """A player, the test rounds that it scores, and what its preparation costs for each score."""

    player: Player
    numbers: range
    seconds: float

    @property
    def attack(self) -> str:
        return str(self.player.contest.attack)


def _timed(rounds: Rounds, contests: Iterable[Contest]) -> Iterator[_Timed]:
    plan, task = rounds.plan, rounds.task
    begun = time.perf_counter()
    for player in rounds.players(contests):
        numbers = plan.game.tests(plan, task, player.contest.attack)
        scores = len(player.fitted) * (len(numbers) + len(plan.game.controls(plan, task)))
        yield _Timed(player, numbers, (time.perf_counter() - begun) / scores)
        begun = time.perf_counter()


def _score(
    players: Iterable[_Timed],
    drawn: GameRound,
    columns: dict[str, list[Any]],
    *,
    release: int,
    control: bool,
    fault: str | None = None,
) -> None:
    """Let all attacks score a round, and add a row for each of them and each person asked."""
    for one in players:
        begun = time.perf_counter()
        answers = one.player.answers(drawn.publication.releases)
        seconds = (time.perf_counter() - begun) / len(answers)
        for person, answer in answers.items():
            row = {
                "setting": str(one.player.contest.setting),
                "attack": one.attack,
                "target": person,
                "release": release,
                "label": drawn.labels[person],
                "score": answer.score,
                "threshold": answer.threshold,
                "calibrated": answer.calibrated,
                "seconds": seconds + one.seconds,
                "control": control,
                **dict.fromkeys(OF_CHECKS),
                "fault": fault,
            }
            for name, value in row.items():
                columns[name].append(value)


def tests_and_controls(
    plan: Plan, scores: Mapping[Task, pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put the scores of tasks together in the order of the plan, setting by setting.

    The order in which tasks were done leaves no trace. Tasks without scores are left out.
    """
    rows = pl.concat(
        [pl.DataFrame(schema=SCHEMA), *(scores[task] for task in plan.tasks if task in scores)]
    )
    order = {str(setting): i for i, setting in enumerate(plan.settings)}
    place = pl.col("setting").replace_strict(order, return_dtype=pl.Int32)
    # Within a setting the order of the tasks stays: target by target, release by release.
    rows = rows.sort(place, maintain_order=True)
    tests = rows.filter(~pl.col("control")).drop("control")
    return tests, rows.filter("control").drop("control")
