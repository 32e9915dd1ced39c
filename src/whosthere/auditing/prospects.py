"""What an audit can decide at all, beforehand: rehearsed on scores that find nobody, or everybody.

Too small a sample has intervals so wide that even an empty table is not accepted, or one on which
nobody can hide not rejected. How wide they are is best asked of those who compute them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.auditing.judging import judge
from whosthere.auditing.reasons import SHARES
from whosthere.display import counted
from whosthere.game.everybody import EverybodyGame
from whosthere.inference.everybody import everybody_findings
from whosthere.inference.looks import FIRST_LOOK, Errors, Look
from whosthere.inference.measure import measure
from whosthere.inference.metrics import least_people
from whosthere.inference.panel import Panel
from whosthere.inference.vocabulary import METRICS, RATES, STRONGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.adversary.attacks import Attack
    from whosthere.arrays import Bools, Floats
    from whosthere.auditing.policy import Policy
    from whosthere.game.plan import Plan, Setting
    from whosthere.inference.finding import Finding

MOST_REHEARSED = 2000
"""Of so many people and more, intervals are about the same: the releases decide."""
# How far scores with the target are from those without, in deviations. An attack that is never
# wrong is not the clearest case: a sample in which all are alike may have missed those who differ.
_STRENGTHS = {"accept": (0.0,), "reject": (1.0, 2.0, 3.0, 4.0)}
_DRAWS = 6
_MOSTLY = 0.5


@dataclass(frozen=True)
class Prospects:
    """What an audit can decide about a setting, and what stands in the way of mostly doing both.

    `accept` and `reject` are how often it does, from 0 to 1, if the attacks find nobody, or find
    people as well as suits it best.
    """

    accept: float
    reject: float
    why_not: tuple[str, ...]

    def __str__(self) -> str:
        if self.accept > _MOSTLY:
            if self.reject > _MOSTLY:
                return "can accept and reject"
            return f"can accept but {'hardly' if self.reject else 'not'} reject"
        if self.reject > _MOSTLY:
            return f"can reject but {'hardly' if self.accept else 'not'} accept"
        return "can hardly decide anything" if self.accept or self.reject else "can decide nothing"


def prospects(
    plan: Plan, setting: Setting, policy: Policy, *, look: Look = FIRST_LOOK
) -> Prospects:
    """Return what a plan can decide about one of its settings by a policy, at a look."""
    attacks = [one for one in plan.attacks_in(setting) if not one.is_study_only]
    if not attacks:
        return Prospects(0.0, 0.0, ("All attacks are for study only. Add likelihood-ratio.",))
    n_targets = _n_asked(plan)
    chance = plan.game.include if isinstance(plan.game, EverybodyGame) else None
    releases = [plan.releases_by(attack) for attack in attacks]
    why_not = obstacles(plan, attacks, policy, look=look, has_law=setting.scheme.has_law)
    sample = policy, len(attacks), min(n_targets, MOST_REHEARSED) if chance else n_targets
    accept = (
        0.0 if why_not else _how_often("accept", *sample, min(releases), include=chance, look=look)
    )
    reject = 0.0
    if plan.control_releases:
        reject = _how_often("reject", *sample, max(releases), include=chance, look=look)
    if accept <= _MOSTLY and not why_not:
        why_not.append(
            f"{_sample(n_targets, min(releases))}: even if nobody is found, some interval "
            f"probably reaches above its limit. Give more {'releases' if chance else 'targets'}."
        )
    if reject <= _MOSTLY and plan.control_releases:
        why_not.append(
            f"{_sample(n_targets, max(releases))}: even if people are found, an interval hardly "
            f"ever lies above its limit. Give more {'releases' if chance else 'targets'}."
        )
    return Prospects(accept, reject, tuple(why_not))


def _n_asked(plan: Plan) -> int:
    """Return how many people are asked: the targets, or everybody."""
    of_all = isinstance(plan.game, EverybodyGame) and plan.choice is not None
    return plan.choice.eligible if of_all and plan.choice else len(plan.targets)


def _without(plan: Plan, people: int, releases: int) -> int:
    """Return how many releases without a person there are to expect, over all people."""
    if isinstance(plan.game, EverybodyGame):
        return round(people * releases * (1 - plan.game.include))
    return people * (releases // 2)


def obstacles(
    plan: Plan,
    attacks: Sequence[Attack],
    policy: Policy,
    *,
    look: Look = FIRST_LOOK,
    has_law: bool = True,
) -> list[str]:
    """Return why some attacks cannot show that a policy is kept, and what would help."""
    said, targets = [], _n_asked(plan)
    without = _without(plan, targets, min(map(plan.releases_by, attacks)))
    if plan.choice is not None and plan.choice.by_hand:
        said.append("The targets are named by hand. Let them be drawn at random.")
    if not plan.game.draws_uniformly:
        said.append("The groups are not drawn uniformly. Leave `groups` out.")
    if not has_law:
        said.append(
            "A mechanism of your own is never accepted: the strongest attack needs its law."
        )
    elif STRONGEST not in {attack.name for attack in attacks}:
        said.append(f"{STRONGEST}, the strongest attack known, is not among the attacks. Add it.")
    if not plan.control_releases:
        said.append(
            "There is no control, and without one every verdict is cannot tell. Give some control "
            "releases."
        )
    if targets == 1:
        said.append("1 target gives no confidence interval. Give more targets.")
    for limit in policy.limits:
        words = METRICS[limit.metric].words
        if limit.metric == "empirical_eps":
            said.append(f"A limit of the {words} can reject, but never accept. Leave it out.")
        elif limit.most == 0:
            said.append(f"No sample shows a {words} of exactly 0. Set a limit above 0.")
        elif limit.metric in SHARES:
            least = least_people(limit.most, look.error)
            if targets < least:
                said.append(
                    f"{counted(targets, 'target')} cannot show that the {words} is {limit.most:g} "
                    f"or less: at least {least} are needed."
                )
        fpr = RATES.get(limit.metric)
        if fpr is not None and without < 1 / fpr:
            said.append(
                f"The {words} needs at least {math.ceil(1 / fpr):,} releases without the target, "
                f"and there are {without:,}: give more targets or releases."
            )
    return said


def _sample(n_targets: int, releases: int) -> str:
    return f"{counted(n_targets, 'target')} with {releases:,} releases each are too few"


@cache
def _how_often(
    decision: str,
    policy: Policy,
    n_attacks: int,
    n_targets: int,
    releases: int,
    *,
    include: float | None,
    look: Look,
) -> float:
    """Return how often a sample of this size leads to a decision, by the attack that suits it."""
    rng = np.random.default_rng(0)
    label = np.tile(np.arange(releases) % 2 == 0, (n_targets, 1))
    if include is not None:
        label = rng.random(label.shape) < include

    def leads_to_it(strength: float, noise: Floats) -> bool:
        n_limits = len(policy.limits)
        scores = strength * (label - 0.5) + noise
        found: Sequence[Finding]
        if include is None:
            rows = _rows(scores, label)
            found = measure(
                rows, rows.clear(), seed=0, n_limits=n_limits, n_attacks=n_attacks, look=look
            )
        else:
            panel = Panel(np.ascontiguousarray(scores.T, np.float32), label.T.copy())
            errors = Errors.at(look, n_judged=max(n_attacks * n_limits, 1))
            about = {"setting": "rehearsal", "attack": STRONGEST}
            found = [*everybody_findings(panel, **about, include=include, errors=errors)]
        [verdict] = judge(found, policy)
        return verdict.decision == decision

    strengths = _STRENGTHS[decision]
    # An empty table, or an attack that is never wrong: mostly this is all.
    if leads_to_it(strengths[-1], np.zeros((n_targets, releases))):
        return 1.0
    noises = [rng.normal(size=(n_targets, releases)) for _ in range(_DRAWS)]
    return max(
        sum(leads_to_it(strength, noise) for noise in noises) / _DRAWS for strength in strengths
    )


def _rows(scores: Floats, label: Bools) -> pl.DataFrame:
    n_targets, releases = scores.shape
    return pl.DataFrame(
        {
            "setting": "rehearsal",
            "attack": STRONGEST,
            "target": np.repeat(np.arange(n_targets, dtype=np.int32), releases),
            "release": np.tile(np.arange(releases, dtype=np.int32), n_targets),
            "label": label.reshape(-1),
            "score": scores.reshape(-1),
            "threshold": 0.0,
            "calibrated": scores.reshape(-1),
            "visits": 1,
            "uniqueness": 0.5,
        }
    )
