"""The weakest protection that passes a policy, and what it costs."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.auditing.findings import control_holds, findings_from
from whosthere.auditing.plan import Plan, PlanOptions, make_plan
from whosthere.auditing.policy import Policy, Verdict, judge
from whosthere.auditing.scores import tests_and_controls
from whosthere.auditing.vocabulary import CEILING
from whosthere.auditing.work import Job, ThisProcess, Workers
from whosthere.data.traces import Traces
from whosthere.errors import InputError, SpecError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish
from whosthere.privacy.utility import Utility, utility
from whosthere.seeds import derived_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from whosthere.auditing.finding import Finding

SEARCHER = LikelihoodRatio.name
"""The attack that is searched with: the strongest of all in our measurements, and the cheapest."""
DEFAULT_FAMILIES = (
    "suppress(k=?)",
    "laplace(eps=?, unit=event)",
    "laplace(eps=?, unit=user-day, max_visits=10)",
)
# The searcher is cheap, so that it can look at more releases than the others.
_RELEASES_TO_SEARCH = 60
_RELEASES_FOR_UTILITY = 5
_DECADE = (1, 1.5, 2, 3, 5, 7)
# Of each parameter, from the weakest protection to the strongest.
_LADDERS: dict[str, tuple[float, ...]] = {
    "k": (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 75, 100),
    "to": (2, 3, 5, 10, 15, 20, 30, 50, 100),
    "eps": tuple(
        sorted((float(f"{x}e{e}") for e in (-2, -1, 0, 1) for x in _DECADE), reverse=True)
    ),
}
_OPEN = re.compile(r"(\w+)\s*=\s*\?\s*(?=[,)])")


class TrialFailedError(RuntimeError):
    """A part of a trial could not be done, so that nothing can be said of the protection."""


@dataclass(frozen=True)
class Family:
    """Mechanisms that differ in one parameter.

    Parameters
    ----------
    template
        A mechanism's spec with ``?`` for the parameter, such as ``suppress(k=?)``.
    """

    template: str

    def __post_init__(self) -> None:
        fix = "Write one ? for k, eps or to, as in 'laplace(eps=?, unit=event)'"
        found = _OPEN.findall(self.template.lower())
        if len(found) != 1 or self.template.count("?") != 1 or found[0] not in _LADDERS:
            raise SpecError("a family needs one open parameter", where=repr(self.template), fix=fix)
        self.members()

    @property
    def parameter(self) -> str:
        """The name of the open parameter."""
        return str(_OPEN.findall(self.template.lower())[0])

    def members(self) -> tuple[Member, ...]:
        """Return its mechanisms, from the weakest to the strongest."""
        values = (f"{value:g}" for value in _LADDERS[self.parameter])
        return tuple(
            Member(f"{self.parameter}={value}", Mechanism.parse(self.template.replace("?", value)))
            for value in values
        )


class Member(NamedTuple):
    """A mechanism of a family, and what sets it apart, such as ``k=3``."""

    choice: str
    mechanism: Mechanism


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
    """

    candidates: tuple[Candidate, ...]
    best: tuple[Candidate, ...]

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
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }


def recommend(
    traces: Path,
    options: PlanOptions,
    *,
    families: Sequence[str] = DEFAULT_FAMILIES,
    policy: Policy | None = None,
    workers: Workers | None = None,
    check_all: bool = False,
    on_trial: Callable[[str, str], None] = lambda _mechanism, _what: None,
) -> Recommendation:
    """Find the weakest protection of each family that passes a policy.

    Bisects each family with the cheap likelihood ratio, taking for granted that a stronger
    protection never helps the attacker. Then tries all attacks on the most useful of what it
    found. Where one of these breaks the policy, that family goes on to its next stronger member.

    Parameters
    ----------
    traces
        File of the traces.
    options
        As for an audit; its mechanisms are not used, and its attacks are those of the last check.
    families
        Specs with ``?`` for the parameter to find.
    policy, workers
        As for `run_audit`.
    check_all
        Whether to try all attacks on the best of every family, and not only until one passes.
    on_trial
        Called before each trial with the mechanism and what is tried.
    """
    with workers or ThisProcess() as at_work:
        search = _Search(
            tuple(Family(template) for template in families),
            Traces.load(traces),
            traces,
            replace(options, attacks=tuple(dict.fromkeys((SEARCHER, *options.attacks)))),
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
    )


