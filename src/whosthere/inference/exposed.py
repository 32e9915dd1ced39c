"""How risk is spread over people, although the AUC of each of them is known with noise only.

The AUC of a person rests on the few releases that were made for them. With 10 IN and 10 OUT
releases, somebody with a true AUC of 0.8 gets a measured one of 0.9 or more in 18 % of the cases.
Counting measured AUCs would therefore report exposed people where there are none.

Here the true AUCs of all people are a mixture on a grid, and the measured ones are drawn from it
with the noise of normal scores (`_noise`). A statement about the mixture, such as "30 % of people
have an AUC of 0.9 or more", is compatible with the measurements unless the best mixture for which
it is true is much less likely than the best of all mixtures (a likelihood-ratio test).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, ndtr, ndtri, owens_t
from scipy.stats import binom

from whosthere.arrays import Floats, frozen
from whosthere.display import counted
from whosthere.inference.looks import FIRST_ERRORS, Errors
from whosthere.inference.metrics import TAIL, Estimate, least_people, least_share
from whosthere.kernels.threads import one_thread

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


TRUE_AUCS = frozen([0.0, *ndtr(np.arange(-1.6, 2.85, 0.1)), 1.0], np.float64)
_TRUE_RATES = frozen(np.sin(np.linspace(0, np.pi / 2, 53)) ** 2, np.float64)
_SHARES = frozen(np.sin(np.linspace(0, np.pi / 2, 61)) ** 2, np.float64)
N_BINS = 60
BINS = frozen(np.sin(np.linspace(0, np.pi / 2, N_BINS + 1)) ** 2, np.float64)
_PAIRS_TO_DRAW = 6_000_000
_MOST_RELEASES_TO_DRAW = 150
# Real scores are not quite normal. A small chance of any measured AUC whatever keeps a single
# odd target from ruling out what all others say.
ODD = 0.002
_STEPS = 100
# Within so many normal deviates of the limit, a person may count as either side of it (0.89 to
# 0.91 for 0.9). Where everybody is at the limit, the test would otherwise reject too often.
_BLUR = 0.05
# The same for rates, as the arc sine of their root: 0.88 to 0.92 for 0.9.
_BLUR_OF_RATES = 0.03
_CLOSE = frozen([-1, 0, 1], np.float64)
# The likelihood ratio of mixtures is not quite that of a textbook. In simulations, this much more
# of a drop keeps false rejections of the true share at 2.5 %.
_LEEWAY = 0.75
# More different numbers of releases than these are put together where they are about alike.
_MOST_KINDS, _ALIKE = 6, 1.15


def share_exposed(
    aucs: ArrayLike,
    n_in: int,
    n_out: int,
    limit: float = 0.9,
    *,
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return the share of people whose true AUC is `limit` or more.

    The interval holds all shares that a likelihood-ratio test of the mixture does not reject. It
    is at least as wide as the exact (Clopper-Pearson) interval for as many people of whom it is
    known whether they are exposed. A true AUC very close to the limit may count as either side of
    it, so the interval is wide where many people are too close to tell.

    The noise is that of normal scores. With scores far from normal (each person found for certain
    in some IN releases and not at all in the others, an AUC of 0.88), the lower end was above the
    true share of 0 in 24 % of simulations with 10 + 10 releases, and in 2 % with 50 + 50.

    `aucs` are measured, shape (n_targets,), over `n_in` IN and `n_out` OUT releases each.
    """
    people = Mixture.of_aucs(aucs, n_in, n_out, limit)
    found = people.share(errors)
    least, most = _exact(found.value or 0.0, people.n, TAIL)
    if (found.high or 0.0) - (found.low or 0.0) <= 1.5 * (most - least):
        return found
    note = (
        f"wide because each AUC rests on only {n_in} IN and {n_out} OUT releases; "
        "more releases would help more than more targets"
    )
    return replace(found, note=note)


