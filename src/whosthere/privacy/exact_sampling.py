"""Noise for releases that are really published: unpredictable, and exactly of the stated law.

All random bits come from the operating system's cryptographic generator, and every chance is met
exactly. So two known gaps of ordinary noise are closed: bits of floating-point noise that betray
the true value (Mironov, 2012), and generators that can be guessed.

**How a chance is met exactly.** Let p be a real number between 0 and 1, and U = 0.b1 b2 b3 ... a
number made of infinitely many fair bits. Then U < p with a chance of exactly p. The first 64 k
bits of U as a whole number u leave U between u / 2^64k and (u + 1) / 2^64k. With whole numbers
lo <= 2^64k p <= hi, the answer is known to be yes where u + 1 <= lo and no where u >= hi. Only
otherwise are 64 more bits drawn and p enclosed more closely. The answer is the
one that infinitely many bits would give. It takes more than k words with a chance of at most
2 / 2^64k, so it comes with probability one.

**How a geometric number is drawn.** Let P(G >= n) = e^(-x n). The binary digits of G are
independent: P(G = g) is proportional to the product of e^(-x 2^i) over the digits i of g that are
1. So digit i is 1 with a chance of 1 / (1 + e^(x 2^i)), and what stands above digit i is again
geometric, with x 2^(i + 1) instead of x. P(G >= n) = e^(-x n) of the floor of an exponential
variable gives Laplace noise that is rounded down, too.

**How normal noise is drawn.** The size N of a standard normal variable exceeds k / sigma with the
chance p(k) = erfc(k / (sigma sqrt 2)). One number U serves for all k: the floor of sigma N is the
largest k with U < p(k). Its place is computed in floating point. Only where that comes close to a
whole number, closer than 10,000 times the error of the quantile function, is U compared with p(k)
as above. So this is exact as long as scipy's normal quantile is right to 12 digits, which a test
checks against `erfc`.

**How discrete normal noise is drawn.** By taking or leaving discrete Laplace noise. The chance to
take it is computed in floating point, and enclosed where that does not decide.

**How a chance is enclosed.** Everything is computed with whole numbers on a fine grid, and rounded
outwards: low ends down, high ends up. So each result is proved to lie between its two ends,
whatever the precision.
"""

from __future__ import annotations

import math
import os
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import ndtri

if TYPE_CHECKING:
    from collections.abc import Callable

    from whosthere.arrays import Bools, Ints32, Ints64, Words

    Enclosure = Callable[[Fraction, int], tuple[int, int]]

Ends: TypeAlias = tuple[int, int]
"""Whole numbers between which a value lies."""
_WORD = 64
# Digits are drawn for all cells at once until more of them are this unlikely, as a power of e.
_ENOUGH = 40
# Noise beyond this is not told apart: it takes any count of a group below 2^30 to 0 or m. Sums of
# it and counts still fit 32 bits.
_MOST_NOISE = (1 << 30) - 1
# Far more than the relative error of scipy's normal quantile function.
_QUANTILE_ERROR = 1e-12


class Randomness(Enum):
    """Where the noise of a release comes from."""

    EXACT = "cryptographic, exact"
    """Bits of the operating system, and a law that is met exactly."""
    SYSTEM = "an ordinary generator, started by the operating system"
    """Cannot be guessed by trying seeds, but was not made to withstand an attacker."""
    SEEDED = "seeded: a trial"
    """Whoever tries seeds can find the group and the noise."""
    NONE = "nothing is left to chance"


def fair_words(size: int) -> Words:
    """Return whole numbers of 64 fair bits that nobody can predict."""
    return np.frombuffer(os.urandom(8 * size), np.uint64)


def _fair(size: int) -> Bools:
    return np.asarray(fair_words(size) >> np.uint64(_WORD - 1), np.bool_)


def two_sided_geometric(shape: tuple[int, ...], rate: Fraction, *, fair_sides: bool) -> Ints32:
    """Draw Z for every cell, where Z or -1 - Z is geometric: P(G >= n) = e^(-rate n), exactly.

    Z is below 0 with a chance of one half, if the sides are fair (Laplace noise rounded down), or
    else of 1 / (1 + e^rate) (discrete Laplace noise).
    """
    size = int(np.prod(shape, dtype=np.int64))
    magnitude = _geometric(size, rate)
    below = _fair(size) if fair_sides else _happens(size, rate, logistic)
    return _on_either_side(magnitude, below).reshape(shape)


