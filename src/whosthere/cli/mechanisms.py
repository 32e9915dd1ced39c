"""`whosthere mechanisms`: what can be done to counts, and how to write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.cli import console

if TYPE_CHECKING:
    from whosthere.specs import Kind


def mechanisms() -> None:
    """List the protections that can be named with --mechanism, with presets used in practice.

    Example: `whosthere mechanisms`
    """
    from whosthere.privacy.catalogue import MECHANISMS, PRESETS
    from whosthere.privacy.mechanism import Mechanism

    kinds = {name: kind for name, kind in MECHANISMS.kinds.items() if name not in PRESETS}
    console.table(
        "Steps; join several with |",
        ("for example", "what it does"),
        [(kind.example, kind.summary) for kind in kinds.values()],
    )
    console.table("Their parameters", ("parameter", "of", "default", "meaning"), _parameters(kinds))
    console.table(
        "Presets",
        ("name", "stands for", "where from"),
        [(name, str(Mechanism.parse(name)), preset.meaning) for name, preset in PRESETS.items()],
    )


def _parameters(kinds: dict[str, Kind]) -> list[tuple[str, str, str, str]]:
    """Return a row for each parameter; steps that share one share its row."""
    steps: dict[tuple[str, str, str], list[str]] = {}
    for name, kind in kinds.items():
        for parameter, usual in kind.parameters():
            steps.setdefault((parameter.key, usual or "", parameter.meaning), []).append(name)
    return [
        (key, ", ".join(names), usual, meaning) for (key, usual, meaning), names in steps.items()
    ]
