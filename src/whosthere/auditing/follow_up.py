"""What follows the scores: where people are found, and what coarser tables would change.

All of it belongs to the plan and the traces, and is kept in the run folder, so that judging an
audit again repeats nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import polars as pl

from whosthere.auditing.what_if import changes_to_try, compared, riskiest, try_change
from whosthere.data.regions import MOST_OUTLINES
from whosthere.game.leaks import (
    LEAKS,
    MARGINALS,
    REGIONS,
    add_up,
    others_to_look_at,
    rarely_visited,
)
from whosthere.game.target import TARGET_GAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from whosthere.auditing.result import AuditResult
    from whosthere.auditing.store import RunFolder
    from whosthere.auditing.what_if import WhatIf
    from whosthere.auditing.work import Job, Workers
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan
    from whosthere.game.rounds import Task
    from whosthere.progress import Move


@dataclass(frozen=True, eq=False)
class FollowUp:
    """What follows the scores, and what it needs to know of the traces.

    Attributes
    ----------
    others
        Whom to look at besides each target of the plan.
    regions, epochs
        Of the tested time.
    hidden
        Regions and hours of which no share of visits is told.
    """

    others: tuple[tuple[int, ...], ...]
    regions: Regions
    epochs: Epochs
    hidden: Mapping[str, NDArray[np.bool_]]

    @classmethod
    def of(cls, plan: Plan, tested: Traces) -> Self:
        """Choose whom to look at."""
        return cls(
            others_to_look_at(plan, tested), tested.regions, tested.epochs, rarely_visited(tested)
        )

    def n_people(self, plan: Plan) -> int:
        """Return how many people are looked at: the targets, and the others."""
        return len(plan.targets) + sum(map(len, self.others))

    def leaks(
        self, job: Job, folder: RunFolder, workers: Workers, on_progress: Move
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return leaks and marginals, from the folder if they are there; empty if a task failed."""
        folder.write_results("regions", self.table_of_regions())
        leaks, marginals = folder.read_results("leaks"), folder.read_results("marginals")
        if leaks is not None and marginals is not None:
            return leaks, marginals
        tasks = TARGET_GAME.tasks(job.plan)
        found: dict[Task, pl.DataFrame] = {}
        for outcome in workers.do(replace(job, others=self.others), tasks):
            if outcome.scores is None:
                folder.log(f"failed: the leaks of {outcome.task}\n{outcome.failure}")
                return pl.DataFrame(schema=LEAKS), pl.DataFrame(schema=MARGINALS)
            found[outcome.task] = outcome.scores
            on_progress("leaks", len(found), len(tasks))
        leaks, marginals = add_up(job.plan, found, self.hidden)
        folder.write_results("leaks", leaks)
        folder.write_results("marginals", marginals)
        folder.log(f"leaks found of {self.n_people(job.plan)} people")
        return leaks, marginals

    def what_if(
        self,
        result: AuditResult,
        job: Job,
        folder: RunFolder,
        workers: Workers,
        on_progress: Move,
    ) -> tuple[WhatIf, ...]:
        """Return what changes would do to the riskiest settings; what is known is not repeated."""
        settings = riskiest(job.plan, result.findings, result.verdicts)
        known = {(one.setting, one.change): one for one in folder.read_what_if()}
        changes = changes_to_try(result.leaks, self.regions, self.epochs)
        for i, change in enumerate(changes, 1):
            new = [one for one in settings if (str(one), change.words) not in known]
            if new:
                found = try_change(change, new, job, workers)
                known |= {(one.setting, one.change): one for one in found}
                on_progress("what-if audits", i, len(changes))
        wanted = [(str(setting), change.words) for setting in settings for change in changes]
        tried = tuple(compared(known[one], result.findings) for one in wanted if one in known)
        folder.write_what_if(tried)
        return tried

    def table_of_regions(self) -> pl.DataFrame:
        """Return the regions as a table, for whoever shows where people are found."""
        n = len(self.regions)
        return pl.DataFrame(
            {
                "index": range(n),
                "id": self.regions.ids,
                "lon": [None] * n if self.regions.lon is None else self.regions.lon,
                "lat": [None] * n if self.regions.lat is None else self.regions.lat,
                "outline": [
                    self.regions.outline(row) if n <= MOST_OUTLINES else None for row in range(n)
                ],
            },
            schema=REGIONS,
        )
