"""An informed attacker: who knows all other people of a release, beside the ceiling of the audit.

The attack has what no attacker has, so it is marked "(study only)" and decides nothing. It knows
the other m - 1 people of each release and everybody who may be the m-th. Nothing is left to
estimate, so it computes the exact likelihood ratio from the law of the mechanism. An audit does the
same by itself: that is its ceiling. So both must agree.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

import whosthere as wt


@dataclass(frozen=True)
class Informed(wt.attacks.Attack):
    """Computes the likelihood ratio of a release, given all other people in it."""

    name: ClassVar[str] = "informed"
    summary: ClassVar[str] = "knows everybody else in the release"
    uses = frozenset({"others", "everybody"})

    def fit(self, facts, knowledge, auxiliary, *, seed):
        others, everybody = auxiliary.others, auxiliary.everybody
        left = np.flatnonzero(~np.isin(everybody.users, others.users))
        return FittedInformed(facts, knowledge.cells, others.counts(), everybody.select(left))


@dataclass(frozen=True, eq=False)
class FittedInformed(wt.attacks.FittedAttack):
    facts: wt.attacks.Facts
    target: np.ndarray
    others: np.ndarray
    candidates: wt.Traces

    def score(self, release):
        law, m = self.facts.mechanism, self.facts.most_count
        with_one = law.log_pmf(release.values, np.minimum(self.others + 1, m), m)
        ratio = (with_one - law.log_pmf(release.values, self.others, m)).reshape(-1)
        # How much likelier the release is with one person more than with the others alone.
        target = ratio[self.target].sum()
        anybody = self.candidates.sums(ratio, np.arange(self.candidates.n_users))
        score = target - logsumexp(anybody) + np.log(anybody.size)
        return wt.attacks.Answer(score=float(score), threshold=0.0)


def main(users=800, group_size=200, targets=20, releases=20):
    traces = wt.simulate("milan-like", seed=7, users=users, regions=25, days=1).traces()
    result = wt.audit(
        traces,
        mechanisms=["laplace(eps=1, unit=event)", "laplace(eps=1, unit=event) | suppress(k=1)"],
        group_size=group_size,
        attacks=["likelihood-ratio", Informed()],
        targets=targets,
        releases=releases,
        releases_of={"likelihood-ratio": releases},
        what_if=False,
        seed=1,
    )
    aucs = result.to_frame().filter(metric="auc").select("setting", "attack", "estimate")
    print(aucs)
    for verdict in result.verdicts:
        print(verdict.setting, verdict.decision, *verdict.reasons, sep="\n  ")
    return result


if __name__ == "__main__":
    main()
