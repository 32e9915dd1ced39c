"""What to do, in two sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.reporting.numbers import shortened
from whosthere.reporting.texts import texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.auditing.verdict import Verdict
    from whosthere.reporting.lookup import Lookup

_NOTHING_LEFT = 0.01
_NAMED = 4


def advice(verdicts: Sequence[Verdict], found: Lookup, *, trusted: bool | None) -> tuple[str, ...]:
    """Return two sentences: what to do, and what next."""
    sentences: dict[str, list[str]] = texts()["advice"]
    accepted = [verdict.setting for verdict in verdicts if verdict.decision == "accept"]
    kept = {name: found.kept(name) for name in accepted}
    names = [shortened(name) for name in accepted]
    listed = "; ".join(names[:_NAMED]) + ("; ..." if len(names) > _NAMED else "")
    known = {name: value for name, value in kept.items() if value is not None}
    best = shortened(max(known, key=lambda name: known[name])) if known else ""
    chosen = sentences[_case(verdicts, kept, trusted=trusted)]
    return tuple(sentence.format(accepted=listed, best=best) for sentence in chosen)


def _case(
    verdicts: Sequence[Verdict], kept: dict[str, float | None], *, trusted: bool | None
) -> str:
    if not trusted:
        return "no_control" if trusted is None else "untrusted"
    if kept:
        return _case_of_accepted([value for value in kept.values() if value is not None], len(kept))
    unsure = any(verdict.decision == "cannot tell" for verdict in verdicts)
    return "unsure" if unsure or not verdicts else "all_rejected"


def _case_of_accepted(measured: list[float], accepted: int) -> str:
    if len(measured) == accepted and max(measured) < _NOTHING_LEFT:
        return "nothing_left"
    if accepted == 1:
        return "one_accepted"
    return "some_accepted" if measured else "some_accepted_unranked"
