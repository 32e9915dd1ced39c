"""From findings to a verdict about each setting, by limits that anyone can set.

A setting is rejected if some attack is surely above a limit, accepted if every attack is surely
at or below every limit, and otherwise the measurement cannot tell. "Surely" means with the whole
confidence interval. The attacker who knows everybody else is a ceiling and not an attack, so it
decides nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from whosthere.auditing.toml import checked_table
from whosthere.auditing.vocabulary import CEILING, CONTROL, METRICS
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from whosthere.auditing.finding import Finding

Decision: TypeAlias = Literal["accept", "reject", "cannot tell"]

_LIMITABLE = tuple(name for name, metric in METRICS.items() if metric.can_be_limited)
_UNTRUSTED = (
    "The control failed: an attacker seemed to find people who were in none of the releases, so "
    "no number of this audit can be trusted."
)
_NO_ATTACK = "No attack was measured in this setting."


@dataclass(frozen=True)
class Limit:
    """The most that a metric may be."""

    metric: str
    most: float

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            fix = suggestion(self.metric, _LIMITABLE)
            raise InputError(f"there is no metric {self.metric!r} to limit", fix=fix)
        metric = METRICS[self.metric]
        if not metric.can_be_limited:
            fix = f"These can be: {', '.join(_LIMITABLE)}"
            raise InputError(f"{self.metric} cannot be limited", fix=fix)
        largest = math.inf if metric.largest is None else metric.largest
        if not (math.isfinite(self.most) and 0 <= self.most <= largest):
            span = "of 0 or more" if metric.largest is None else f"from 0 to {largest:g}"
            fix = f"Give a number {span}"
            raise InputError(f"the limit of {self.metric} cannot be {self.most:g}", fix=fix)


@dataclass(frozen=True)
class Policy:
    """How well attackers may do before a setting is rejected."""

    name: str
    limits: tuple[Limit, ...]

    def __post_init__(self) -> None:
        if not self.limits:
            raise InputError("the policy has no limits", fix="Give one, such as limits.auc = 0.6")
        metric, times = Counter(limit.metric for limit in self.limits).most_common(1)[0]
        if times > 1:
            raise InputError(f"{metric} is limited twice", fix="Keep one of the limits")

    @classmethod
    def default(cls) -> Policy:
        """Return the policy that comes with whosthere."""
        with as_file(files("whosthere.auditing") / "default_policy.toml") as path:
            return cls.read(path)

    @classmethod
    def read(cls, path: Path) -> Policy:
        """Read a policy from a TOML file; it is named after the file if it gives no name."""
        table = checked_table(path, _PolicyFile)
        limits: dict[str, float] = table.get("limits", {})
        try:
            named = tuple(Limit(metric, most) for metric, most in limits.items())
            return cls(table.get("name") or path.stem, named)
        except InputError as error:
            raise InputError(error.problem, where=path, fix=error.fix) from None

    def to_json(self) -> dict[str, Any]:
        """Return the policy as a JSON object."""
        return {"name": self.name, "limits": {limit.metric: limit.most for limit in self.limits}}


@dataclass(frozen=True)
class _PolicyFile:
    """What a policy file may hold."""

    name: str
    limits: dict[str, float]


@dataclass(frozen=True)
class Verdict:
    """What a policy says about one setting.

    Attributes
    ----------
    reasons
        Sentences that a reader without the numbers understands.
    strongest
        The attack with the largest mean AUC; None if none has one.
    """

    setting: str
    decision: Decision
    reasons: tuple[str, ...]
    strongest: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        return {**asdict(self), "reasons": list(self.reasons)}


def judge(findings: Sequence[Finding], policy: Policy, *, trusted: bool = True) -> list[Verdict]:
    """Return a verdict for each setting, in the order in which they appear.

    Parameters
    ----------
    trusted
        Whether the control was passed. If not, nothing is accepted or rejected.
    """
    verdicts = []
    for setting in dict.fromkeys(finding.setting for finding in findings):
        case = _Case.of(finding for finding in findings if finding.setting == setting)
        decision, reasons = case.decide(policy) if trusted else _undecided(_UNTRUSTED)
        verdicts.append(Verdict(setting, decision, tuple(reasons), case.strongest))
    return verdicts


def least_sample(limit: float, *, confidence: float = 0.95) -> int:
    """Return how many trials can show a share of at most `limit`, if none of them succeeds.

    It is the smallest n for which 0 of n has a (two-sided) Clopper-Pearson interval that ends at
    or below `limit`. The limit must lie above 0, which no sample can show.
    """
    if not (0 < limit <= 1 and 0 < confidence < 1):
        raise InputError(f"no sample shows a share of {limit:g} with confidence {confidence:g}")
    log_tail = math.log((1 - confidence) / 2)
    if limit == 1:
        return 1
    guess = math.ceil(log_tail / math.log1p(-limit))
    # Rounding can put the guess one off.
    near = (n for n in range(max(guess - 1, 1), guess + 2) if -math.expm1(log_tail / n) <= limit)
    return next(near, guess + 1)


@dataclass(frozen=True)
class _Case:
    """What is known about one setting: its real attacks, their findings, and the ceiling."""

    attacks: tuple[str, ...]
    findings: tuple[Finding, ...]
    ceiling: Finding | None

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> _Case:
        # The control is about the measurement: whoever made it need not be an attack.
        telling = [finding for finding in findings if finding.metric != CONTROL]
        real = tuple(finding for finding in telling if finding.attack != CEILING)
        ceilings = (f for f in telling if f.attack == CEILING and f.metric == "auc")
        return cls(tuple(dict.fromkeys(f.attack for f in real)), real, next(ceilings, None))

    @property
    def strongest(self) -> str | None:
        found = [finding for finding in self.on("auc") if finding.estimate is not None]
        return max(found, key=_estimate).attack if found else None

    def on(self, metric: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.metric == metric]

    def decide(self, policy: Policy) -> tuple[Decision, list[str]]:
        if not self.attacks:
            return _undecided(_NO_ATTACK, *self._ceiling_reason())
        broken = [limit for limit in policy.limits if self._breaks(limit)]
        if broken:
            return "reject", [self._broken_reason(limit) for limit in broken]
        unsure = [limit for limit in policy.limits if not self._keeps(limit)]
        if unsure:
            reasons = [self._unsure_reason(limit) for limit in unsure]
            return _undecided(*reasons, *self._ceiling_reason())
        return "accept", [*self._kept_reasons(policy), *self._ceiling_reason()]

    def _breaks(self, limit: Limit) -> bool:
        return any(_surely_above(finding, limit) for finding in self.on(limit.metric))

    def _keeps(self, limit: Limit) -> bool:
        found = self.on(limit.metric)
        measured = {finding.attack for finding in found}
        return measured == set(self.attacks) and all(_surely_within(f, limit) for f in found)

    def _broken_reason(self, limit: Limit) -> str:
        worst = max((f for f in self.on(limit.metric) if _surely_above(f, limit)), key=_low)
        title = ", the strongest attacker," if worst.attack == self.strongest else ""
        return (
            f"{worst.attack}{title} reaches {_with_article(limit)} of {_reached(worst, limit)}, "
            f"above the limit of {limit.most:g}."
        )

    def _kept_reasons(self, policy: Policy) -> Iterable[str]:
        for limit in policy.limits:
            top = max(self.on(limit.metric), key=_estimate)
            value = f"{_number(_estimate(top), limit)} ({_span(top, limit)}; limit {limit.most:g})"
            if limit == policy.limits[0]:
                yield (
                    f"No attacker exceeds a limit: the strongest, {top.attack}, reaches "
                    f"{_with_article(limit)} of {value}."
                )
            else:
                yield f"The largest {METRICS[limit.metric].words} is {value}, by {top.attack}."

    def _unsure_reason(self, limit: Limit) -> str:
        words = METRICS[limit.metric].words
        maybe_above = [f for f in self.on(limit.metric) if _maybe_above(f, limit)]
        if not maybe_above:
            attack, what = self._open_end(limit)
            return (
                f"The {words} of {attack} {what}, so nothing shows that it is {limit.most:g} or "
                "less."
            )
        worst = max(maybe_above, key=_high)
        return (
            f"The {words} may be up to {_number(_high(worst), limit)} for {worst.attack} "
            f"(limit {limit.most:g}): {_what_would_tell(worst, limit)}."
        )

    def _open_end(self, limit: Limit) -> tuple[str, str]:
        """Return the first attack that could be at any height, and what its finding lacks."""
        for finding in self.on(limit.metric):
            if not _surely_within(finding, limit):
                return finding.attack, _lacking(finding, limit)
        measured = {finding.attack for finding in self.on(limit.metric)}
        return next(a for a in self.attacks if a not in measured), "was not measured"

    def _ceiling_reason(self) -> list[str]:
        if self.ceiling is None:
            return []
        if self.ceiling.estimate is None:
            return []
        return [
            f"An attacker who knows where everybody else was would reach a mean AUC of "
            f"{self.ceiling.estimate:.3f}."
        ]


def _undecided(*reasons: str) -> tuple[Decision, list[str]]:
    return "cannot tell", list(reasons)


def _surely_above(finding: Finding, limit: Limit) -> bool:
    return finding.low is not None and finding.low > limit.most


def _maybe_above(finding: Finding, limit: Limit) -> bool:
    return finding.high is not None and finding.high > limit.most


def _surely_within(finding: Finding, limit: Limit) -> bool:
    if finding.estimate is None or finding.low is None or finding.high is None:
        return False
    return finding.high <= limit.most


def _estimate(finding: Finding) -> float:
    return -math.inf if finding.estimate is None else finding.estimate


def _low(finding: Finding) -> float:
    return -math.inf if finding.low is None else finding.low


def _high(finding: Finding) -> float:
    return math.inf if finding.high is None else finding.high


def _with_article(limit: Limit) -> str:
    words = METRICS[limit.metric].words
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


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
    return f"is at least {_number(finding.low, limit)}, with no upper end{note}"


def _number(value: float, limit: Limit) -> str:
    """Write a number with three decimals, or with more if it would look like the limit."""
    for digits in range(3, 9):
        text = f"{value:.{digits}f}"
        if value == limit.most or text != f"{limit.most:.{digits}f}":
            return text
    return str(value)


def _what_would_tell(finding: Finding, limit: Limit) -> str:
    if limit.metric == "share_auc_90":
        return _sample_needed(finding.n_targets, "targets", limit)
    if limit.metric.startswith("tpr_"):
        return _sample_needed(finding.n_in, "releases with a target", limit)
    return "more targets or releases are needed to tell"


def _sample_needed(n: int, what: str, limit: Limit) -> str:
    if limit.most == 0:
        return f"no number of {what} can show exactly 0"
    least = least_sample(limit.most)
    if n >= least:
        return f"more {what} are needed to tell"
    return f"to show less, {least} or more {what} are needed instead of {n}"
