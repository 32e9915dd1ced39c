"""The names of metrics, and what they mean: ``vocabulary.toml`` has their words."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from whosthere.display import told
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STRONGEST = "likelihood-ratio"
"""The strongest attack known: without it, nothing is accepted."""
CEILING = "ceiling"
"""Takes the place of an attack in findings about the best test that there is in the game."""
GUARANTEE = "guarantee"
"""Takes the place of an attack in findings about what the mechanism promises by itself."""
UTILITY = "utility"
"""Takes the place of an attack in findings about what is left to publish."""
NOT_ATTACKS = frozenset({CEILING, GUARANTEE, UTILITY})
STUDY_ONLY = " (study only)"
"""Ends the name of an attack that has what no attacker has: nothing is judged by it."""
CONTROL = "control_auc"
"""The metric of the control, which is about the audit and not about an attack."""
LAW_CONTROL = "law_control"
"""The metric of the control on where published values lie in the law of the mechanism."""
FAULTS = "faults"
"""The metric of the control on test releases that are not what they claim to be."""
EXCESS = "above_ceiling"
"""The metric of the control on how much better than the best possible an attack does."""
SHARED_AUC = "shared_auc"
"""The metric to compare attacks by that scored different numbers of releases."""
MUST_BE: Mapping[str, float] = MappingProxyType(
    {CONTROL: 0.5, LAW_CONTROL: 0.0, FAULTS: 0.0, EXCESS: 0.0}
)
"""What the intervals of controls must hold in a sound audit; none of them is about an attack."""
RATES: Mapping[str, float] = MappingProxyType(
    {"tpr_at_fpr_10pct": 0.1, "tpr_at_fpr_1pct": 0.01, "tpr_at_fpr_01pct": 0.001}
)
"""The metrics of people found, with the rate of false alarms that each allows."""
OF_UTILITY = ("visits_kept", "cells_kept", "relative_error", "pattern_correlation")
"""The metrics of what is left to publish."""


@dataclass(frozen=True)
class Metric:
    """What a metric is called in sentences, and in the heads of columns, and what it means.

    A policy may limit it only if larger values always mean more harm, and set a floor for it only
    if larger values always mean that more is left to publish.
    """

    words: str
    explanation: str
    head: str = ""
    largest: float = 1.0
    can_be_limited: bool = False
    can_have_floor: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", self.head or self.words)


_TEXTS = told("whosthere.inference", "vocabulary")
METRICS: Mapping[str, Metric] = MappingProxyType(
    {name: Metric(**about) for name, about in _TEXTS["metrics"].items()}
)
UTILITY_WORDS: Mapping[str, str] = MappingProxyType(_TEXTS["of_release"])
"""The measures of `whosthere.privacy.utility.Utility` in words."""


def is_judged(name: str) -> bool:
    """Tell whether a setting is judged by an attack: whether it is one, and not for study only."""
    return name not in NOT_ATTACKS and not name.endswith(STUDY_ONLY)


def glossary(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the words and the explanation of each name, for the legend of a table.

    They are names of metrics, or of what takes the place of an attack. Repeated ones are explained
    once.
    """
    known = {name: (one.words, one.explanation) for name, one in METRICS.items()}
    known |= {name: (name, said) for name, said in _TEXTS["not_attacks"].items()}
    wanted = dict.fromkeys(names)
    for name in wanted.keys() - known.keys():
        raise InputError(f"there is no metric {name!r}", fix=suggestion(name, METRICS))
    return [known[name] for name in wanted]
