"""From findings to a verdict about each setting.

A setting is rejected if some attack is surely above a limit, accepted if every attack is surely
at or below every limit; otherwise the verdict is "cannot tell". "Surely" means by the end of the
interval that decides, which lies further out than the one that is shown. To accept, every attack
must keep every limit, so that a wrong acceptance needs the riskiest of them to be wrong. To reject,
one broken limit is enough, so that the lower ends are taken at a level that holds for all attacks
and limits of a setting together. Both kinds of error have a chance of at most 2.5 % over all looks
at an audit (`whosthere.inference.looks`).

An acceptance also needs the strongest attack known, no failed task, all controls, and targets that
were drawn at random: people named by hand do not speak for all others. A rejection needs no sample:
a protection that fails some people fails. The ceiling
of the game and the guarantee of the mechanism are no attacks: they decide nothing, but are said.
Nor does what is left to publish decide: what keeps less than the floors of the policy is safe, but
useless, and its verdict says so.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from whosthere.auditing.sample_size import what_would_help
from whosthere.inference.looks import ERROR, FIRST_LOOK
from whosthere.inference.vocabulary import (
    CEILING,
    CONTROL,
    EXCESS,
    FAULTS,
    GUARANTEE,
    LAW_CONTROL,
    METRICS,
    NOT_ATTACKS,
    SHARED_AUC,
    STRONGEST,
    UTILITY,
)
from whosthere.privacy.guarantees import HARDLY_ANY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from whosthere.auditing.policy import Limit, Policy
    from whosthere.game.target_choice import TargetChoice
    from whosthere.game.together import Together
    from whosthere.inference.finding import Finding
    from whosthere.inference.looks import Look

Decision: TypeAlias = Literal["accept", "reject", "cannot tell"]

_UNTRUSTED = "A control failed{why}. No number of this audit can be trusted."
_WHY_UNTRUSTED = {
    CONTROL: "an attack found a signal where there is none",
    LAW_CONTROL: "published values do not follow the law of their mechanism",
    FAULTS: "test releases are not what they claim to be",
    EXCESS: "an attack did better than the best possible one",
}
_NO_CONTROL = "There was no control, so nothing shows that the audit itself is sound."
_NO_ATTACK = "No attack was measured in this setting."
_FAILED = "Some tasks of this setting failed, so that some people were not attacked."
_WEAK = (
    f"{STRONGEST}, the strongest attack known, was not tried, so the limits may only be kept by "
    "weak attacks."
)
_NO_SAMPLE = (
    "The targets were named by hand. They do not speak for all others, so nothing can be accepted. "
    "Let targets be drawn at random."
)
_FAILS_THEM = (
    "The targets were named by hand: this is about them, and others may be harder or easier to "
    "find. A protection that fails them is rejected all the same."
)
_KNOWN_TODAY = (
    "So this is accepted by the attacks known today, not because no attack could ever do better."
)
_FPR = 0.01
_FOUND = "tpr_at_fpr_1pct"
_IN_SHORT = ("pattern_correlation", "relative_error")


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a policy says about one setting.

    Attributes
    ----------
    reasons
        What was measured, and how the decision follows from it, in sentences that a reader
        understands without the numbers at hand.
    guaranteed
        What the mechanism promises by itself.
    meaning
        What the strongest attack would mean for people.
    strongest
        The attack with the largest mean AUC on the releases that all attacks scored; None if none
        has one.
    left
        What the protection leaves of the true counts: the estimates of `OF_UTILITY`, by name; empty
        where it was not measured.
    useless
        Whether it leaves less than a floor of the policy. It does not change the decision: what is
        accepted is then safe, but useless.
    alone
        The attack that the verdict rests on, if it is the only one.
    who
        Whom the verdict is about, such as ``people with 20 or more visits``; None if it is about
        everybody.
    knows
        What the attacker knows of people, such as ``all their visits``; None if nobody says.
    look
        Which look at the audit it is, from 1.
    """

    setting: str
    decision: Decision
    reasons: tuple[str, ...]
    guaranteed: tuple[str, ...] = ()
    meaning: tuple[str, ...] = ()
    strongest: str | None = None
    left: Mapping[str, float] = field(default_factory=dict, hash=False)
    useless: bool = False
    alone: str | None = None
    who: str | None = None
    knows: str | None = None
    look: int = 1

    @property
    def headline(self) -> str:
        """What it is about, with what must not be overlooked: the first line after the decision."""
        left = [self.left_in_words] if self.left_in_words else []
        said = (*self.remark, *left, *self._how_far)
        return "  ".join((self.setting, *(f"({one})" for one in said)))

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """What must not be overlooked wherever the decision is shown."""
        return (*self.remark, *self._how_far)

    @property
    def _how_far(self) -> tuple[str, ...]:
        """By whom and about whom, if not by several attacks about everybody; which look it is."""
        by = () if self.alone is None else (f"by {self.alone} alone",)
        about = () if self.who is None else (f"about {self.who}",)
        again = (f"look {self.look}",) if self.look > 1 else ()
        return by + about + again

    @property
    def remark(self) -> tuple[str, ...]:
        """What keeps a reader from taking the decision for advice to publish; mostly nothing."""
        said = "safe, but useless" if self.decision == "accept" else "useless"
        return (said,) if self.useless else ()

    @property
    def left_in_words(self) -> str:
        """What is left in short, such as ``pattern correlation 0.84, relative error 0.45``."""
        known = (name for name in _IN_SHORT if name in self.left)
        return ", ".join(f"{METRICS[name].words} {self.left[name]:.2f}" for name in known)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def __repr__(self) -> str:
        return f"<Verdict {self.decision!r} on {self.setting!r}>"

    def _repr_html_(self) -> str:
        """Return the decision with what was measured, is guaranteed, and means; for notebooks."""
        parts = {"": self.reasons, "Guaranteed": self.guaranteed, "Meaning": self.meaning}
        lists = "".join(
            f"{escape(title)}<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
            for title, texts in parts.items()
            if texts
        )
        return (
            f"<div><strong>{escape(self.decision.upper())}</strong> "
            f"{escape(self.headline)}{lists}</div>"
        )


