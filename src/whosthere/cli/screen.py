"""What is shown of verdicts: the first screen of an audit or a search, and the details of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from whosthere.auditing.policy import Policy
from whosthere.auditing.reasons import FOUND, estimate_of, number
from whosthere.auditing.result import SHOWN, AuditResult, shown
from whosthere.auditing.series import said_of_series
from whosthere.auditing.store import NOTE
from whosthere.auditing.verdict import Verdict
from whosthere.cli import console
from whosthere.display import counted
from whosthere.inference.finding import Finding
from whosthere.inference.vocabulary import (
    CEILING,
    GUARANTEE,
    METRICS,
    NOT_ATTACKS,
    OF_UTILITY,
    UTILITY,
    glossary,
    is_judged,
)
from whosthere.reporting.report import REPORT
from whosthere.reporting.words import outcome
from whosthere.search.recommendation import (
    CHOSEN_BECAUSE_IT_PASSED,
    Candidate,
    Recommendation,
    lasts_in_words,
)

_IN_SHORT = {"share_auc_90": "people with AUC >= 0.9:"}
WHAT_FINDS_MEANS = (
    '"finds": people in a release whom the best attack names, while it wrongly names 1 in 100 of '
    "those not in it."
)


@dataclass(frozen=True)
class Line:
    """What the first screen says of one protection; `note` stands after its name."""

    verdict: Verdict
    findings: Sequence[Finding]
    policy: Policy
    name: str
    note: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The decision and the protection, whom it leaves to be found, and what it leaves."""
        label = outcome(self.verdict)
        said = (*(() if label == "useless" else self.verdict.remark), self.note)
        name = " ".join((self.name, *(f"({one})" for one in said if one)))
        pattern = self.verdict.left.get("pattern_correlation")
        left = "" if pattern is None else f"pattern {pattern:.2f}"
        return label.upper(), name, self._found, self._risk, left

    @property
    def below(self) -> tuple[str, ...]:
        """What is done to the counts; and why, if the decision is not plainly yes or no."""
        is_plain = self.verdict.decision == "reject" or not (
            self.verdict.useless or self.verdict.decision == "cannot tell"
        )
        why = () if is_plain else self.verdict.reasons[:1]
        return tuple(filter(None, (self.verdict.protection, *why)))

    @property
    def _found(self) -> str:
        """The people whom the best attack finds at a false-alarm rate of 1 %, with an interval."""
        best = max(self._of_attacks(FOUND), key=estimate_of, default=None)
        if best is None or best.estimate is None:
            return "finds: not known"
        size = self.verdict.group_size
        # A release holds other people too, so that a number of them all would be made up.
        is_share = size is None or self.verdict.who is not None
        unit, of = (100, " %") if is_share else (size or 0, f" of {size:,}")

        def people(share: float) -> str:
            return f"{share * unit:,.{1 if is_share else 0}f}"

        span = f"guessing {unit / 100:,.1f}".removesuffix(".0")
        if best.low is not None and best.high is not None:
            span = f"{people(best.low)} to {people(best.high)}; {span}"
        return f"finds {people(best.estimate)}{of} ({span})"

    @property
    def _risk(self) -> str:
        """The first limit that decides, and the attack that comes closest to it."""
        rejects, accepts = (self.verdict.decision == one for one in ("reject", "accept"))
        found = [
            (limit, one, one.at_least if rejects else one.at_most)
            for limit in self.policy.limits
            for one in self._of_attacks(limit.metric)
            if one.estimate is not None
        ]
        beyond = [one for one in found if accepts or one[2] > one[0].most] or found
        own = [one for one in beyond if one[0] == beyond[0][0]]
        if not own:
            return ""
        limit, closest, end = max(own, key=itemgetter(2))
        words = _IN_SHORT.get(limit.metric) or METRICS[limit.metric].words
        value = number(closest.estimate or 0.0, limit, 2)
        up_to = "" if rejects or accepts or math.isinf(end) else f" (up to {number(end, limit, 2)})"
        most = f"{limit.most:.2f}" if round(limit.most, 2) == limit.most else f"{limit.most:g}"
        return f"{words} {value}{up_to}, limit {most}"

    def _of_attacks(self, metric: str) -> list[Finding]:
        return [one for one in self.findings if one.metric == metric and is_judged(one.attack)]


def show_lines(lines: Sequence[Line]) -> None:
    """Print a line for each protection, or a few where the terminal is too narrow for one."""
    rows = [line.cells for line in lines]
    place, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    room = console.out.width - place - 4 if console.out.is_terminal else math.inf
    # In columns where these fit, and otherwise as short as can be.
    if sum(widths) + 2 * len(widths) > room:
        widths = [0] * len(widths)
    console.say("")
    for line, (label, *cells) in zip(lines, rows, strict=True):
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        in_one = "  ".join(padded).rstrip()
        fits = len(in_one) <= room
        about = in_one if fits else cells[0]
        console.verdict(label, about, useless=line.verdict.useless, width=place)
        indent = place + 4 if fits else 4
        if not fits:
            console.side_by_side([cell for cell in cells[1:] if cell], indent=indent)
        for said in line.below:
            console.beneath(said, indent=indent)
    console.say("")


