"""The attacks, by name."""

from __future__ import annotations

from whosthere import specs
from whosthere.adversary.attacks.base import (
    Answer as Answer,
    Attack as Attack,
    Auxiliary as Auxiliary,
    FittedAttack as FittedAttack,
    NotApplicableError as NotApplicableError,
    PastRelease as PastRelease,
)
from whosthere.adversary.attacks.calibration import calibrated as calibrated
from whosthere.adversary.attacks.contradiction_rule import ContradictionRule as ContradictionRule
from whosthere.adversary.attacks.knock_knock import (
    KnockKnock as KnockKnock,
    KnockKnockPastGroups as KnockKnockPastGroups,
    LocMia as LocMia,
)
from whosthere.adversary.attacks.likelihood_ratio import (
    LikelihoodAnswer as LikelihoodAnswer,
    LikelihoodRatio as LikelihoodRatio,
)
from whosthere.adversary.attacks.log_likelihood import LogLikelihood as LogLikelihood
from whosthere.adversary.attacks.trained import TrainedAttack as TrainedAttack
from whosthere.adversary.attacks.zero_knowledge import ZeroKnowledge as ZeroKnowledge
from whosthere.inference.scores import RULED_OUT as RULED_OUT


ATTACKS = specs.Catalogue.of(
    "attack",
    LikelihoodRatio,
    ZeroKnowledge,
    KnockKnock,
    KnockKnockPastGroups,
    LocMia,
    LogLikelihood,
    ContradictionRule,
)