def judge(
    findings: Sequence[Finding],
    policy: Policy,
    *,
    trusted: bool | None = True,
    incomplete: Collection[str] = (),
    group_sizes: Mapping[str, int] | None = None,
    knows: Mapping[str, str] | None = None,
    choice: TargetChoice | None = None,
    together: Together | None = None,
    look: Look = FIRST_LOOK,
) -> list[Verdict]:
    """Return a verdict for each setting, in the order in which they appear.

    Parameters
    ----------
    trusted
        Whether the controls were passed; None if there were none. Nothing is accepted or
        rejected unless they were passed.
    incomplete
        Settings of which some tasks failed: these are not accepted.
    group_sizes
        People in a release, by setting, to say how many of them would be found.
    knows
        What the attacker knows of people, by setting, such as ``all their visits``.
    choice
        How the targets were chosen, to say whom the verdicts are about. None if nobody knows: they
        are then taken for a sample of everybody.
    together
        How many people share most of their visits with somebody else, to say what that means where
        they are not few.
    look
        Which look at the audit this is; the findings must have been measured for it.
    """
    untrusted = _NO_CONTROL if trusted is None else _failed_controls(findings)
    sizes, known = group_sizes or {}, knows or {}
    by_hand, who = (False, None) if choice is None else (choice.by_hand, choice.who)
    alike = () if together is None else together.in_words()
    verdicts = []
    for setting in dict.fromkeys(finding.setting for finding in findings):
        own = (finding for finding in findings if finding.setting == setting)
        case = _Case.of(own, by_hand=by_hand, incomplete=setting in incomplete, look=look)
        decision, reasons = case.decide(policy) if trusted else _undecided(untrusted)
        if trusted:
            reasons = [*reasons, *case.comparison(), *case.above_ceiling(), *_looks_before(look)]
        if trusted and by_hand:
            decision, reasons = _of_those_named(decision, reasons)
        useless = case.useless(policy)
        if useless:
            safe = decision == "accept"
            reasons = [f"Safe, but useless: {useless}.", *reasons] if safe else reasons
            reasons += [] if safe else [f"It would be useless as well: {useless}."]
        verdicts.append(
            Verdict(
                setting,
                decision,
                tuple(reasons),
                tuple(case.guaranteed(None if by_hand else who)),
                (*case.meaning(policy.prior, sizes.get(setting), who, known.get(setting)), *alike),
                case.strongest,
                left=case.left,
                useless=bool(useless),
                alone=case.attacks[0] if len(case.attacks) == 1 else None,
                who=who,
                knows=known.get(setting),
                look=look.number,
            )
        )
    return verdicts