def show_audit(
    result: AuditResult, *, details: bool = False, explain: bool = False, named: bool = False
) -> None:
    """Print what an audit found, the first screen last, so that it is what a terminal shows.

    Named targets have a line each.
    """
    if details:
        _show_details(result)
    if explain:
        for words, explanation in glossary([*SHOWN, CEILING, GUARANTEE, UTILITY, *OF_UTILITY]):
            console.say(f"- {words}: {explanation}")
    if named:
        _show_named_targets(result)
    _show_first_screen(result)
    if result.folder is not None:
        console.say(
            f"The report is {result.folder / REPORT}. The folder is private: its {NOTE} says what "
            f"may leave the house. More: whosthere inspect {result.folder}"
        )


def _show_first_screen(result: AuditResult) -> None:
    """Print a line for each protection, then what these rest on."""
    short = [one.setting.replace(f", m={one.group_size}", "") for one in result.verdicts]
    distinct = len(set(short)) == len(short)
    show_lines(
        [
            Line(
                verdict,
                [one for one in result.findings if one.setting == verdict.setting],
                result.policy,
                name if distinct else verdict.setting,
            )
            for verdict, name in zip(result.verdicts, short, strict=True)
        ]
    )
    console.say(*said_of_series(result.series))
    console.say(" ".join(_rests_on(result)), WHAT_FINDS_MEANS)


def _rests_on(result: AuditResult) -> Iterable[str]:
    attacks = list(dict.fromkeys(one.attack for one in result.findings if is_judged(one.attack)))
    sizes = sorted({one.group_size for one in result.verdicts if one.group_size is not None})
    by = f"{attacks[0]} alone" if len(attacks) == 1 else counted(len(attacks), "attack")
    by = by if attacks else "attacks for study only"
    groups = " and ".join(f"{size:,}" for size in sizes)
    where = f"groups of {groups}"
    if result.include is not None:
        where = f"each in a release with a chance of {result.include:g} ({groups} people)"
    yield f"{result.asked}; {where}; {by}; policy {result.policy.name!r}."
    look = max((one.look for one in result.verdicts), default=1)
    if look > 1:
        yield f"This is look {look}."
    if result.trusted:
        yield "All controls passed."
    elif result.trusted is None:
        yield "There was no control, so nothing shows that the audit itself is sound."


def _show_details(result: AuditResult) -> None:
    """Print tables, reasons and guarantees for each setting, and what would help."""
    for verdict in result.verdicts:
        console.say("")
        console.verdict(outcome(verdict), verdict.headline, useless=verdict.useless)
        if verdict.protection:
            console.beneath(verdict.protection, indent=4)
        _show_findings([one for one in result.findings if one.setting == verdict.setting])
        console.say(*verdict.reasons)
        console.say(*verdict.guaranteed, begin="Guaranteed: ")
        console.say(*verdict.meaning, begin="Meaning: ")
    console.say("")
    _show_what_if(result)
    console.say("All numbers with 95 % intervals.")
    console.say(*result.cautions, begin="Note: ")


def heads_of(metrics: Iterable[str]) -> list[str]:
    """Return what columns of metrics are called."""
    return [METRICS[metric].head for metric in metrics]


def _show_findings(findings: Sequence[Finding]) -> None:
    """Print what the attacks reach in one setting, then what bounds them all and what is left."""
    found = {(one.attack, one.metric): one for one in findings}
    lines = dict.fromkeys(one.attack for one in findings)
    attacks = [line for line in lines if line not in NOT_ATTACKS]
    attacks += [line for line in (CEILING, GUARANTEE) if line in lines]
    rows = [
        [attack, *(shown(found.get((attack, metric)), between="\n") for metric in SHOWN)]
        for attack in attacks
    ]
    console.table("", ("attack", *heads_of(SHOWN)), rows)
    if UTILITY in lines:
        left = [shown(found.get((UTILITY, name)), between="\n") for name in OF_UTILITY]
        console.table("Left to publish", heads_of(OF_UTILITY), [left])


def _show_what_if(result: AuditResult) -> None:
    rows = [
        (
            one.setting,
            one.change,
            *(shown(found, between="\n") for found in (one.before, one.after)),
            *(kept.get("pattern_correlation") for kept in (one.utility_before, one.utility_after)),
        )
        for one in result.what_if
    ]
    if rows:
        console.table(
            "What if (likelihood-ratio on a few releases; nothing is judged by it)",
            ("setting", "change", "mean AUC", "after", "pattern", "after"),
            rows,
        )


def _show_named_targets(result: AuditResult) -> None:
    """Print a line for each target that was asked for by name, by number and not by name."""
    numbers = {row: i for i, row in enumerate(result.plan["targets"], start=1)}
    columns = ("setting", "attack", "auc", "accuracy", "releases")
    rows = [
        (numbers[row["target"]], *(row[name] for name in columns))
        for row in result.targets.iter_rows(named=True)
        if row["attack"] != CEILING
    ]
    rows.sort(key=lambda row: row[0])
    title = "Named targets, in the order given (no intervals: one person each)"
    console.table(title, ("target", "setting", "attack", "AUC", "accuracy", "releases"), rows)


