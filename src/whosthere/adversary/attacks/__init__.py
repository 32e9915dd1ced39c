"""The attacks, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

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
from whosthere.adversary.classifiers import CLASSIFIERS
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.adversary.groups import Sampling

__all__ = [
    "ATTACKS",
    "RULED_OUT",
    "TRAINED",
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

# Those that train on groups, and so have a classifier and a way of sampling to choose.
TRAINED: Mapping[str, type[KnockKnock | ZeroKnowledge | LocMia]] = {
    kind.name: kind for kind in (KnockKnock, ZeroKnowledge, LocMia)
}


def attack_named(
    name: str, *, classifier: str | None = None, sampling: str | None = None
) -> Attack:
    """Return the attack of that name, with its usual settings but for those given.

    Classifier and sampling are for the attacks that train on groups of their own.
    """
    if name not in ATTACKS:
        raise InputError(f"there is no attack {name!r}", fix=suggestion(name, ATTACKS))
    if classifier is None and sampling is None:
        return ATTACKS[name]()
    if name not in TRAINED:
        raise InputError(
            f"{name} trains on no groups, so there is no classifier or sampling to choose",
            fix=f"Leave them out, or use one of: {', '.join(TRAINED)}",
        )
    training = Training()
    if classifier is not None:
        if classifier not in CLASSIFIERS:
            fix = suggestion(classifier, CLASSIFIERS)
            raise InputError(f"there is no classifier {classifier!r}", fix=fix)
        training = replace(training, classifier=CLASSIFIERS[classifier]())
    if sampling is not None:
        training = replace(training, sampling=cast("Sampling", sampling))
    return TRAINED[name](training=training)
