"""The attacks, by name."""

from __future__ import annotations

from typing import cast

from whosthere import specs
from whosthere.adversary.attacks.base import (
    Answer,
    Attack,
    Auxiliary,
    FittedAttack,
    NotApplicableError,
    PastRelease,
    refuse_unknown_parts,
)
from whosthere.adversary.attacks.calibration import calibrated
from whosthere.adversary.attacks.contradiction_rule import ContradictionRule
from whosthere.adversary.attacks.knock_knock import KnockKnock, LocMia, PastGroups
from whosthere.adversary.attacks.likelihood_ratio import (
    LikelihoodAnswer,
    LikelihoodRatio,
    LikelihoodRatioWithReference,
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
    "LikelihoodAnswer",
    "LikelihoodRatio",
    "LikelihoodRatioWithReference",
    "LocMia",
    "LogLikelihood",
    "NotApplicableError",
    "PastGroups",
    "PastRelease",
    "TrainedAttack",
    "ZeroKnowledge",
    "attack",
    "calibrated",
]

ATTACKS = specs.Catalogue.of(
    "attack",
    LikelihoodRatio,
    ZeroKnowledge,
    KnockKnock,
    LikelihoodRatioWithReference,
    PastGroups,
    LocMia,
    LogLikelihood,
    ContradictionRule,
)


def attack(given: Attack | str) -> Attack:
    """Return the attack that a spec describes; an attack is returned as it is."""
    if not isinstance(given, Attack):
        return cast("Attack", ATTACKS.parse(given))
    refuse_unknown_parts(given)
    return given
