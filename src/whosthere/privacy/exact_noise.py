"""Noise for releases that are really published: unpredictable, and exactly of the stated law.

All random bits come from the operating system's cryptographic generator, and every chance is met
exactly. So two known gaps of ordinary noise are closed: bits of floating-point noise that betray
the true value (Mironov, 2012), and generators that can be guessed.

**How a number is drawn exactly.** Let p(k) be the chance of k or more, and U a number made of
infinitely many fair bits. The largest k with U < p(k) has exactly the law that is asked for. It is
first computed in floating point from 64 bits of U. Only where that comes closer to another whole
number than its error may be, p(k) is enclosed between whole numbers on a fine grid, and more bits
are drawn until U is known to lie on one side. So it is the number that infinitely many bits give.

Geometric sizes have p(k) = e^(-rate k). With a fair side they are Laplace noise that is rounded
down; discrete Laplace noise leaves out one of the two sides of 0. Discrete normal noise is discrete
Laplace noise that is taken or left, by the same comparison for k of 0 or 1.

Everything is enclosed by whole numbers that are rounded outwards: low ends down, high ends up. So
each result is proved to lie between its two ends, whatever the precision.
"""

from __future__ import annotations

import math
import os
from enum import Enum
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from whosthere.arrays import Bools, Floats, Ints32, Ints64, Words

    Tail = Callable[[int, int, int], "Ends"]

Ends: TypeAlias = tuple[int, int]
"""Whole numbers between which a value lies."""
_WORD = 64
# Noise beyond this is not told apart: it takes any count of a group below 2^30 to 0 or m. Sums of
# it and counts still fit 32 bits.
_MOST_NOISE = (1 << 30) - 1
# Far more than the relative errors of numpy's logarithm and exponential.
_ERROR = 1e-12


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


def rounded_laplace(size: int, rate: Fraction) -> Ints32:
    """Draw Laplace noise of scale 1 / rate, rounded down."""
    return _on_either_side(_geometric(size, rate), _fair(size))


def discrete_laplace(size: int, rate: Fraction) -> Ints32:
    """Draw Z with P(Z = z) proportional to e^(-rate |z|)."""
    noise, missing = np.empty(size, np.int32), np.arange(size)
    while missing.size:
        drawn, below = _geometric(missing.size, rate), _fair(missing.size)
        noise[missing] = np.where(below, -drawn, drawn)
        # 0 has two sides, of which one is left out.
        missing = missing[below & (drawn == 0)]
    return noise


def discrete_normal(size: int, variance: Fraction) -> Ints32:
    """Draw Z with P(Z = z) proportional to exp(-z^2 / (2 variance)).

    Discrete Laplace noise of scale t is drawn until it is taken, which it is with the chance
    exp(-(|z| - variance / t)^2 / (2 variance)) (Canonne, Kamath and Steinke, 2020).
    """
    noise, missing, t = np.empty(size, np.int32), np.arange(size), math.isqrt(int(variance)) + 1
    while missing.size:
        drawn = discrete_laplace(missing.size, Fraction(1, t))
        taken = _taken(np.abs(drawn), variance / t, 2 * variance)
        noise[missing[taken]] = drawn[taken]
        missing = missing[~taken]
    return noise


def _geometric(size: int, rate: Fraction) -> Ints64:
    """Draw G with P(G >= k) = e^(-rate k)."""
    words, x = fair_words(size), float(rate)
    place = -np.log(_middle(words)) / x
    # U lies within 2^-64 of the middle, and the logarithm changes by at most 1 / U of that.
    error = (4 / (words.astype(np.float64) + 1) + _ERROR * (1 + place * x)) / x
    return _largest(words, place, error, lambda _, k, bits: exponential(rate * k, bits))


def _taken(sizes: Ints32, center: Fraction, width: Fraction) -> Bools:
    """Draw whether each number of a size is taken, with chance e^(-(size - center)^2 / width)."""
    words = fair_words(sizes.size)
    exponents = (sizes - float(center)) ** 2 / float(width)
    chance = np.exp(-exponents)
    error = _ERROR * (1 + exponents) * chance + 2.0**-50

    def enclosed(i: int, k: int, bits: int) -> Ends:  # noqa: ARG001
        return exponential((int(sizes[i]) - center) ** 2 / width, bits)

    place = 1 + chance - _middle(words)
    return np.asarray(_largest(words, place, error, enclosed, most=1), np.bool_)


def _largest(
    words: Words, place: Floats, error: Floats, tail: Tail, most: int = _MOST_NOISE
) -> Ints64:
    """Return the largest k with U < p(k), up to `most`, given about where it is.

    Each U begins with a word. `tail` encloses 2^bits p(k), given the number of the word, k, bits.
    """
    lowest = np.floor(np.maximum(place - error, 0))
    found = np.minimum(lowest, most).astype(np.int64)
    for i in np.flatnonzero(lowest != np.floor(place + error)).tolist():
        uniform, k = _Uniform(int(words[i])), int(found[i])
        while k < most and uniform.is_below(partial(tail, i, k + 1)):
            k += 1
        found[i] = k
    return found


def _middle(words: Words) -> Floats:
    return (words.astype(np.float64) + 0.5) * 2.0**-_WORD


def _fair(size: int) -> Bools:
    return np.asarray(fair_words(size) >> np.uint64(_WORD - 1), np.bool_)


def _on_either_side(sizes: Ints64, below: Bools) -> Ints32:
    """Return -1 - G where the noise is below 0, else G."""
    return np.where(below, -1 - sizes, sizes).astype(np.int32)


class _Uniform:
    """A number between 0 and 1 of which more bits are drawn when they are needed."""

    def __init__(self, word: int) -> None:
        self._word, self._bits = word, _WORD

    def is_below(self, enclosed: Callable[[int], Ends]) -> bool:
        while True:
            low, high = enclosed(self._bits)
            if self._word < low:
                return True
            if self._word >= high:
                return False
            self._word = self._word << _WORD | int.from_bytes(os.urandom(_WORD // 8))
            self._bits += _WORD


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


def _up(a: int, b: int) -> int:
    return -(-a // b)


def _around(a: int, b: int) -> Ends:
    return a // b, _up(a, b)


def _coarser(ends: Ends, bits: int) -> Ends:
    """Return the ends on a grid that has so many bits fewer."""
    return ends[0] >> bits, _up(ends[1], 1 << bits)