class _Ladder:
    """The members of a family from weak to strong, and the weakest that passes so far."""

    def __init__(self, search: _Search, family: Family) -> None:
        self._search, self._family = search, family
        self._members = family.members()
        self._tried: dict[int, Candidate] = {}
        self._place = self._bisected()

    @property
    def candidates(self) -> list[Candidate]:
        """All that were tried, from weak to strong."""
        return [self._tried[place] for place in sorted(self._tried)]

    @property
    def best(self) -> Candidate | None:
        """The weakest that passes, None where none does."""
        return self._tried[self._place] if self._place < len(self._members) else None

    def pattern_lost(self) -> float:
        """Return what the best one loses of the patterns."""
        return 1.0 if self.best is None else self.best.pattern_lost

    def check(self) -> bool:
        """Try all attacks on the best; if it fails, the next one that passes is the best."""
        self._tried[self._place] = self._search.checked(self._tried[self._place])
        if self._tried[self._place].passes:
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
        return self._tried[place].passes


@dataclass(frozen=True, eq=False)
class _Search:
    """What all trials have in common."""

    families: tuple[Family, ...]
    everybody: Traces
    path: Path
    options: PlanOptions
    policy: Policy
    workers: Workers
    on_trial: Callable[[str, str], None]

    @cached_property
    def most_controls(self) -> int:
        """How many controls there can be in all trials, to share the chance of a false alarm."""
        return len(self.options.attacks) * sum(len(family.members()) for family in self.families)

    @cached_property
    def any_job(self) -> Job:
        """A job on the traces, whose fingerprint takes time to make."""
        return Job.on(self._plan(str(self.families[0].members()[0].mechanism)), self.path)

    def check(self) -> None:
        """Refuse what no trial could do, before the first one."""
        if not self.families:
            raise InputError("no family is given", fix="Give some, such as 'suppress(k=?)'")
        for family in self.families:
            settings = self._plan(str(family.members()[0].mechanism)).settings
            if len(settings) > 1:
                raise InputError(
                    "a search is for one group size, knowledge and sampling",
                    fix="Give one of each, and search again for others",
                )

    def searched(self, family: Family, member: Member) -> Candidate:
        """Try a mechanism with the searcher alone."""
        spec = str(member.mechanism)
        self.on_trial(spec, SEARCHER)
        releases = max(_RELEASES_TO_SEARCH, self.options.releases or 0)
        findings = self._measured(replace(self._plan(spec), attacks=(SEARCHER,), releases=releases))
        return Candidate(
            family.template,
            member.choice,
            spec,
            self._judged(findings),
            tuple(findings),
            self._utility(member.mechanism),
            checked=False,
        )

    def checked(self, searched: Candidate) -> Candidate:
        """Try a mechanism with the other attacks too."""
        others = tuple(name for name in self.options.attacks if name != SEARCHER)
        if not others:
            return replace(searched, checked=True)
        self.on_trial(searched.mechanism, ", ".join(others))
        found = self._measured(replace(self._plan(searched.mechanism), attacks=others))
        # The ceiling is known from the search already.
        findings = [*searched.findings, *(one for one in found if one.attack != CEILING)]
        return replace(
            searched, verdict=self._judged(findings), findings=tuple(findings), checked=True
        )

    def _judged(self, findings: Sequence[Finding]) -> Verdict:
        [verdict] = judge(findings, self.policy, trusted=control_holds(findings))
        return verdict

    def _plan(self, spec: str) -> Plan:
        return make_plan(replace(self.options, mechanisms=(spec,)), self.everybody)

    def _measured(self, plan: Plan) -> list[Finding]:
        scores = {}
        for outcome in self.workers.do(replace(self.any_job, plan=plan), plan.units):
            if outcome.scores is None:
                raise TrialFailedError(f"{outcome.unit} failed: {outcome.failure}")
            scores[outcome.unit] = outcome.scores
        tests, controls = tests_and_controls(plan, scores)
        return findings_from(tests, controls, seed=plan.seed, n_controls=self.most_controls)

    def _utility(self, mechanism: Mechanism) -> Utility:
        """Measure a few releases of groups chosen at random."""
        [m] = self.options.group_sizes
        measured = []
        for i in range(_RELEASES_FOR_UTILITY):
            seed = derived_seed(self.options.seed, m, i, "utility")
            made = publish(self.everybody, mechanism=mechanism, group_size=m, seed=seed)
            measured.append(utility(made.release.counts, made.truth))
        return _mean(measured)


def _mean(measured: Sequence[Utility]) -> Utility:
    """Return the mean of each measure over those releases where it is defined."""
    rows = [asdict(one) for one in measured]
    means: dict[str, Any] = {}
    for name in rows[0]:
        defined = [row[name] for row in rows if row[name] is not None]
        means[name] = fmean(defined) if defined else None
    return Utility(**means)
