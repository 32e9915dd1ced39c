"""What follows the scores: where people are found, and what coarser tables would change.

For the riskiest settings that were not accepted, the likelihood ratio is tried again on coarser
traces: the same targets, in groups of the same people, by the same engine, with fewer releases. It
shows which way to go, and is no audit of it: nothing is judged by it.

All of it belongs to the plan and the traces, and is kept in the run folder, so that judging an
audit again repeats nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.auditing.manifest import write_json
from whosthere.data.epochs import Epochs, format_length
from whosthere.game.leaks import add_up, others_to_look_at, rarely_visited, table_of_regions
from whosthere.game.plan import Contest, Plan, Setting
from whosthere.game.scoring import tests_and_controls
from whosthere.game.target import TARGET_GAME
from whosthere.inference.measure import per_target
from whosthere.inference.metrics import mean_over_targets
from whosthere.inference.vocabulary import OF_UTILITY, UTILITY
from whosthere.privacy.scheme import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.arrays import Bools, Ints32
    from whosthere.auditing.result import AuditResult
    from whosthere.auditing.store import RunFolder
    from whosthere.auditing.verdict import Verdict
    from whosthere.auditing.work import Job, Workers
    from whosthere.data.regions import Regions
    from whosthere.data.traces import Traces
    from whosthere.game.rounds import Task
    from whosthere.inference.finding import Finding
    from whosthere.progress import Move

ATTACK = LikelihoodRatio()
METRIC = "auc"
MOST_SETTINGS = 3
"""How many settings changes are tried for, the riskiest first."""
RELEASES = 6
"""How many test releases of each target and scheme are scored for each change."""
# A quarter of the regions is merged with others; so many epochs become one.
_SHARE_MERGED = 0.25
_JOINED = 4


class MeanOverTargets(NamedTuple):
    """A mean over targets with its 95 % interval; None where the sample cannot resolve it."""

    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class WhatIf:
    """What a change of regions or epochs, in words, would do to one setting.

    The metric is that of the likelihood ratio, as in the audit and with the change. What is left to
    publish is by the names of `OF_UTILITY`: means over the targets, against the true counts of the
    regions and epochs before the change, over which counts of larger ones are spread evenly.
    """

    setting: str
    change: str
    metric: str
    before: MeanOverTargets
    after: MeanOverTargets
    utility_before: dict[str, float | None]
    utility_after: dict[str, float | None]

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return asdict(self) | {"before": self.before._asdict(), "after": self.after._asdict()}

    @classmethod
    def each(cls, described: list[dict[str, Any]]) -> tuple[Self, ...]:
        """Make what `to_json` described, of each."""
        mean = MeanOverTargets
        return tuple(
            cls(**one | {"before": mean(**one["before"]), "after": mean(**one["after"])})
            for one in described
        )


@dataclass(frozen=True, eq=False)
class FollowUp:
    """What follows the scores, and what it needs to know of the traces in the tested time.

    `others` are the people to look at besides each target of the plan, `hidden` the regions and
    hours of which no share of visits is told.
    """

    others: tuple[tuple[int, ...], ...]
    regions: Regions
    epochs: Epochs
    hidden: Mapping[str, Bools]

    @classmethod
    def of(cls, plan: Plan, tested: Traces) -> Self:
        """Choose whom to look at."""
        others, hidden = others_to_look_at(plan, tested), rarely_visited(tested)
        return cls(others, tested.regions, tested.epochs, hidden)

    def n_people(self, plan: Plan) -> int:
        """Return how many people are looked at: the targets, and the others."""
        return len(plan.targets) + sum(map(len, self.others))

    def leaks(
        self, job: Job, folder: RunFolder, workers: Workers, on_progress: Move
    ) -> dict[str, pl.DataFrame]:
        """Return regions, leaks and marginals, as fields of an `AuditResult`.

        They are read from the folder if they are there; leaks are empty if a task failed, and have
        nothing of mechanisms without a law.
        """
        regions = table_of_regions(self.regions)
        folder.write_results("regions", regions)
        leaks, marginals = folder.read_results("leaks"), folder.read_results("marginals")
        if leaks is not None and marginals is not None:
            return {"regions": regions, "leaks": leaks, "marginals": marginals}
        # The part where the likelihood ratio, which finds leaks, applies, and regions are those
        # of the traces.
        with_law = tuple(
            one
            for one in job.plan.contests
            if one.setting.scheme.has_law and one.setting.scheme.finest is not None
        )
        plan = replace(job.plan, contests=with_law)
        tasks = TARGET_GAME.tasks(plan)
        if not tasks:
            return {"regions": regions}
        found: dict[Task, pl.DataFrame] = {}
        for outcome in workers.do(replace(job, others=self.others), tasks):
            if outcome.scores is None:
                folder.log(f"failed: the leaks of {outcome.task}\n{outcome.failure}")
                return {"regions": regions}
            found[outcome.task] = outcome.scores
            on_progress("leaks", len(found), len(tasks))
        leaks, marginals = add_up(plan, found, self.hidden)
        folder.write_results("leaks", leaks)
        folder.write_results("marginals", marginals)
        folder.log(f"leaks found of {self.n_people(job.plan)} people")
        return {"regions": regions, "leaks": leaks, "marginals": marginals}

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
        kept, known = folder.path / "what_if.json", {}
        # Nothing is known where it is not there, or not whole.
        with suppress(OSError, ValueError, TypeError, KeyError):
            before = WhatIf.each(json.loads(kept.read_text(encoding="utf-8")))
            known = {(one.setting, one.change): one for one in before}
        changes = changes_to_try(result.leaks, self.regions, self.epochs)
        for i, (change, layout) in enumerate(changes.items(), 1):
            new = [one for one in settings if (str(one), change) not in known]
            if new:
                found = try_change(change, layout, new, job, workers)
                known |= {(one.setting, one.change): one for one in found}
                on_progress("what-if audits", i, len(changes))
        wanted = [(str(setting), change) for setting in settings for change in changes]
        tried = tuple(compared(known[one], result.findings) for one in wanted if one in known)
        write_json(kept, [one.to_json() for one in tried])
        return tried


def riskiest(
    plan: Plan, findings: Sequence[Finding], verdicts: Sequence[Verdict]
) -> tuple[Setting, ...]:
    """Return the settings that changes are tried for: not accepted, with the largest AUC.

    Only those with one table have regions and epochs that could be changed.
    """
    accepted = {verdict.setting for verdict in verdicts if verdict.decision == "accept"}
    aucs = {
        one.setting: one.estimate
        for one in findings
        if (one.attack, one.metric) == (str(ATTACK), METRIC) and one.estimate is not None
    }
    open_ = [
        one
        for one in plan.settings
        if str(one) in aucs and str(one) not in accepted and len(one.scheme.tables) == 1
    ]
    ranked = sorted(open_, key=lambda setting: aucs[str(setting)], reverse=True)
    return tuple(ranked[:MOST_SETTINGS])


def changes_to_try(leaks: pl.DataFrame, regions: Regions, epochs: Epochs) -> dict[str, Layout]:
    """Return which changes make sense, in words, given where all settings leak together."""
    changes = {}
    own = leaks.filter(axis="region")
    by_region = np.bincount(
        own["index"].to_numpy(), own["leak"].fill_null(0.0).to_numpy(), len(regions)
    )
    most = int(_SHARE_MERGED * len(regions))
    leaky = [row for row in np.argsort(-by_region, kind="stable")[:most] if by_region[row] > 0]
    if len(leaky) > 1 or (leaky and regions.have_positions):
        how = "the region nearest to it" if regions.have_positions else "another one of them"
        most_leaky = f"the {len(leaky)} regions that leak most, each"
        if len(leaky) == 1:
            most_leaky = "the region that leaks most,"
        merged = merged_regions(leaky, regions)
        changes[f"{most_leaky} merged with {how}"] = Layout(regions=merged)
    if epochs.n > 1:
        joined = min(_JOINED, epochs.n)
        before, after = format_length(epochs.length), format_length(joined * epochs.length)
        changes[f"epochs of {after} instead of {before}"] = Layout(epochs=joined)
    return changes


def merged_regions(leaky: Sequence[int], regions: Regions) -> tuple[int, ...]:
    """Return the new number of each region if each of the leaky ones is merged with another.

    That is the nearest one where positions are known, else the next one of the leaky ones. Several
    that are merged with one another become one.
    """
    n = len(regions)
    if regions.have_positions:
        positions = regions.positions_km
        near = np.asarray(cKDTree(positions).query(positions[leaky], k=2)[1])
        # Of two regions at one place, each may come first.
        partner = np.where(near[:, 0] == leaky, near[:, 1], near[:, 0])
    else:
        # Two by two; the last of an odd number joins the two before.
        partner = np.array(
            [leaky[i ^ 1 if i ^ 1 < len(leaky) else i - 1] for i in range(len(leaky))]
        )
    links = coo_array((np.ones(len(leaky)), (leaky, partner)), shape=(n, n))
    new: Ints32 = connected_components(links, directed=False)[1]
    return tuple(new.tolist())


def try_change(
    change: str, layout: Layout, settings: Sequence[Setting], job: Job, workers: Workers
) -> list[WhatIf]:
    """Attack the same targets after a change.

    What was before is left open. Nothing is returned where a task fails.
    """
    changed = [setting.over(layout) for setting in settings]
    plan = replace(
        job.plan,
        contests=tuple(Contest(setting, ATTACK) for setting in changed),
        releases=min(RELEASES, job.plan.releases_by(ATTACK)),
        releases_of=(),
        control_releases=0,
        past_releases=0,
    )
    scores = {}
    for outcome in workers.do(replace(job, plan=plan), plan.tasks):
        if outcome.scores is None:
            return []
        scores[outcome.task] = outcome.scores
    tests, _ = tests_and_controls(plan, scores)
    aucs, tried, unknown = per_target(tests), [], MeanOverTargets(None, None, None)
    for before, name in zip(map(str, settings), map(str, changed), strict=True):
        own = aucs.filter(setting=name, attack=str(ATTACK))["auc"].to_numpy()
        after = mean_over_targets(own, unseen=(0.5, 1.0))
        (kept,) = tests.filter(setting=name).select(pl.col(OF_UTILITY).mean()).to_dicts()
        interval = MeanOverTargets(after.value, after.low, after.high)
        tried.append(WhatIf(before, change, METRIC, unknown, interval, {}, kept))
    return tried


def compared(tried: WhatIf, findings: Sequence[Finding]) -> WhatIf:
    """Return what was tried with what an audit found before the change."""
    own = {(one.attack, one.metric): one for one in findings if one.setting == tried.setting}
    before = own[str(ATTACK), tried.metric]
    kept = {metric: own.get((UTILITY, metric)) for metric in OF_UTILITY}
    return replace(
        tried,
        before=MeanOverTargets(before.estimate, before.low, before.high),
        utility_before={name: None if one is None else one.estimate for name, one in kept.items()},
    )
