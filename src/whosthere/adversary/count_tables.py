"""What a mechanism makes of cells whose true counts are random with a known rate.

This depends on one number, the rate of others in a cell. So means, variances, information and log
ratios are tabulated once for a mechanism, on a logarithmic grid of rates, by one matrix product of
Poisson and mechanism probabilities. Attacks then only read tables, whatever the mechanism is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, softmax

from whosthere import kernels
from whosthere.arrays import Bools, Floats, Ints32, Ints64, own
from whosthere.privacy.probability import log_probability, log_withheld, own_draws, placed
from whosthere.privacy.step import NO_DRAW, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.kernels.lines import Scales
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.release import Release
    from whosthere.privacy.step import Alphabet

# Rates are tabulated on a logarithmic grid. Above the largest, a published count is as good as
# normal; below the smallest, all that matters is proportional to the rate.
_LEAST_RATE, _MOST_RATE = 1e-4, 256.0
# Where a map moves counts by more than so small a part of that rate, the grid reaches further:
# far above the threshold of a suppression hardly anything is suppressed.
_FAR_ABOVE, _FURTHEST_RATE = 3.0, 2048.0
_POINTS_PER_E_FOLD = 16
_LARGEST_RATIO = 40.0
# Published values are put together where the noise is so wide that neighbours hardly differ, or
# where counts are scaled up so far that most numbers are never published.
_BINS_PER_SCALE = 64
# Chances that are smaller are taken for this one: a cell alone decides nothing about its line.
_LEAST_CHANCE = 1e-300


@dataclass(frozen=True, eq=False)
class CountTables:
    """Tables of one mechanism, by the rate of the others in a cell."""

    first: float
    step: float
    """Logarithm of the first rate, and the distance of the logarithms."""
    mean: Floats
    variance: Floats
    empty_mean: float
    empty_variance: float
    """Mean and variance of a published count in people, shape (n_rates,), and in empty cells."""
    information: Floats
    """Of a published count about the rate (Fisher's), shape (n_rates,): for counts that are
    published as they are, one by the rate."""
    bin_of_symbol: Ints32
    """Bin of each published symbol from 0; the last bin holds all further ones."""
    log_ratio: Floats
    """Log of how much likelier a symbol of a bin is with what the target adds, shape (n_rates,
    n_bins); minus infinity where the target cannot be there."""
    log_chance: Floats
    """Log of the chance of one symbol of a bin where nobody more is there, same shape."""
    rules_out: Bools
    """Whether a symbol of a bin is never published with what the target adds, shape (n_bins,)."""
    alphabet: Alphabet
    per_person: float
    """What a published count is multiplied by to be one of people."""
    draws: tuple[tuple[float, Floats], ...]
    """Where somebody alone in several cells draws once: the log chance of each draw, and
    `log_ratio` given it, shape (n_bins, n_rates)."""
    added: int = 1
    """What the target adds to a count."""

    def bins(self, symbols: Ints32) -> Ints32:
        """Return the bin of each symbol, same shape."""
        return self.bin_of_symbol[np.minimum(symbols, self.bin_of_symbol.size - 1)]

    def log_ratio_of(self, symbols: Ints32, log_rates: Floats) -> Floats:
        """Return the log ratio of published symbols in cells of the given rates, same shape."""
        one_each = np.arange(symbols.size), np.zeros((symbols.size, 1))
        found = kernels.log_ratios_at_nodes(symbols, log_rates, *one_each, *self.of_ratios)
        return np.asarray(found[:, 0])

    @cached_property
    def of_chances(self) -> tuple[Floats, Scales]:
        """What kernels look log chances of symbols up by."""
        return np.ascontiguousarray(self.log_chance.T), self.scales

    @cached_property
    def of_ratios(self) -> tuple[Floats, Scales]:
        """What kernels look log ratios of symbols up by."""
        return np.ascontiguousarray(self.log_ratio.T), self.scales

    def of_draws(self) -> list[tuple[float, tuple[Floats, Scales]]]:
        """Return the same for each draw that the target may have, and the log of its chance."""
        return [(chance, (ratios, self.scales)) for chance, ratios in self.draws] or [
            (0.0, self.of_ratios)
        ]

    def information_on_levels(self, symbols: Ints32, log_rates: Floats) -> Floats:
        """Return what lines tell about the logarithm of a factor of all their rates (Fisher's).

        Both have the shape (n_lines, n_cells). Negative symbols are left out.
        """
        return kernels.information_on_levels(symbols, log_rates, self.information, self.scales)

    @property
    def scales(self) -> Scales:
        """How kernels read the tables."""
        scales = self.bin_of_symbol, self.first, self.step, self.noise, self.shift
        marks = int(self.alphabet.withholds)
        return kernels.Scales(
            *scales, self.alphabet.base, marks, self.per_person, float(self.added)
        )

    @property
    def _last(self) -> float:
        """Logarithm of the largest rate in the tables."""
        return self.first + (self.mean.size - 1) * self.step

    @property
    def rates(self) -> Floats:
        """Rates in the tables, shape (n_rates,)."""
        return np.asarray(np.exp(self.first + self.step * np.arange(self.mean.size)))

    @property
    def noise(self) -> float:
        """Variance that the mechanism adds to counts beyond the tables."""
        return max(float(self.variance[-1]) - math.exp(self._last), 0.0)

    @property
    def shift(self) -> float:
        """What the mechanism adds to counts beyond the tables on average."""
        return float(self.mean[-1]) - math.exp(self._last)


def stand_in(mechanism: Mechanism) -> float:
    """Return what a withheld count is taken for where counts are added up.

    The middle of what is withheld, where a mark tells that somebody was there. 0 where empty cells
    are withheld as well: most withheld cells are empty then.
    """
    held = mechanism.withheld
    return 0.0 if held is None or held.lowest <= 0 else (held.lowest + held.highest) / 2


def filled(release: Release) -> NDArray[np.int32 | np.float64]:
    """Return published counts in people, with something in place of withheld ones."""
    slope, counts = release.mechanism.slope, release.counts
    if release.withheld is not None:
        counts = counts + stand_in(release.mechanism) * release.withheld
    return counts if slope == 1 else counts / slope


@lru_cache(maxsize=128)
def count_tables(mechanism: Mechanism, m: int, added: int = 1) -> CountTables:
    """Make the tables of a mechanism for counts up to m, once.

    The others in a cell are Poisson with the cell's rate, and the target adds so many to them.
    """
    most_rate = min(max(_MOST_RATE, _FAR_ABOVE * moved_down(mechanism, m)), _FURTHEST_RATE)
    n_rates = math.ceil(math.log(most_rate / _LEAST_RATE) * _POINTS_PER_E_FOLD) + 1
    rates = _LEAST_RATE * np.exp(np.arange(n_rates) / _POINTS_PER_E_FOLD)
    n = np.arange(min(m, math.ceil(rates[-1] + 12 * math.sqrt(rates[-1]) + 19) + added) + 1)
    alphabet, counts = mechanism.alphabet(m), n.astype(np.int32)[:, None]
    edges = _bin_edges(mechanism, int(n[-1]), m)
    chances = np.exp(log_probability(mechanism.steps, counts, edges[:-1], edges[1:] - 1, m))
    middles, widths = (edges[:-1] + edges[1:] - 1) / 2, np.diff(edges)
    if alphabet.withholds:
        chances = np.hstack([np.exp(log_withheld(mechanism.steps, counts, m)), chances])
        middles, widths = np.append(stand_in(mechanism), middles), np.append(1, widths)
    middles = middles / mechanism.slope
    means = chances @ middles
    squares = chances @ middles**2
    others = _poisson(n[:-added], rates)
    mean = others @ means[:-added]
    without, within = others @ chances[:-added], others @ chances[added:]
    shown = chances > 0
    rules_out = np.asarray(~shown[added:].any(axis=0) & shown[:added].any(axis=0))
    draws = []
    for draw in own_draws(mechanism.steps, m) if added == 1 else ():
        # Only where nobody else is does the target's own draw decide.
        given = np.exp(draw.log_probability(edges[:-1], edges[1:] - 1))
        if alphabet.withholds:
            given = np.append(np.exp(draw.log_withheld()), given)
        by_draw = np.maximum(within + others[:, :1] * (given - chances[1]), 0.0)
        draws.append((draw.log_chance, own(_log_ratio(by_draw, without).T, np.float64)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # One person more is a step of a Poisson law: the derivative of the chances by the rate is
        # what that person adds to them.
        information = np.where(without > 0, (within - without) ** 2 / without, 0.0).sum(axis=1)
    return CountTables(
        first=float(np.log(rates[0])),
        step=1.0 / _POINTS_PER_E_FOLD,
        mean=own(mean, np.float64),
        variance=own(others @ squares[:-added] - mean**2, np.float64),
        empty_mean=float(means[0]),
        empty_variance=float(squares[0] - means[0] ** 2),
        information=own(information, np.float64),
        bin_of_symbol=own(np.repeat(np.arange(widths.size), widths), np.int32),
        log_ratio=own(np.where(rules_out, -np.inf, _log_ratio(within, without)), np.float64),
        rules_out=own(rules_out, np.bool_),
        log_chance=own(np.log(np.maximum(without, _LEAST_CHANCE) / widths), np.float64),
        alphabet=alphabet,
        per_person=1 / mechanism.slope,
        draws=tuple(draws),
        added=added,
    )


def _log_ratio(within: Floats, without: Floats) -> Floats:
    """Return logs of ratios of chances; values too far from a rate say: more people than that."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(within) - np.log(without)
    ratio = np.where(np.isnan(ratio), _LARGEST_RATIO, ratio)
    return np.where(np.isneginf(ratio), ratio, np.clip(ratio, -_LARGEST_RATIO, _LARGEST_RATIO))


def moved_down(mechanism: Mechanism, m: int) -> float:
    """Return how far a map takes any count down that is worth a rate of its own, in people."""
    moved, slope = 0.0, 1.0
    for step, within in placed(mechanism.steps, m)[0]:
        if not step.is_random:
            counts = np.arange(min(within.highest, int(_FURTHEST_RATE)) + 1, dtype=np.int32)
            shown = np.maximum(step.publish(counts, NO_DRAW, within), 0)
            moved = max(moved, float((counts - shown / step.slope).max()) / slope)
        slope *= step.slope
    return moved


def _bin_edges(mechanism: Mechanism, most: int, m: int) -> Ints64:
    """Edges of bins of published counts: single ones where noise is narrow, always the lowest."""
    steps, (lowest, _) = placed(mechanism.steps, m)
    landing = reduce(lambda counts, at: at[0].lands(counts, at[1]), steps, Span(0, most))
    widest = max([mechanism.slope, *(step.scale for step in mechanism.steps)])
    width = max(1, int(widest / _BINS_PER_SCALE))
    end = landing.highest + 1
    return np.append(np.append(lowest, np.arange(lowest + 1, end, width)), end)


def _poisson(n: Ints64, rates: Floats) -> Floats:
    """Chance of n people in a cell, all that there can be, shape (n_rates, n.size)."""
    return np.asarray(softmax(n * np.log(rates)[:, None] - gammaln(n + 1.0), axis=1))