def risk_percentile(
    aucs: ArrayLike,
    n_in: int,
    n_out: int,
    q: float,
    *,
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return the true AUC that a share `q` of people do not exceed.

    The ends are the AUCs x at which a share 1 - q of people with an AUC of x or more is just
    compatible with the measurements, by the test and the exact interval of `share_exposed`. With
    few targets, as many people as make up the share 1 - q may all have been missed: the upper end
    is then 1, and a note says how many targets are needed. Arguments are as for `share_exposed`.
    """
    return Mixture.of_aucs(aucs, n_in, n_out).percentile(q, errors)


@dataclass(frozen=True, eq=False)
class Mixture:
    """People whose true risks are on a grid, by what was measured of them.

    `chances` of each different measurement by true risk, shape (n_distinct, n_grid); `repeats`, how
    many people it stands for; `place`, the measurement of each person. Of a limit to compare risks
    with, `close` are the ends within which a risk may count as either side of it. The grid ascends,
    and has a risk more than once where people of the same risk differ in their noise.
    """

    grid: Floats
    close: Floats
    chances: Floats
    repeats: Floats
    place: NDArray[np.intp]

    @classmethod
    def of_aucs(
        cls,
        aucs: ArrayLike,
        n_in: ArrayLike,
        n_out: ArrayLike,
        limit: float | None = None,
        *,
        effective: float | None = None,
    ) -> Mixture:
        """Return people by their measured AUCs, over so many releases, which may differ.

        They tell as much as `effective` people do whose measurements do not depend on one another,
        by default as all.
        """
        close = close_to(limit)
        grid = np.union1d(TRUE_AUCS, close)
        measured = np.asarray(aucs, np.float64)
        kinds, kind = kinds_of(n_in, n_out, measured.size)
        laws = [_noise(*numbers, tuple(grid.tolist())) for numbers in kinds]
        chances = np.concatenate(laws, axis=1).T
        return cls.of_chances(grid, close, chances, kind * N_BINS + bin_of(measured), effective)

    @classmethod
    def of_rates(
        cls,
        found: ArrayLike,
        n_in: ArrayLike,
        limit: float | None = None,
        *,
        effective: float | None = None,
    ) -> Mixture:
        """Return people by how often they were found in how many rounds: binomial noise."""
        close, grid = np.empty(0), _TRUE_RATES
        if limit is not None:
            angles = np.clip(np.arcsin(np.sqrt(limit)) + _CLOSE * _BLUR_OF_RATES, 0, np.pi / 2)
            close = np.sin(angles) ** 2
            grid = np.union1d(_TRUE_RATES, close)
        count, n = np.asarray(found, np.float64), np.asarray(n_in)
        kinds, kind = kinds_of(n, n, count.size)
        sizes = np.array([size for size, _ in kinds])
        shown = np.rint(count * sizes[kind] / n).astype(np.intp)
        laws = [np.asarray(binom.pmf(np.arange(k + 1)[:, None], k, grid)) for k in sizes]
        odd = [(1 - ODD) * law + ODD / len(law) for law in laws]
        firsts = np.concatenate([[0], np.cumsum(sizes + 1)])
        return cls.of_chances(grid, close, np.concatenate(odd), firsts[kind] + shown, effective)

    @classmethod
    def of_chances(
        cls,
        grid: Floats,
        close: Floats,
        chances: Floats,
        place: NDArray[np.intp],
        effective: float | None,
    ) -> Mixture:
        """Return people by the place of each one's measurement among those that have `chances`."""
        distinct, place, repeats = np.unique(place, return_inverse=True, return_counts=True)
        each = 1.0 if effective is None else effective / place.size
        return cls(grid, close, chances[distinct], frozen(repeats * each, np.float64), place)

    @property
    def n(self) -> float:
        """How many people they count as."""
        return float(self.repeats.sum())

    @cached_property
    def shares(self) -> Floats:
        """The share of people at each true risk that makes the measurements most likely."""
        return _best_mixture(self.chances, self.repeats)

    @property
    def expected(self) -> Floats:
        """The expected true risk of each person, given what was measured."""
        weighted = self.chances * self.shares
        means = weighted @ self.grid / weighted.sum(axis=1)
        return np.asarray(means[self.place])

    @one_thread()
    def share(self, errors: Errors) -> Estimate:
        """Return the share of people whose true risk is the limit or more."""
        ends = (
            np.searchsorted(self.grid, self.close[0]),
            np.searchsorted(self.grid, self.close[-1], "right") - 1,
        )
        first, last = (np.full(_SHARES.size, end) for end in ends)
        likely = _best_likelihoods(self.chances, self.repeats, last, first, _SHARES)
        value = float(_SHARES[likely >= likely.max() - 0.01].mean())
        low, high = _compatible(likely, TAIL, value, self.n)
        low_to_decide, _ = _compatible(likely, errors.low, value, self.n)
        _, high_to_decide = _compatible(likely, errors.high, value, self.n)
        return Estimate(value, low, high, None, None, low_to_decide, high_to_decide)

    @one_thread()
    def percentile(self, q: float, errors: Errors) -> Estimate:
        """Return the true risk that a share `q` of people do not exceed."""
        (grid, first), n = np.unique(self.grid, return_index=True), self.n
        last = np.append(first[1:], self.grid.size) - 1
        above = np.cumsum(self.shares[::-1])[::-1][first]
        value = float(grid[np.flatnonzero(above >= 1 - q - 1e-9)[-1]])
        wanted = np.full(grid.size, 1 - q)
        likely = _best_likelihoods(self.chances, self.repeats, last, first, wanted)
        best = max(float(likely.max()), float(np.log(self.chances @ self.shares) @ self.repeats))

        def ends(tail: float) -> tuple[float, float]:
            least, most = _exact(np.minimum(above, 1.0), n, tail)
            unlikely = likely < best - _allowed_drop(tail)
            surely, hardly = unlikely & (least > 1 - q), unlikely & (most < 1 - q)
            low = float(grid[np.flatnonzero(surely)[-1]]) if surely.any() else 0.0
            return low, float(grid[np.flatnonzero(hardly)[0]]) if hardly.any() else 1.0

        low, high = ends(TAIL)
        low_to_decide, high_to_decide = ends(errors.low)[0], ends(errors.high)[1]
        needed = least_people(1 - q, errors.high)
        who = counted(int(n), "target" if n == self.place.size else "independent target")
        too_few = f"no upper end with {who}: at least {needed} are needed"
        note = too_few if n < needed else None
        value = min(max(value, low), high)
        return Estimate(value, low, high, note, None, low_to_decide, high_to_decide)


def close_to(limit: float | None) -> Floats:
    """Return the ends within which a true AUC may count as either side of a limit, and this."""
    return np.array([]) if limit is None else np.asarray(ndtr(ndtri(limit) + _CLOSE * _BLUR))


def kinds_of(
    n_in: ArrayLike, n_out: ArrayLike, n: int
) -> tuple[list[tuple[int, int]], NDArray[np.intp]]:
    """Return a few kinds of people by how many IN and OUT releases they have, and each one's kind.

    The noise is the same if IN and OUT change places. Of very different people, those with about
    the same smaller number make one kind, with the usual number in all.
    """
    fewer, more = (np.broadcast_to(some(n_in, n_out), (n,)) for some in (np.minimum, np.maximum))
    pairs, place = np.unique(np.stack([fewer, more]), axis=1, return_inverse=True)
    if pairs.shape[1] > _MOST_KINDS:
        steps, place = np.unique(np.rint(np.log(fewer) / math.log(_ALIKE)), return_inverse=True)
        pairs = np.rint(np.stack([_ALIKE**steps, (fewer + more).mean() - _ALIKE**steps]))
    return [(int(a), int(b)) for a, b in pairs.T], place


def _exact(shares: ArrayLike, n: float, tail: float) -> tuple[Floats, Floats]:
    """Return the exact intervals around shares of n people, which need not be whole people."""
    counts = n * np.asarray(shares, np.float64)
    return least_share(counts, n, tail), 1 - least_share(n - counts, n, tail)


def _compatible(likely: Floats, tail: float, value: float, n: float) -> tuple[float, float]:
    """Return the least and the largest share that neither test rejects."""
    least, most = _exact(value, n, tail)
    drop = likely.max() - likely - _allowed_drop(tail)
    kept = np.flatnonzero(drop <= 0)
    first, last = int(kept[0]), int(kept[-1])
    low, high = float(_SHARES[first]), float(_SHARES[last])
    if first > 0:
        low = float(np.interp(0, -drop[[first - 1, first]], _SHARES[[first - 1, first]]))
    if last + 1 < _SHARES.size:
        high = float(np.interp(0, drop[[last, last + 1]], _SHARES[[last, last + 1]]))
    return min(low, float(least)), max(high, float(most))


def _allowed_drop(tail: float) -> float:
    """Return by how much a log-likelihood may fall short of the best before it is rejected."""
    return float(ndtri(tail)) ** 2 / 2 + _LEEWAY


def _best_likelihoods(
    chances: Floats,
    repeats: Floats,
    last: NDArray[np.intp],
    first: NDArray[np.intp],
    shares: Floats,
) -> Floats:
    """Return the log-likelihood of the best mixture under each of several constraints.

    Constraint c is that the share `shares[c]` of people is at grid point `first[c]` or above, and
    everybody else at `last[c]` or below. It is maximised by the EM algorithm, whose steps keep the
    weight of either side. `chances` and `repeats` are as of a `Mixture`; the others and the result
    have the shape (n_constraints,).
    """
    points = np.arange(chances.shape[1])
    sides = np.stack([points <= last[:, None], points >= first[:, None]])
    weights = np.stack([1 - shares, shares])[:, :, None]
    mixtures = weights * sides / sides.sum(axis=2, keepdims=True)
    for _ in range(_STEPS):
        density = np.maximum(mixtures.sum(axis=0) @ chances.T, 1e-300)
        mixtures *= (repeats / density) @ chances
        total = mixtures.sum(axis=2, keepdims=True)
        mixtures *= weights / np.maximum(total, 1e-300)
    density = np.maximum(mixtures.sum(axis=0) @ chances.T, 1e-300)
    return np.asarray(np.log(density) @ repeats)


def _best_mixture(chances: Floats, repeats: Floats) -> Floats:
    """Return the share of people at each true AUC that makes the measurements most likely."""
    mixture = np.full(chances.shape[1], 1 / chances.shape[1])
    for _ in range(2 * _STEPS):
        mixture *= (repeats / (chances @ mixture)) @ chances / repeats.sum()
    return mixture


def bin_of(aucs: Floats) -> NDArray[np.intp]:
    """Return the number of the bin of each measured AUC."""
    # 0.5 and other fractions are edges: rounding errors must not move them to the next bin.
    return np.clip(np.searchsorted(BINS, aucs - 1e-12, "left") - 1, 0, N_BINS - 1)


@lru_cache(maxsize=64)
def _noise(n_in: int, n_out: int, grid: tuple[float, ...]) -> Floats:
    """Return the law of the measured AUC by true AUC, shape (n_grid, N_BINS).

    Scores are normal with the same spread with and without the target. The law is drawn with a
    fixed seed; for so many releases that this would take long, it is a Beta law with the right
    mean and variance, which is close to it then.
    """
    inner = np.asarray(grid[1:-1])
    draw = max(n_in, n_out) <= _MOST_RELEASES_TO_DRAW
    law = (_drawn if draw else _beta)(n_in, n_out, inner)
    never, always = np.eye(N_BINS)[[0, -1]]
    return frozen((1 - ODD) * np.vstack([never, law, always]) + ODD / N_BINS, np.float64)


def _drawn(n_in: int, n_out: int, grid: Floats) -> Floats:
    rng = np.random.default_rng(0)
    pairs = n_in * n_out
    n = min(max(_PAIRS_TO_DRAW // pairs, 1000), 20_000)
    shifts = math.sqrt(2) * ndtri(grid)
    law = np.zeros((grid.size, N_BINS))
    for size in np.full(-(-n // 200), 200):
        gaps = rng.normal(size=(size, 1, n_out)) - rng.normal(size=(size, n_in, 1))
        places = (
            np.searchsorted(shifts, gaps.reshape(size, pairs))
            + (grid.size + 1) * np.arange(size)[:, None]
        )
        counts = np.bincount(places.ravel(), minlength=size * (grid.size + 1))
        won = np.cumsum(counts.reshape(size, -1), axis=1)[:, :-1] / pairs
        flat = bin_of(won) + N_BINS * np.arange(grid.size)
        law += np.bincount(flat.ravel(), minlength=law.size).reshape(law.shape)
    return np.asarray(law / law.sum(axis=1, keepdims=True))


def _beta(n_in: int, n_out: int, grid: Floats) -> Floats:
    shift = ndtri(grid)
    both = grid - 2 * owens_t(shift, 1 / math.sqrt(3))
    variance = (grid * (1 - grid) + (n_in + n_out - 2) * (both - grid**2)) / (n_in * n_out)
    return beta_law(grid, variance)


def beta_law(grid: Floats, variance: Floats) -> Floats:
    """Return the law of the measured AUC by its mean and variance, shape (n_grid, N_BINS)."""
    size = (grid * (1 - grid) / variance - 1)[:, None]
    below = betainc(grid[:, None] * size, (1 - grid[:, None]) * size, BINS)
    return np.asarray(np.diff(below, axis=1))
