"""The attacks, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.adversary.attacks.base import (
    RULED_OUT,
    Answer,
    Attack,
    Auxiliary,
    Facts,
    FittedAttack,
    Labelled,
    NotApplicableError,
)
from whosthere.adversary.attacks.contradiction_rule import ContradictionRule
from whosthere.adversary.attacks.knock_knock import KnockKnock
from whosthere.adversary.attacks.likelihood_ratio import (
    LikelihoodAnswer,
    LikelihoodRatio,
    LikelihoodRatioWithReference,
)
from whosthere.adversary.attacks.loc_mia import LocMia
from whosthere.adversary.attacks.log_likelihood import LogLikelihood
from whosthere.adversary.attacks.past_groups import PastGroups
from whosthere.adversary.attacks.trained import Training
from whosthere.adversary.attacks.zero_knowledge import ZeroKnowledge
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ATTACKS",
    "RULED_OUT",
    "Answer",
    "Attack",
    "Auxiliary",
    "ContradictionRule",
    "Facts",
    "FittedAttack",
    "KnockKnock",
    "Labelled",
    "LikelihoodAnswer",
    "LikelihoodRatio",
    "LikelihoodRatioWithReference",
    "LocMia",
    "LogLikelihood",
    "NotApplicableError",
    "PastGroups",
    "Training",
    "ZeroKnowledge",
    "attack_named",
]

ATTACKS: Mapping[str, type[Attack]] = {
    kind.name: kind
    for kind in (
        ContradictionRule,
        KnockKnock,
        PastGroups,
        ZeroKnowledge,
        LikelihoodRatio,
        LikelihoodRatioWithReference,
        LocMia,
        LogLikelihood,
    )
}


def attack_named(name: str) -> Attack:
    """Return the attack of that name with its usual settings."""
    if name not in ATTACKS:
        raise InputError(f"there is no attack {name!r}", fix=suggestion(name, ATTACKS))
    return ATTACKS[name]()
