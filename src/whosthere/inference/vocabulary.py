"""The metrics of findings, in words for the people who decide about releases."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

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
_LINES = {
    CEILING: (
        "This is not an attack, but the best that anybody could reach who knows all other people "
        "of the group. No attack does better, and it has no part in the verdict."
    ),
    GUARANTEE: (
        "This is not an attack either, but what differential privacy promises by itself: no "
        "attacker reaches more, whatever that attacker knows."
    ),
    UTILITY: (
        "What the protection leaves of the true counts, on test releases. It is no attack. A "
        "policy sets floors for it: what keeps less is safe, but useless."
    ),
}
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


@dataclass(frozen=True)
class Metric:
    """What a metric is called, and what it means.

    Attributes
    ----------
    name
        Its name in findings, policies and files.
    words
        Its name in sentences and in the headings of tables.
    explanation
        A few sentences for a reader who does not know it.
    largest
        The largest possible value; None if there is none.
    can_be_limited
        Whether a policy may limit it. This must only be so if larger values always mean more
        harm.
    can_have_floor
        Whether a policy may ask for at least so much of it. This must only be so if larger values
        always mean that more is left to publish.
    """

    name: str
    words: str
    explanation: str
    largest: float | None = 1.0
    can_be_limited: bool = False
    can_have_floor: bool = False


def _true_positive_rate(name: str, percent: str, false_alarms: str) -> Metric:
    return Metric(
        name,
        f"TPR at {percent} % FPR",
        f"The share of the people in a release whom the attacker finds, while naming at most "
        f"{false_alarms} who are not in it by mistake. Guessing finds {percent} % of them.",
        can_be_limited=True,
    )


_ALL = (
    Metric(
        "auc",
        "mean AUC",
        "How well the attacker distinguishes releases with a person from releases without that "
        "person, averaged over the targets. 0.5 is guessing, 1 is certainty.",
        can_be_limited=True,
    ),
    Metric(
        SHARED_AUC,
        "mean AUC on shared releases",
        "The mean AUC on the releases that all attacks scored. It tells which attack is stronger "
        "where some of them scored more releases than others.",
    ),
    Metric(
        "pooled_auc",
        "AUC over everybody",
        "How well one threshold tells people who are in from people who are not, over all targets "
        "together, with scores as the attacker has them. 0.5 is guessing, 1 is certainty.",
        can_be_limited=True,
    ),
    Metric(
        "accuracy",
        "accuracy",
        "How often the attacker's yes or no is right, if the person is in half of the releases. "
        "0.5 is guessing, 1 is never wrong.",
        can_be_limited=True,
    ),
    _true_positive_rate("tpr_at_fpr_10pct", "10", "1 in 10 people"),
    _true_positive_rate("tpr_at_fpr_1pct", "1", "1 in 100 people"),
    _true_positive_rate("tpr_at_fpr_01pct", "0.1", "1 in 1,000 people"),
    Metric(
        "empirical_eps",
        "certified eps",
        "The attack proves that differential privacy with a smaller eps does not hold if one "
        "person is replaced by another. If one person is added or removed, it proves half of this "
        "eps. 0 proves nothing; larger is worse.",
        largest=None,
        can_be_limited=True,
    ),
    Metric(
        "empirical_eps_ceiling",
        "largest eps that could be certified",
        "The certified eps that a perfect attacker would reach with the same number of releases. "
        "The certified eps cannot be larger than this, however weak the protection is.",
        largest=None,
    ),
    Metric(
        "share_auc_90",
        "share of people with an AUC of 0.9 or more",
        "The share of people whom the attacker almost always finds. "
        "A mean can look harmless while these people are all but exposed. The noise of each "
        "person's own AUC is taken out.",
        can_be_limited=True,
    ),
    Metric(
        "auc_p90",
        "AUC of the person at the 90th percentile",
        "Nine people in ten are harder to find than this.",
        can_be_limited=True,
    ),
    Metric(
        "odds_factor",
        "odds factor",
        "The factor by which a release can raise the odds that a person is in, at most, for the "
        "one of all people in the data with most to lose. The mechanism guarantees it.",
        largest=None,
    ),
    Metric(
        "chance_of_more",
        "chance of more than the odds factor",
        "The chance, at most, that a release raises these odds by more than the odds factor. It is "
        "0 for Laplace noise. For Gaussian noise it is not the same as delta.",
    ),
    Metric(
        "largest_auc",
        "largest AUC of a person",
        "The largest AUC that the mechanism allows for the person with most to lose.",
    ),
    Metric(
        CONTROL,
        "AUC of the control",
        "The AUC if the person is in none of the releases, so that there is nothing to find. "
        "It must be 0.5 except for chance; otherwise the audit itself is wrong.",
    ),
    Metric(
        LAW_CONTROL,
        "published values in their law",
        "How far published values lie from where the law of the mechanism puts them, given the "
        "true counts of the people who are claimed to be in. Of several such numbers the worst is "
        "shown. It must be 0 except for chance; otherwise the audit itself is wrong.",
    ),
    Metric(
        FAULTS,
        "faulty releases",
        "How many test releases are not what they claim to be: another group, other counts, "
        "impossible values, noise that was used before, or a target who is in and was ruled out. "
        "It must be 0; otherwise the audit itself is wrong.",
        largest=None,
    ),
    Metric(
        EXCESS,
        "AUC above the ceiling",
        "How much larger the AUC of the attack is than that of the ceiling, over pairs of releases "
        "that both scored. No attack can do better than the ceiling, so it must not be above 0 "
        "except for chance; otherwise the audit itself is wrong.",
    ),
    Metric(
        "visits_kept",
        "share of visits kept",
        "The share of the visits that the published counts still hold. A cell keeps at most as "
        "many as were made in it: what noise adds does not count.",
        can_have_floor=True,
    ),
    Metric(
        "cells_kept",
        "share of visited cells kept",
        "The share of the cells with somebody in them that are still published above 0.",
        can_have_floor=True,
    ),
    Metric(
        "relative_error",
        "relative error",
        "How far the published count of a visited cell is from the true one, as a share of the "
        "true one, on average. 0 is exact; 1 is as far off as publishing nothing.",
        largest=None,
    ),
    Metric(
        "pattern_correlation",
        "pattern correlation",
        "How well the published counts follow the true ones over all cells (Pearson's "
        "correlation). 1 is the same pattern, 0 is none.",
        can_have_floor=True,
    ),
)

RATES: Mapping[str, float] = MappingProxyType(
    {"tpr_at_fpr_10pct": 0.1, "tpr_at_fpr_1pct": 0.01, "tpr_at_fpr_01pct": 0.001}
)
"""The metrics of people found, with the rate of false alarms that each allows."""
OF_UTILITY = ("visits_kept", "cells_kept", "relative_error", "pattern_correlation")
"""The metrics of what is left to publish."""
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})


def glossary(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the words and the explanation of each name, for the legend of a table.

    Parameters
    ----------
    names
        Names of metrics, or of what takes the place of an attack. Repeated names are explained
        once.
    """
    return [_entry(name) for name in dict.fromkeys(names)]


def _entry(name: str) -> tuple[str, str]:
    if name in _LINES:
        return name, _LINES[name]
    if name not in METRICS:
        raise InputError(f"there is no metric {name!r}", fix=suggestion(name, METRICS))
    return METRICS[name].words, METRICS[name].explanation
