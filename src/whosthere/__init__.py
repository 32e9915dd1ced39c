"""Measure whether people can be found in published location counts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from whosthere._version import __version__

if TYPE_CHECKING:
    from whosthere.adversary.attacks import (
        Answer,
        Auxiliary,
        ContradictionRule,
        Facts,
        KnockKnock,
        Labelled,
        LikelihoodAnswer,
        LikelihoodRatio,
        LikelihoodRatioWithReference,
        LocMia,
        LogLikelihood,
        NotApplicableError,
        PastGroups,
        Training,
        ZeroKnowledge,
        attack_named,
    )
    from whosthere.adversary.knowledge import KnownRegions, KnownVisits
    from whosthere.auditing.finding import Finding
    from whosthere.auditing.plan import Plan, PlanOptions, make_plan
    from whosthere.auditing.policy import Policy, Verdict
    from whosthere.auditing.run import Audited, run_audit
    from whosthere.auditing.search import Recommendation, recommend
    from whosthere.data.cities import City, simulate
    from whosthere.data.columns import Columns
    from whosthere.data.epochs import Epochs
    from whosthere.data.partition import (
        Grid,
        GridShape,
        H3Cells,
        NearestAntenna,
        Polygons,
        RegionIds,
    )
    from whosthere.data.read import Filters, read_records
    from whosthere.data.regions import Regions
    from whosthere.data.traces import Traces
    from whosthere.errors import InputError
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.publish import Publication, publish
    from whosthere.privacy.release import Release
    from whosthere.privacy.tables import TableReader
    from whosthere.privacy.utility import Utility, utility

# Where each public name lives: a module is imported when one of its names is first used, so
# that the command line answers at once.
_HOMES = {
    "Answer": "adversary.attacks",
    "Audited": "auditing.run",
    "Auxiliary": "adversary.attacks",
    "City": "data.cities",
    "Columns": "data.columns",
    "ContradictionRule": "adversary.attacks",
    "Epochs": "data.epochs",
    "Facts": "adversary.attacks",
    "Filters": "data.read",
    "Finding": "auditing.finding",
    "Grid": "data.partition",
    "GridShape": "data.partition",
    "H3Cells": "data.partition",
    "InputError": "errors",
    "KnockKnock": "adversary.attacks",
    "KnownRegions": "adversary.knowledge",
    "KnownVisits": "adversary.knowledge",
    "Labelled": "adversary.attacks",
    "LikelihoodAnswer": "adversary.attacks",
    "LikelihoodRatio": "adversary.attacks",
    "LikelihoodRatioWithReference": "adversary.attacks",
    "LocMia": "adversary.attacks",
    "LogLikelihood": "adversary.attacks",
    "Mechanism": "privacy.mechanism",
    "NearestAntenna": "data.partition",
    "NotApplicableError": "adversary.attacks",
    "PastGroups": "adversary.attacks",
    "Plan": "auditing.plan",
    "PlanOptions": "auditing.plan",
    "Policy": "auditing.policy",
    "Polygons": "data.partition",
    "Publication": "privacy.publish",
    "Recommendation": "auditing.search",
    "RegionIds": "data.partition",
    "Regions": "data.regions",
    "Release": "privacy.release",
    "TableReader": "privacy.tables",
    "Traces": "data.traces",
    "Training": "adversary.attacks",
    "Utility": "privacy.utility",
    "Verdict": "auditing.policy",
    "ZeroKnowledge": "adversary.attacks",
    "attack_named": "adversary.attacks",
    "make_plan": "auditing.plan",
    "publish": "privacy.publish",
    "read_records": "data.read",
    "recommend": "auditing.search",
    "run_audit": "auditing.run",
    "simulate": "data.cities",
    "utility": "privacy.utility",
}

__all__ = [
    "Answer",
    "Audited",
    "Auxiliary",
    "City",
    "Columns",
    "ContradictionRule",
    "Epochs",
    "Facts",
    "Filters",
    "Finding",
    "Grid",
    "GridShape",
    "H3Cells",
    "InputError",
    "KnockKnock",
    "KnownRegions",
    "KnownVisits",
    "Labelled",
    "LikelihoodAnswer",
    "LikelihoodRatio",
    "LikelihoodRatioWithReference",
    "LocMia",
    "LogLikelihood",
    "Mechanism",
    "NearestAntenna",
    "NotApplicableError",
    "PastGroups",
    "Plan",
    "PlanOptions",
    "Policy",
    "Polygons",
    "Publication",
    "Recommendation",
    "RegionIds",
    "Regions",
    "Release",
    "TableReader",
    "Traces",
    "Training",
    "Utility",
    "Verdict",
    "ZeroKnowledge",
    "__version__",
    "attack_named",
    "make_plan",
    "publish",
    "read_records",
    "recommend",
    "run_audit",
    "simulate",
    "utility",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'whosthere' has no attribute {name!r}")
    return getattr(import_module(f"whosthere.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
