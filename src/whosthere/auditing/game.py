"""The optimum of the membership game: what nobody who knows the others can exceed.

A release without the target holds somebody else in the target's place. Whoever knows the other
m - 1 people, what of theirs was counted, and the pool that the m-th comes from, has nothing left to
estimate. With L(x) how much likelier the release is with person x added to these others than with
nobody, the release is

    L(target)                    times as likely if the target is in,
    mean of L(x) over the pool   times as likely if somebody else is,

so that the best test (Neyman and Pearson) is the logarithm of their quotient. It is a ceiling for
every attack on the same releases, and its score is comparable between targets.

Where a mechanism drops visits beyond a bound, this attacker is taken to know which visits of each
person would be kept, and so is stronger still.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.publish import Publication

# The logarithm of a ratio of 0, and the largest of a ratio without bound: finite, so that scores
# can be averaged and sorted.
_RULED_OUT = -1e9
_PROVED = 1e9


@dataclass(frozen=True, eq=False)
class Candidates:
    """The people who may be the m-th of a group, with what of theirs would be counted.

    Attributes
    ----------
    counted
        Their counted visits; the last one is the target.
    rows
        Which person each of them is, shape (n_candidates,); the target's is the last.
    """

    counted: Traces
    rows: NDArray[np.int64]

    @cached_property
    def _of_visit(self) -> NDArray[np.int64]:
        """Which candidate each counted visit is of, shape (n_visits,)."""
        return np.repeat(np.arange(self.counted.n_users), self.counted.visits_per_user())

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up values by cell over the visits of each candidate, shape (n_candidates,)."""
        by_visit, n = values[self.counted.cells], self.counted.n_users
        impossible = np.isneginf(by_visit)
        if not impossible.any():
            return np.asarray(np.bincount(self._of_visit, by_visit, n), np.float64)
        finite = np.where(impossible, 0.0, by_visit)
        total = np.asarray(np.bincount(self._of_visit, finite, n), np.float64)
        total[self._of_visit[impossible]] = -np.inf
        return total


def optimal_score(
    publication: Publication, members: NDArray[np.int64], candidates: Candidates
) -> float:
    """Return the log of the best test's ratio for a release; above 0 it speaks for the target.

    Parameters
    ----------
    publication
        The release, and the visits that were counted in it. The last member of its group is the
        one whom the attacker does not know.
    members
        Which people the group holds, shape (m,), in the order of the group.
    candidates
        Everybody who may be the last member, the target included.
    """
    last = publication.counted.trace(publication.group.n_users - 1)
    others = publication.counts.reshape(-1).copy()
    others[last] -= 1
    ratios = log_ratios(
        publication.release.mechanism,
        publication.release.counts.reshape(-1),
        others,
        publication.group.n_users,
    )
    sums = candidates.sums(ratios)
    # The one who is really in is known by the visits that were really counted.
    there = np.flatnonzero(candidates.rows == members[-1])
    sums[there] = ratios[last].sum()
    unknown = ~np.isin(candidates.rows[:-1], members[:-1])
    target, pool = sums[-1], sums[:-1][unknown]
    if np.isneginf(target):
        return _RULED_OUT
    against = float(logsumexp(pool)) - np.log(pool.size) if pool.size else -np.inf
    return _PROVED if np.isneginf(against) else float(target - against)


def log_ratios(
    mechanism: Mechanism, published: NDArray[np.int32], others: NDArray[np.int32], m: int
) -> NDArray[np.float64]:
    """Return log P(published | others + 1) - log P(published | others) by cell, shape (n_cells,).

    Minus infinity where one person more cannot have been there.
    """
    # Few pairs of counts occur, and each needs its chances once.
    width = int(others.max(initial=0)) + 1
    pair = published.astype(np.int64) * width + others
    values = np.flatnonzero(np.bincount(pair))
    a, n = (part.astype(np.int32) for part in np.divmod(values, width))
    # What is there already leaves room for one more in a group of m.
    with_one, without = mechanism.log_pmf(a, np.minimum(n + 1, m), m), mechanism.log_pmf(a, n, m)
    with np.errstate(invalid="ignore"):
        ratio = with_one - without
    table = np.zeros(int(values[-1]) + 1)
    # Impossible either way: several noise steps can make a chance too small for a number.
    table[values] = np.nan_to_num(ratio, nan=0.0, neginf=-np.inf, posinf=_PROVED)
    return np.asarray(table[pair])
