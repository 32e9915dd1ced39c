"""Which option does what an error message asks for.

Messages come from rooms that know nothing of a command line. Here their words meet its options.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

_OPTIONS = {
    "invalid rows to be dropped": "--drop-invalid",
    "allow it to be replaced": "--force",
    "stands for a withheld count": "--withheld",
    "length of an epoch": "--epoch",
    "column holds the region": "--region-column",
    "column holds the time": "--time-column",
    "column holds the count": "--count-column",
    "column holds the user": "--user-column",
    "column holds the date": "--date-column",
    "column holds the lon": "--lon-column",
    "column holds the lat": "--lat-column",
    "how times are written": "--time-format",
    "hours of a clock change": "--clock-change",
    "Name its encoding": "--encoding",
    "stands between thousands": "--thousands",
    "which mechanism was really used": "--mechanism",
    "start and end of the time window": "--from and --to",
    "a box quantile": "--box-quantile",
    "such as Europe/Rome": "--timezone",
    "give a group size": "--group-size",
    "no group size is given": "--group-size",
    "releases are given for": "--releases-of",
    "no mechanism is given": "--mechanism",
    "a reference size": "--reference-size",
    "Ask for it to be extended": "--extend",
    "visits or less": "--min-visits",
    "targets or less": "--targets",
    "needs reference traces": "--reference",
    "needs traces of the target's friends": "--friends",
    "needs past releases with known membership": "--past-in and --past-out",
}


def with_options(message: str, known: Container[str]) -> str:
    """Return a message with the options that it speaks of named in it.

    `known` holds the options of the command that was given: no other is named.
    """
    for words, option in _OPTIONS.items():
        if all(one in known for one in option.split(" and ")):
            message = re.sub(
                f"({re.escape(words)})", rf"\1 ({option})", message, count=1, flags=re.IGNORECASE
            )
    return message
