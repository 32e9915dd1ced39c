"""`whosthere attacks` and `whosthere mechanisms`: what can be chosen, and how to write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.cli import console

if TYPE_CHECKING:
    from whosthere.specs import Kind

_EXAMPLES = (
    "--attack 'zero-knowledge(sampling=independent, marginals=mechanism)'",
    "--attack 'knock-knock(classifier=forest(trees=50))'",
    "--knowledge 'regions(top=2, guess=random)'",
)


def attacks() -> None:
    """List the attacks that can be named with --attack, and what --knowledge can be.

    Example: `whosthere attacks`
    """
    from whosthere.adversary.attacks import ATTACKS
    from whosthere.adversary.attacks.base import WORDS
    from whosthere.adversary.classifiers import CLASSIFIERS
    from whosthere.adversary.knowledge import KNOWLEDGE_RULES

    console.heading("Attacks (--attack)")
    for kind in ATTACKS.kinds.values():
        needs = [WORDS[part] for part in sorted(kind.make().uses)]
        _show(kind, f" Needs {' and '.join(needs)}." if needs else "")
    console.heading("What is known of a target (--knowledge)")
    for kind in KNOWLEDGE_RULES.kinds.values():
        _show(kind)
    console.heading("Classifiers, for attacks that train one")
    for kind in CLASSIFIERS.kinds.values():
        _show(kind)
    console.heading("Examples")
    for example in _EXAMPLES:
        console.say(f"  {example}")


def mechanisms() -> None:
    """List the protections that can be named with --mechanism, with presets used in practice.

    Example: `whosthere mechanisms`
    """
    from whosthere.privacy.mechanism import MECHANISMS, PRESETS, Mechanism

    console.heading("Steps (--mechanism); join several with |")
    for name, kind in MECHANISMS.kinds.items():
        if name not in PRESETS:
            _show(kind)
    console.heading("Presets")
    for name, preset in PRESETS.items():
        console.entry(name, f"{Mechanism.parse(name)}. {preset.meaning}.")


def _show(kind: Kind, more: str = "") -> None:
    """Print a name and what it stands for, then its parameters with their defaults."""
    console.entry(kind.example, f"{kind.summary}.{more}")
    for parameter, usual in kind.parameters():
        written = parameter.key if usual is None else f"{parameter.key}={usual}"
        values = "" if parameter.value.words.startswith("a ") else f" ({parameter.value.words})"
        console.entry(written, f"{parameter.meaning}{values}", indent=4)
