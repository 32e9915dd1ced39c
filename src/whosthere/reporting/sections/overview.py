"""The first screen: verdicts, what they mean, what to do, and the picture that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.auditing.reasons import chance_in_words, in_a_group, rounded_up
from whosthere.display import counted
from whosthere.inference.vocabulary import OF_UTILITY, UTILITY
from whosthere.privacy.guarantees import HARDLY_ANY
from whosthere.reporting.charts.risk import DECISIONS, Dot, DotChart, Protection, TradeOff
from whosthere.reporting.lookup import FOUND, KEPT, Lookup, group_size_of
from whosthere.reporting.sections.advice import advice, said_of_targets
from whosthere.reporting.sections.parts import (
    PROTECTION,
    Cell,
    Head,
    Table,
    axis_ends,
    metric_heads,
    protection_cell,
)
from whosthere.reporting.words import number, shortened, texts, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from whosthere.auditing.policy import Policy
    from whosthere.auditing.result import AuditResult
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
    pictures
        Risk by each metric that is limited.
    tally
        Each decision, how often it was taken, and how many of these are useless protections.
    """

    advice: tuple[str, ...]
    warnings: tuple[str, ...]
    tally: tuple[tuple[Decision, int, int], ...]
    cards: tuple[Card, ...]
    pictures: dict[str, DotChart]
    table: Table


def overview(audit: AuditResult) -> Overview:
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


def _warnings(audit: AuditResult) -> Iterator[str]:
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
    said: dict[str, str] = texts()["headlines"]
    best, auc = found.largest(verdict.setting, FOUND), found.largest(verdict.setting, "auc")
    size = group_size_of(verdict.setting)
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
    odds, more = (found.guarantee(setting, name) for name in ("odds_factor", "chance_of_more"))
    if found.guarantee(setting, "auc") is None:
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
    limited = (limit.metric for limit in policy.limits)
    charts = {
        metric: _risk_chart(verdicts, found, metric, policy)
        for metric in dict.fromkeys(("auc", *limited))
    }
    return {metric: chart for metric, chart in charts.items() if chart is not None}


def _risk_chart(
    verdicts: Sequence[Verdict], found: Lookup, metric: str, policy: Policy
) -> DotChart | None:
    every = (_protection(i, verdict, found, metric) for i, verdict in enumerate(verdicts, 1))
    rows = tuple(row for row in every if row.dots)
    if not rows:
        return None
    limit = next((limit.most for limit in policy.limits if limit.metric == metric), None)
    low, high = axis_ends(metric, rows, limit)
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
    said = f"{shortened(label)}: {verdict.decision}{left}; {words_of(metric)}"
    return Protection(
        label,
        Dot.of(DECISIONS[verdict.decision], found.largest(setting, metric), said),
        found.ceiling(setting, metric),
        found.guarantee(setting, metric),
        i,
        kept,
    )


def _settings_table(verdicts: Sequence[Verdict], found: Lookup, policy: Policy) -> Table:
    """Return one row for each protection."""
    shown = policy.metrics_to_show
    # What the picture shows comes first.
    utility = dict.fromkeys((KEPT, *OF_UTILITY))
    heads = (
        PROTECTION,
        Head("verdict", "verdict", numeric=False),
        Head("people found", "people found"),
        *metric_heads([*shown, *utility]),
        Head("ceiling, mean AUC", "ceiling"),
        Head("guarantee, mean AUC", "guarantee"),
        Head("odds factor", "odds_factor"),
    )
    rows = (
        (
            *(protection_cell(i, verdict.setting), verdict, _found_cell(verdict, found)),
            *(found.largest(verdict.setting, metric) for metric in shown),
            *(found.find(verdict.setting, UTILITY, metric) for metric in utility),
            found.ceiling(verdict.setting, "auc"),
            found.guarantee(verdict.setting, "auc"),
            _promise(found, verdict.setting)[1],
        )
        for i, verdict in enumerate(verdicts, 1)
    )
    caption = (
        "All protections: the most that any attack reached by each measure, with 95 % intervals."
    )
    return Table.of(caption, heads, rows)


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
