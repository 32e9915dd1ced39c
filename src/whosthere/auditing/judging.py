"""From findings to a verdict about each setting.

A setting is rejected if some attack is surely above a limit, accepted if every attack is surely
at or below every limit; otherwise the verdict is "cannot tell". "Surely" means by the end of the
interval that decides, which lies further out than the one that is shown. To accept, every attack
must keep every limit, so a wrong acceptance needs the riskiest of them to be wrong. To reject, one
broken limit is enough, so the lower ends are taken at a level that holds for all attacks and limits
of a setting together. Both kinds of error have a chance of at most 2.5 % over all looks at an audit
(`whosthere.inference.looks`).

An acceptance also needs the strongest attack known (so that a mechanism of a user's own, whose law
nobody knows, is never accepted), no failed task, all controls, and targets that
were drawn at random: people named by hand do not represent others. A rejection needs no sample: a
protection that fails some people fails. The ceiling of the game and the guarantee of the mechanism
are no attacks: they decide nothing, but are reported, and so are attacks for study only. Nor does
what is left to publish decide: what keeps less than the floors of the policy is safe, but useless,
and its verdict says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from whosthere.auditing import reasons
from whosthere.auditing.reasons import estimate_of, low_of
from whosthere.auditing.verdict import Decision, Verdict
from whosthere.display import told
from whosthere.game.everybody import EverybodyGame
from whosthere.inference.finding import Finding
from whosthere.inference.looks import FIRST_LOOK, Look
from whosthere.inference.measure import control_holds, measure
from whosthere.inference.measure_everybody import measure_everybody
from whosthere.inference.vocabulary import (
    CEILING,
    EXCESS,
    GUARANTEE,
    METRICS,
    RATES,
    SHARED_AUC,
    STRONGEST,
    STUDY_ONLY,
    UTILITY,
    is_judged,
)
from whosthere.privacy.guarantees import GuaranteeForAll, guarantee_for_all, odds_factor

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from whosthere.auditing.policy import Limit, Policy
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan, TargetChoice
    from whosthere.game.rounds import Task
    from whosthere.inference.scores import Scores
    from whosthere.privacy.scheme import TableScheme

_SENTENCES = told("whosthere.auditing", "sentences")
_SAID = {name: said.format(strongest=STRONGEST) for name, said in _SENTENCES.items()}


class Judged(NamedTuple):
    """What scores say: the findings, whether the controls passed, and the verdicts on settings."""

    findings: tuple[Finding, ...]
    trusted: bool | None
    verdicts: tuple[Verdict, ...]


def judge_scores(
    plan: Plan,
    scores: Scores,
    policy: Policy,
    promised: Mapping[str, GuaranteeForAll],
    *,
    look: Look,
    failed: Collection[Task] = (),
    n_attacks: int | None = None,
    n_controls: int | None = None,
) -> Judged:
    """Measure and judge the scores of a plan, of which some tasks may have failed.

    `promised` is what the settings guarantee by themselves; numbers are as for `measure`.
    """
    measured = measured_of(
        scores,
        plan.game.include if isinstance(plan.game, EverybodyGame) else None,
        seed=plan.seed,
        n_limits=len(policy.limits),
        n_attacks=n_attacks,
        look=look,
        n_controls=n_controls,
    )
    findings = (*measured, *guarantee_findings(promised))
    trusted = control_holds(findings)
    without = {task.scheme for task in failed}
    verdicts = judge(
        findings,
        policy,
        trusted=trusted,
        incomplete={str(one) for one in plan.settings if one.scheme in without},
        known={
            str(one): {
                "group_size": one.scheme.group_size,
                "knows": one.knowledge.words,
                "protection": one.scheme.in_words,
                "own_mechanism": not one.scheme.has_law,
            }
            for one in plan.settings
        },
        choice=plan.choice,
        own_groups=not plan.game.draws_uniformly,
        look=look,
    )
    return Judged(findings, trusted, tuple(verdicts))


def measured_of(
    scores: Scores,
    include: float | None,
    *,
    seed: int,
    n_limits: int,
    look: Look,
    n_attacks: int | None = None,
    n_controls: int | None = None,
) -> list[Finding]:
    """Measure the scores of a game of targets or, with the chance of being in, of everybody."""
    how: dict[str, Any] = {
        "seed": seed,
        "n_limits": n_limits,
        "n_attacks": n_attacks,
        "look": look,
        "n_controls": n_controls,
    }
    if include is None:
        return measure(scores.tests, scores.controls, **how)
    return measure_everybody(scores, include=include, **how)


def judge(
    findings: Sequence[Finding],
    policy: Policy,
    *,
    trusted: bool | None = True,
    incomplete: Collection[str] = (),
    known: Mapping[str, Mapping[str, Any]] | None = None,
    choice: TargetChoice | None = None,
    own_groups: bool = False,
    look: Look = FIRST_LOOK,
) -> list[Verdict]:
    """Return a verdict for each setting, in the order in which they appear.

    Nothing is accepted or rejected unless it is `trusted`: all controls were passed (None if there
    were none). Settings are `incomplete` if some of their tasks failed; these are not accepted, and
    neither are those with a mechanism of a user's own, or any if groups are not drawn uniformly.
    What is `known` of a setting is by the fields of a verdict. If nobody knows how the targets were
    chosen, they are taken for a sample of everybody. The findings must have been measured for this
    look.
    """
    failed = dict.fromkeys(one.metric for one in findings if one.holds is False)
    why = ": " + "; ".join(_SAID[metric] for metric in failed) if failed else ""
    untrusted = f"A control failed{why}. No number of this audit can be trusted."
    if trusted is None:
        untrusted = _SAID["no_control"]
    by_hand, who = (False, None) if choice is None else (choice.by_hand, choice.who)
    verdicts = []
    for setting in dict.fromkeys(finding.setting for finding in findings):
        own = tuple(finding for finding in findings if finding.setting == setting)
        about = (known or {}).get(setting, {})
        case = _Case(
            own,
            by_hand=by_hand,
            incomplete=setting in incomplete,
            without_law=about.get("own_mechanism", False),
            own_groups=own_groups,
            everybody=choice is not None and choice.everybody,
            look=look,
        )
        decision, said = case.judged(policy) if trusted else _undecided(untrusted)
        useless = reasons.below_floors(case.left, policy.keep)
        if useless and decision == "accept":
            said = [f"Safe, but useless: {useless}.", *said]
        elif useless:
            said = [*said, f"It would be useless as well: {useless}."]
        meaning = reasons.meaning(
            case.on(reasons.FOUND), policy.prior, about.get("group_size"), who, about.get("knows")
        )
        verdicts.append(
            Verdict(
                setting,
                decision,
                tuple(said),
                (reasons.guaranteed(case.line(GUARANTEE)),),
                tuple(meaning),
                case.strongest,
                left=case.left,
                useless=bool(useless),
                alone=case.attacks[0] if len(case.attacks) == 1 else None,
                who=who,
                look=look.number,
                **about,
            )
        )
    return verdicts


def guaranteed(plan: Plan, everybody: Traces) -> dict[str, GuaranteeForAll]:
    """Return what each setting of a plan guarantees; those that guarantee nothing are left out.

    `everybody` may be published, in the tested time.
    """

    @cache
    def of(tables: tuple[TableScheme, ...]) -> GuaranteeForAll | None:
        made = [(one.mechanism, one.layout(everybody)) for one in tables]
        return guarantee_for_all(made, plan.game.households)

    by_setting = {str(one): of(one.scheme.tables) for one in plan.settings}
    return {name: found for name, found in by_setting.items() if found is not None}


def guarantee_findings(by_setting: Mapping[str, GuaranteeForAll]) -> Iterator[Finding]:
    """Return what settings guarantee as findings, which rest on people and no release.

    What holds for the person with most to lose holds for all, and for any mean over them.
    """
    for setting, found in by_setting.items():
        worst, people = found.worst, found.everybody
        for metric, value in (
            ("auc", worst.auc),
            ("pooled_auc", worst.auc),
            *((name, float(worst.tpr(fpr))) for name, fpr in RATES.items()),
            ("odds_factor", worst.odds_factor),
            ("chance_of_more", worst.chance_of_more),
            ("largest_odds_factor", odds_factor(worst.pure_eps)),
        ):
            # Somebody with many visits can have odds beyond any number, which JSON cannot hold.
            known = math.isfinite(value)
            note = None if known else "too large for a number"
            estimate = value if known else None
            yield Finding(setting, GUARANTEE, metric, estimate, None, None, people, 0, 0, note)


@dataclass(frozen=True, eq=False)
class _Case:
    """What is known about one setting."""

    everything: tuple[Finding, ...]
    by_hand: bool
    incomplete: bool
    without_law: bool
    own_groups: bool
    everybody: bool
    look: Look

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What real attacks reached."""
        return tuple(one for one in self.everything if one.holds is None and is_judged(one.attack))

    @cached_property
    def attacks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(finding.attack for finding in self.findings))

    def on(self, metric: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.metric == metric]

    def line(self, name: str) -> dict[str, float]:
        """Return what is known of something that is no attack, by metric."""
        own = (one for one in self.everything if one.attack == name and one.holds is None)
        return {one.metric: one.estimate for one in own if one.estimate is not None}

    @cached_property
    def left(self) -> dict[str, float]:
        return self.line(UTILITY)

    @cached_property
    def _compared(self) -> list[Finding]:
        """The mean AUCs by which attacks can be compared, the largest first."""
        known = [one for one in self.on(SHARED_AUC) or self.on("auc") if one.estimate is not None]
        return sorted(known, key=estimate_of, reverse=True)

    @property
    def strongest(self) -> str | None:
        return self._compared[0].attack if self._compared else None

    def judged(self, policy: Policy) -> tuple[Decision, list[str]]:
        """Return the decision, and what it follows from."""
        decision, said = self._decided(policy)
        if self.on(SHARED_AUC):
            said.append(
                "On the releases that all attacks scored, the mean AUC is "
                f"{reasons.each_auc(self._compared)}."
            )
        said += [*self._above_ceiling(), *self._for_studies(), *reasons.looks_before(self.look)]
        if self.without_law:
            # What decides comes first.
            said = (
                [*said, _SAID["own_mechanism"]]
                if decision == "reject"
                else [_SAID["own_mechanism"], *said]
            )
        if self.by_hand and decision == "reject":
            said.append(_SAID["fails_them"])
        elif self.by_hand:
            said = [_SAID["no_sample"], *said]
        return decision, said

    def _for_studies(self) -> list[str]:
        """Name the attacks that nothing is judged by."""
        names = (one.attack.removesuffix(STUDY_ONLY) for one in self.everything
                 if one.attack.endswith(STUDY_ONLY))  # fmt: skip
        said = "has what hardly any attacker has. It is shown for study only, and decides nothing."
        return [f"{one} {said}"
                for one in dict.fromkeys(names)]  # fmt: skip

    def _decided(self, policy: Policy) -> tuple[Decision, list[str]]:
        ceiling = self._ceiling(policy)
        if not self.attacks:
            return _undecided(_SAID["no_attack"], *ceiling)
        broken = [limit for limit in policy.limits if self._above(limit)]
        if broken:
            worst = {limit: max(self._above(limit), key=low_of) for limit in broken}
            return "reject", [
                reasons.broken(one, limit, is_strongest=one.attack == self.strongest)
                for limit, one in worst.items()
            ]
        unsure = [limit for limit in policy.limits if not self._keeps(limit)]
        if unsure:
            return _undecided(*map(self._unsure, unsure), *ceiling)
        kept = ["No attack exceeds a limit."]
        kept += [reasons.kept(self.on(limit.metric), limit) for limit in policy.limits]
        kept += ceiling
        held_back = [] if STRONGEST in self.attacks or self.without_law else [_SAID["weak"]]
        if self.incomplete and not self.by_hand:
            held_back = held_back or [_SAID["failed"]]
        held_back = [_SAID["own_groups"]] if self.own_groups else held_back
        if held_back or self.by_hand or self.without_law:
            return _undecided(*held_back, *kept)
        return "accept", [*kept, _SAID["known_today"]] if self._ceiling_breaks(policy) else kept

    def _above(self, limit: Limit) -> list[Finding]:
        """Return what is surely above a limit."""
        return [one for one in self.on(limit.metric) if one.at_least > limit.most]

    def _keeps(self, limit: Limit) -> bool:
        found = self.on(limit.metric)
        measured = {finding.attack for finding in found}
        return measured == set(self.attacks) and all(_surely_within(one, limit) for one in found)

    def _unsure(self, limit: Limit) -> str:
        found = self.on(limit.metric)
        maybe = [one for one in found if one.high is not None and one.at_most > limit.most]
        if maybe:
            worst = max(maybe, key=lambda one: (low_of(one) > limit.most, one.at_most))
            said = reasons.undecided(worst, limit)
            # More people named by hand would not represent others either, and without a law
            # nothing that keeps a limit is accepted.
            if self.by_hand or (self.without_law and estimate_of(worst) <= limit.most):
                return said
            more = reasons.what_would_help(worst, limit, look=self.look, everybody=self.everybody)
            return f"{said} {more}"
        open_ = next((one for one in found if not _surely_within(one, limit)), None)
        if open_ is not None:
            return reasons.unknown(open_.attack, limit, open_)
        measured = {finding.attack for finding in found}
        return reasons.unknown(next(a for a in self.attacks if a not in measured), limit)

    def _ceiling_breaks(self, policy: Policy) -> list[Limit]:
        """Return the limits that the ceiling is above."""
        found = self.line(CEILING)
        return [
            one for one in policy.limits if one.metric in found and found[one.metric] > one.most
        ]

    def _ceiling(self, policy: Policy) -> list[str]:
        """Say what somebody could reach who knows all others, and whether that breaks a limit."""
        best = self.line(CEILING).get("auc")
        if best is None:
            return []
        above = [f"the {METRICS[limit.metric].words}" for limit in self._ceiling_breaks(policy)]
        judged = f"above the limit of {reasons.listed(above)}" if above else "within the limits"
        return [
            "Somebody who knew the other people of the group could reach a mean AUC of "
            f"{best:.3f}, {judged}."
        ]

    def _above_ceiling(self) -> list[str]:
        """Say of attacks that seem better than the best possible that a test found no excess."""
        best = self.line(CEILING).get("auc")
        tested = {one.attack for one in self.everything if one.metric == EXCESS and one.holds}
        above = [
            one
            for one in self.on("auc")
            if best is not None and one.attack in tested and estimate_of(one) > best
        ]
        if not above:
            return []
        return [
            f"Some mean AUCs lie above the ceiling of {best:.3f}: {reasons.each_auc(above)}. A "
            "paired test on the same releases finds no significant excess. No attack can really "
            "exceed the ceiling, but all are measured on a limited number of releases."
        ]


def _undecided(*said: str) -> tuple[Decision, list[str]]:
    return "cannot tell", list(said)


def _surely_within(finding: Finding, limit: Limit) -> bool:
    known = None not in {finding.estimate, finding.low, finding.high}
    return known and finding.at_most <= limit.most
