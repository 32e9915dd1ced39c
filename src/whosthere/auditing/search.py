"""The weakest protection that passes a policy, and what it costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.auditing.measure import control_holds, measure
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.population import Population
from whosthere.auditing.result import shown
from whosthere.auditing.scores import tests_and_controls
from whosthere.auditing.verdict import Verdict, judge
from whosthere.auditing.vocabulary import CEILING
from whosthere.auditing.work import Job, ThisProcess, Workers
from whosthere.data.traces import Traces
from whosthere.display import paragraph, stacked, table
from whosthere.errors import InputError
from whosthere.privacy.families import Family, Member
from whosthere.privacy.publish import publish
from whosthere.privacy.utility import Utility, utility
from whosthere.seeds import derived_seed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from whosthere.adversary.attacks import Attack
    from whosthere.auditing.finding import Finding
    from whosthere.auditing.options import AuditOptions
    from whosthere.auditing.plan import Plan
    from whosthere.privacy.mechanism import Mechanism

SEARCHER = LikelihoodRatio()
"""The attack that is searched with: the strongest of all in our measurements, and the cheapest."""
DEFAULT_FAMILIES = (
    "suppress(k=?)",
    "laplace(eps=?, unit=event)",
    "laplace(eps=?, unit=user-day, max_visits=10)",
)
# The searcher is cheap, so that it can look at more releases than the others.
_LEAST_RELEASES_TO_SEARCH = 60
_RELEASES_FOR_UTILITY = 5


class TrialFailedError(RuntimeError):
    """A part of a trial could not be done, so that nothing can be said of the protection."""


@dataclass(frozen=True)
class Candidate:
    """A protection that was tried.

    Attributes
    ----------
    family, choice
        The family's template, and what was chosen, such as ``k=3``.
    mechanism
        The spec of the mechanism.
    verdict
        By the policy; where `checked`, on all attacks, else on the searcher alone.
    findings
        That the verdict rests on.
    utility
        What is left of the truth, mean over a few releases.
    checked
        Whether all attacks that were chosen were tried.
    """

    family: str
    choice: str
    mechanism: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    utility: Utility
    checked: bool

    @property
    def passes(self) -> bool:
        """Whether the policy accepts it."""
        return self.verdict.decision == "accept"

    def strongest(self, metric: str) -> Finding | None:
        """Return a metric of the strongest attack, where it was measured."""
        own = (one for one in self.findings if one.attack == self.verdict.strongest)
        return next((one for one in own if one.metric == metric), None)

    @property
    def pattern_lost(self) -> float:
        """How far the patterns over regions and epochs are from the true ones, 0 to 1."""
        distances = (self.utility.space_distance, self.utility.time_distance)
        return fmean(1.0 if distance is None else distance for distance in distances)

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as a JSON object."""
        return {
            "family": self.family,
            "mechanism": self.mechanism,
            "checked_by_all_attacks": self.checked,
            "verdict": self.verdict.to_json(),
            "utility": asdict(self.utility),
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(frozen=True)
class Recommendation:
    """What a search found.

    Attributes
    ----------
    candidates
        All protections that were tried, family by family, from weak to strong.
    best
        The weakest of each family that passes the policy, as far as it was tried.
    policy
        The limits that were judged by.
    """

    candidates: tuple[Candidate, ...]
    best: tuple[Candidate, ...]
    policy: Policy

    @property
    def recommended(self) -> Candidate | None:
        """Of the best that passed all attacks, the one that keeps most of the patterns.

        None where nothing passes, or only what publishes nothing at all.
        """
        fit = [one for one in self.best if one.checked and one.pattern_lost < 1]
        return min(fit, key=lambda candidate: candidate.pattern_lost, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the recommendation as a JSON object."""
        chosen = self.recommended
        return {
            "recommended": None if chosen is None else chosen.mechanism,
            "best_of_each_family": [candidate.mechanism for candidate in self.best],
            "policy": self.policy.to_json(),
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }

    def __repr__(self) -> str:
        chosen = self.recommended
        what = "nothing passes" if chosen is None else chosen.mechanism
        return f"<Recommendation: {what}, of {len(self.candidates)} tried>"

    def _repr_html_(self) -> str:
        """Show what is recommended, and all that was tried."""
        chosen = self.recommended
        text = "Nothing that was tried passes the policy." if chosen is None else chosen.mechanism
        rows = [
            [
                one.mechanism,
                one.verdict.decision + ("" if one.checked else f" ({SEARCHER} alone)"),
                shown(one.strongest("auc")),
                shown(one.strongest("tpr_at_fpr_1pct")),
                f"{one.pattern_lost:.2f}",
            ]
            for one in self.candidates
        ]
        header = ("mechanism", "verdict", "mean AUC", "TPR at 1 % FPR", "pattern lost")
        return stacked(paragraph(text, strong="Recommended:"), table(header, rows))


def recommend(
    traces: str | os.PathLike[str],
    options: AuditOptions,
    *,
    families: Sequence[str] = DEFAULT_FAMILIES,
    policy: Policy | None = None,
    workers: Workers | None = None,
    check_all: bool = False,
    on_trial: Callable[[str, str], None] = lambda _mechanism, _what: None,
) -> Recommendation:
    """Find the weakest protection of each family that passes a policy.

    Bisects each family with the cheap likelihood ratio, supposing that a stronger protection never
    helps the attacker. Then tries all attacks on the most useful of what it found. Where one of
    these breaks the policy, the search moves on to the next stronger member of that family.

    Parameters
    ----------
    traces
        File of the traces.
    options
        As for an audit; its mechanisms are not used, and its attacks are those of the last check.
    families
        Specs with ``?`` for the parameter to find.
    policy, workers
        As for an audit.
    check_all
        Whether to try all attacks on the best of every family, and not only until one passes.
    on_trial
        Called before each trial with the mechanism and what is tried.
    """
    with workers or ThisProcess() as at_work:
        search = _Search(
            tuple(Family(template) for template in families),
            Traces.load(traces),
            Path(traces),
            options,
            policy or Policy.default(),
            at_work,
            on_trial,
        )
        search.check()
        ladders = [_Ladder(search, family) for family in search.families]
        waiting = [ladder for ladder in ladders if ladder.best is not None]
        while waiting:
            most_useful = min(waiting, key=_Ladder.pattern_lost)
            if most_useful.check():
                waiting = [ladder for ladder in waiting if check_all and ladder != most_useful]
            elif most_useful.best is None:
                waiting.remove(most_useful)
    return Recommendation(
        tuple(candidate for ladder in ladders for candidate in ladder.candidates),
        tuple(ladder.best for ladder in ladders if ladder.best is not None),
        search.policy,
    )


@dataclass(frozen=True, eq=False)
class _Trial:
    """A candidate, with the scores that it was judged by."""

    candidate: Candidate
    tests: pl.DataFrame
    controls: pl.DataFrame


class _Ladder:
    """The members of a family from weak to strong, and the weakest that passes so far."""

    def __init__(self, search: _Search, family: Family) -> None:
        self._search, self._family = search, family
        self._members = family.members()
        self._tried: dict[int, _Trial] = {}
        self._place = self._bisected()

    @property
    def candidates(self) -> list[Candidate]:
        """All that were tried, from weak to strong."""
        return [self._tried[place].candidate for place in sorted(self._tried)]

    @property
    def best(self) -> Candidate | None:
        """The weakest that passes, None where none does."""
        found = self._place < len(self._members)
        return self._tried[self._place].candidate if found else None

    def pattern_lost(self) -> float:
        """Return what the best one loses of the patterns."""
        return 1.0 if self.best is None else self.best.pattern_lost

    def check(self) -> bool:
        """Try all attacks on the best; if it fails, the next one that passes is the best."""
        self._tried[self._place] = self._search.checked(self._tried[self._place])
        if self._tried[self._place].candidate.passes:
            return True
        while self._place < len(self._members) and not self._passes(self._place):
            self._place += 1
        return False

    def _bisected(self) -> int:
        weakest, strongest = 0, len(self._members)
        while weakest < strongest:
            middle = (weakest + strongest) // 2
            if self._passes(middle):
                strongest = middle
            else:
                weakest = middle + 1
        return weakest

    def _passes(self, place: int) -> bool:
        if place not in self._tried:
            self._tried[place] = self._search.searched(self._family, self._members[place])
        return self._tried[place].candidate.passes


@dataclass(frozen=True, eq=False)
class _Search:
    """What all trials have in common."""

    families: tuple[Family, ...]
    everybody: Traces
    path: Path
    options: AuditOptions
    policy: Policy
    workers: Workers
    on_trial: Callable[[str, str], None]

    @cached_property
    def attacks(self) -> tuple[Attack, ...]:
        """Who attacks at last: those that were chosen, and the searcher in any case."""
        chosen = (one for block in self.options.blocks for one in block.attacks)
        return tuple(dict.fromkeys((SEARCHER, *chosen)))

    @cached_property
    def most_controls(self) -> int:
        """How many controls there can be in all trials, to share the chance of a false alarm."""
        # Each attack has one, and each protection the positive one besides.
        controls = len(self.attacks) + 1
        return controls * sum(len(family.members()) for family in self.families)

    @cached_property
    def any_job(self) -> Job:
        """A job on the traces, whose fingerprint takes time to make."""
        return Job.on(self._plan(self.families[0].members()[0].mechanism), self.path)

    def check(self) -> None:
        """Refuse what no trial could do, before the first one."""
        if not self.families:
            raise InputError("no family is given", fix="Give some, such as 'suppress(k=?)'")
        for family in self.families:
            settings = self._plan(family.members()[0].mechanism).settings
            if len(settings) > 1:
                raise InputError(
                    "a search is for one group size and one knowledge of the targets",
                    fix="Give one of each, and search again for others",
                )

    def searched(self, family: Family, member: Member) -> _Trial:
        """Try a mechanism with the searcher alone."""
        spec = str(member.mechanism)
        self.on_trial(spec, str(SEARCHER))
        tests, controls = self._scores(_only(self._plan(member.mechanism), (SEARCHER,)))
        findings = self._measured(tests, controls)
        candidate = Candidate(
            family.template,
            member.choice,
            spec,
            self._judged(findings),
            tuple(findings),
            self._utility(member.mechanism),
            checked=False,
        )
        return _Trial(candidate, tests, controls)

    def checked(self, searched: _Trial) -> _Trial:
        """Try a mechanism with the other attacks too."""
        others, candidate = self.attacks[1:], searched.candidate
        if not others:
            return replace(searched, candidate=replace(candidate, checked=True))
        self.on_trial(candidate.mechanism, ", ".join(map(str, others)))
        before = (searched.tests, searched.controls)
        now = self._scores(_only(self._plan(candidate.mechanism), others))
        # The ceiling is known from the search already, on more releases.
        tests, controls = (
            pl.concat([old, new.filter(pl.col("attack") != CEILING)])
            for old, new in zip(before, now, strict=True)
        )
        findings = self._measured(tests, controls)
        verdict = self._judged(findings)
        judged = replace(candidate, verdict=verdict, findings=tuple(findings), checked=True)
        return _Trial(judged, tests, controls)

    def _judged(self, findings: Sequence[Finding]) -> Verdict:
        sizes = {one.setting: self.any_job.plan.schemes[0].group_size for one in findings}
        trusted = control_holds(findings)
        [verdict] = judge(findings, self.policy, trusted=trusted, group_sizes=sizes)
        return verdict

    def _plan(self, mechanism: Mechanism | str) -> Plan:
        options = self.options.with_block(mechanisms=mechanism, attacks=self.attacks)
        plan = make_plan(options, self.everybody)
        releases = max(_LEAST_RELEASES_TO_SEARCH, plan.releases_by(SEARCHER))
        return plan.with_releases_of(SEARCHER, releases)

    def _scores(self, plan: Plan) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the scores of test releases, and those of the control."""
        scores = {}
        for outcome in self.workers.do(replace(self.any_job, plan=plan), plan.tasks):
            if outcome.scores is None:
                raise TrialFailedError(f"{outcome.task} failed: {outcome.failure}")
            scores[outcome.task] = outcome.scores
        return tests_and_controls(plan, scores)

    def _measured(self, tests: pl.DataFrame, controls: pl.DataFrame) -> list[Finding]:
        return measure(
            tests,
            controls,
            seed=self.options.seed,
            n_limits=len(self.policy.limits),
            n_attacks=len(self.attacks),
            n_controls=self.most_controls,
        )

    def _utility(self, mechanism: Mechanism) -> Utility:
        """Measure a few releases of groups chosen at random."""
        plan = self.any_job.plan
        people = Population.of(self.everybody, plan.first_epoch).tested
        m, measured = plan.schemes[0].group_size, []
        for i in range(_RELEASES_FOR_UTILITY):
            seed = derived_seed(self.options.seed, "utility", m, i)
            made = publish(people, mechanism=mechanism, group_size=m, seed=seed)
            measured.append(utility(made.release.counts, made.truth))
        return _mean(measured)


def _only(plan: Plan, attacks: Sequence[Attack]) -> Plan:
    """Return a plan without the other attacks."""
    return replace(plan, contests=tuple(one for one in plan.contests if one.attack in attacks))


def _mean(measured: Sequence[Utility]) -> Utility:
    """Return the mean of each measure over those releases where it is defined."""
    rows = [asdict(one) for one in measured]
    means: dict[str, Any] = {}
    for name in rows[0]:
        defined = [row[name] for row in rows if row[name] is not None]
        means[name] = fmean(defined) if defined else None
    return Utility(**means)