def floored_normal(shape: tuple[int, ...], sigma: float) -> Ints32:
    """Draw normal noise of standard deviation `sigma`, exactly this number, rounded down."""
    size = int(np.prod(shape, dtype=np.int64))
    words = fair_words(size)
    # Half of U is a tail of the normal law. The middle of the interval stands for it.
    place = -ndtri((words.astype(np.float64) + 0.5) * 2.0 ** -(_WORD + 1))
    # U lies within 2^-64 of it, and d(place) / dU is at most 1 / U, or 2.1 where U is large.
    error = sigma * (4 / (words.astype(np.float64) + 1) + _QUANTILE_ERROR * (1 + place))
    lowest = np.floor(np.maximum(sigma * place - error, 0))
    size_of = np.minimum(lowest, _MOST_NOISE).astype(np.int64)
    for doubtful in np.flatnonzero(lowest != np.floor(sigma * place + error)):
        size_of[doubtful] = _settle(int(words[doubtful]), int(lowest[doubtful]), sigma)
    return _on_either_side(size_of, _fair(size)).reshape(shape)


def discrete_normal(shape: tuple[int, ...], variance: Fraction) -> Ints32:
    """Draw Z with P(Z = z) proportional to exp(-z^2 / (2 variance)), exactly.

    Discrete Laplace noise of scale t is drawn until it is taken, which it is with the chance
    exp(-(|z| - variance / t)^2 / (2 variance)) (Canonne, Kamath and Steinke, 2020).
    """
    noise = np.empty(int(np.prod(shape, dtype=np.int64)), np.int32)
    t, missing = math.isqrt(int(variance)) + 1, np.arange(noise.size)
    while missing.size:
        drawn = two_sided_geometric(missing.shape, Fraction(1, t), fair_sides=False)
        taken = _taken(np.abs(drawn), variance, t)
        noise[missing[taken]] = drawn[taken]
        missing = missing[~taken]
    return noise.reshape(shape)


def _taken(sizes: Ints32, variance: Fraction, t: int) -> Bools:
    """Draw whether each number of a size is taken; decided in floating point where that is sure."""
    exponents = (sizes - float(variance / t)) ** 2 / float(2 * variance)
    words, chance = fair_words(sizes.size), np.exp(-exponents)
    uniform = words.astype(np.float64) * 2.0**-_WORD
    error = _QUANTILE_ERROR * (1 + exponents) * chance + 2.0 ** (1 - _WORD) + 2.0**-52 * uniform
    surely: Bools = uniform < chance - error
    for place in np.flatnonzero(~surely & (uniform <= chance + error)):
        x = (int(sizes[place]) - variance / t) ** 2 / (2 * variance)
        surely[place] = _Uniform(int(words[place])).is_below(x, exponential)
    return surely


def _geometric(size: int, rate: Fraction) -> Ints64:
    total = np.zeros(size, np.int64)
    digit = 0
    while rate * (1 << digit) < _ENOUGH:
        total += _happens(size, rate * (1 << digit), logistic).astype(np.int64) << digit
        digit += 1
    # What stands above the last digit is again geometric, and hardly ever more than 0.
    rest = rate * (1 << digit)
    more = np.flatnonzero(_happens(size, rest, exponential))
    while more.size:
        total[more] = np.minimum(total[more] + (1 << digit), _MOST_NOISE)
        more = more[_happens(more.size, rest, exponential)]
    return total


def _happens(size: int, x: Fraction, enclose: Enclosure) -> Bools:
    """Draw events whose chance is exactly the one that is enclosed."""
    low, high = enclose(x, _WORD)
    words = fair_words(size)
    # lo is at most 2^64 - 1 here, because no chance is above 1/2.
    surely = words < np.uint64(low)
    for place in np.flatnonzero(~surely & (words < np.uint64(high))):
        surely[place] = _Uniform(int(words[place])).is_below(x, enclose)
    return surely


