"""How often an audit that is extended until it decides is wrong, and how often a search is.

    python benchmarks/looking_again.py > benchmarks/results/looking_again.json

*Audits*: somebody looks at 55 targets, and extends to 75, 110, and so on until the audit decides.
The truth is just on the wrong side of the limit. *Searches*: `recommend` confirms up to three
members of each of three families until one is accepted; all nine are just above the limit. The
targets of each confirmation are drawn by themselves, which is worse than in a real search, where
confirmations share their targets.

Each is done twice, on the same draws: spending the error over looks as whosthere does, and judging
each look as if it were the only one, with all of the error. Nobody stops before a wrong decision,
which is worse than what people do. Verdicts are those of `whosthere.auditing.judging.judge`, with
one attack and one limit, which is the worst case. Rates come with two standard errors. Prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np
from scipy.special import ndtri

from whosthere.auditing.judging import judge
from whosthere.auditing.policy import Policy
from whosthere.inference.finding import Finding
from whosthere.inference.looks import ERROR, Errors, Look
from whosthere.inference.metrics import mean_over_targets, tpr_at_fpr
from whosthere.inference.vocabulary import STRONGEST
from whosthere.search.tester import MOST_CONFIRMATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whosthere.inference.metrics import Estimate

LOOKS = (55, 75, 110, 150, 210, 290, 410, 570, 800)
LOOKS_AT_TPR = LOOKS[:6]
CONFIRMATIONS = (65,) * (3 * MOST_CONFIRMATIONS)
RELEASES = 10
REPETITIONS = 1500
AUC, TPR = Policy("mean AUC", {"auc": 0.6}), Policy("TPR", {"tpr_at_fpr_1pct": 0.1})


@dataclass(frozen=True)
class Case:
    """What is true, what is drawn, and what would be wrong to say.

    `draw` returns what is measured of n people; `estimate` makes an estimate of it.
    """

    name: str
    policy: Policy
    wrong: str
    sizes: tuple[int, ...]
    draw: Callable[[int, np.random.Generator], np.ndarray]
    estimate: Callable[[np.ndarray, Errors], Estimate]
    anew: bool = False

    def measured(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield what each look sees: more of the same people, or others."""
        people = None if self.anew else self.draw(self.sizes[-1], rng)
        for size in self.sizes:
            yield self.draw(size, rng) if people is None else people[:size]

    def look(self, number: int) -> Look:
        """Return the look at which something is judged: confirmations share one."""
        return Look(shared=len(self.sizes)) if self.anew else Look(number)

    def goes_wrong(self, rng: np.random.Generator) -> tuple[bool, bool]:
        """Tell whether some look is wrong, with spending and without."""
        ever = False
        for number, values in enumerate(self.measured(rng), 1):
            # Whoever spends accepts and rejects less often than whoever does not.
            if self.is_wrong(values, Errors(ERROR, ERROR)):
                ever = True
                if self.is_wrong(values, Errors.at(self.look(number))):
                    return True, True
        return False, ever

    def is_wrong(self, values: np.ndarray, errors: Errors) -> bool:
        """Judge what one look sees, and tell whether the verdict is wrong."""
        found = self.estimate(values, errors)
        [limit] = self.policy.limits
        finding = Finding(
            "case",
            STRONGEST,
            limit.metric,
            found.value,
            found.low,
            found.high,
            len(values),
            RELEASES * len(values),
            RELEASES * len(values),
            low_to_decide=found.low_to_decide,
            high_to_decide=found.high_to_decide,
        )
        return judge([finding], self.policy)[0].decision == self.wrong


def found_always(share: float) -> Callable[[int, np.random.Generator], np.ndarray]:
    """AUCs where the attacker always finds some people, and guesses about all others."""
    return lambda n, rng: np.where(rng.random(n) < share, 1.0, 0.5)


def spread(mean: float) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Measured AUCs where people differ a little, on 10 IN and 10 OUT releases each."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        # The AUC of somebody is ndtr(shift / sqrt(2)), whose mean over normal shifts is known.
        width = 0.3
        shift = rng.normal(ndtri(mean) * np.sqrt(2 + width**2), width, n)
        in_ = rng.normal(size=(n, RELEASES, 1)) + shift[:, None, None]
        return (in_ > rng.normal(size=(n, 1, RELEASES))).mean(axis=(1, 2))

    return draw


def scores(share: float) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Scores of IN, then OUT releases, where some people are always found and others never."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        found = np.where(rng.random(n) < share, 20.0, 0.0)
        normal = rng.normal(size=(n, 2 * RELEASES))
        normal[:, :RELEASES] += found[:, None]
        return normal

    return draw


def mean_auc(values: np.ndarray, errors: Errors) -> Estimate:
    """Estimate a mean AUC."""
    return mean_over_targets(values, unseen=(0.5, 1.0), errors=errors)


def tpr(values: np.ndarray, errors: Errors) -> Estimate:
    """Estimate a TPR at 1 % FPR."""
    labels = np.tile(np.arange(2 * RELEASES) < RELEASES, len(values))
    targets = np.repeat(np.arange(len(values)), 2 * RELEASES)
    return tpr_at_fpr(values.ravel(), labels, targets, 0.01, n_resamples=1000, errors=errors)


# Others reach a TPR of 0.01 by chance, whatever the threshold is.
_TPR_SHARE = (0.1001 - 0.01) / (1 - 0.01)
CASES = (
    *(
        Case(f"accept a mean AUC of 0.6001, {how}", AUC, "accept", LOOKS, draw, mean_auc)
        for how, draw in (("1 in 5 always found", found_always(0.2002)), ("spread", spread(0.6001)))
    ),
    *(
        Case(f"reject a mean AUC of 0.5999, {how}", AUC, "reject", LOOKS, draw, mean_auc)
        for how, draw in (("1 in 5 always found", found_always(0.1998)), ("spread", spread(0.5999)))
    ),
    Case("accept a TPR of 0.1001", TPR, "accept", LOOKS_AT_TPR, scores(_TPR_SHARE), tpr),
    *(
        Case(f"recommend, {how}", AUC, "accept", CONFIRMATIONS, draw, mean_auc, anew=True)
        for how, draw in (("1 in 5 always found", found_always(0.2002)), ("spread", spread(0.6001)))
    ),
    Case("recommend, TPR", TPR, "accept", CONFIRMATIONS, scores(_TPR_SHARE), tpr, anew=True),
)


def wrong(case: Case, repetitions: int, seed: int) -> dict[str, object]:
    """Return how often a case goes wrong, with and without spending."""
    rng = np.random.default_rng(seed)
    outcomes = [case.goes_wrong(rng) for _ in range(repetitions)]
    spent, at_once = np.mean(outcomes, axis=0).tolist()
    return {
        "case": case.name,
        "looks": list(case.sizes),
        "repetitions": repetitions,
        "wrong": round(spent, 4),
        "two_standard_errors": round(2 * np.sqrt(spent * (1 - spent) / repetitions), 4),
        "wrong_without_spending": round(at_once, 4),
    }


def main() -> None:
    """Simulate all cases."""
    found = []
    for i, case in enumerate(CASES):
        begun = time.perf_counter()
        found.append(wrong(case, REPETITIONS, seed=23 + i))
        took = time.perf_counter() - begun
        print(f"{case.name}: {found[-1]['wrong']} ({took:.0f} s)", file=sys.stderr)
    print(json.dumps({"error": ERROR, "cases": found}, indent=2))


if __name__ == "__main__":
    main()
