"""Whole numbers around 2^bits times a function's value, as close as one asks for.

Everything is computed with whole numbers on a fine grid, and rounded outwards: low ends down, high
ends up. So each result is proved to lie between its two ends, whatever the precision.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction

Ends: TypeAlias = tuple[int, int]
"""Numbers between which a value lies."""


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
        term = _down(term[0] * y[0], n << grid), _up(term[1] * y[1], n << grid)
        low, high = (low - term[1], high - term[0]) if n % 2 else (low + term[0], high + term[1])
    low, high = low - term[1], high + term[1]
    for _ in range(halvings):
        low, high = _down(low * low, 1 << grid), _up(high * high, 1 << grid)
    return _coarser((low, high), grid - bits)


@lru_cache(maxsize=4096)
def logistic(x: Fraction, bits: int) -> Ends:
    """Return whole numbers around 2^bits / (1 + e^x), for x >= 0."""
    grid = bits + 16
    one = 1 << grid
    low, high = exponential(x, grid)
    ends = _down(low * one, one + low), _up(high * one, one + high)
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
        term = _down(term[0] * double[0], divisor), _up(term[1] * double[1], divisor)
        total = total[0] + term[0], total[1] + term[1]
    total = total[0], total[1] + term[1]
    shrunk = exponential(square, grid)
    # 4 z^2 / pi, and its root
    pi = _pi(grid)
    quotient = _down(2 * double[0] << grid, pi[1]), _up(2 * double[1] << grid, pi[0])
    root = math.isqrt(quotient[0] << grid), math.isqrt(quotient[1] << grid) + 1
    low = _down(root[0] * shrunk[0] * total[0], one * one)
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


def _down(a: int, b: int) -> int:
    return a // b


def _up(a: int, b: int) -> int:
    return -(-a // b)


def _around(a: int, b: int) -> Ends:
    return _down(a, b), _up(a, b)


def _coarser(ends: Ends, bits: int) -> Ends:
    """Return the ends on a grid that has so many bits fewer."""
    return ends[0] >> bits, _up(ends[1], 1 << bits)
