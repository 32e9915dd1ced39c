"""Scoring a task: every attack on every release of a target under a scheme."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from whosthere.data.floor import rounded_up
from whosthere.game.checks import Checks
from whosthere.game.rounds import Scene
from whosthere.inference.scores import OF_CHECKS, RELEASES_FOR_UTILITY, SCHEMA
from whosthere.inference.vocabulary import CEILING
from whosthere.privacy.utility import utility

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from whosthere.adversary.attacks import Attack, FittedAttack
    from whosthere.game.plan import Contest, Plan, Task
    from whosthere.game.population import Population
    from whosthere.game.rounds import Trial
    from whosthere.game.setting import Scheme, Setting


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
    def wanted(cls, plan: Plan, scheme: Scheme) -> Self:
        """Return what a plan asks of each task under a scheme."""
        attacks = dict.fromkeys(one.attack for one in plan.contests_under(scheme))
        releases = {str(one): plan.releases_by(one) for one in attacks}
        releases[CEILING] = plan.releases_under(scheme)
        return cls(tuple(sorted(releases.items())), plan.control_releases)

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

    def covers_all_by(self, attack: Attack, plan: Plan) -> bool:
        """Tell whether an attack has scored all that a plan asks of it."""
        tested = self.by(str(attack)) >= plan.releases_by(attack)
        return tested and self.controls >= plan.control_releases

    def covers(self, wanted: Scored) -> bool:
        """Tell whether all is done that is wanted; attacks that do not apply have no rows."""
        tested = all(n >= wanted.by(attack) for attack, n in self.releases)
        return bool(self.releases) and tested and self.controls >= wanted.controls


NOTHING = Scored()


def score_task(
    population: Population, plan: Plan, task: Task, done: Scored = NOTHING
) -> pl.DataFrame:
    """Score all releases of a task with all attacks; the columns are those of `SCHEMA`.

    What is done already, in an audit that is extended, is left out.
    """
    scene = Scene(population, plan, task)
    contests = plan.contests_under(task.scheme)
    finished = [one for one in contests if done.covers_all_by(one.attack, plan)]
    players = list(_players(scene, (one for one in contests if one not in finished)))
    taking_part = {*finished, *(player.contest for player in players)}
    settings = dict.fromkeys(one.setting for one in contests if one in taking_part)
    columns: dict[str, list[Any]] = defaultdict(list)
    checks = Checks(scene)
    with_law: list[int] = []
    kept = []
    for i in range(plan.releases_under(task.scheme)):
        at_work = [one for one in players if done.by(str(one.contest.attack)) <= i < one.releases]
        is_new = i >= done.by(CEILING)
        if not (at_work or is_new or i < RELEASES_FOR_UTILITY):
            continue
        trial = scene.test(i)
        if i < RELEASES_FOR_UTILITY:
            kept.append(_left_to_publish(trial))
        _score(at_work, trial, columns, release=i, control=False)
        if is_new:
            best = scene.optimum(i, trial)
            row = {"release": i, "label": trial.put_in, "score": best, "calibrated": best}
            seen = checks.see(trial)
            with_law = with_law or [len(columns["law"]) + place for place in range(len(settings))]
            _add(columns, settings, row | seen._asdict())
    for place in with_law:
        columns["law"][place] = checks.sums()
    for i in range(done.controls, plan.control_releases):
        trial = scene.control(i)
        fault = checks.fault_of_control(trial)
        _score(players, trial, columns, release=i, control=True, fault=fault)
    of_task = {
        "target": task.target,
        "visits": rounded_up(scene.traces.trace(task.target).size, population.visit_classes),
        "uniqueness": round(scene.uniqueness(), 1),
        **_means(kept),
    }
    n = len(columns["score"])
    return pl.DataFrame(
        {name: columns[name] if name not in of_task else [of_task[name]] * n for name in SCHEMA},
        schema=SCHEMA,
    )


def _left_to_publish(trial: Trial) -> dict[str, float | None]:
    """Return what a release leaves of the true counts, by the names of `OF_UTILITY`."""
    found = utility(trial.release.counts, trial.publication.truth)
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
class _Player:
    """A fitted attack, how many test releases it scores, and what its fit costs for each score."""

    contest: Contest
    fitted: FittedAttack
    releases: int
    seconds: float


def _players(scene: Scene, contests: Iterable[Contest]) -> Iterator[_Player]:
    begun = time.perf_counter()
    for contest, fitted in scene.fit_all(contests):
        releases = scene.plan.releases_by(contest.attack)
        spent = time.perf_counter() - begun
        scores = releases + scene.plan.control_releases
        yield _Player(contest, fitted, releases, spent / scores)
        begun = time.perf_counter()


def _score(
    players: list[_Player],
    trial: Trial,
    columns: dict[str, list[Any]],
    *,
    release: int,
    control: bool,
    fault: str | None = None,
) -> None:
    """Let all attacks score a release, and add a row for each."""
    for player in players:
        begun = time.perf_counter()
        answer = player.fitted.score(trial.release)
        row = {
            "setting": str(player.contest.setting),
            "attack": str(player.contest.attack),
            "release": release,
            "label": trial.put_in,
            "score": answer.score,
            "threshold": answer.threshold,
            "calibrated": answer.calibrated,
            "seconds": time.perf_counter() - begun + player.seconds,
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
    # Tasks of earlier versions lack some columns, and have others that nobody reads any more.
    rows = pl.concat(
        [pl.DataFrame(schema=SCHEMA), *(scores[task] for task in plan.tasks if task in scores)],
        how="diagonal",
    ).select(*SCHEMA)
    order = {str(setting): i for i, setting in enumerate(plan.settings)}
    place = pl.col("setting").replace_strict(order, return_dtype=pl.Int32)
    # Within a setting the order of the tasks stays: target by target, release by release.
    rows = rows.sort(place, maintain_order=True)
    tests = rows.filter(~pl.col("control")).drop("control")
    return tests, rows.filter("control").drop("control")
