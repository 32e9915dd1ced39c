"""The first screen: verdicts, what they mean, what to do, and the picture that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.auditing.reasons import chance_in_words, in_a_group, rounded_up
from whosthere.display import counted
from whosthere.inference.vocabulary import METRICS, UTILITY
from whosthere.privacy.guarantees import HARDLY_ANY
from whosthere.reporting.charts.dots import DECISIONS, Dot, DotChart, DotRow
from whosthere.reporting.charts.tradeoff import TradeOff, TradeOffPoint
from whosthere.reporting.lookup import (
    FOUND,
    Lookup,
    group_size_of,
    short_words_of,
    words_of,
)
from whosthere.reporting.numbers import number, people, shortened, with_interval
from whosthere.reporting.sections.advice import advice
from whosthere.reporting.sections.chosen import said_of_targets
from whosthere.reporting.sections.tables import (
    Cell,
    Head,
    Table,
    finding_cell,
    value_cell,
    verdict_cell,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.auditing.policy import Policy
    from whosthere.auditing.result import AuditResult
    from whosthere.auditing.verdict import Decision, Verdict

_FEW = 3
_LONGEST_SENTENCE = 600


@dataclass(frozen=True)
class Card:
    """The verdict about one protection.

    Attributes
    ----------
    number
        Of the protection in all tables and pictures, from 1.
    remark
        What keeps a reader from taking the decision for advice to publish; empty if nothing does.
    headline
        What it means for people, and what is left to publish.
    opened
        Whether its reasons are shown at once.
    """

    number: int
    name: str
    decision: Decision
    remark: str
    headline: str
    reasons: tuple[str, ...]
    guaranteed: tuple[str, ...]
    meaning: tuple[str, ...]
    opened: bool


@dataclass(frozen=True)
class Picture:
    """A picture, with what it measures."""

    metric: str
    words: str
    chart: DotChart | TradeOff


@dataclass(frozen=True)
class Overview:
    """All of the first screen."""

    advice: tuple[str, ...]
    warnings: tuple[str, ...]
    tally: tuple[tuple[Decision, int, int], ...]
    cards: tuple[Card, ...]
    pictures: tuple[Picture, ...]
    table: Table


def overview(audit: AuditResult) -> Overview:
    """Return the first screen of an audit."""
    found = Lookup.of(audit)
    return Overview(
        advice(audit.verdicts, found, trusted=audit.trusted, choice=audit.choice),
        tuple(_warnings(audit)),
        tally(audit.verdicts),
        tuple(
            card(i, verdict, found, opened=len(audit.verdicts) <= _FEW)
            for i, verdict in enumerate(audit.verdicts, 1)
        ),
        pictures(audit.verdicts, found, audit.policy),
        settings_table(audit.verdicts, found, audit.policy),
    )


def _warnings(audit: AuditResult) -> list[str]:
    said = []
    if audit.trusted is None:
        said.append("There was no control, so nothing shows that the audit itself is sound.")
    elif not audit.trusted:
        said.append("A control failed: no number of this audit can be trusted.")
    if audit.failed_tasks:
        total = audit.n_tasks
        many = f"{audit.failed_tasks} of {total}" if total else str(audit.failed_tasks)
        said.append(f"{many} tasks failed; all numbers rest on the others.")
    said += said_of_targets("targets_warning", audit)
    said += _sentences(audit.cautions)
    said += [] if audit.together is None else audit.together.in_words()
    alone = dict.fromkeys(verdict.alone for verdict in audit.verdicts if verdict.alone)
    said += [f"Some verdicts rest on one attack alone: {shortened(one)}." for one in alone]
    return said


def tally(verdicts: Sequence[Verdict]) -> tuple[tuple[Decision, int, int], ...]:
    """Count the decisions, and how many of each are about useless protections."""
    useless = {one: [v.useless for v in verdicts if v.decision == one] for one in DECISIONS}
    return tuple((one, len(each), sum(each)) for one, each in useless.items() if each)


def card(i: int, verdict: Verdict, found: Lookup, *, opened: bool) -> Card:
    """Return the verdict about the protection with a number."""
    return Card(
        i,
        shortened(verdict.setting),
        verdict.decision,
        " ".join(verdict.remark),
        headline(verdict, found),
        _sentences(verdict.reasons),
        _sentences(verdict.guaranteed),
        _sentences(verdict.meaning),
        opened,
    )


def _sentences(said: tuple[str, ...]) -> tuple[str, ...]:
    """Return sentences of a length that a page can show, whatever an attack is called."""
    return tuple(shortened(sentence, _LONGEST_SENTENCE) for sentence in said)


def headline(verdict: Verdict, found: Lookup) -> str:
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
    but = f", except with a chance of at most {chance_in_words(more)}" if more else ""
    most = rounded_up(odds, 1)
    return f"Guaranteed: the odds that a person is in rise at most {most:,.1f}-fold{but}."


def pictures(verdicts: Sequence[Verdict], found: Lookup, policy: Policy) -> tuple[Picture, ...]:
    """Return the risk of all protections by each limited metric, against utility if measured."""
    limits = {limit.metric: limit.most for limit in policy.limits}
    floors = {floor.metric: floor.least for floor in policy.keep}
    metrics = dict.fromkeys(("auc", *limits))
    drawn = []
    for metric in metrics:
        points = [
            point
            for i, verdict in enumerate(verdicts, 1)
            if (point := _point(i, verdict, found, metric)) is not None
        ]
        if points:
            chart = _chart(points, found, metric, limits.get(metric), floors)
            drawn.append(Picture(metric, words_of(metric), chart))
    return tuple(drawn)


@dataclass(frozen=True)
class _Point:
    label: str
    number: int
    decision: Decision
    risk: float
    low: float | None
    high: float | None
    kept: float | None
    ceiling: float | None
    guarantee: float | None
    title: str


def _point(i: int, verdict: Verdict, found: Lookup, metric: str) -> _Point | None:
    one = found.largest(verdict.setting, metric)
    if one is None or one.estimate is None:
        return None
    kept = found.kept(verdict.setting)
    label = f"{i}  {verdict.setting}"
    said = f"{shortened(label)}: {verdict.decision}; {words_of(metric)} {with_interval(one)}"
    if kept is not None and found.kept_metric is not None:
        said += f"; {words_of(found.kept_metric)} {number(kept)}"
    return _Point(
        label,
        i,
        verdict.decision,
        one.estimate,
        one.low,
        one.high,
        kept,
        found.ceiling(verdict.setting, metric),
        found.guarantee(verdict.setting, metric),
        said,
    )


def _chart(
    points: list[_Point],
    found: Lookup,
    metric: str,
    limit: float | None,
    floors: Mapping[str, float],
) -> DotChart | TradeOff:
    low, high = _ends(points, metric, limit)
    words = words_of(metric)
    drawn = [point for point in points if point.kept is not None]
    if found.kept_metric is None or len(drawn) < len(points):
        rows = tuple(
            DotRow(
                p.label,
                (Dot(DECISIONS[p.decision], p.risk, p.low, p.high, p.title),),
                p.ceiling,
                p.guarantee,
            )
            for p in points
        )
        return DotChart(f"{words}, the largest of all attacks", words, rows, limit, low, high)
    kept = words_of(found.kept_metric)
    return TradeOff(
        f"{words}, the largest of all attacks, against {kept}, "
        f"for {counted(len(points), 'protection')}",
        f"risk: {words}",
        f"kept: {kept}",
        tuple(
            TradeOffPoint(
                p.number,
                p.decision,
                p.risk,
                p.low,
                p.high,
                p.kept or 0.0,
                p.ceiling,
                p.guarantee,
                p.title,
            )
            for p in drawn
        ),
        limit,
        floors.get(found.kept_metric),
        low,
        high,
    )


def _ends(points: list[_Point], metric: str, limit: float | None) -> tuple[float, float]:
    """Return the ends of the axis of a metric: all that is possible, or all that was found."""
    known = METRICS.get(metric)
    if known is not None and known.largest is None:
        values = [v for p in points for v in (p.risk, p.high, p.ceiling) if v is not None]
        return 0.0, 1.1 * max(*values, limit or 0.0, 1.0)
    lowest = min([p.low if p.low is not None else p.risk for p in points])
    return (0.4 if "auc" in metric and "share" not in metric and lowest >= 0.4 else 0.0), 1.0


def settings_table(verdicts: Sequence[Verdict], found: Lookup, policy: Policy) -> Table:
    """Return one row for each protection."""
    shown = policy.metrics_to_show
    # What the picture shows first.
    utility = sorted(found.utility_metrics, key=lambda name: name != found.kept_metric)
    heads = [
        Head("protection", "setting", numeric=False),
        Head("verdict", "verdict", numeric=False),
        Head("people found", "people found"),
        *(Head(short_words_of(name), name) for name in shown),
        *(Head(short_words_of(name), name) for name in utility),
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
                Cell(f"{i}  {shortened(name)}", sort=float(i)),
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
    low, high = best.low, best.high
    if verdict.who is not None:
        # A release holds other people too, of whom nothing is known.
        span = "" if low is None or high is None else f"{low:.1%} \u2013 {high:.1%}"
        return Cell(f"{best.estimate:.1%} of the {verdict.who}", span, sort=best.estimate * size)
    span = "" if low is None or high is None else f"{low * size:,.0f} \u2013 {high * size:,.0f}"
    return Cell(people(best.estimate, size), span, sort=best.estimate * size)


def _odds_cell(found: Lookup, setting: str) -> Cell:
    if found.guarantee(setting, "auc") is None:
        return Cell("no guarantee")
    odds = found.guarantee(setting, "odds_factor")
    if odds is None or odds > HARDLY_ANY:
        return Cell(f"more than {HARDLY_ANY:,.0f}", sort=odds or float("inf"))
    more = found.guarantee(setting, "chance_of_more")
    but = f"chance of more: {chance_in_words(more)}" if more else ""
    return Cell(f"\N{MULTIPLICATION SIGN} {rounded_up(odds, 1):,.1f}", but, sort=odds)
