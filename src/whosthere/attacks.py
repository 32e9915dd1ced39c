"""Attacks, and what is needed to write one of your own."""

from whosthere.adversary.attacks import (
    RULED_OUT as RULED_OUT,
    Answer as Answer,
    Attack as Attack,
    Auxiliary as Auxiliary,
    ContradictionRule as ContradictionRule,
    FittedAttack as FittedAttack,
    KnockKnock as KnockKnock,
    KnockKnockPastGroups as KnockKnockPastGroups,
    LikelihoodAnswer as LikelihoodAnswer,
    LikelihoodRatio as LikelihoodRatio,
    LocMia as LocMia,
    LogLikelihood as LogLikelihood,
    NotApplicableError as NotApplicableError,
    PastRelease as PastRelease,
    TrainedAttack as TrainedAttack,
    ZeroKnowledge as ZeroKnowledge,
    calibrated as calibrated,
)
from whosthere.adversary.attacks.base import View as View
from whosthere.adversary.classifiers import Classifier as Classifier, L1 as L1
from whosthere.adversary.models import (
    Forest as Forest,
    L1Paper as L1Paper,
    Mlp as Mlp,
    Model as Model,
)
from whosthere.privacy.facts import Facts as Facts
from whosthere.specs import (
    NUMBER as NUMBER,
    WHOLE as WHOLE,
    YES_NO as YES_NO,
    OneOf as OneOf,
    Value as Value,
    parameter as parameter,
)
