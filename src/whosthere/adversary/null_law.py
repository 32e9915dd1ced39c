"""The exact law of a sum of independent terms, one for each cell, and the chances of its tail.

The terms take a few values each. They are put on a grid, every value split between the two grid
points around it in the parts that keep its mean, and the law of the sum follows from Fourier
transforms. Rounded to the grid, a sum of n terms lies lower than the exact one by more than

    h * min(n, sqrt(n * log(1 / delta) / 2)),        h the distance of grid points,

with a chance of at most delta, whatever the terms are (Hoeffding). A tail that begins lower by as
much, divided by 1 - delta, is therefore never smaller than the exact one.

Far tails would drown in rounding errors of about 1e-16. So the law is tilted first: each value v
is made exp(tilt * v) times likelier, which brings the observed sum to the middle of the law, and
the tilt is undone in the tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import irfft, rfft

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Grid points.
_POINTS = 4096
# Terms that are transformed at a time.
_BLOCK = 32
# Two terms become one as long as that one has no more values than this, on average.
_MOST_VALUES = 160
# The delta of above.
_DELTA = 0.01
# The grid is a circle, and next to nothing of a tilted law may lie beyond it: it reaches over so
# many deviations of the sum, and so many times the largest deviation of a term.
_DEVIATIONS, _JUMPS = 12.0, 3.0
# Values of a tilted term that are rarer may lie beyond the grid.
_RARE = 1e-8
# Tails of a tilted law are not told from smaller ones.
_LEAST_TAIL = 1e-8


@dataclass(frozen=True, eq=False)
class NullLaw:
    """The law of a sum of independent terms.

    Parameters
    ----------
    term
        Which term each value belongs to, ascending, shape (n_values,).
    value, chance
        Finite values and their chances, above 0, shape (n_values,). The chances of a term may add
        up to less than 1: then the sum is minus infinity with the chance that is left.
    """

    term: NDArray[np.int64]
    value: NDArray[np.float64]
    chance: NDArray[np.float64]

    def p_value(self, total: float) -> float:
        """Return the chance of a sum at least as large as an observed one.

        It is never too small: by the grid, it is too large by some percent.
        """
        few = self._with_fewer_terms()
        n = int(few.term[-1]) + 1
        slack = min(n, math.sqrt(n * math.log(1 / _DELTA) / 2)) + 1e-6
        at_least = few._log_tail(total, -slack)
        return math.exp(min(at_least - math.log1p(-_DELTA), 0.0))

    def _log_tail(self, total: float, offset: float) -> float:
        """Return the logarithm of a tail that begins some steps of a grid above an observed sum."""
        law = self._tilted_towards(total)
        width = max(_DEVIATIONS * math.sqrt(law.variance) + _JUMPS * law.jump, 1e-6)
        step = width / _POINTS
        chances = self._on_grid(law, step)
        place = (total - float(law.mean.sum())) / step
        tail = _log_tail(chances, law.tilt * step, place, place + offset)
        return law.log_size - law.tilt * total + tail

    def _with_fewer_terms(self) -> NullLaw:
        """Return the same law with sums of two terms in their place, as far as that saves work."""
        starts = np.append(np.flatnonzero(np.diff(self.term, prepend=-1)), self.term.size)
        sizes = np.diff(starts)
        n = sizes.size // 2
        left, right = sizes[: 2 * n : 2], sizes[1 : 2 * n : 2]
        made = left * right
        if n == 0 or made.sum() > _MOST_VALUES * n:
            return self
        pair = np.repeat(np.arange(n), made)
        within = np.arange(pair.size) - np.repeat(np.cumsum(made) - made, made)
        first, second = np.divmod(within, right[pair])
        first += starts[: 2 * n : 2][pair]
        second += starts[1 : 2 * n : 2][pair]
        alone = slice(starts[2 * n], None)
        return NullLaw(
            np.append(pair, np.full(self.term[alone].size, n)),
            np.append(self.value[first] + self.value[second], self.value[alone]),
            np.append(self.chance[first] * self.chance[second], self.chance[alone]),
        )._with_fewer_terms()

    def _tilted_towards(self, total: float) -> _Tilted:
        """Tilt the law so that its mean comes near to a sum, by 1 at most.

        Tilted by 1, a law of log ratios is the one with the person there.
        """
        level, steep = self._tilted(0.0), self._tilted(1.0)
        low, high = float(level.mean.sum()), float(steep.mean.sum())
        if total <= low:
            return level
        return steep if total >= high else self._tilted((total - low) / (high - low))

    def _tilted(self, tilt: float) -> _Tilted:
        weight = self.chance * np.exp(tilt * self.value) if tilt else self.chance
        size = np.bincount(self.term, weight)
        weight = np.asarray(weight / size[self.term], dtype=np.float64)
        mean = np.asarray(np.bincount(self.term, weight * self.value), dtype=np.float64)
        apart = self.value - mean[self.term]
        return _Tilted(tilt, float(np.log(size).sum()), weight, mean, apart)

    def _on_grid(self, law: _Tilted, step: float) -> NDArray[np.float64]:
        """Return the chance of each grid point under a tilted law, the mean in the middle."""
        place = law.apart / step
        below = np.floor(place)
        part = place - below
        column = below.astype(np.int64) % _POINTS
        # Values are split first and then tilted, so that the tilt can be undone exactly.
        tilt = law.tilt * step
        lower = law.weight * (1 - part) * np.exp(-tilt * part)
        upper = law.weight * part * np.exp(tilt * (1 - part))
        n = law.mean.size
        ends = np.searchsorted(self.term, np.arange(0, n + _BLOCK, _BLOCK))
        product = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
        for first, (start, end) in zip(range(0, n, _BLOCK), pairwise(ends), strict=False):
            rows = min(_BLOCK, n - first)
            base = (self.term[start:end] - first) * _POINTS
            at = np.concatenate(
                [base + column[start:end], base + (column[start:end] + 1) % _POINTS]
            )
            masses = np.concatenate([lower[start:end], upper[start:end]])
            grid = np.bincount(at, masses, rows * _POINTS).reshape(rows, _POINTS)
            product *= np.multiply.reduce(rfft(grid, axis=1), axis=0)
        return np.roll(irfft(product, _POINTS), _POINTS // 2)


@dataclass(frozen=True, eq=False)
class _Tilted:
    """A law whose values v were made exp(tilt * v) times likelier.

    Attributes
    ----------
    log_size
        Logarithm of what all chances together were before they were made to add up to 1.
    weight, apart
        Chance of each value, and how far it lies above the mean of its term, shape (n_values,).
    mean
        Of each term, shape (n_terms,).
    """

    tilt: float
    log_size: float
    weight: NDArray[np.float64]
    mean: NDArray[np.float64]
    apart: NDArray[np.float64]

    @property
    def variance(self) -> float:
        """Of the sum."""
        # Not a product of vectors, which would wake up threads.
        return float((self.weight * self.apart**2).sum())

    @property
    def jump(self) -> float:
        """How far a term may lie from its mean."""
        return float(np.abs(self.apart[self.weight > _RARE]).max(initial=0.0))


def _log_tail(chances: NDArray[np.float64], tilt: float, place: float, end: float) -> float:
    """Return the logarithm of a tail of tilted chances, with the tilt undone from `place` on."""
    half = chances.size // 2
    first = min(max(math.ceil(end) + half, 0), chances.size)
    points = np.arange(first, chances.size) - half
    weight = np.exp(-tilt * (points - place)) if tilt else 1.0
    return math.log(max(float((chances[first:] * weight).sum()), _LEAST_TAIL))