_LEGEND_OF_SEARCH = (
    "Risk is that of the strongest attack tried, with 95 % intervals. Cells kept: share of the "
    "visited cells published above 0. Relative error: mean over visited cells. Pattern "
    "correlation: of published and true counts, 1 is the same pattern and 0 is none. *: tried with "
    "every attack chosen, others with the likelihood ratio alone. Useless: less is left than the "
    "floors of the policy ask for. Confirmation: the protection above on fresh releases of people "
    "drawn anew."
)


def show_recommendation(
    found: Recommendation, written: Sequence[Path], *, details: bool, explain: bool
) -> None:
    """Print what a search found; the first screen last, so that it is what a terminal shows."""
    if details:
        _show_search_details(found)
    if explain:
        console.say(_LEGEND_OF_SEARCH)
    _show_front(found)
    show_lines([*_lines_of_search(found)])
    chosen = found.recommended
    if chosen is None:
        console.say(f"{found.why_nothing} passes the policy {found.policy.name!r}.")
        console.say(
            "Try other families, larger groups, larger regions or longer epochs, such as with "
            "--coarsen regions=4 or --coarsen epochs=4h,1d."
        )
    else:
        console.say(
            f"Recommended: {chosen.name}. Of the protections that pass, it preserves the "
            "pattern over regions and epochs best. Its numbers are those of the confirmation."
        )
        if found.published_for:
            console.say(lasts_in_words(found.published_for))
    console.say(WHAT_FINDS_MEANS, *(f"Written: {path}" for path in written))


def _lines_of_search(found: Recommendation) -> Iterator[Line]:
    """Return for each family what passes and is weakest, or the strongest that was tried.

    Where several cells or groups were tried, that is what keeps most, or else has the least risk.
    """
    for family in dict.fromkeys(candidate.family for candidate in found.candidates):
        own = [candidate for candidate in found.candidates if candidate.family == family]
        passing = [one for one in found.best if one.family == family]
        best = sorted(passing, key=lambda one: (one.confirmed, one.pattern_kept))[-1:]
        strongest = {one.ladder: one for one in own}.values()
        failed = [one for one in own if one.confirmation is not None and not one.confirmed]
        for one in [*failed, *(best or [min(strongest, key=lambda one: one.risk)])]:
            if one.confirmation is not None:
                note = "confirmed on fresh releases" if one.confirmed else "not confirmed"
            else:
                note = "no confirmation was tried" if one.passes else "the strongest tried"
            yield Line(one.last_verdict, one.last_findings, found.policy, one.name, note)


def _show_front(found: Recommendation) -> None:
    """Print what no other candidate beats, from the least risk to the most."""
    front, n = found.front, len(found.candidates)
    if len(front) > 1:
        console.say(f"Less risk costs pattern. Of {n} tried, no other beats these in both:")
        console.say(
            *(
                f"  mean AUC {shown(one.auc)}  pattern {one.kept:.2f}  {one.name} "
                f"({outcome(one.last_verdict)})"
                for one in front
            )
        )


def _show_search_details(found: Recommendation) -> None:
    metrics = found.policy.metrics_to_show
    for ladder in dict.fromkeys(candidate.ladder for candidate in found.candidates):
        own = [candidate for candidate in found.candidates if candidate.ladder == ladder]
        rows = [row for candidate in own for row in _rows(candidate, metrics)]
        console.table(ladder, ("", "verdict", *heads_of(metrics)), rows)
        left = [
            (candidate.choice, *(candidate.utility.get(name) for name in OF_UTILITY))
            for candidate in own
        ]
        console.table("Left to publish", ("", *heads_of(OF_UTILITY)), left)
    for candidate in found.candidates:
        if candidate.confirmation is not None:
            note = "confirmed on fresh releases" if candidate.confirmed else "not confirmed"
            verdict = candidate.last_verdict
            about = f"{verdict.headline}  ({note})"
            console.verdict(verdict.decision, about, useless=candidate.useless)
            console.say(*verdict.reasons)
    if found.recommended is not None:
        console.say(CHOSEN_BECAUSE_IT_PASSED)
    console.say(*found.cautions, begin="Note: ")


def _rows(candidate: Candidate, metrics: Sequence[str]) -> Iterator[list[str]]:
    """Return a row of what the search found, and one of the confirmation."""
    useless = "\n(useless)" if candidate.useless else ""
    yield [
        candidate.choice,
        candidate.verdict.decision + ("*" if candidate.checked else "") + useless,
        *(shown(candidate.strongest(metric), between="\n") for metric in metrics),
    ]
    if candidate.confirmation is not None:
        found = (candidate.strongest(metric, confirmed=True) for metric in metrics)
        numbers = (shown(one, between="\n") for one in found)
        yield ["confirmation", candidate.confirmation.decision, *numbers]
