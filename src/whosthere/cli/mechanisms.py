"""`whosthere mechanisms`: what can be done to counts, and how to write it."""

from __future__ import annotations

from whosthere.cli import console

_EXAMPLES = (
    ("raw", "publish the true counts"),
    ("suppress(k=1)", "publish 0 for counts of k or fewer"),
    ("round(to=5)", "round to the nearest multiple"),
    ("laplace(eps=1, unit=event)", "Laplace noise that hides one visit"),
    ("laplace(eps=1, unit=user-day, max_visits=10)", "... all visits of a person on one day"),
    ("laplace(eps=1, unit=user, max_visits=50)", "... all visits of a person"),
    ("discrete-laplace(eps=1, unit=event)", "whole-number noise"),
    ("gaussian(eps=1, delta=1e-6, unit=event)", "Gaussian noise, (eps, delta)-private"),
    ("laplace(eps=1, unit=event) | suppress(k=1)", "one after the other"),
)


def mechanisms() -> None:
    """List the protections that can be named with --mechanism, with presets used in practice.

    Example: `whosthere mechanisms`
    """
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.presets import PRESETS

    console.table("Mechanisms, by example", ("spec", "what it does"), _EXAMPLES)
    rows = [
        (name, str(Mechanism(preset.steps)), preset.meaning) for name, preset in PRESETS.items()
    ]
    console.table("Presets", ("name", "stands for", "where from"), rows)