@dataclass(frozen=True)
class _Case:
    """What is known about one setting: its real attacks, their findings, and the other lines."""

    attacks: tuple[str, ...]
    findings: tuple[Finding, ...]
    ceiling: tuple[Finding, ...]
    guarantee: tuple[Finding, ...]
    left: dict[str, float]
    excess: dict[str, bool]
    by_hand: bool
    incomplete: bool
    look: Look

    @classmethod
    def of(
        cls, findings: Iterable[Finding], *, by_hand: bool, incomplete: bool, look: Look
    ) -> _Case:
        everything = tuple(findings)
        telling = [finding for finding in everything if finding.holds is None]
        real = tuple(finding for finding in telling if finding.attack not in NOT_ATTACKS)
        return cls(
            tuple(dict.fromkeys(finding.attack for finding in real)),
            real,
            tuple(finding for finding in telling if finding.attack == CEILING),
            tuple(finding for finding in telling if finding.attack == GUARANTEE),
            {one.metric: _estimate(one) for one in telling if one.attack == UTILITY},
            {one.attack: one.holds is False for one in everything if one.metric == EXCESS},
            by_hand,
            incomplete,
            look,
        )

    @property
    def strongest(self) -> str | None:
        return max(self._compared, key=_estimate).attack if self._compared else None

    @property
    def _compared(self) -> list[Finding]:
        """The mean AUCs by which attacks can be compared."""
        found = self.on(SHARED_AUC) or self.on("auc")
        return [finding for finding in found if finding.estimate is not None]

    def on(self, metric: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.metric == metric]

    def decide(self, policy: Policy) -> tuple[Decision, list[str]]:
        if not self.attacks:
            return _undecided(_NO_ATTACK, *self._ceiling_reason(policy))
        broken = [limit for limit in policy.limits if self._breaks(limit)]
        if broken:
            return "reject", [self._broken_reason(limit) for limit in broken]
        unsure = [limit for limit in policy.limits if not self._keeps(limit)]
        if unsure:
            reasons = [self._unsure_reason(limit) for limit in unsure]
            return _undecided(*reasons, *self._ceiling_reason(policy))
        ceiling = self._ceiling_reason(policy)
        kept = [*self._kept_reasons(policy), *ceiling]
        if STRONGEST not in self.attacks:
            return _undecided(_WEAK, *kept)
        if self.by_hand or self.incomplete:
            return _undecided(*([] if self.by_hand else [_FAILED]), *kept)
        return "accept", kept if not self._above_limits(policy) else [*kept, _KNOWN_TODAY]

    def comparison(self) -> list[str]:
        """Say how attacks compare that were measured on different numbers of releases."""
        if not self.on(SHARED_AUC):
            return []
        ranked = sorted(self._compared, key=_estimate, reverse=True)
        each = ", ".join(f"{one.estimate:.3f} for {one.attack}" for one in ranked)
        return [f"On the releases that all attacks scored, the mean AUC is {each}."]

    def above_ceiling(self) -> list[str]:
        """Say of attacks that seem better than the best possible that a test found no excess."""
        best = next((one for one in self.ceiling if one.metric == "auc"), None)
        if best is None or best.estimate is None:
            return []
        tested = (one for one in self.on("auc") if self.excess.get(one.attack) is False)
        above = [one for one in tested if _estimate(one) > best.estimate]
        if not above:
            return []
        each = ", ".join(f"{one.estimate:.3f} for {one.attack}" for one in above)
        return [
            f"Some mean AUCs lie above the ceiling of {best.estimate:.3f}: {each}. A paired test "
            "on the same releases finds no significant excess. No attack can really exceed the "
            "ceiling, but all are measured on a limited number of releases."
        ]

    def guaranteed(self, who: str | None) -> list[str]:
        """Say what the mechanism promises by itself: to everybody, and on average over some."""
        found = {finding.metric: finding.estimate for finding in self.guarantee}
        auc, tpr, largest = (found.get(name) for name in ("auc", _FOUND, "largest_auc"))
        if auc is None or tpr is None or largest is None:
            return ["The mechanism guarantees nothing about whether a person is in."]
        means = (
            f"No attack exceeds a mean AUC of {_rounded_up(auc, 3):.3f} over {who or 'everybody'}, "
            f"or an AUC of {_rounded_up(largest, 3):.3f} for anybody"
        )
        odds, more = found.get("odds_factor"), found.get("chance_of_more")
        if odds is None or odds > HARDLY_ANY:
            return [
                "For the person with most to lose, the release may multiply the odds of being in "
                f"by more than {HARDLY_ANY:,.0f}, which promises next to nothing. {means}."
            ]
        but = f", except with a chance of at most {more:.2g}" if more else ""
        return [
            "Whatever an attacker knows, the release multiplies the odds that a person is in by at "
            f"most {_rounded_up(odds, 1):,.1f}, for everybody who may be in it{but}. {means}. At a "
            f"false-alarm rate of 1 %, nobody finds more than {_rounded_up(tpr, 3):.1%} of the "
            "people."
        ]

    def meaning(
        self, prior: float, group_size: int | None, who: str | None, knows: str | None
    ) -> list[str]:
        """Say what the strongest attack would mean for people."""
        found = [finding for finding in self.on(_FOUND) if finding.estimate is not None]
        if not found:
            return []
        best = max(found, key=_estimate)
        tpr = _estimate(best)
        right = prior * tpr / max(prior * tpr + (1 - prior) * _FPR, 1e-300)
        people = "people in a release" if who is None else f"{who} who are in a release"
        # A release holds other people too, so that a number of them all would be made up.
        many = "" if group_size is None or who is not None else f", {in_a_group(best, group_size)}"
        by = best.attack if knows is None else f"{best.attack}, which knows {knows},"
        return [
            f"At a false-alarm rate of 1 %, {by} finds {tpr:.1%}{_as_shares(best)} of the "
            f"{people}{many}. If {prior:.0%} of the people in question are in, {right:.0%} of "
            "those whom it names are."
        ]

    def useless(self, policy: Policy) -> str:
        """Say which floors of the policy are not reached; empty if all are, or nobody knows."""
        below = [one for one in policy.keep if self.left.get(one.metric, 1.0) < one.least]
        each = (
            f"the {METRICS[one.metric].words} is {self.left[one.metric]:.3f} (floor {one.least:g})"
            for one in below
        )
        return " and ".join(each)

    def _breaks(self, limit: Limit) -> bool:
        return any(_surely_above(finding, limit) for finding in self.on(limit.metric))

    def _keeps(self, limit: Limit) -> bool:
        found = self.on(limit.metric)
        measured = {finding.attack for finding in found}
        return measured == set(self.attacks) and all(_surely_within(f, limit) for f in found)

    def _broken_reason(self, limit: Limit) -> str:
        worst = max((f for f in self.on(limit.metric) if _surely_above(f, limit)), key=_low)
        title = " the strongest attack," if worst.attack == self.strongest else ""
        return (
            f"For {worst.attack},{title} the {METRICS[limit.metric].words} is "
            f"{_reached(worst, limit)}, above the limit of {limit.most:g}"
            f"{_by_what_decides(worst, limit)}."
        )

    def _kept_reasons(self, policy: Policy) -> Iterable[str]:
        yield "No attack exceeds a limit."
        for limit in policy.limits:
            top = max(self.on(limit.metric), key=_estimate)
            yield (
                f"The largest {METRICS[limit.metric].words} is {_number(_estimate(top), limit)} "
                f"({_span(top, limit)}; limit {limit.most:g}), by {top.attack}."
            )

    def _unsure_reason(self, limit: Limit) -> str:
        words = METRICS[limit.metric].words
        maybe_above = [f for f in self.on(limit.metric) if _maybe_above(f, limit)]
        if not maybe_above:
            attack, what = self._open_end(limit)
            return (
                f"For {attack}, the {words} {what}, so the audit cannot show that it is "
                f"{limit.most:g} or less."
            )
        worst = max(maybe_above, key=lambda f: (_low(f) > limit.most, f.at_most))
        # More people named by hand would not speak for others either.
        more = "" if self.by_hand else f" {what_would_help(worst, limit, look=self.look)}"
        reached = f"For {worst.attack}, the {words} is {_reached(worst, limit)}"
        if _low(worst) > limit.most:
            return (
                f"{reached}, above the limit of {limit.most:g}. To reject, the lower end that "
                f"decides must be above it too, and that is {_number(worst.at_least, limit)}.{more}"
            )
        if _high(worst) <= limit.most:
            return (
                f"{reached}, within the limit of {limit.most:g}. To accept, the upper end that "
                f"decides must be within it too, and that is {_number(worst.at_most, limit)}.{more}"
            )
        return (
            f"For {worst.attack}, the {words} may be as high as {_number(worst.at_most, limit)} "
            f"(limit {limit.most:g}).{more}"
        )

    def _open_end(self, limit: Limit) -> tuple[str, str]:
        """Return the first attack without an upper bound, and what its finding lacks."""
        for finding in self.on(limit.metric):
            if not _surely_within(finding, limit):
                return finding.attack, _lacking(finding, limit)
        measured = {finding.attack for finding in self.on(limit.metric)}
        return next(a for a in self.attacks if a not in measured), "was not measured"

    def _above_limits(self, policy: Policy) -> list[str]:
        """Return in words which limits the ceiling is above."""
        found = {finding.metric: finding for finding in self.ceiling}
        return [
            METRICS[limit.metric].words
            for limit in policy.limits
            if limit.metric in found and _estimate(found[limit.metric]) > limit.most
        ]

    def _ceiling_reason(self, policy: Policy) -> list[str]:
        """Say what somebody could reach who knows all others, and whether that breaks a limit."""
        found = {finding.metric: finding for finding in self.ceiling}
        if "auc" not in found or found["auc"].estimate is None:
            return []
        said = (
            "Somebody who knew the other people of the group could reach a mean AUC of "
            f"{found['auc'].estimate:.3f}"
        )
        above = self._above_limits(policy)
        if not above:
            return [f"{said}, within the limits."]
        return [f"{said}, above the limit of {_listed([f'the {words}' for words in above])}."]


