"""The attacks, by name."""

from __future__ import annotations

from whosthere import specs
from whosthere.adversary.attacks.base import (
    Answer,
    Attack,
    Auxiliary,
    FittedAttack,
    NotApplicableError,
    PastRelease,
)
from whosthere.adversary.attacks.contradiction_rule import ContradictionRule
from whosthere.adversary.attacks.knock_knock import KnockKnock, KnockKnockPastGroups, LocMia
from whosthere.adversary.attacks.likelihood_ratio import (
    LikelihoodAnswer,
    LikelihoodRatio,
    LikelihoodRatioReference,
)
from whosthere.adversary.attacks.log_likelihood import LogLikelihood
from whosthere.adversary.attacks.trained import TrainedAttack
from whosthere.adversary.attacks.zero_knowledge import ZeroKnowledge
from whosthere.inference.scores import RULED_OUT

__all__ = [
    "ATTACKS",
    "RULED_OUT",
    "Answer",
    "Attack",
    "Auxiliary",
    "ContradictionRule",
    "FittedAttack",
    "KnockKnock",
    "KnockKnockPastGroups",
    "LikelihoodAnswer",
    "LikelihoodRatio",
    "LikelihoodRatioReference",
    "LocMia",
    "LogLikelihood",
    "NotApplicableError",
    "PastRelease",
    "TrainedAttack",
    "ZeroKnowledge",
]

ATTACKS = specs.Catalogue.of(
    "attack",
    LikelihoodRatio,
    ZeroKnowledge,
    KnockKnock,
    LikelihoodRatioReference,
    KnockKnockPastGroups,
    LocMia,
    LogLikelihood,
    ContradictionRule,
)
