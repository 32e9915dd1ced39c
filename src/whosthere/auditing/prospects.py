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
from whosthere.inference.looks import FIRST_LOOK, Look
from whosthere.inference.measure import measure
from whosthere.inference.metrics import least_people
from whosthere.inference.vocabulary import METRICS, RATES, STRONGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.adversary.attacks import Attack
    from whosthere.arrays import Bools, Floats
    from whosthere.auditing.policy import Policy
    from whosthere.game.plan import Plan, Setting

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
    n_targets = len(plan.targets)
    releases = [plan.releases_by(attack) for attack in attacks]
    why_not = obstacles(plan, attacks, policy, look=look, has_law=setting.scheme.has_law)
    sample = policy, len(attacks), n_targets
    accept = 0.0 if why_not else _how_often("accept", *sample, min(releases), look=look)
    reject = 0.0
    if plan.control_releases:
        reject = _how_often("reject", *sample, max(releases), look=look)
    if accept <= _MOSTLY and not why_not:
        why_not.append(
            f"{_sample(n_targets, min(releases))}: even if nobody is found, some interval "
            "probably reaches above its limit. Give more targets."
        )
    if reject <= _MOSTLY and plan.control_releases:
        why_not.append(
            f"{_sample(n_targets, max(releases))}: even if people are found, an interval hardly "
            "ever lies above its limit. Give more targets."
        )
    return Prospects(accept, reject, tuple(why_not))


def obstacles(
    plan: Plan,
    attacks: Sequence[Attack],
    policy: Policy,
    *,
    look: Look = FIRST_LOOK,
    has_law: bool = True,
) -> list[str]:
    """Return why some attacks cannot show that a policy is kept, and what would help."""
    said, targets = [], len(plan.targets)
    without = targets * (min(map(plan.releases_by, attacks)) // 2)
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
    decision: str, policy: Policy, n_attacks: int, n_targets: int, releases: int, *, look: Look
) -> float:
    """Return how often a sample of this size leads to a decision, by the attack that suits it."""
    label = np.arange(releases) % 2 == 0
    rng = np.random.default_rng(0)

    def leads_to_it(strength: float, noise: Floats) -> bool:
        rows = _rows(strength * label + noise, label, threshold=strength / 2)
        n_limits = len(policy.limits)
        found = measure(
            rows, rows.clear(), seed=0, n_limits=n_limits, n_attacks=n_attacks, look=look
        )
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


def _rows(scores: Floats, label: Bools, *, threshold: float) -> pl.DataFrame:
    n_targets, releases = scores.shape
    return pl.DataFrame(
        {
            "setting": "rehearsal",
            "attack": STRONGEST,
            "target": np.repeat(np.arange(n_targets, dtype=np.int32), releases),
            "release": np.tile(np.arange(releases, dtype=np.int32), n_targets),
            "label": np.tile(label, n_targets),
            "score": scores.reshape(-1),
            "threshold": threshold,
            "calibrated": scores.reshape(-1),
            "visits": 1,
            "uniqueness": 0.5,
        }
    )
