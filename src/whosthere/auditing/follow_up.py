"""What follows the scores: where people are found, and what other tables would change.

For the riskiest settings that were not accepted, the likelihood ratio is tried again on a coarser
table, or on some of several tables: the same targets, in groups of the same people, by the same
engine, with fewer releases. It shows which way to go, and is no audit of it: nothing is judged by
it.

All of it belongs to the plan and the traces, and is kept in the run folder, so that judging an
audit again repeats nothing.
"""

from __future__ import annotations

import json
import math
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
from whosthere.errors import InputError
from whosthere.game.everybody import EverybodyGame
from whosthere.game.leaks import (
    MOST_OF_EVERYBODY,
    add_up,
    leak_tasks,
    others_to_look_at,
    rarely_visited,
    table_of_regions,
)
from whosthere.game.plan import Contest, Plan, Setting
from whosthere.game.scoring import tests_and_controls
from whosthere.inference.measure import per_target
from whosthere.inference.metrics import mean_over_targets
from whosthere.inference.panel import Panel
from whosthere.inference.risk import mean_of_people
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
    """What a change of regions, epochs or tables, in words, would do to one setting.

    The metric is that of the likelihood ratio, as in the audit and with the change. What is left to
    publish is by the names of `OF_UTILITY`: means over the targets, against the true counts of the
    regions and epochs before the change, over which counts of larger ones are spread evenly.
    `tables` are those that are left of several.
    """

    setting: str
    change: str
    metric: str
    before: MeanOverTargets
    after: MeanOverTargets
    utility_before: dict[str, float | None]
    utility_after: dict[str, float | None]
    tables: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        spans = {"before": self.before._asdict(), "after": self.after._asdict()}
        made = asdict(self) | spans | {"tables": list(self.tables)}
        return {name: value for name, value in made.items() if name != "tables" or value}

    @classmethod
    def each(cls, described: list[dict[str, Any]]) -> tuple[Self, ...]:
        """Make what `to_json` described, of each."""
        mean = MeanOverTargets
        return tuple(
            cls(
                **one
                | {"before": mean(**one["before"]), "after": mean(**one["after"])}
                | {"tables": tuple(one.get("tables", ()))}
            )
            for one in described
        )


@dataclass(frozen=True, eq=False)
class FollowUp:
    """What follows the scores, and what it needs to know of the traces in the tested time.

    `others` are the people to look at besides each target of the plan, `hidden` the regions and
    hours of which no share of visits is told. Where a table is published again and again, only the
    `longest` time is looked at: beside a shorter one it would tell what few people did in between.
    `adds_up` tells whether somebody may count more than once in a cell, as trips do.
    """

    others: tuple[tuple[int, ...], ...]
    regions: Regions
    epochs: Epochs
    hidden: Mapping[str, Bools]
    longest: Layout
    adds_up: bool

    @classmethod
    def of(cls, plan: Plan, tested: Traces) -> Self:
        """Choose whom to look at."""
        times = [one.tables[0].layout.in_finest_cells for one in plan.schemes]
        longest = max(times, key=lambda one: one.times or math.inf)
        hidden, adds_up = rarely_visited(longest(tested)), tested.weights is not None
        of_all = isinstance(plan.game, EverybodyGame)
        others = () if of_all else others_to_look_at(plan, tested)
        return cls(others, tested.regions, tested.epochs, hidden, longest, adds_up)

    def n_people(self, plan: Plan) -> int:
        """Return how many people are looked at: the targets, and the others."""
        if isinstance(plan.game, EverybodyGame) and plan.choice is not None:
            return min(plan.choice.eligible, MOST_OF_EVERYBODY)
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
            if one.setting.scheme.has_law
            and one.setting.scheme.finest is not None
            and one.setting.scheme.tables[0].layout.in_finest_cells == self.longest
        )
        plan = replace(job.plan, contests=with_law)
        tasks = leak_tasks(plan)
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
        if folder.has(kept.name):
            before = WhatIf.each(json.loads(kept.read_text(encoding="utf-8")))
            known = {(one.setting, one.change): one for one in before}
        layouts = changes_to_try(result.leaks, self.regions, self.epochs)
        wanted = {
            one: {
                change: changed
                for change, changed in changed_settings(one, layouts).items()
                if self._can_be_published(changed)
            }
            for one in settings
        }
        changes = dict.fromkeys(change for changed in wanted.values() for change in changed)
        for i, change in enumerate(changes, 1):
            new = {
                one: changed[change]
                for one, changed in wanted.items()
                if change in changed and (str(one), change) not in known
            }
            if new:
                found = try_change(change, new, job, workers)
                known |= {(one.setting, one.change): one for one in found}
                on_progress("what-if audits", i, len(changes))
        keys = [(str(one), change) for one, changed in wanted.items() for change in changed]
        tried = tuple(compared(known[key], result.findings) for key in keys if key in known)
        write_json(kept, [one.to_json() for one in tried])
        return tried

    def _can_be_published(self, setting: Setting) -> bool:
        """Tell whether a publisher may ask for the tables of a setting."""
        with suppress(InputError):
            for table in setting.scheme.tables:
                epochs = self.epochs.part(0, table.layout.n_covered(self.epochs))
                table.check(epochs, 2 if self.adds_up else 1)
            return True
        return False


