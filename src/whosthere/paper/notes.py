"""What is known of the authors' public code beyond the paper's text, where it bears on a number.

Observations only; nothing of that code is part of this project. What it does differently
throughout stands in docs/explanation/paper.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whosthere.paper.datasets import Published

_NOTES: dict[str, tuple[str, ...]] = {
    "ssc": (
        "Their log compression is applied in every setting, also where counts are raw.",
        "Their contradiction rule also fires where a count equals m and the target is absent.",
        "Their mean iteration compares numbers of non-zero cells under suppression, in five rounds "
        "at most.",
    ),
    "dp-event": (
        "Their Laplace noise is cast to 8-bit numbers before it is added: cut toward 0 (63 % of it "
        "is 0 at scale 1, 99 % at scale 0.2) and wrapped beyond 128. The experiment `eight-bit` "
        "shows what that changes.",
    ),
    "dp-user-day": (
        "At eps 0.1 the noise has scale 100 or more, and 8-bit numbers wrap in 28 % of the draws.",
    ),
    "partial-trace": (
        "Their validation groups for KK hold the full trace of the target, also where only a part "
        "of it is known: its threshold is tuned with more than the attacker knows.",
    ),
    "paired-sampling": (
        "Their independent groups for KK are the saved paired ones with separate noise: the groups "
        "themselves stay in pairs.",
    ),
    "group-size-k0": ("Visit counts of synthetic people are cut to whole numbers, not rounded.",),
    "synthetic-size": (
        "The paper's text gives ZK 5000 synthetic traces, its Table 2 gives 2500 for Milan.",
    ),
    "regions-only-greedy": (
        'Their "top-K" regions are sorted by index and not by visits, so that they are K visited '
        "regions and not the most visited ones.",
    ),
    "regions-only-random": (
        "There is no code for the random guess of regions.",
        "The paper takes the true mean and time marginal for the guess; here each attacker takes "
        "those of its own reference.",
    ),
}
"""By series: sentences to read beside a difference from the published numbers."""
_ON_MILAN = {
    "dp-event": (
        "The published accuracies of ZK are far below what its AUCs suggest (0.59 at eps 1, where "
        "the text gives an AUC above 0.9). The text does not say why.",
    ),
    "dp-user-day": (
        "Their user-day experiments on Milan reuse the aggregates of the event-level ones, in "
        "which no visits were dropped: Delta scales the noise alone.",
    ),
}
"""The same for numbers of Milan alone."""


def notes_on(series: str, like: Published) -> tuple[str, ...]:
    """Return what to read beside numbers of a series that are compared with the paper's."""
    return _NOTES.get(series, ()) + (_ON_MILAN.get(series, ()) if like == "milan" else ())
