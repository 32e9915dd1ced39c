"""Numbers, names and metrics as a reader sees them; prose is data, and stands in ``texts.toml``."""

from __future__ import annotations

import math
import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

from whosthere.display import told
from whosthere.inference.vocabulary import METRICS

if TYPE_CHECKING:
    from whosthere.auditing.verdict import Verdict
    from whosthere.inference.finding import Finding

LONGEST_NAME = 120


@cache
def texts() -> dict[str, Any]:
    """Return the prose of reports by topic."""
    return told("whosthere.reporting", "texts")


def in_trips(page: str) -> str:
    """Return a page about visits as one about trips; specs, options and anchors stay."""
    for said, instead in texts()["trips"].items():
        page = re.sub(rf"(?<![-=\w]){said}(?![\w(])", instead, page)
    return page


def words_of(metric: str) -> str:
    """Return what a metric is called in sentences."""
    return METRICS[metric].words if metric in METRICS else metric.replace("_", " ")


def outcome(verdict: Verdict) -> str:
    """Return what a verdict is shown as: its decision, unless what is accepted leaves too little.

    Nobody should take what leaves nothing for advice to publish.
    """
    return "useless" if verdict.decision == "accept" and verdict.useless else verdict.decision


def plain_words(verdict: Verdict) -> str:
    """Say what is done to the counts in a sentence; nothing if the verdict does not say it."""
    done = shortened(verdict.protection)
    return f"{done[0].upper()}{done[1:]}." if done else ""


def visible(text: str) -> str:
    """Replace what is no character to read: controls, and halves of characters."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(one) in {"Cc", "Cs"} and one != "\n"
        else one
        for one in text
    )


def shortened(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text of at most `longest` characters, with the middle left out of longer ones."""
    flat = visible(" ".join(text.split()))
    if len(flat) <= longest:
        return flat
    first = (longest - 1) * 2 // 3
    return f"{flat[:first]}\N{HORIZONTAL ELLIPSIS}{flat[first + 1 - longest :]}"


def number(value: float | None) -> str:
    """Write a number with three decimals, without any if it is large, or say that there is none."""
    if value is None or math.isnan(value):
        return "not known"
    if abs(value) >= 1e6:
        return "more than a million" if value > 0 else "less than minus a million"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"


def with_interval(finding: Finding) -> str:
    """Write a finding in a sentence: its value, and its interval in brackets."""
    if finding.low is None or finding.high is None:
        return number(finding.estimate)
    return f"{number(finding.estimate)} ({number(finding.low)} to {number(finding.high)})"
