"""Sentences about findings, for readers who do not have the numbers at hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scipy.special import ndtri

from whosthere.display import counted
from whosthere.inference.looks import ERROR, Look
from whosthere.inference.metrics import least_people
from whosthere.inference.vocabulary import METRICS, RATES
from whosthere.privacy.ledger import HARDLY_ANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whosthere.auditing.policy import Floor, Limit
    from whosthere.inference.finding import Finding

_FPR = 0.01
_MOST_TARGETS = 100_000
SHARES = frozenset({"share_auc_90", *RATES})
"""The metrics that are shares of people: a sample of n people can show none below about 1/n."""
FOUND = "tpr_at_fpr_1pct"
"""The metric that says how many people would be found."""


def broken(finding: Finding, limit: Limit, *, is_strongest: bool) -> str:
    """Say that an attack is surely above a limit."""
    title = " the strongest attack," if is_strongest else ""
    # Where the lower end that decides is not the one that is shown.
    by = ""
    if finding.at_least != low_of(finding):
        by = f"; lower bound that decides: {number(finding.at_least, limit)}"
    return (
        f"For {finding.attack},{title} the {METRICS[limit.metric].words} is "
        f"{_reached(finding, limit)}, above the limit of {limit.most:g}{by}."
    )


def kept(findings: Sequence[Finding], limit: Limit) -> str:
    """Say how close attacks come to a limit that all of them keep."""
    top = max(findings, key=estimate_of)
    return (
        f"The largest {METRICS[limit.metric].words} is {number(estimate_of(top), limit)} "
        f"({_span(top, limit)}; limit {limit.most:g}), by {top.attack}."
    )


def undecided(finding: Finding, limit: Limit) -> str:
    """Say that an attack may be on either side of a limit."""
    words = f"For {finding.attack}, the {METRICS[limit.metric].words}"
    if low_of(finding) > limit.most:
        return (
            f"{words} is {_reached(finding, limit)}, above the limit of {limit.most:g}. To reject, "
            f"the lower end that decides must be above it too, and that is "
            f"{number(finding.at_least, limit)}."
        )
    if _high(finding) <= limit.most:
        return (
            f"{words} is {_reached(finding, limit)}, within the limit of {limit.most:g}. To "
            f"accept, the upper end that decides must be within it too, and that is "
            f"{number(finding.at_most, limit)}."
        )
    return f"{words} may be as high as {number(finding.at_most, limit)} (limit {limit.most:g})."


def what_would_help(finding: Finding, limit: Limit, *, look: Look, everybody: bool = False) -> str:
    """Say how many targets would decide at the next look, if what was measured stays as it is.

    Where everybody is asked already, it is how many releases.
    """
    what, n = "targets", finding.n_targets
    if everybody:
        what, n = "releases", (finding.n_in + finding.n_out) // max(finding.n_targets, 1)
    elif limit.metric in SHARES:
        if limit.most == 0:
            return "No number of targets can show exactly 0."
        least = least_people(limit.most, look.next.error)
        if finding.n_targets < least:
            return (
                f"{counted(finding.n_targets, 'target')} are too few: the next look needs at least "
                f"{least} to show {limit.most:g} or less."
            )
    needed = targets_needed(finding, limit, n, look=look)
    if needed is None:
        return (
            f"It is so close to the limit that no number of {what} within reach would decide; a "
            "slightly stronger protection would."
        )
    return f"About {needed:,} {what} instead of {n:,} would decide, if the estimate stays as it is."


def targets_needed(finding: Finding, limit: Limit, n: int, *, look: Look) -> int | None:
    """Return how many targets would bring the interval to one side of a limit at the next look.

    It rests on `n` of them, or of releases of everybody.

    Intervals shrink with the square root of their number, or with the number itself above a share
    of 0. They are wider at the next look, which has less error to spend. None if more than 100,000
    are needed, or nobody can tell.
    """
    if finding.estimate is None or finding.low is None or finding.high is None:
        return None
    is_above = finding.estimate > limit.most
    reach = finding.estimate - finding.at_least if is_above else finding.at_most - finding.estimate
    away = abs(finding.estimate - limit.most)
    if away <= 0:
        return None
    now, then = look.error, look.next.error
    if finding.estimate:
        needed = n * (reach / away * float(ndtri(then) / ndtri(now))) ** 2
    else:
        needed = n * reach / away * math.log(then) / math.log(now)
    if needed > _MOST_TARGETS:
        return None
    # To two digits: more would pretend to know.
    step = int(10 ** max(math.floor(math.log10(max(needed, 1))) - 1, 0))
    return max(math.ceil(needed / step - 1e-6) * step, n + 1)


def unknown(attack: str, limit: Limit, finding: Finding | None = None) -> str:
    """Say that an attack has no upper bound, and what its finding lacks."""
    note = "" if finding is None or finding.note is None else f" ({finding.note})"
    if finding is None:
        what = "was not measured"
    elif finding.estimate is None:
        what = f"is not known{note}"
    elif finding.low is None:
        what = f"has no confidence interval{note}"
    else:
        what = f"is at least {number(finding.low, limit)}, with no upper bound{note}"
    return (
        f"For {attack}, the {METRICS[limit.metric].words} {what}, so the audit cannot show that "
        f"it is {limit.most:g} or less."
    )


def each_auc(findings: Iterable[Finding]) -> str:
    """List mean AUCs with their attacks."""
    return ", ".join(f"{one.estimate:.3f} for {one.attack}" for one in findings)


def looks_before(look: Look) -> list[str]:
    """Say that there were verdicts before, and what that means for errors."""
    if look.number == 1:
        return []
    return [
        f"This is look {look.number}: there were verdicts on other scores before. Over all looks, "
        f"the chance of a wrong acceptance is at most {100 * ERROR:g} %, and so is that of a wrong "
        f"rejection. This look may spend {100 * look.spends:.2g} %."
    ]


def below_floors(left: Mapping[str, float], floors: Iterable[Floor]) -> str:
    """Say which floors are not reached; empty if all are, or nobody knows.

    Nothing at all is too little by any policy.
    """
    below = " and ".join(
        f"the {METRICS[one.metric].words} is {left[one.metric]:.3f} (floor {one.least:g})"
        for one in floors
        if left.get(one.metric, 1.0) < one.least
    )
    return below or ("no count above 0 is published" if left.get("cells_kept") == 0 else "")


def guaranteed(found: Mapping[str, float]) -> str:
    """Say what the mechanism promises by itself, to everybody."""
    if not {"auc", FOUND} <= found.keys():
        return "The mechanism guarantees nothing about whether a person is in."
    best = f"No attack exceeds an AUC of {rounded_up(found['auc'], 3):.3f} for anybody"
    odds, more = found.get("odds_factor"), found.get("chance_of_more")
    if odds is None or odds > HARDLY_ANY:
        return (
            "For the person with most to lose, the release may multiply the odds of being in "
            f"by more than {HARDLY_ANY:,.0f}, which promises next to nothing. {best}."
        )
    but = f", except with a chance of at most {chance_in_words(more)}" if more else ""
    if more and (most := found.get("largest_odds_factor", math.inf)) <= HARDLY_ANY:
        but += f" (and never by more than {rounded_up(most, 1):,.1f})"
    return (
        "Whatever an attacker knows, the release multiplies the odds that a person is in by at "
        f"most {rounded_up(odds, 1):,.1f}, for everybody who may be in it{but}. {best}. At a "
        f"false-alarm rate of 1 %, nobody finds more than {rounded_up(found[FOUND], 3):.1%} of "
        "the people."
    )


def meaning(
    findings: Iterable[Finding],
    prior: float,
    group_size: int | None,
    who: str | None,
    knows: str | None,
) -> list[str]:
    """Say what the attack that finds most people would mean for them."""
    known = [finding for finding in findings if finding.estimate is not None]
    if not known:
        return []
    best = max(known, key=estimate_of)
    tpr = estimate_of(best)
    right = prior * tpr / max(prior * tpr + (1 - prior) * _FPR, 1e-300)
    people = "people in a release" if who is None else f"{who} who are in a release"
    # A release holds other people too, so that a number of them all would be made up.
    many = "" if group_size is None or who is not None else f", {in_a_group(best, group_size)}"
    by = best.attack if knows is None else f"{best.attack}, which knows {knows},"
    span = ""
    if best.low is not None and best.high is not None:
        span = f" ({best.low:.1%} to {best.high:.1%})"
    return [
        f"At a false-alarm rate of 1 %, {by} finds {tpr:.1%}{span} of the {people}{many}. If "
        f"{prior:.0%} of the people in question are in, {right:.0%} of those whom it names are."
    ]


def in_a_group(found: Finding, size: int) -> str:
    """Write a share of people found as so many of a group, with its interval."""
    span = ""
    if found.low is not None and found.high is not None:
        span = f" ({found.low * size:,.0f} to {found.high * size:,.0f})"
    return f"about {estimate_of(found) * size:,.0f}{span} of {size:,}"


def chance_in_words(bound: float) -> str:
    """Write a bound of a chance with two digits, rounded to the side on which it still holds."""
    digits = 1 - math.floor(math.log10(bound))
    return f"{math.ceil(bound * 10.0**digits * (1 - 1e-9)) / 10.0**digits:.2g}"


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does: a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def estimate_of(finding: Finding) -> float:
    """Return an estimate to compare by; what has none is the smallest."""
    return -math.inf if finding.estimate is None else finding.estimate


def low_of(finding: Finding) -> float:
    """Return the lower end to compare by; what has none is the smallest."""
    return -math.inf if finding.low is None else finding.low


def _high(finding: Finding) -> float:
    return math.inf if finding.high is None else finding.high


def rounded_up(bound: float, digits: int) -> float:
    """Round a bound to the side on which it still holds; rounding errors aside."""
    return math.ceil((bound - 1e-9) * 10.0**digits) / 10.0**digits


def _reached(finding: Finding, limit: Limit) -> str:
    if finding.estimate is None or finding.high is None:
        return f"at least {number(low_of(finding), limit)}"
    return f"{number(finding.estimate, limit)} ({_span(finding, limit)})"


def _span(finding: Finding, limit: Limit) -> str:
    return f"{number(low_of(finding), limit)} to {number(_high(finding), limit)}"


def number(value: float, limit: Limit, least_digits: int = 3) -> str:
    """Write a number with a few decimals, or with more if it would look like the limit."""
    for digits in range(least_digits, 9):
        text = f"{value:.{digits}f}"
        if value == limit.most or text != f"{limit.most:.{digits}f}":
            return text
    return str(value)