def _rounded_up(bound: float, digits: int) -> float:
    """Round a bound to the side on which it still holds; rounding errors aside."""
    return math.ceil((bound - 1e-9) * 10.0**digits) / 10.0**digits


def _listed(names: Sequence[str]) -> str:
    """Join names as a sentence does: a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _undecided(*reasons: str) -> tuple[Decision, list[str]]:
    return "cannot tell", list(reasons)


def _of_those_named(decision: Decision, reasons: list[str]) -> tuple[Decision, list[str]]:
    """Say in the reasons what a decision about people who were named by hand is worth."""
    if decision == "reject":
        return decision, [*reasons, _FAILS_THEM]
    return _undecided(_NO_SAMPLE, *reasons)


def _failed_controls(findings: Iterable[Finding]) -> str:
    failed = dict.fromkeys(one.metric for one in findings if one.holds is False)
    said = "; ".join(_WHY_UNTRUSTED[metric] for metric in failed)
    return _UNTRUSTED.format(why=f": {said}" if said else "")


def in_a_group(found: Finding, size: int) -> str:
    """Write a share of people found as so many of a group, with its interval."""
    span = ""
    if found.low is not None and found.high is not None:
        span = f" ({found.low * size:,.0f} to {found.high * size:,.0f})"
    return f"about {_estimate(found) * size:,.0f}{span} of {size:,}"


def _as_shares(found: Finding) -> str:
    if found.low is None or found.high is None:
        return ""
    return f" ({found.low:.1%} to {found.high:.1%})"


def _looks_before(look: Look) -> list[str]:
    """Say that there were verdicts before, and what that means for errors."""
    if look.number == 1:
        return []
    return [
        f"This is look {look.number}: there were verdicts on other scores before. Over all looks, "
        f"the chance of a wrong acceptance is at most {100 * ERROR:g} %, and so is that of a wrong "
        f"rejection. This look may spend {100 * look.spends:.2g} %."
    ]


def _surely_above(finding: Finding, limit: Limit) -> bool:
    return finding.at_least > limit.most


def _by_what_decides(finding: Finding, limit: Limit) -> str:
    """Say where the lower end is that decides, if it is not the one that is shown."""
    if finding.at_least == _low(finding):
        return ""
    return f"; lower bound that decides: {_number(finding.at_least, limit)}"


def _maybe_above(finding: Finding, limit: Limit) -> bool:
    return finding.high is not None and finding.at_most > limit.most


def _surely_within(finding: Finding, limit: Limit) -> bool:
    if finding.estimate is None or finding.low is None or finding.high is None:
        return False
    return finding.at_most <= limit.most


def _estimate(finding: Finding) -> float:
    return -math.inf if finding.estimate is None else finding.estimate


def _low(finding: Finding) -> float:
    return -math.inf if finding.low is None else finding.low


def _high(finding: Finding) -> float:
    return math.inf if finding.high is None else finding.high


def _reached(finding: Finding, limit: Limit) -> str:
    if finding.estimate is None or finding.high is None:
        return f"at least {_number(_low(finding), limit)}"
    return f"{_number(finding.estimate, limit)} ({_span(finding, limit)})"


def _span(finding: Finding, limit: Limit) -> str:
    return f"{_number(_low(finding), limit)} to {_number(_high(finding), limit)}"


def _lacking(finding: Finding, limit: Limit) -> str:
    note = "" if finding.note is None else f" ({finding.note})"
    if finding.estimate is None:
        return f"is not known{note}"
    if finding.low is None:
        return f"has no confidence interval{note}"
    return f"is at least {_number(finding.low, limit)}, with no upper bound{note}"


def _number(value: float, limit: Limit) -> str:
    """Write a number with three decimals, or with more if it would look like the limit."""
    for digits in range(3, 9):
        text = f"{value:.{digits}f}"
        if value == limit.most or text != f"{limit.most:.{digits}f}":
            return text
    return str(value)