def riskiest(
    plan: Plan, findings: Sequence[Finding], verdicts: Sequence[Verdict]
) -> tuple[Setting, ...]:
    """Return the settings that changes are tried for: not accepted, with the largest AUC."""
    accepted = {verdict.setting for verdict in verdicts if verdict.decision == "accept"}
    aucs = {
        one.setting: one.estimate
        for one in findings
        if (one.attack, one.metric) == (str(ATTACK), METRIC) and one.estimate is not None
    }
    open_ = [one for one in plan.settings if str(one) in aucs and str(one) not in accepted]
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


def changed_settings(setting: Setting, layouts: Mapping[str, Layout]) -> dict[str, Setting]:
    """Return what to try instead of a setting, in words: another layout, or fewer tables."""
    tables = setting.scheme.tables
    if len(tables) == 1:
        return {change: setting.over(layout) for change, layout in layouts.items()}
    alone = {f"only {one.written}": setting.with_tables((one,)) for one in tables}
    without = {
        f"without {one.written}": setting.with_tables((*tables[:i], *tables[i + 1 :]))
        for i, one in enumerate(tables)
    }
    # Of two tables, each is what is left without the other.
    return alone | (without if len(tables) > 2 else {})


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
    change: str, settings: Mapping[Setting, Setting], job: Job, workers: Workers
) -> list[WhatIf]:
    """Attack the same people after a change of settings to others.

    What was before is left open. Nothing is returned where a task fails.
    """
    plan = replace(
        job.plan,
        contests=tuple(Contest(changed, ATTACK) for changed in settings.values()),
        releases=min(RELEASES, job.plan.releases_by(ATTACK)),
        releases_of=(),
        control_releases=0,
        past_releases=0,
    )
    scores, of_all = {}, []
    for outcome in workers.do(replace(job, plan=plan), plan.tasks):
        if outcome.scores is None:
            return []
        scores[outcome.task] = outcome.scores
        of_all += [] if outcome.everybody is None else [outcome.everybody]
    tests, _ = tests_and_controls(plan, scores)
    tried, unknown = [], MeanOverTargets(None, None, None)
    for before, changed in settings.items():
        name, several = str(changed), len(before.scheme.tables) > 1
        if isinstance(plan.game, EverybodyGame):
            panel = Panel.of(of_all, f"{ATTACK} in {changed}")
            after = mean_of_people(panel.people, 0)
        else:
            aucs = per_target(tests).filter(setting=name, attack=str(ATTACK))["auc"].to_numpy()
            after = mean_over_targets(aucs, unseen=(0.5, 1.0))
        (kept,) = tests.filter(setting=name).select(pl.col(OF_UTILITY).mean()).to_dicts()
        interval = MeanOverTargets(after.value, after.low, after.high)
        left = tuple(one.written for one in changed.scheme.tables) if several else ()
        tried.append(WhatIf(str(before), change, METRIC, unknown, interval, {}, kept, left))
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