class _Uniform:
    """A number between 0 and 1 of which more bits are drawn when they are needed."""

    def __init__(self, word: int) -> None:
        self._word, self._bits = word, _WORD

    def is_below(self, x: Fraction, enclose: Enclosure) -> bool:
        while True:
            low, high = enclose(x, self._bits)
            if self._word < low:
                return True
            if self._word >= high:
                return False
            self._word = self._word << _WORD | int.from_bytes(os.urandom(_WORD // 8))
            self._bits += _WORD


def _settle(word: int, lowest: int, sigma: float) -> int:
    """Return the largest k with U < erfc(k / (sigma sqrt 2)), which is `lowest` or more."""
    uniform, double_variance = _Uniform(word), 2 * Fraction(sigma) ** 2
    k = lowest
    while k < _MOST_NOISE and uniform.is_below((k + 1) ** 2 / double_variance, erfc):
        k += 1
    return k


def _on_either_side(magnitude: Ints64, below: Bools) -> Ints32:
    """Return -1 - G where the noise is below 0, else G."""
    return np.where(below, -1 - magnitude, magnitude).astype(np.int32)


@lru_cache(maxsize=4096)
def exponential(x: Fraction, bits: int) -> Ends:
    """Return whole numbers around 2^bits e^-x, for x >= 0.

    With y = x / 2^k below 1/2, the series 1 - y + y^2/2 - ... has falling terms of changing sign.
    So what is left out is smaller than the last term. Squaring k times gives e^-x.
    """
    halvings = (2 * x.numerator // x.denominator).bit_length()
    grid = bits + 2 * halvings + 32
    y = _around(x.numerator << grid, x.denominator << halvings)
    low = high = 1 << grid
    term, n = (low, high), 0
    while term[1] > 1:
        n += 1
        term = term[0] * y[0] // (n << grid), _up(term[1] * y[1], n << grid)
        low, high = (low - term[1], high - term[0]) if n % 2 else (low + term[0], high + term[1])
    low, high = low - term[1], high + term[1]
    for _ in range(halvings):
        low, high = low * low >> grid, _up(high * high, 1 << grid)
    return _coarser((low, high), grid - bits)


@lru_cache(maxsize=4096)
def logistic(x: Fraction, bits: int) -> Ends:
    """Return whole numbers around 2^bits / (1 + e^x), for x >= 0."""
    grid = bits + 16
    one = 1 << grid
    low, high = exponential(x, grid)
    ends = low * one // (one + low), _up(high * one, one + high)
    return _coarser(ends, grid - bits)


def erfc(square: Fraction, bits: int) -> Ends:
    """Return whole numbers around 2^bits erfc(sqrt(square)), for square >= 0.

    By erf(z) = 2 z e^(-z^2) / sqrt(pi) times the sum of (2 z^2)^n / (1 * 3 * ... * (2 n + 1)). All
    terms are positive. Once a term is less than half of the one before, what is left out is
    smaller than the last term.
    """
    # The sum is about as large as e^(z^2), which the exponential makes up for.
    grid = bits + 64 + 4 * (square.numerator // square.denominator)
    one = 1 << grid
    double = _around(2 * square.numerator << grid, square.denominator)
    term = total = (one, one)
    n = 0
    while term[1] > 1 or double[1] >= (n + 1) << grid:
        n += 1
        divisor = (2 * n + 1) << grid
        term = term[0] * double[0] // divisor, _up(term[1] * double[1], divisor)
        total = total[0] + term[0], total[1] + term[1]
    total = total[0], total[1] + term[1]
    shrunk = exponential(square, grid)
    # 4 z^2 / pi, and its root
    pi = _pi(grid)
    quotient = (2 * double[0] << grid) // pi[1], _up(2 * double[1] << grid, pi[0])
    root = math.isqrt(quotient[0] << grid), math.isqrt(quotient[1] << grid) + 1
    low = root[0] * shrunk[0] * total[0] // (one * one)
    high = _up(root[1] * shrunk[1] * total[1], one * one)
    return _coarser((max(one - high, 0), max(one - low, 0)), grid - bits)


@lru_cache(maxsize=64)
def _pi(bits: int) -> Ends:
    """Return whole numbers around 2^bits pi, by Machin's formula."""
    grid = bits + 32
    five, other = _arctan_of_inverse(5, grid), _arctan_of_inverse(239, grid)
    return _coarser((16 * five[0] - 4 * other[1], 16 * five[1] - 4 * other[0]), grid - bits)


def _arctan_of_inverse(n: int, bits: int) -> Ends:
    """Return whole numbers around 2^bits arctan(1 / n), for a whole n > 1."""
    low = high = 0
    power, k = n, 0
    while True:
        term = _around(1 << bits, power * (2 * k + 1))
        low, high = (low - term[1], high - term[0]) if k % 2 else (low + term[0], high + term[1])
        if term[0] == 0:
            return low - term[1], high + term[1]
        power, k = power * n * n, k + 1


def _up(a: int, b: int) -> int:
    return -(-a // b)


def _around(a: int, b: int) -> Ends:
    return a // b, _up(a, b)


def _coarser(ends: Ends, bits: int) -> Ends:
    """Return the ends on a grid that has so many bits fewer."""
    return ends[0] >> bits, _up(ends[1], 1 << bits)
