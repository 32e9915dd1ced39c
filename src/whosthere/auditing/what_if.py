"""What would change if the leakiest regions were merged, or epochs were longer.

For the riskiest settings that were not accepted, the likelihood ratio is tried again on coarser
traces: the same targets, in groups of the same people, by the same engine, with fewer releases. It
shows which way to go, and is no audit of it: nothing is judged by it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.data.epochs import format_length
from whosthere.game.plan import Contest
from whosthere.game.scoring import tests_and_controls
from whosthere.inference.measure import per_target
from whosthere.inference.metrics import mean_over_targets
from whosthere.inference.vocabulary import OF_UTILITY, UTILITY
from whosthere.privacy.scheme import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.auditing.verdict import Verdict
    from whosthere.auditing.work import Job, Workers
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.game.plan import Plan, Setting
    from whosthere.inference.finding import Finding

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


_UNKNOWN = MeanOverTargets(None, None, None)


@dataclass(frozen=True)
class WhatIf:
    """What a change of regions or epochs would do to one setting.

    Attributes
    ----------
    setting
        The setting.
    change
        What was changed, in words.
    metric
        What was measured, for the likelihood ratio.
    before, after
        As in the audit, and with the change.
    utility_before, utility_after
        What is left to publish, by the names of `OF_UTILITY`: means over the targets. Each is
        measured against the true counts of its own regions and epochs.
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
        intervals = {"before": self.before._asdict(), "after": self.after._asdict()}
        return asdict(self) | intervals

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Make what `to_json` described."""
        intervals = {name: MeanOverTargets(**described[name]) for name in ("before", "after")}
        return cls(**described | intervals)


@dataclass(frozen=True)
class Change:
    """A change to try, and how to say it."""

    words: str
    layout: Layout


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


def changes_to_try(leaks: pl.DataFrame, regions: Regions, epochs: Epochs) -> list[Change]:
    """Return which changes make sense, given where all settings of an audit leak together."""
    changes = []
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
        words = f"{most_leaky} merged with {how}"
        changes.append(Change(words, Layout(regions=merged_regions(leaky, regions))))
    if epochs.n > 1:
        joined = min(_JOINED, epochs.n)
        before, after = format_length(epochs.length), format_length(joined * epochs.length)
        changes.append(Change(f"epochs of {after} instead of {before}", Layout(epochs=joined)))
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
    new: NDArray[np.int32] = connected_components(links, directed=False)[1]
    return tuple(new.tolist())


def try_change(
    change: Change, settings: Sequence[Setting], job: Job, workers: Workers
) -> list[WhatIf]:
    """Attack the same targets after a change.

    What was before is left open. Nothing is returned where a task fails.
    """
    changed = [_under(setting, change.layout) for setting in settings]
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
    aucs, tried = per_target(tests), []
    for before, name in zip(map(str, settings), map(str, changed), strict=True):
        own = aucs.filter(setting=name, attack=str(ATTACK))["auc"].to_numpy()
        after = mean_over_targets(own, unseen=(0.5, 1.0))
        (kept,) = tests.filter(setting=name).select(pl.col(OF_UTILITY).mean()).to_dicts()
        interval = MeanOverTargets(after.value, after.low, after.high)
        tried.append(WhatIf(before, change.words, METRIC, _UNKNOWN, interval, {}, kept))
    return tried


def _under(setting: Setting, layout: Layout) -> Setting:
    """Return a setting with its table over other cells."""
    [table] = setting.scheme.tables
    scheme = replace(setting.scheme, tables=(replace(table, layout=layout),))
    return replace(setting, scheme=scheme)


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
