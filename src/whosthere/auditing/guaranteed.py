"""What mechanisms guarantee by themselves over everybody, as findings beside those of attacks."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from whosthere.data.floor import in_fives
from whosthere.inference.finding import Finding
from whosthere.inference.vocabulary import GUARANTEE, RATES
from whosthere.privacy.guarantees import guarantee_for_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan
    from whosthere.privacy.guarantees import GuaranteeForAll
    from whosthere.privacy.scheme import TableScheme


def guaranteed(plan: Plan, everybody: Traces) -> dict[str, GuaranteeForAll]:
    """Return what each setting of a plan guarantees; those that guarantee nothing are left out.

    Parameters
    ----------
    plan
        What is published, and from whom its targets were drawn: means are over these people, or
        over all with a visit where targets were named by hand.
    everybody
        All who may be published, in the tested time.
    """
    least = 1 if plan.choice is None else max(plan.choice.min_visits, 1)
    asked = everybody.visits_per_user() >= least

    @cache
    def of(tables: tuple[TableScheme, ...]) -> GuaranteeForAll | None:
        # What several tables of the same people guarantee together is not known.
        if len(tables) > 1:
            return None
        return guarantee_for_all(tables[0].mechanism, tables[0].layout(everybody), asked)

    by_setting = {str(one): of(one.scheme.tables) for one in plan.settings}
    return {name: found for name, found in by_setting.items() if found is not None}


def guarantee_findings(by_setting: Mapping[str, GuaranteeForAll]) -> Iterator[Finding]:
    """Return what settings guarantee as findings, which rest on people and no release."""
    for setting, found in by_setting.items():
        yield from _findings(setting, found)


def _findings(setting: str, found: GuaranteeForAll) -> Iterator[Finding]:
    def finding(metric: str, value: float, people: int) -> Finding:
        # Somebody with many visits can have odds beyond any number, which JSON cannot hold.
        known = math.isfinite(value)
        note = None if known else "too large for a number"
        estimate = value if known else None
        return Finding(setting, GUARANTEE, metric, estimate, None, None, people, 0, 0, note)

    asked = min(in_fives(found.asked), found.everybody)
    yield finding("auc", found.pooled.mean_auc, asked)
    yield finding("pooled_auc", found.pooled.auc, asked)
    for name, fpr in RATES.items():
        yield finding(name, found.pooled.tpr(fpr), asked)
    yield finding("largest_auc", found.worst.auc, found.everybody)
    yield finding("odds_factor", found.worst.odds_factor, found.everybody)
    yield finding("chance_of_more", found.worst.chance_of_more, found.everybody)
