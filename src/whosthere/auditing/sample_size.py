"""How many people and releases a verdict needs: beforehand, and where the audit cannot tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scipy.special import ndtri

from whosthere.display import counted
from whosthere.errors import InputError
from whosthere.inference.looks import FIRST_LOOK
from whosthere.inference.vocabulary import METRICS, RATES, STRONGEST

if TYPE_CHECKING:
    from collections.abc import Collection

    from whosthere.auditing.policy import Limit, Policy
    from whosthere.inference.finding import Finding
    from whosthere.inference.looks import Look

_MOST_TARGETS = 100_000
_SHARES = frozenset({"share_auc_90", *RATES})


def least_sample(limit: float, *, look: Look = FIRST_LOOK) -> int:
    """Return how many trials are needed to show a share of at most `limit` at a look.

    It is the smallest n for which the upper end of Clopper and Pearson for 0 successes in n trials
    is at or below `limit`. No sample can show a share of 0, so `limit` must be above 0.
    """
    if not 0 < limit <= 1:
        raise InputError(f"no sample shows a share of {limit:g}")
    log_tail = math.log(look.error)
    if limit == 1:
        return 1
    guess = math.ceil(log_tail / math.log1p(-limit))
    # Rounding can put the guess one off.
    near = (n for n in range(max(guess - 1, 1), guess + 2) if -math.expm1(log_tail / n) <= limit)
    return next(near, guess + 1)


def what_would_help(finding: Finding, limit: Limit, *, look: Look = FIRST_LOOK) -> str:
    """Say how many targets would decide at the next look, if what was measured stays as it is."""
    if limit.metric in _SHARES:
        if limit.most == 0:
            return "No number of targets can show exactly 0."
        least = least_sample(limit.most, look=look.next)
        if finding.n_targets < least:
            return (
                f"{counted(finding.n_targets, 'target')} are too few: the next look needs at least "
                f"{least} to show {limit.most:g} or less."
            )
    needed = targets_needed(finding, limit, look=look)
    if needed is None:
        return (
            "It is so close to the limit that no number of targets within reach would decide; a "
            "slightly stronger protection would."
        )
    return (
        f"About {needed:,} targets instead of {finding.n_targets:,} would decide, if the estimate "
        "stays as it is."
    )


def targets_needed(finding: Finding, limit: Limit, *, look: Look = FIRST_LOOK) -> int | None:
    """Return how many targets would bring the interval to one side of a limit at the next look.

    Intervals shrink with the square root of their number, or with the number itself above a share
    of 0. They are wider at the next look, which has less error to spend. None if more than 100,000
    are needed, or nobody can tell.
    """
    if finding.estimate is None or finding.low is None or finding.high is None:
        return None
    is_above = finding.estimate > limit.most
    reach = finding.estimate - finding.at_least if is_above else finding.at_most - finding.estimate
    away = abs(finding.estimate - limit.most)
    if away <= 0:
        return None
    now, then = look.error, look.next.error
    if finding.estimate:
        needed = finding.n_targets * (reach / away * float(ndtri(then) / ndtri(now))) ** 2
    else:
        needed = finding.n_targets * reach / away * math.log(then) / math.log(now)
    if needed > _MOST_TARGETS:
        return None
    # To two digits: more would pretend to know.
    step = int(10 ** max(math.floor(math.log10(max(needed, 1))) - 1, 0))
    return max(math.ceil(needed / step - 1e-6) * step, finding.n_targets + 1)


def obstacles(
    policy: Policy,
    attacks: Collection[str],
    *,
    targets: int,
    releases: int,
    control_releases: int,
    by_hand: bool = False,
    look: Look = FIRST_LOOK,
) -> list[str]:
    """Return why an audit cannot accept anything by a policy, and what would help; mostly nothing.

    `whosthere.auditing.prospects` also asks whether a sample is large enough at all.

    Parameters
    ----------
    attacks
        Names of the attacks of a setting.
    targets, releases, control_releases
        How many there are, releases for each target.
    by_hand
        Whether the targets were named, and not drawn at random.
    look
        Which look at the audit it will be.
    """
    said = []
    if by_hand:
        said.append("The targets are named by hand. Let them be drawn at random.")
    if STRONGEST not in attacks:
        said.append(f"{STRONGEST}, the strongest attack known, is not among the attacks. Add it.")
    if not control_releases:
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
        elif limit.metric in _SHARES:
            least = least_sample(limit.most, look=look)
            if targets < least:
                said.append(
                    f"{counted(targets, 'target')} cannot show that the {words} is {limit.most:g} "
                    f"or less: at least {least} are needed."
                )
        fpr = RATES.get(limit.metric)
        if fpr is not None and targets * (releases // 2) < 1 / fpr:
            said.append(
                f"The {words} needs at least {math.ceil(1 / fpr):,} releases without the target, "
                f"and there are {targets * (releases // 2):,}: give more targets or releases."
            )
    return said
