"""Numbers and names as a reader sees them."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whosthere.inference.finding import Finding

LONGEST_NAME = 120
_TO = "\N{NARROW NO-BREAK SPACE}\N{EN DASH}\N{NARROW NO-BREAK SPACE}"


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


def interval(finding: Finding) -> str:
    """Write the interval of a finding, empty where it has none."""
    if finding.low is None or finding.high is None:
        return ""
    return f"{finding.low:.2f}{_TO}{finding.high:.2f}"


def with_interval(finding: Finding | None) -> str:
    """Write a finding in a sentence: its value, and its interval in brackets."""
    if finding is None or finding.estimate is None:
        return "not known"
    if finding.low is None or finding.high is None:
        return number(finding.estimate)
    return f"{number(finding.estimate)} ({number(finding.low)} to {number(finding.high)})"


def people(share: float, group_size: int) -> str:
    """Write a share of a group as people."""
    return f"{share * group_size:,.0f} of {group_size:,}"
