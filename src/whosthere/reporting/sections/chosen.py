"""What a report says of how the targets were chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.reporting.texts import texts

if TYPE_CHECKING:
    from whosthere.auditing.result import AuditResult
    from whosthere.game.target_choice import TargetChoice


def said_of_targets(topic: str, audit: AuditResult) -> list[str]:
    """Return the sentence that a topic has for how the targets were chosen, if it has one."""
    choice = audit.choice
    sentence = texts()[topic].get(_case(choice))
    if sentence is None or choice is None:
        return [] if sentence is None else [sentence]
    numbers = {"eligible": f"{choice.eligible:,}", "people": f"{choice.people:,}"}
    return [sentence.format(who=choice.who, **numbers)]


def _case(choice: TargetChoice | None) -> str:
    if choice is None:
        return "unknown"
    if choice.by_hand:
        return "by_hand"
    return "everybody" if choice.who is None else "some"
