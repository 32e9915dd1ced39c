"""What to do, in two sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.reporting.numbers import shortened
from whosthere.reporting.texts import texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.auditing.verdict import Verdict
    from whosthere.game.target_choice import TargetChoice
    from whosthere.reporting.lookup import Lookup

_NAMED = 4


def advice(
    verdicts: Sequence[Verdict],
    found: Lookup,
    *,
    trusted: bool | None,
    choice: TargetChoice | None = None,
) -> tuple[str, ...]:
    """Return two sentences: what to do, and what next."""
    useful = {
        one.setting: one.left_in_words
        for one in verdicts
        if one.decision == "accept" and not one.useless
    }
    names = [shortened(name) for name in useful]
    listed = "; ".join(names[:_NAMED]) + ("; ..." if len(names) > _NAMED else "")
    kept = {name: value for name in useful if (value := found.kept(name)) is not None}
    best = max(kept or useful, key=lambda name: kept.get(name, 0.0), default="")
    left = f" ({useful[best]})" if useful.get(best) else ""
    sentences: dict[str, list[str]] = texts()["advice"]
    if trusted and useful:
        case = _case_of_useful(len(useful), ranked=bool(kept))
    else:
        by_hand = choice is not None and choice.by_hand
        case = _case_of_nothing(verdicts, trusted=trusted, by_hand=by_hand)
    who = None if choice is None else choice.who
    scope = "" if who is None else f", as far as {who} are concerned"
    return tuple(
        sentence.format(accepted=listed, best=shortened(best), scope=scope, left=left)
        for sentence in sentences[case]
    )


def _case_of_useful(n: int, *, ranked: bool) -> str:
    if n == 1:
        return "one_accepted"
    return "some_accepted" if ranked else "some_accepted_unranked"


def _case_of_nothing(verdicts: Sequence[Verdict], *, trusted: bool | None, by_hand: bool) -> str:
    """Say why nothing can be published by this audit."""
    if not trusted:
        return "no_control" if trusted is None else "untrusted"
    decisions = {verdict.decision for verdict in verdicts}
    if "accept" in decisions:
        return "useless"
    if decisions == {"reject"}:
        return "all_rejected"
    return "by_hand" if by_hand else "unsure"
