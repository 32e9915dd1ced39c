"""The metrics that findings are about, in words for people who decide about releases."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CEILING = "omniscient"
"""Stands for an attack in findings about somebody who knows where everybody else was."""
CONTROL = "control_auc"
"""The metric of the control, which is about the audit and not about an attack."""


@dataclass(frozen=True)
class Metric:
    """What one metric is called and means.

    Attributes
    ----------
    name
        How findings, policies and files call it.
    words
        How a sentence or the head of a table calls it.
    explanation
        One or two sentences for a reader who does not know it.
    largest
        The largest value it can have; None if there is none.
    can_be_limited
        Whether a policy may limit it. Only metrics that grow with the harm can be.
    """

    name: str
    words: str
    explanation: str
    largest: float | None = 1.0
    can_be_limited: bool = False


def _true_positive_rate(name: str, percent: str, false_alarms: str) -> Metric:
    return Metric(
        name,
        f"TPR at {percent} % FPR",
        f"How often the attacker finds a person who is in, when at most {false_alarms} who are "
        f"not in may be named by mistake. An attacker who guesses finds {percent} % of them.",
        can_be_limited=True,
    )


def _half(name: str, which: str, how_told: str) -> Metric:
    return Metric(
        name,
        f"mean AUC, {which}",
        f"The mean AUC over the half of the targets with {how_told} only. "
        "Set beside the other half, it shows who bears the risk.",
    )


def _correlation(name: str, what: str, meaning: str) -> Metric:
    return Metric(
        name,
        f"correlation of AUC and {what}",
        f"Whether {meaning} are easier to find (Spearman's rank correlation over the targets). "
        "1 means always, 0 means that it makes no difference, -1 means the opposite.",
    )


_ALL = (
    Metric(
        "auc",
        "mean AUC",
        "How well the attacker tells releases with a person from releases without that person, "
        "averaged over the targets. 0.5 is guessing, 1 is certainty.",
        can_be_limited=True,
    ),
    Metric(
        "accuracy",
        "accuracy",
        "How often the attacker's yes or no is right, when a person is in half of the releases. "
        "0.5 is guessing, 1 is never wrong.",
        can_be_limited=True,
    ),
    Metric(
        "advantage",
        "advantage",
        "How much more often the attacker says yes about a person who is in than about one who "
        "is not. 0 is guessing, 1 is never wrong.",
        can_be_limited=True,
    ),
    _true_positive_rate("tpr_at_fpr_10pct", "10", "1 in 10 people"),
    _true_positive_rate("tpr_at_fpr_1pct", "1", "1 in 100 people"),
    _true_positive_rate("tpr_at_fpr_01pct", "0.1", "1 in 1,000 people"),
    Metric(
        "empirical_eps",
        "certified eps",
        "The attack proves that no differential privacy guarantee with a smaller eps can hold "
        "for one person in place of another; one for a person more or less allows half of it. "
        "0 proves nothing; larger is worse.",
        largest=None,
        can_be_limited=True,
    ),
    Metric(
        "empirical_eps_ceiling",
        "largest eps that could be certified",
        "The certified eps that a perfect attacker would get from as many releases. "
        "The certified eps cannot be larger, however weak the protection is.",
        largest=None,
    ),
    Metric(
        "share_auc_90",
        "share of people with AUC of 0.9 or more",
        "The share of the targets whom the attacker finds almost without fail. "
        "A mean can look harmless while these people are all but exposed.",
        can_be_limited=True,
    ),
    _half("auc_fewest_visits", "fewest visits", "the fewest visits"),
    _half("auc_most_visits", "most visits", "the most visits"),
    _half("auc_least_unique", "least unique", "the fewest visits that hardly anybody shares"),
    _half("auc_most_unique", "most unique", "the most visits that hardly anybody shares"),
    _correlation("risk_visits_correlation", "visits", "people with more visits"),
    _correlation("risk_uniqueness_correlation", "uniqueness", "people who go where few others go"),
    Metric(
        CONTROL,
        "AUC of the control",
        "The AUC where the person is in none of the releases, so that there is nothing to find. "
        "It must be 0.5, give or take chance; otherwise the measurement itself is wrong.",
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
