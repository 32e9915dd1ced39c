"""The first screen: verdicts, what they mean, what to do, and the picture that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.auditing.verdict import in_a_group
from whosthere.display import counted
from whosthere.inference.vocabulary import UTILITY
from whosthere.privacy.guarantees import HARDLY_ANY
from whosthere.reporting.charts.risk import DECISIONS, Dot, DotChart, Protection, TradeOff
from whosthere.reporting.lookup import FOUND, Lookup, group_size_of
from whosthere.reporting.sections.advice import advice, said_of_targets
from whosthere.reporting.sections.parts import (
    PROTECTION,
    Cell,
    Head,
    Measured,
    Table,
    axis_ends,
    finding_cell,
    metric_heads,
    protection_cell,
    value_cell,
    verdict_cell,
)
from whosthere.reporting.words import number, shortened, texts, with_interval, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from whosthere.auditing.finished import FinishedAudit
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.verdict import Decision, Verdict

_FEW = 3


@dataclass(frozen=True)
class Card:
    """The verdict about one protection.

    Attributes
    ----------
    number
        Of the protection in all tables and pictures, from 1.
    headline
        What it means for people, and what is left to publish.
    opened
        Whether its reasons are shown at once.
    """

    number: int
    verdict: Verdict
    headline: str
    opened: bool


@dataclass(frozen=True)
class Overview:
    """All of the first screen.

    Attributes
    ----------
    tally
        Each decision, how often it was taken, and how many of these are useless protections.
    """

    advice: tuple[str, ...]
    warnings: tuple[str, ...]
    tally: tuple[tuple[Decision, int, int], ...]
    cards: tuple[Card, ...]
    pictures: tuple[Measured, ...]
    table: Table


def overview(audit: FinishedAudit) -> Overview:
    """Return the first screen of an audit."""
    found = Lookup(audit.findings)
    return overview_of(
        audit.verdicts,
        found,
        audit.policy,
        advice=advice(audit.verdicts, found, trusted=audit.trusted, choice=audit.choice),
        warnings=tuple(_warnings(audit)),
    )


def overview_of(
    verdicts: Sequence[Verdict],
    found: Lookup,
    policy: Policy,
    *,
    advice: tuple[str, ...],
    warnings: tuple[str, ...] = (),
    best: Collection[int] | None = None,
) -> Overview:
    """Return the first screen of protections that were judged; with cards for the `best` alone."""
    useless = {one: [v.useless for v in verdicts if v.decision == one] for one in DECISIONS}
    opened = best is not None or len(verdicts) <= _FEW
    return Overview(
        advice,
        warnings,
        tuple((one, len(each), sum(each)) for one, each in useless.items() if each),
        tuple(
            Card(i, verdict, _headline(verdict, found), opened)
            for i, verdict in enumerate(verdicts, 1)
            if best is None or i in best
        ),
        _pictures(verdicts, found, policy),
        _settings_table(verdicts, found, policy),
    )


def _warnings(audit: FinishedAudit) -> Iterator[str]:
    said: dict[str, str] = texts()["warnings"]
    if not audit.trusted:
        yield said["no_control" if audit.trusted is None else "untrusted"]
    if audit.failed_tasks:
        yield said["failed"].format(failed=audit.failed_tasks, total=audit.n_tasks)
    yield from said_of_targets("targets_warning", audit.choice)
    yield from audit.cautions
    if audit.together is not None:
        yield from audit.together.in_words()
    for attack in dict.fromkeys(verdict.alone for verdict in audit.verdicts if verdict.alone):
        yield said["alone"].format(attack=shortened(attack))


def _headline(verdict: Verdict, found: Lookup) -> str:
    """Say how many people are found, or how well attackers do, and what is left to publish."""
    left = f" Left to publish: {verdict.left_in_words}." if verdict.left_in_words else ""
    return _risk_in_words(verdict, found) + left


def _risk_in_words(verdict: Verdict, found: Lookup) -> str:
    best = found.largest(verdict.setting, FOUND)
    size = group_size_of(verdict.setting)
    attacker = "An attacker" + (f" who knows {verdict.knows}" if verdict.knows else "")
    if best is not None and best.estimate is not None and verdict.who is not None:
        return (
            f"{attacker} finds {best.estimate:.1%} of the {verdict.who} who are in a release; "
            f"guessing finds 1 %. {_promise(found, verdict.setting)}"
        )
    if best is not None and best.estimate is not None and size is not None:
        return (
            f"{attacker} finds {in_a_group(best, size)} people in a release; guessing "
            f"finds {_guessed(size)}. {_promise(found, verdict.setting)}"
        )
    auc = found.largest(verdict.setting, "auc")
    if auc is None:
        return "No attack was measured."
    return (
        f"The strongest attack reaches a mean AUC of {auc.estimate:.3f}; 0.5 is guessing. The "
        "sample is too small to say how many people that finds."
    )


def _guessed(size: int) -> str:
    """Write how many people of a group are found by naming 1 in 100 at random."""
    return f"{0.01 * size:,.0f}" if size >= 100 else "less than 1"


def _promise(found: Lookup, setting: str) -> str:
    """Say in a few words what is guaranteed."""
    if found.guarantee(setting, "auc") is None:
        return "Nothing is guaranteed."
    odds = found.guarantee(setting, "odds_factor")
    if odds is None or odds > HARDLY_ANY:
        return "Next to nothing is guaranteed."
    more = found.guarantee(setting, "chance_of_more")
    but = f", except with a chance of at most {more:.2g}" if more else ""
    return f"Guaranteed: the odds that a person is in rise at most {odds:,.1f}-fold{but}."


def _pictures(verdicts: Sequence[Verdict], found: Lookup, policy: Policy) -> tuple[Measured, ...]:
    """Return the risk of all protections by each limited metric, against utility if measured."""
    limited = (limit.metric for limit in policy.limits)
    charts = {
        metric: _risk_chart(verdicts, found, metric, policy)
        for metric in dict.fromkeys(("auc", *limited))
    }
    return tuple(Measured(metric, chart) for metric, chart in charts.items() if chart is not None)


def _risk_chart(
    verdicts: Sequence[Verdict], found: Lookup, metric: str, policy: Policy
) -> DotChart | None:
    measured = (_protection(i, verdict, found, metric) for i, verdict in enumerate(verdicts, 1))
    rows = tuple(row for row in measured if row is not None)
    if not rows:
        return None
    limit = next((limit.most for limit in policy.limits if limit.metric == metric), None)
    low, high = axis_ends(metric, rows, limit)
    words = words_of(metric)
    title = f"{words}, the largest of all attacks"
    if found.kept_metric is None or any(row.kept is None for row in rows):
        return DotChart(title, words, rows, limit, low, high)
    kept = words_of(found.kept_metric)
    title += f", against {kept}, for {counted(len(rows), 'protection')}"
    floor = next((one.least for one in policy.keep if one.metric == found.kept_metric), None)
    return TradeOff(title, f"risk: {words}", rows, limit, low, high, f"kept: {kept}", floor)


def _protection(i: int, verdict: Verdict, found: Lookup, metric: str) -> Protection | None:
    one = found.largest(verdict.setting, metric)
    if one is None or one.estimate is None:
        return None
    kept = found.kept(verdict.setting)
    label = f"{i}  {verdict.setting}"
    said = f"{shortened(label)}: {verdict.decision}; {words_of(metric)} {with_interval(one)}"
    if kept is not None and found.kept_metric is not None:
        said += f"; {words_of(found.kept_metric)} {number(kept)}"
    return Protection(
        label,
        (Dot(DECISIONS[verdict.decision], one.estimate, one.low, one.high, said),),
        found.ceiling(verdict.setting, metric),
        found.guarantee(verdict.setting, metric),
        i,
        kept,
    )


def _settings_table(verdicts: Sequence[Verdict], found: Lookup, policy: Policy) -> Table:
    """Return one row for each protection."""
    shown = policy.metrics_to_show
    # What the picture shows first.
    utility = sorted(found.utility_metrics, key=lambda name: name != found.kept_metric)
    heads = [
        PROTECTION,
        Head("verdict", "verdict", numeric=False),
        Head("people found", "people found"),
        *metric_heads([*shown, *utility]),
        Head("ceiling, mean AUC", "ceiling"),
        Head("guarantee, mean AUC", "guarantee"),
        Head("odds factor", "odds_factor"),
    ]
    rows = []
    for i, verdict in enumerate(verdicts, 1):
        name = verdict.setting
        measured = (found.largest(name, metric) for metric in shown)
        rows.append(
            (
                protection_cell(i, name),
                verdict_cell(verdict),
                _found_cell(verdict, found),
                *(finding_cell(one) for one in measured),
                *(finding_cell(found.find(name, UTILITY, metric)) for metric in utility),
                value_cell(found.ceiling(name, "auc")),
                value_cell(found.guarantee(name, "auc")),
                _odds_cell(found, name),
            )
        )
    return Table(
        "All protections: the most that any attack reached by each measure, with 95 % intervals.",
        tuple(heads),
        tuple(rows),
    )


def _found_cell(verdict: Verdict, found: Lookup) -> Cell:
    best, size = found.largest(verdict.setting, FOUND), group_size_of(verdict.setting)
    if best is None or best.estimate is None or size is None:
        return Cell("not resolvable")
    low, high, share = best.low, best.high, best.estimate
    if verdict.who is not None:
        # A release holds other people too, of whom nothing is known.
        span = "" if low is None or high is None else f"{low:.1%} \u2013 {high:.1%}"
        return Cell(f"{share:.1%} of the {verdict.who}", span, sort=share * size)
    span = "" if low is None or high is None else f"{low * size:,.0f} \u2013 {high * size:,.0f}"
    return Cell(f"{share * size:,.0f} of {size:,}", span, sort=share * size)


def _odds_cell(found: Lookup, setting: str) -> Cell:
    if found.guarantee(setting, "auc") is None:
        return Cell("no guarantee")
    odds = found.guarantee(setting, "odds_factor")
    if odds is None or odds > HARDLY_ANY:
        return Cell(f"more than {HARDLY_ANY:,.0f}", sort=odds or float("inf"))
    more = found.guarantee(setting, "chance_of_more")
    but = f"chance of more: {more:.2g}" if more else ""
    return Cell(f"\N{MULTIPLICATION SIGN} {odds:,.1f}", but, sort=odds)
