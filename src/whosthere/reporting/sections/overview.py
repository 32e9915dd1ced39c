"""The first screen: verdicts, what they mean, what to do, and the picture that decides.

An audit has one, and so has a search for a protection, which also shows the steps of each family.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from whosthere.auditing.reasons import FOUND, chance_in_words, in_a_group, rounded_up
from whosthere.auditing.series import said_of_series
from whosthere.display import counted
from whosthere.inference.vocabulary import CEILING, GUARANTEE, OF_UTILITY, UTILITY
from whosthere.privacy.ledger import HARDLY_ANY
from whosthere.privacy.scheme import PERIODS
from whosthere.reporting.charts.risk import OUTCOMES, Dot, DotChart, Protection, TradeOff
from whosthere.reporting.charts.time import Course, TimeChart
from whosthere.reporting.sections import parts
from whosthere.reporting.sections.about import said_of_targets
from whosthere.reporting.sections.parts import KEPT, Cell, Head, Lookup, Table
from whosthere.reporting.words import number, outcome, plain_words, shortened, texts, words_of
from whosthere.search.recommendation import lasts_in_words, undominated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from whosthere.auditing.policy import Limit, Policy
    from whosthere.auditing.result import AuditResult
    from whosthere.auditing.series import Series
    from whosthere.auditing.verdict import Verdict
    from whosthere.inference.finding import Finding
    from whosthere.search.recommendation import Candidate, Recommendation

_LEFT = (KEPT, "relative_error", "cells_kept")
"""What is left to publish, as the first table shows it."""
_NAMED = 4


class Card(NamedTuple):
    """A verdict with the number of its protection in all tables, and what to show of it.

    `shown_as` is the decision or `useless`, `remark` what else must not be overlooked, `done` what
    is done to the counts, and `headline` what it means for people.
    """

    number: int
    verdict: Verdict
    shown_as: str
    remark: str
    done: str
    headline: str

    @classmethod
    def of(cls, number: int, verdict: Verdict, found: Lookup) -> Card:
        """Return the card of a verdict."""
        shown_as = outcome(verdict)
        remark = "" if shown_as == "useless" else " ".join(verdict.remark)
        done = plain_words(verdict)
        return cls(number, verdict, shown_as, remark, done, _headline(verdict, found))


class Overview(NamedTuple):
    """All of the first screen.

    `table` has what decides, and `bounds` what else is known of each protection; `pictures` show
    the risk by each metric that is limited.
    """

    advice: tuple[str, ...]
    warnings: tuple[str, ...]
    table: Table
    cards: tuple[Card, ...]
    pictures: dict[str, DotChart]
    bounds: Table
    over_time: OverTime | None = None


class OverTime(NamedTuple):
    """How risk grows where a table is published again and again, and where limits are crossed.

    `pictures` are by their captions.
    """

    pictures: dict[str, TimeChart]
    table: Table


def overview(audit: AuditResult) -> Overview:
    """Return the first screen of an audit."""
    said, warnings = advice(audit), tuple(_warnings(audit))
    made = _overview(audit.verdicts, Lookup(audit.findings), audit.policy, said, warnings)
    return made._replace(over_time=_over_time(audit.series, audit.policy))


def _over_time(series: Sequence[Series], policy: Policy) -> OverTime | None:
    if not series:
        return None
    limits = {limit.metric: limit for limit in policy.limits}
    pictures = {}
    for metric in dict.fromkeys(("auc", FOUND, *limits)):
        courses = tuple(
            Course(shortened(one.protection), one.risk(metric), one.guaranteed(metric))
            for one in series
        )
        courses = tuple(one for one in courses if one.risk)
        if courses:
            limit = limits[metric].most if metric in limits else None
            words, every = words_of(metric), {PERIODS.get(one.every, one.every) for one in series}
            title = f"{words}, the largest of all attacks, against how often a table is published"
            dots = [dot for one in courses for dot in one.risk.values()]
            least = min(dot.estimate if dot.low is None else dot.low for dot in dots)  # type: ignore[type-var]
            low = 0.4 if metric == "auc" and (least or 0.0) >= 0.4 else 0.0
            high = max(1.0, *(dot.high or dot.estimate or 0.0 for dot in dots))
            time = f"{' or '.join(sorted(every))}s published"
            caption = f"{words}: the share of people found" if metric == FOUND else words
            pictures[caption] = TimeChart(title, words, time, courses, limit, low, high)
    heads = (
        Head("protection", numeric=False),
        Head("can be published for"),
        *(Head(f"{words_of(one.metric)} above {one.most:g}", one.metric) for one in policy.limits),
    )
    rows = (
        (
            Cell(shortened(one.protection)),
            Cell(one.in_time(one.lasts) if one.lasts else "not even once", sort=float(one.lasts)),
            *(_crossing(one, limit) for limit in policy.limits),
        )
        for one in series
    )
    return OverTime(pictures, Table.of(texts()["sections"]["over_time"]["table"], heads, rows))


def _crossing(series: Series, limit: Limit) -> Cell:
    """Say from when on a limit is exceeded, by the largest estimate of an attack."""
    times, risk = series.crossed(limit), series.risk(limit.metric)
    if times is None:
        last = max(risk, default=None)
        return Cell("not measured" if last is None else f"not within {series.in_time(last)}")
    return Cell(f"from {series.in_time(times)} on", number(risk[times].estimate), float(times))


def search_overview(found: Recommendation) -> Overview:
    """Return what a search chose, with cards for the best alone, and all that was tried."""
    tried = found.candidates
    findings = [one for candidate in tried for one in candidate.last_findings]
    verdicts = [candidate.last_verdict for candidate in tried]
    best = [i for i, candidate in enumerate(tried, 1) if candidate in found.best]
    said = tuple(_advice_of_search(found))
    made = _overview(verdicts, Lookup(findings), found.policy, said, found.cautions, best=best)
    return made._replace(pictures={metric: _fronted(one) for metric, one in made.pictures.items()})


def _fronted(chart: DotChart) -> DotChart:
    """Return a picture of risk against what is kept, with the front of all that was tried."""
    if not isinstance(chart, TradeOff):
        return chart
    points = [(row.dots[0].estimate, row.kept or 0.0) for row in chart.rows]
    return replace(chart, front=tuple(chart.rows[i].number for i in undominated(points)))


def _overview(
    verdicts: Sequence[Verdict],
    found: Lookup,
    policy: Policy,
    advice: tuple[str, ...],
    warnings: tuple[str, ...],
    *,
    best: Collection[int] | None = None,
) -> Overview:
    return Overview(
        advice,
        warnings,
        _settings_table(verdicts, found, policy),
        tuple(
            Card.of(i, verdict, found)
            for i, verdict in enumerate(verdicts, 1)
            if best is None or i in best
        ),
        _pictures(verdicts, found, policy),
        _bounds_table(verdicts, found),
    )


def advice(audit: AuditResult) -> tuple[str, ...]:
    """Return two sentences: what to do, and what next."""
    found, choice = Lookup(audit.findings), audit.choice
    useful = {
        one.setting: one.left_in_words
        for one in audit.verdicts
        if one.decision == "accept" and not one.useless
    }
    names = [shortened(name) for name in useful]
    listed = "; ".join(names[:_NAMED]) + ("; ..." if len(names) > _NAMED else "")
    kept = {name: value for name in useful if (value := found.kept(name)) is not None}
    best = max(kept or useful, key=lambda name: kept.get(name, 0.0), default="")
    left = f" ({useful[best]})" if useful.get(best) else ""
    if audit.trusted and useful:
        some = "some_accepted" if kept else "some_accepted_unranked"
        case = "one_accepted" if len(useful) == 1 else some
    else:
        case = _why_nothing(audit)
    if audit.trusted and audit.series:
        return tuple(said_of_series(audit.series))
    who = None if choice is None else choice.who
    scope = "" if who is None else f", as far as {who} are concerned"
    of = "in groups of this size" if audit.include is None else "of all people together"
    sentences: list[str] = texts()["advice"][case]
    if audit.include is not None:
        # There is nobody left to add.
        sentences = [sentence.replace("larger groups, ", "") for sentence in sentences]
    return tuple(
        sentence.format(accepted=listed, best=shortened(best), of=of, scope=scope, left=left)
        for sentence in sentences
    )


def _why_nothing(audit: AuditResult) -> str:
    """Say why nothing can be published by this audit."""
    if not audit.trusted:
        return "no_control" if audit.trusted is None else "untrusted"
    decisions = {verdict.decision for verdict in audit.verdicts}
    if "accept" in decisions:
        return "useless"
    if decisions == {"reject"}:
        return "all_rejected"
    if audit.choice is not None and audit.choice.by_hand:
        return "by_hand"
    open_ = (one for one in audit.verdicts if one.decision == "cannot tell")
    return "own_mechanism" if all(one.own_mechanism for one in open_) else "unsure"


def _warnings(audit: AuditResult) -> Iterator[str]:
    said: dict[str, str] = texts()["warnings"]
    if not audit.trusted:
        yield said["no_control" if audit.trusted is None else "untrusted"]
    if audit.failed_tasks:
        yield said["failed"].format(failed=audit.failed_tasks, total=audit.n_tasks)
    yield from said_of_targets("targets_warning", audit.choice)
    yield from audit.cautions
    for attack in dict.fromkeys(verdict.alone for verdict in audit.verdicts if verdict.alone):
        yield said["alone"].format(attack=shortened(attack))


def _headline(verdict: Verdict, found: Lookup) -> str:
    """Say how many people are found, or how well attackers do, and what is left to publish."""
    said: dict[str, str] = texts()["headlines"]
    best, auc = found.largest(verdict.setting, FOUND), found.largest(verdict.setting, "auc")
    size = verdict.group_size
    left = said["left"].format(left=verdict.left_in_words) if verdict.left_in_words else ""
    if auc is None:
        return said["nothing"] + left
    if best is None or (verdict.who is None and size is None):
        return said["auc"].format(auc=number(auc.estimate)) + left
    attacker = said["knows"].format(knows=verdict.knows) if verdict.knows else said["attacker"]
    if verdict.who is not None:
        people, guessed = f"{best.estimate:.1%} of the {verdict.who} who are", "1 %"
    else:
        people = f"{in_a_group(best, size or 0)} people"
        guessed = f"{0.01 * size:,.0f}" if size and size >= 100 else "less than 1"
    promise, _ = _promise(found, verdict.setting)
    return said["found"].format(attacker=attacker, people=people, guessed=guessed) + promise + left


def _promise(found: Lookup, setting: str) -> tuple[str, Cell]:
    """Say in a few words what is guaranteed, and in the cell of a table."""
    said: dict[str, str] = texts()["promises"]
    auc, odds, more = (
        found.value(setting, GUARANTEE, name) for name in ("auc", "odds_factor", "chance_of_more")
    )
    if auc is None:
        return said["nothing"], Cell("no guarantee")
    if odds is None or odds > HARDLY_ANY:
        cell = Cell(f"more than {HARDLY_ANY:,.0f}", sort=odds or float("inf"))
        return said["hardly_any"], cell
    but = said["but"].format(chance=chance_in_words(more)) if more else ""
    detail = f"chance of more: {chance_in_words(more)}" if more else ""
    most = f"{rounded_up(odds, 1):,.1f}"
    cell = Cell(f"\N{MULTIPLICATION SIGN} {most}", detail, sort=odds)
    return said["odds"].format(odds=most, but=but), cell


def _pictures(verdicts: Sequence[Verdict], found: Lookup, policy: Policy) -> dict[str, DotChart]:
    """Return the risk of all protections by each limited metric, against utility if measured."""
    pictures = {}
    for metric in dict.fromkeys(("auc", *(limit.metric for limit in policy.limits))):
        every = (_protection(i, verdict, found, metric) for i, verdict in enumerate(verdicts, 1))
        rows = tuple(row for row in every if row.dots)
        if rows:
            pictures[metric] = _risk_chart(rows, metric, policy)
    return pictures


def _risk_chart(rows: tuple[Protection, ...], metric: str, policy: Policy) -> DotChart:
    limit = next((limit.most for limit in policy.limits if limit.metric == metric), None)
    low, high = parts.axis_ends(metric, rows, limit)
    words = words_of(metric)
    title = f"{words}, the largest of all attacks"
    if any(row.kept is None for row in rows):
        return DotChart(title, words, rows, limit, low, high)
    kept = words_of(KEPT)
    title += f", against {kept}, for {counted(len(rows), 'protection')}"
    floor = next((one.least for one in policy.keep if one.metric == KEPT), None)
    return TradeOff(title, f"risk: {words}", rows, limit, low, high, f"kept: {kept}", floor)


def _protection(i: int, verdict: Verdict, found: Lookup, metric: str) -> Protection:
    setting, kept = verdict.setting, found.kept(verdict.setting)
    label = f"{i}  {setting}"
    left = "" if kept is None else f"; {words_of(KEPT)} {number(kept)}"
    said = f"{shortened(label)}: {outcome(verdict)}{left}; {words_of(metric)}"
    dots = Dot.of(OUTCOMES[outcome(verdict)], found.largest(setting, metric), said)
    return Protection(label, dots, found.bounds(setting, metric), i, kept)


def _settings_table(verdicts: Sequence[Verdict], found: Lookup, policy: Policy) -> Table:
    """Return one row for each protection: what is found, what is left, and what has a limit."""
    shown = [metric for metric in policy.metrics_to_show if metric != FOUND]
    most = parts.asked_by(policy).get(FOUND)
    heads = (
        parts.PROTECTION,
        Head("verdict", "verdict", numeric=False),
        Head("people found", FOUND, asked=f"{most} of them" if most else ""),
        *parts.metric_heads([*_LEFT, *shown], policy),
    )
    rows = (
        (
            parts.protection_cell(i, verdict.setting)._replace(detail=plain_words(verdict)),
            *(verdict, _found_cell(verdict, found)),
            *(found.find(verdict.setting, UTILITY, metric) for metric in _LEFT),
            *(found.largest(verdict.setting, metric) for metric in shown),
        )
        for i, verdict in enumerate(verdicts, 1)
    )
    caption = (
        "All protections: what is left to publish, and the most that any attack reached by each "
        "measure, with 95 % intervals."
    )
    return Table.of(caption, heads, rows)


def _bounds_table(verdicts: Sequence[Verdict], found: Lookup) -> Table:
    """Return what nobody can exceed under each protection, and what else is left to publish."""
    rest = tuple(metric for metric in OF_UTILITY if metric not in _LEFT)
    heads = (
        parts.PROTECTION,
        Head("ceiling, mean AUC", CEILING),
        Head("guarantee, AUC", GUARANTEE),
        Head("odds factor", "odds_factor"),
        *parts.metric_heads(rest),
    )
    rows = (
        (
            parts.protection_cell(i, verdict.setting),
            *(found.value(verdict.setting, line, "auc") for line in (CEILING, GUARANTEE)),
            _promise(found, verdict.setting)[1],
            *(found.find(verdict.setting, UTILITY, metric) for metric in rest),
        )
        for i, verdict in enumerate(verdicts, 1)
    )
    return Table.of("What bounds every attack, and what else is left to publish.", heads, rows)


def _found_cell(verdict: Verdict, found: Lookup) -> Cell:
    best, size = found.largest(verdict.setting, FOUND), verdict.group_size
    if best is None or best.estimate is None or size is None:
        return Cell("not resolvable")
    # A release holds other people than these too, of whom nothing is known.
    of = f"{size:,}" if verdict.who is None else f"the {verdict.who}"

    def shown(share: float) -> str:
        return f"{share * size:,.0f}" if verdict.who is None else f"{share:.1%}"

    low, high = best.low, best.high
    span = "" if low is None or high is None else f"{shown(low)} \u2013 {shown(high)}"
    return Cell(f"{shown(best.estimate)} of {of}", span, sort=best.estimate * size)


def _advice_of_search(found: Recommendation) -> Iterator[str]:
    said = texts()["recommendation"]
    chosen = found.recommended
    if chosen is None:
        yield from said["nothing"]
        return
    for sentence in said["found"]:
        yield sentence.format(mechanism=shortened(chosen.name), seed=found.confirmation_seed)
    kept, off = (chosen.utility.get(name) for name in ("cells_kept", "relative_error"))
    share = "an unknown share" if kept is None else f"{kept:.0%}"
    error = "an unknown amount" if off is None else f"{off:.0%}"
    yield said["left"].format(share=share, error=error)
    if found.published_for:
        yield lasts_in_words(found.published_for)
    if chosen.last_verdict.who is not None:
        yield said["about"].format(who=chosen.last_verdict.who)


def ladders(found: Recommendation) -> dict[str, dict[str, DotChart]]:
    """Return the risk and the cost of the steps of each family, from weak to strong."""
    families: dict[str, list[Candidate]] = {}
    for candidate in found.candidates:
        families.setdefault(shortened(candidate.ladder), []).append(candidate)
    limit = next((limit.most for limit in found.policy.limits if limit.metric == "auc"), None)
    return {family: _ladder(family, steps, limit) for family, steps in families.items()}


def _ladder(family: str, steps: list[Candidate], limit: float | None) -> dict[str, DotChart]:
    risks: list[Protection] = []
    kept: list[Protection] = []
    words = words_of(KEPT)
    for step in steps:
        name = shortened(step.name)
        label = f"{step.choice}{' (checked by all attacks)' if step.checked else ''}"
        risks.append(_risk(name, label, step.verdict, step.findings))
        if step.confirmation is not None:
            again = f"{step.choice} (confirmation)"
            risks.append(_risk(name, again, step.confirmation, step.confirmation_findings))
        left, key = step.pattern_kept, OUTCOMES[outcome(step.last_verdict)]
        dot = Dot(key, left, None, None, f"{name}: {words} {number(left)}")
        kept.append(Protection(label, (dot,)))
    measured = tuple(row for row in risks if row.dots)
    risk = DotChart(f"Risk by step of {family}", "mean AUC", measured, limit, 0.4, 1.0)
    left_over = DotChart(f"{words} by step of {family}", words, tuple(kept), None, 0, 1)
    return {"risk": risk, "kept": left_over}


def _risk(name: str, label: str, verdict: Verdict, findings: Sequence[Finding]) -> Protection:
    """Return what a trial of a step found."""
    lookup = Lookup(findings)
    auc = lookup.largest(verdict.setting, "auc")
    dots = Dot.of(OUTCOMES[outcome(verdict)], auc, f"{name}: mean AUC")
    return Protection(label, dots, lookup.bounds(verdict.setting, "auc"))
