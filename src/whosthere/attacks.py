"""Attacks, what they may know, and what is needed to write one of your own."""

from whosthere.adversary.attacks import (
    ATTACKS as ATTACKS,
    RULED_OUT as RULED_OUT,
    Answer as Answer,
    Attack as Attack,
    Auxiliary as Auxiliary,
    ContradictionRule as ContradictionRule,
    FittedAttack as FittedAttack,
    KnockKnock as KnockKnock,
    LikelihoodAnswer as LikelihoodAnswer,
    LikelihoodRatio as LikelihoodRatio,
    LikelihoodRatioWithReference as LikelihoodRatioWithReference,
    LocMia as LocMia,
    LogLikelihood as LogLikelihood,
    NotApplicableError as NotApplicableError,
    PastGroups as PastGroups,
    PastRelease as PastRelease,
    TrainedAttack as TrainedAttack,
    ZeroKnowledge as ZeroKnowledge,
    attack as attack,
    calibrated as calibrated,
)
from whosthere.adversary.knowledge import (
    KNOWLEDGE_RULES as KNOWLEDGE_RULES,
    AllVisits as AllVisits,
    Knowledge as Knowledge,
    KnowledgeRule as KnowledgeRule,
    KnownRegions as KnownRegions,
    KnownVisits as KnownVisits,
    OnlyRegions as OnlyRegions,
    ShareOfVisits as ShareOfVisits,
)
from whosthere.adversary.targets import read_target as read_target, write_target as write_target
from whosthere.privacy.facts import Facts as Facts
from whosthere.specs import (
    NUMBER as NUMBER,
    WHOLE as WHOLE,
    YES_NO as YES_NO,
    OneOf as OneOf,
    parameter as parameter,
)
