"""From findings to a verdict about each setting, by limits that anyone can set.

A setting is rejected if some attack is surely above a limit, accepted if every attack is surely
at or below every limit; otherwise the verdict is "cannot tell". "Surely" means that the whole
confidence interval lies on that side of the limit. The ceiling, an attacker who knows everybody
else, is not an attack and has no part in the verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import as_file, files
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field

from whosthere.auditing.toml import TomlTable, read_toml
from whosthere.auditing.vocabulary import CEILING, CONTROL, METRICS
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from whosthere.auditing.finding import Finding

Decision: TypeAlias = Literal["accept", "reject", "cannot tell"]

_LIMITABLE = tuple(name for name, metric in METRICS.items() if metric.can_be_limited)
_UNTRUSTED = (
    "The control failed: an attack seemed to find people who were in none of the releases. "
    "No number of this audit can be trusted."
)
_NO_CONTROL = "There was no control, so nothing shows that the audit itself is sound."
_NO_ATTACK = "No attack was measured in this setting."


@dataclass(frozen=True)
class Limit:
    """The largest value that a metric may have."""

    metric: str
    most: float

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            fix = suggestion(str(self.metric), _LIMITABLE)
            raise InputError(f"there is no metric {self.metric!r} to limit", fix=fix)
        metric = METRICS[self.metric]
        if not metric.can_be_limited:
            fix = f"These can be: {', '.join(_LIMITABLE)}"
            raise InputError(f"{self.metric} cannot be limited", fix=fix)
        most = _number_or_nan(self.most)
        largest = math.inf if metric.largest is None else metric.largest
        if not (math.isfinite(most) and 0 <= most <= largest):
            span = "of 0 or more" if metric.largest is None else f"from 0 to {largest:g}"
            problem = f"the limit of {self.metric} cannot be {self.most!r}"
            raise InputError(problem, fix=f"Give a number {span}")
        object.__setattr__(self, "most", most)

    def __str__(self) -> str:
        return f"{self.metric} <= {self.most:g}"


def _number_or_nan(value: object) -> float:
    # To Python, True is a number.
    return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)


@dataclass(frozen=True, init=False, repr=False)
class Policy:
    """How well attackers may do before a setting is rejected.

    Parameters
    ----------
    name
        What results call the policy.
    limits
        The largest value that each metric may have, such as ``{"auc": 0.6}``.
    """

    name: str
    limits: tuple[Limit, ...]

    def __init__(self, name: str, limits: Mapping[str, float] | Iterable[Limit]) -> None:
        checked = _limits(limits)
        if not checked:
            fix = "Limit at least one metric, such as auc to 0.6"
            raise InputError("the policy has no limits", fix=fix)
        metric, times = Counter(limit.metric for limit in checked).most_common(1)[0]
        if times > 1:
            raise InputError(f"{metric} is limited twice", fix="Keep one of the limits")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "limits", checked)

    @classmethod
    def default(cls) -> Policy:
        """Return the policy that comes with whosthere."""
        with as_file(files("whosthere.auditing") / "default_policy.toml") as path:
            return cls.read(path)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy from a TOML file; it is named after the file if it gives no name."""
        table = read_toml(path, _PolicyFile)
        try:
            return cls(table.name or Path(path).stem, table.limits)
        except InputError as error:
            raise InputError(error.problem, where=path, fix=error.fix) from None

    @classmethod
    def of(
        cls, policy: Policy | str | os.PathLike[str] | Mapping[str, float] | None = None
    ) -> Policy:
        """Return a policy from whatever a caller may give for one.

        Parameters
        ----------
        policy
            A policy, the path of a policy file, or limits such as ``{"auc": 0.6}``; None for the
            default policy.
        """
        if policy is None:
            return cls.default()
        if isinstance(policy, Policy):
            return policy
        if isinstance(policy, Mapping):
            return cls("custom", policy)
        return cls.read(policy)

    def to_json(self) -> dict[str, Any]:
        """Return the policy as a JSON object."""
        return {"name": self.name, "limits": {limit.metric: limit.most for limit in self.limits}}

    def __repr__(self) -> str:
        return f"<Policy {self.name!r}: {', '.join(map(str, self.limits))}>"

    def _repr_html_(self) -> str:
        """Return a small table of the limits, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(METRICS[limit.metric].words)}</td><td>{limit.most:g}</td></tr>"
            for limit in self.limits
        )
        return (
            f"<table><caption>Policy: {escape(self.name)}</caption>"
            f"<thead><tr><th>metric</th><th>at most</th></tr></thead><tbody>{rows}</tbody></table>"
        )


def _limits(limits: Mapping[str, float] | Iterable[Limit]) -> tuple[Limit, ...]:
    if isinstance(limits, Mapping):
        return tuple(Limit(metric, most) for metric, most in limits.items())
    given = tuple(limits) if isinstance(limits, Iterable) else (limits,)
    if not all(isinstance(limit, Limit) for limit in given):
        fix = "Give the metrics with their largest values, such as {'auc': 0.6}"
        raise InputError(f"{limits!r} cannot be the limits of a policy", fix=fix)
    return given


class _PolicyFile(TomlTable):
    """What a policy file may hold."""

    name: str = ""
    limits: dict[str, float] = Field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a policy says about one setting.

    Attributes
    ----------
    reasons
        Sentences that a reader understands without the numbers at hand.
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

    def __repr__(self) -> str:
        return f"<Verdict {self.decision!r} on {self.setting!r}>"

    def _repr_html_(self) -> str:
        """Return the decision with its reasons, for notebooks."""
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        return (
            f"<div><strong>{escape(self.decision.upper())}</strong> "
            f"{escape(self.setting)}<ul>{reasons}</ul></div>"
        )


def judge(
    findings: Sequence[Finding], policy: Policy, *, trusted: bool | None = True
) -> list[Verdict]:
    """Return a verdict for each setting, in the order in which they appear.

    Parameters
    ----------
    trusted
        Whether the control was passed; None if there was no control. Nothing is accepted or
        rejected unless it was passed.
    """
    untrusted = _NO_CONTROL if trusted is None else _UNTRUSTED
    verdicts = []
    for setting in dict.fromkeys(finding.setting for finding in findings):
        case = _Case.of(finding for finding in findings if finding.setting == setting)
        decision, reasons = case.decide(policy) if trusted else _undecided(untrusted)
        verdicts.append(Verdict(setting, decision, tuple(reasons), case.strongest))
    return verdicts


def least_sample(limit: float, *, confidence: float = 0.95) -> int:
    """Return how many trials are needed to show a share of at most `limit`.

    It is the smallest n for which the two-sided Clopper-Pearson interval of 0 successes in n
    trials ends at or below `limit`. No sample can show a share of 0, so `limit` must be above 0.
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
        # The control is about the audit itself, and not about an attack.
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
        title = " the strongest attack," if worst.attack == self.strongest else ""
        return (
            f"For {worst.attack},{title} the {METRICS[limit.metric].words} is "
            f"{_reached(worst, limit)}, above the limit of {limit.most:g}."
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
        worst = max(maybe_above, key=_high)
        return (
            f"For {worst.attack}, the {words} may be as high as {_number(_high(worst), limit)} "
            f"(limit {limit.most:g}). {_what_would_help(worst, limit)}"
        )

    def _open_end(self, limit: Limit) -> tuple[str, str]:
        """Return the first attack without an upper bound, and what its finding lacks."""
        for finding in self.on(limit.metric):
            if not _surely_within(finding, limit):
                return finding.attack, _lacking(finding, limit)
        measured = {finding.attack for finding in self.on(limit.metric)}
        return next(a for a in self.attacks if a not in measured), "was not measured"

    def _ceiling_reason(self) -> list[str]:
        if self.ceiling is None or self.ceiling.estimate is None:
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


def _what_would_help(finding: Finding, limit: Limit) -> str:
    if limit.metric == "share_auc_90":
        return _sample_needed(finding.n_targets, "targets", limit)
    if limit.metric.startswith("tpr_"):
        return _sample_needed(finding.n_in, "releases with a target", limit)
    return "More targets or releases are needed to decide."


def _sample_needed(n: int, what: str, limit: Limit) -> str:
    if limit.most == 0:
        return f"No number of {what} can show exactly 0."
    least = least_sample(limit.most)
    if n >= least:
        return f"More {what} are needed to decide."
    return f"Too few {what} ({n}): at least {least} are needed to show {limit.most:g} or less."
