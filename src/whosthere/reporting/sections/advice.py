"""What to do, in two sentences, and whom the numbers are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.reporting.words import shortened, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.auditing.verdict import Verdict
    from whosthere.game.plan import TargetChoice
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
    if trusted and useful:
        some = "some_accepted" if kept else "some_accepted_unranked"
        case = "one_accepted" if len(useful) == 1 else some
    else:
        by_hand = choice is not None and choice.by_hand
        case = _why_nothing(verdicts, trusted=trusted, by_hand=by_hand)
    who = None if choice is None else choice.who
    scope = "" if who is None else f", as far as {who} are concerned"
    sentences: list[str] = texts()["advice"][case]
    return tuple(
        sentence.format(accepted=listed, best=shortened(best), scope=scope, left=left)
        for sentence in sentences
    )


def _why_nothing(verdicts: Sequence[Verdict], *, trusted: bool | None, by_hand: bool) -> str:
    """Say why nothing can be published by this audit."""
    if not trusted:
        return "no_control" if trusted is None else "untrusted"
    decisions = {verdict.decision for verdict in verdicts}
    if "accept" in decisions:
        return "useless"
    if decisions == {"reject"}:
        return "all_rejected"
    return "by_hand" if by_hand else "unsure"


def said_of_targets(topic: str, choice: TargetChoice | None) -> list[str]:
    """Return the sentence that a topic has for how the targets were chosen, if it has one."""
    sentences: dict[str, str] = texts()[topic]
    if choice is None:
        case, numbers = "unknown", {}
    else:
        case = "by_hand" if choice.by_hand else "everybody" if choice.who is None else "some"
        numbers = {"eligible": f"{choice.eligible:,}", "people": f"{choice.people:,}"}
        numbers["who"] = choice.who or ""
    return [sentences[case].format(**numbers)] if case in sentences else []
