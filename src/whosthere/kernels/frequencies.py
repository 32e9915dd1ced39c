"""Laws of totals, of whose parts something was published as well.

The law of a sum is a sum over frequencies of the product of its parts' laws, as generating
functions on a circle. So a person changes it by a factor for each part where that person is. The
circle's radius makes those sums likely that the total allows, so that little cancels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Complexes, Floats, Ints64

# Counts whose chance is a smaller part of all are left out, and sums so many deviations away.
_UNLIKELY, _WIDE = 1e-17, 8.0
_ROUNDS, _FURTHEST, _NEAR = 40, 12.0, 0.3
_LEAST_VARIANCE, _LEAST = 1e-9, 1e-250


class Parts(NamedTuple):
    """The cells that totals are made of, in the order of their totals."""

    starts: Ints64
    """Where those of each total begin, and the number of all."""
    log_rates: Floats
    symbol: Ints64
    """What was published of each: a row of the next two."""
    log_chances: Floats
    """Log chance of that by count, shape (n_symbols, n_counts)."""
    support: Ints64
    """The first count that it may stand for, and the last, shape (n_symbols, 2)."""
    log_factorials: Floats


class Circles(NamedTuple):
    """Where the laws of totals are looked at."""

    log_radius: Floats
    least: Ints64
    """The least sum of the others that is looked at."""
    sums: Ints64
    """Where sums begin, of which there are as many as points on the circle of each total."""
    points: Ints64
    """Where points begin: half of those on the circle, of which the others are the mirror."""


class Visits(NamedTuple):
    """Groups of visits to parts of one total, in the order of totals and what they add."""

    starts: Ints64
    """Where the places of each group begin, and the number of all."""
    places: Ints64
    total: Ints64
    added: Ints64
    """The total of each group, and what it adds to it."""
    part: Ints64
    """The part of each place, in ascending order."""
    more: Ints64
    """What a visit there adds to the part."""


class Laws(NamedTuple):
    """Laws of the others on circles, one after the other: of parts, and of these with a visit."""

    of_parts: Complexes
    starts_of_parts: Ints64
    of_places: Complexes
    starts_of_places: Ints64


@kernel()
def circles(parts: Parts, likely: Floats, spare: int) -> tuple[Floats, Floats, Ints64, Ints64]:
    """Return log chances of parts, and of totals log radius, least sum and number of sums.

    `likely` sums by what was published of a total have the shape (n_totals, 2). A person may be
    `spare` of them. Chances are those of what was published of parts, each sum weighed by a power
    of the radius.
    """
    n_totals = parts.starts.size - 1
    log_chances, log_radius = np.zeros(parts.symbol.size), np.zeros(n_totals)
    least, size = np.empty(n_totals, np.int64), np.empty(n_totals, np.int64)
    for t in range(n_totals):
        low, high, now = -_FURTHEST, _FURTHEST, 0.0
        mean, variance, first, last = _sum_at(parts, t, now, log_chances)
        wanted = min(max(mean, likely[t, 0]), likely[t, 1])
        for _ in range(_ROUNDS):
            if abs(mean - wanted) <= _NEAR * math.sqrt(variance):
                break
            if mean < wanted:
                low = now
            else:
                high = now
            now += (wanted - mean) / variance
            if not low < now < high:
                now = (low + high) / 2.0
            mean, variance, first, last = _sum_at(parts, t, now, log_chances)
        wide = _WIDE * math.sqrt(variance) + 1.0
        log_radius[t] = now
        least[t] = max(max(first, int(mean - wide)) - spare, 0)
        size[t] = min(last, int(mean + wide) + 1) - least[t] + 1
    return log_chances, log_radius, least, size


@part()
def _sum_at(
    parts: Parts, t: int, log_radius: float, log_chances: Floats
) -> tuple[float, float, int, int]:
    """Return mean, variance, least and largest sum in a total; fill in log chances of its parts."""
    mean, variance, least, most = 0.0, _LEAST_VARIANCE, 0, 0
    for i in range(parts.starts[t], parts.starts[t + 1]):
        symbol, log_rate, top = parts.symbol[i], parts.log_rates[i] + log_radius, -math.inf
        first, last = parts.support[symbol]
        for n in range(first, last + 1):
            log = parts.log_chances[symbol, n] + n * log_rate - parts.log_factorials[n]
            top = max(top, log)
        of_all, of_counts, of_squares, lowest, highest = 0.0, 0.0, 0.0, last, first
        for n in range(first, last + 1):
            log = parts.log_chances[symbol, n] + n * log_rate - parts.log_factorials[n]
            chance = math.exp(log - top)
            if chance > _UNLIKELY:
                of_all += chance
                of_counts += n * chance
                of_squares += n * n * chance
                lowest, highest = min(lowest, n), n
        mean += of_counts / of_all
        variance += of_squares / of_all - (of_counts / of_all) ** 2
        least += lowest
        most += highest
        log_chances[i] = math.log(of_all) + top
    return mean, variance, least, most


@kernel()
def laws_on_circles(
    parts: Parts,
    log_chances: Floats,
    circles: Circles,
    which: Ints64,
    more: Ints64,
    starts: Ints64,
) -> Complexes:
    """Return laws of the others on the circles of their totals, from `starts` on.

    Each is of part ``which[i]`` (in ascending order), where somebody adds ``more[i]`` to it, and
    over the chance of that part without.
    """
    found, roots, t = np.zeros(starts[-1], np.complex128), np.empty(0, np.complex128), -1
    for i in range(which.size):
        if t < 0 or which[i] >= parts.starts[t + 1]:
            while which[i] >= parts.starts[t + 1]:
                t += 1
            roots = _roots(circles, t)
        symbol, log_rate = parts.symbol[which[i]], parts.log_rates[which[i]] + circles.log_radius[t]
        first, last = parts.support[symbol] - more[i]
        for n in range(max(first, 0), last + 1):
            log = parts.log_chances[symbol, n + more[i]] + n * log_rate - parts.log_factorials[n]
            chance = math.exp(log - log_chances[which[i]])
            if chance > _UNLIKELY:
                turned, turn = 0, n % roots.size
                for j in range(starts[i], starts[i + 1]):
                    found[j] += chance * roots[turned]
                    turned = (turned + turn) % roots.size
        for j in range(starts[i], starts[i + 1]):
            if more[i] == 0 and abs(found[j]) < _LEAST:
                found[j] = _LEAST
    return found


@kernel()
def chances_of_visits(
    visits: Visits, circles: Circles, parts: Ints64, laws: Laws, shown: Floats, levels: Floats
) -> Floats:
    """Return chances of all that was published of the total of each group, with the group.

    Shape (n_groups, n_levels). `parts` are where those of each total begin. `shown` are chances of
    what was published of a total by the sum of the others, shape (n_added, n_sums), and `levels`
    what these are weighed by, shape (n_sums, n_levels).
    """
    found = np.zeros((visits.total.size, levels.shape[1]))
    t, added = -1, -1
    weights = np.empty((0, 0), np.complex128)
    for g in range(visits.total.size):
        if visits.total[g] != t or visits.added[g] != added:
            t, added = visits.total[g], visits.added[g]
            weights = _weights(circles, t, parts, laws, shown[added], levels)
        for j in range(weights.shape[0]):
            product = complex(1.0, 0.0)
            for i in range(visits.starts[g], visits.starts[g + 1]):
                place = visits.places[i]
                without = laws.of_parts[laws.starts_of_parts[visits.part[place]] + j]
                product *= laws.of_places[laws.starts_of_places[place] + j] / without
            for q in range(levels.shape[1]):
                found[g, q] += (product * weights[j, q]).real
    return found


@part()
def _weights(
    circles: Circles, t: int, parts: Ints64, laws: Laws, shown: Floats, levels: Floats
) -> Complexes:
    """Return what is added up over the circle of a total, shape (n_points, n_levels).

    The product of the laws of all parts, times what was published of the total as a function on
    the circle.
    """
    roots, half = _roots(circles, t), circles.points[t + 1] - circles.points[t]
    found = np.zeros((half, levels.shape[1]), np.complex128)
    for i in range(circles.sums[t], circles.sums[t + 1]):
        if shown[i] > 0.0:
            turned, turn = 0, (circles.least[t] + i - circles.sums[t]) % roots.size
            for j in range(half):
                for q in range(levels.shape[1]):
                    found[j, q] += shown[i] * levels[i, q] * roots[turned].conjugate()
                turned = (turned + turn) % roots.size
    for j in range(half):
        together = complex(1.0 if j == 0 or 2 * j == roots.size else 2.0, 0.0)
        for i in range(parts[t], parts[t + 1]):
            together *= laws.of_parts[laws.starts_of_parts[i] + j]
        for q in range(levels.shape[1]):
            found[j, q] *= together / roots.size
    return found


@part()
def _roots(circles: Circles, t: int) -> Complexes:
    size = circles.sums[t + 1] - circles.sums[t]
    found = np.empty(size, np.complex128)
    for j in range(size):
        turn = 2.0 * math.pi * j / size
        found[j] = complex(math.cos(turn), math.sin(turn))
    return found


@kernel()
def thinned(
    chances: Floats, symbol: Ints64, kept: Floats, circles: Circles, added: int
) -> Floats:
    """Return chances of what was published of totals by the sum of others, shape (n_sums,).

    Each of the others' visits counts with the chance `kept`. Of a total, a row of `chances` was
    published: these are by count, of which a person is `added`.
    """
    found = np.zeros(circles.sums[-1])
    for t in range(symbol.size):
        log_kept, log_lost = math.log(kept[t]), math.log1p(-kept[t])
        for i in range(circles.sums[t], circles.sums[t + 1]):
            n = circles.least[t] + i - circles.sums[t]
            for s in range(min(n, chances.shape[1] - added - 1) + 1):
                if chances[symbol[t], s + added] > 0.0:
                    ways = math.lgamma(n + 1.0) - math.lgamma(s + 1.0) - math.lgamma(n - s + 1.0)
                    log = ways + s * log_kept + (n - s) * log_lost
                    found[i] += chances[symbol[t], s + added] * math.exp(log)
    return found
