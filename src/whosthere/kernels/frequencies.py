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
    from whosthere.arrays import Complexes, Floats, Ints32, Ints64

# Counts whose chance is a smaller part of the likeliest one's are left out (or whose Poisson chance
# is, whatever was published), and sums so many deviations from their mean.
_UNLIKELY, _NEVER, _WIDE = 1e-14, 1e-30, 8.0
_ROUNDS, _FURTHEST, _NEAR, _REACHED = 40, 12.0, 0.02, 0.9
_LEAST_VARIANCE, _LEAST, _MOST = 1e-6, 1e-150, 1e250


class Parts(NamedTuple):
    """The cells that totals are made of, in the order of their totals."""

    starts: Ints64
    """Where those of each total begin, and the number of all."""
    log_rates: Floats
    symbol: Ints64
    """What was published of each: a row of the next two."""
    chances: Floats
    """Chance of that by count, shape (n_symbols, n_counts)."""
    support: Ints64
    """The first count that it may stand for, and the last, shape (n_symbols, 2)."""


class Totals(NamedTuple):
    """What was published of totals."""

    symbol: Ints64
    """What was published of each: a row of the next."""
    chances: Floats
    """Chance of that by count, shape (n_symbols, n_counts)."""
    kept: Floats
    """The chance of a visit to count in its total, 1 where visits add up."""


class Circles(NamedTuple):
    """Where the laws of totals are looked at, and what those of their parts are over."""

    scales: Floats
    log_radius: Floats
    least: Ints64
    """The least sum of the others that is looked at."""
    sums: Ints64
    """Where the sums of each total begin, of which there are as many as points on its circle."""


class Visits(NamedTuple):
    """Groups of visits to parts of one total, in the order of totals and what they add."""

    starts: Ints64
    """Where the places of each group begin, and the number of all."""
    places: Ints32
    total: Ints64
    added: Ints64
    """The total of each group, and what it adds to it."""
    part: Ints64
    """The part of each place, in ascending order."""
    more: Ints64
    """What a visit there adds to the part."""


@kernel()
def expected_counts(
    parts: Parts, totals: Totals, spare: int
) -> tuple[Floats, Floats, Floats, Ints64, Ints64]:
    """Return the counts of others to be expected in parts, given all that was published.

    They are those of laws that are weighed by powers of a radius, at which sums are as expected.
    With that go scales, which laws of parts are over, and of totals the log radius, the least sum
    and the number of sums that are worth a look. A person may be `spare` of these.
    """
    n_totals = parts.starts.size - 1
    counts, scales = np.empty(parts.symbol.size), np.empty(parts.symbol.size)
    log_radius, room = np.zeros(n_totals), np.empty(parts.chances.shape[1])
    least, size = np.empty(n_totals, np.int64), np.empty(n_totals, np.int64)
    for t in range(n_totals):
        low, high, now = -_FURTHEST, _FURTHEST, 0.0
        mean, variance, first, last = _sum_at(parts, t, now, counts, scales, room)
        wanted = _expected_sum(totals, t, mean, variance)
        # Not to the very ends of what can be, which would take a radius of 0 or infinity.
        wanted = min(max(wanted, mean + _REACHED * (first - mean)), mean + _REACHED * (last - mean))
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
            mean, variance, first, last = _sum_at(parts, t, now, counts, scales, room)
        wide = _WIDE * math.sqrt(variance) + 1.0
        log_radius[t] = now
        least[t] = max(max(first, int(mean - wide)) - spare, 0)
        size[t] = min(last, int(mean + wide) + 1) - least[t] + 1
    return counts, scales, log_radius, least, size


@kernel()
def chances_of_sums(parts: Parts, circles: Circles) -> Floats:
    """Return chances of sums of others, with what was published of parts, over powers of a radius.

    Shape (n_sums,). Those of a part are over its scale.
    """
    found = np.zeros(circles.sums[-1])
    for t in range(parts.starts.size - 1):
        together = _together(parts, circles, t)[0]
        turns, first = _turns(circles, t), circles.sums[t]
        for j in range(together.size):
            product = together[j]
            for n in range(turns.shape[1]):
                found[first + n] += (product * turns[j, n]).real
    return found


@kernel()
def weights_of_sums(
    circles: Circles, log_rates: Floats, shown: Floats, levels: Floats, bunched: float
) -> tuple[Floats, Floats]:
    """Return how much likelier sums are at levels of totals, shape (n_sums, n_levels).

    `levels` are added to the log rates of totals, shape (n_totals, n_levels). The variance of sums
    is larger than that of independent visits by `bunched` times their mean. Weights are over the
    largest for a sum that was `shown`, whose logarithms are the second, shape of the levels.
    """
    weights, tops = np.empty((shown.size, levels.shape[1])), np.zeros(levels.shape)
    for t in range(log_rates.size):
        start, end, least = circles.sums[t], circles.sums[t + 1], circles.least[t]
        over = (1.0 + bunched) * math.exp(log_rates[t] + circles.log_radius[t])
        for q in range(levels.shape[1]):
            rate = math.exp(log_rates[t] + levels[t, q])
            log = -rate * (math.log1p(bunched) / bunched if bunched > 0.0 else 1.0)
            log += least * math.log((bunched if bunched > 0.0 else rate) / over)
            if bunched > 0.0:
                log += math.lgamma(least + rate / bunched) - math.lgamma(rate / bunched)
            weight, top = 1.0, 0.0
            for i in range(start, end):
                weights[i, q] = weight
                top = max(top, weight * shown[i])
                weight = min(weight * (rate + (least + i - start) * bunched) / over, _MOST)
            if top > 0.0:
                tops[t, q] = log + math.log(top)
                for i in range(start, end):
                    weights[i, q] /= top
    return weights, tops


@kernel()
def chances_of_visits(
    visits: Visits, parts: Parts, circles: Circles, shown: Floats, weights: Floats
) -> Floats:
    """Return chances of all that was published of the total of each group, with the group.

    Shape (n_groups, n_levels). `shown` are chances of what was published of a total by the sum of
    the others, shape (n_added, n_sums).
    """
    found, t, begun = np.zeros((visits.total.size, weights.shape[1])), -1, 0
    turns, of_sums = np.empty((0, 0), np.complex128), np.empty(0)
    together, of_parts = np.empty(0, np.complex128), np.empty((0, 0), np.complex128)
    of_places = np.empty((0, 0), np.complex128)
    for g in range(visits.total.size):
        if visits.total[g] != t:
            t = visits.total[g]
            turns, of_sums = _turns(circles, t), np.empty(circles.sums[t + 1] - circles.sums[t])
            together, of_parts = _together(parts, circles, t)
            begun += of_places.shape[0]
            of_places = _of_places(visits, begun, parts, circles, t, of_parts)
        of_sums[:] = 0.0
        for j in range(turns.shape[0]):
            product = together[j]
            for i in range(visits.starts[g], visits.starts[g + 1]):
                product *= of_places[visits.places[i] - begun, j]
            for n in range(of_sums.size):
                of_sums[n] += (product * turns[j, n]).real
        for n in range(of_sums.size):
            chance = of_sums[n] * shown[visits.added[g], circles.sums[t] + n]
            if chance != 0.0:
                for q in range(weights.shape[1]):
                    found[g, q] += chance * weights[circles.sums[t] + n, q]
    return found


@part()
def _together(parts: Parts, circles: Circles, t: int) -> tuple[Complexes, Complexes]:
    """Return the product of the laws of all parts of a total, and these, part by part."""
    roots, room = _roots(circles, t), np.empty(parts.chances.shape[1])
    first, nobody = parts.starts[t], 0
    together = np.ones(roots.size // 2 + 1, np.complex128)
    of_parts = np.empty((parts.starts[t + 1] - first, together.size), np.complex128)
    for i in range(of_parts.shape[0]):
        _fill_law(parts, circles, t, first + i, nobody, roots, room, of_parts[i])
        for j in range(together.size):
            if abs(of_parts[i, j]) < _LEAST:
                of_parts[i, j] = _LEAST
            together[j] *= of_parts[i, j]
    return together, of_parts


@part()
def _of_places(
    visits: Visits, begun: int, parts: Parts, circles: Circles, t: int, of_parts: Complexes
) -> Complexes:
    """Return by what the places of a total, from `begun` on, change the laws of its parts."""
    end = begun
    while end < visits.part.size and visits.part[end] < parts.starts[t + 1]:
        end += 1
    found = np.empty((end - begun, of_parts.shape[1]), np.complex128)
    roots, room = _roots(circles, t), np.empty(parts.chances.shape[1])
    for i in range(found.shape[0]):
        which = visits.part[begun + i]
        _fill_law(parts, circles, t, which, visits.more[begun + i], roots, room, found[i])
        for j in range(found.shape[1]):
            found[i, j] /= of_parts[which - parts.starts[t], j]
    return found


@part()
def _fill_law(
    parts: Parts,
    circles: Circles,
    t: int,
    i: int,
    added: int,
    roots: Complexes,
    room: Floats,
    law: Complexes,
) -> None:
    """Fill in the law of the others in a part on the circle of its total, if somebody is added."""
    first, last = _others(parts, i, circles.log_radius[t], added, room)
    law[:] = 0.0
    for n in range(last, first - 1, -1):
        chance = room[n] / circles.scales[i]
        for j in range(law.size):
            law[j] = law[j] * roots[j] + chance
    for j in range(law.size):
        law[j] *= roots[first * j % roots.size]


@kernel()
def chances_by_sum(totals: Totals, circles: Circles, added: int) -> Floats:
    """Return chances of what was published of totals by the sum of the others, shape (n_sums,).

    A person is `added` to that sum, or to those of the visits that count.
    """
    found = np.zeros(circles.sums[-1])
    for t in range(totals.symbol.size):
        chances = totals.chances[totals.symbol[t]]
        most, kept = chances.size - 1 - added, totals.kept[t]
        for i in range(circles.sums[t], circles.sums[t + 1]):
            n = circles.least[t] + i - circles.sums[t]
            if kept == 1.0:
                found[i] = chances[n + added] if n <= most else 0.0
                continue
            # How many count is binomial: from the likeliest number on, up and down.
            middle, odds = int(n * kept), kept / (1.0 - kept)
            log = math.lgamma(n + 1.0) - math.lgamma(middle + 1.0) - math.lgamma(n - middle + 1.0)
            likeliest = math.exp(log + middle * math.log(kept) + (n - middle) * math.log1p(-kept))
            chance = likeliest
            for s in range(middle, min(n, most) + 1):
                found[i] += chance * chances[s + added]
                chance *= odds * (n - s) / (s + 1.0)
            chance = likeliest
            for s in range(middle - 1, -1, -1):
                chance *= (s + 1.0) / (odds * (n - s))
                if s <= most:
                    found[i] += chance * chances[s + added]
    return found


@part()
def _expected_sum(totals: Totals, t: int, mean: float, variance: float) -> float:
    """Return the sum to be expected, as if it were normal, given what was published of it."""
    kept, chances = totals.kept[t], totals.chances[totals.symbol[t]]
    middle = kept * mean
    spread = kept * kept * variance + kept * (1.0 - kept) * mean + _LEAST_VARIANCE
    top, of_all, of_counts = -math.inf, 0.0, 0.0
    for s in range(chances.size):
        if chances[s] > 0.0:
            log = math.log(chances[s]) - 0.5 * (s - middle) ** 2 / spread
            if log > top:
                fading = math.exp(top - log)
                top, of_all, of_counts = log, of_all * fading, of_counts * fading
            of_all += math.exp(log - top)
            of_counts += s * math.exp(log - top)
    return float(mean + kept * variance / spread * (of_counts / of_all - middle))


@part()
def _sum_at(
    parts: Parts, t: int, log_radius: float, counts: Floats, scales: Floats, room: Floats
) -> tuple[float, float, int, int]:
    """Return mean, variance, least and largest sum in a total; fill in those of parts."""
    mean, variance, least, most, nobody = 0.0, _LEAST_VARIANCE, 0, 0, 0
    for i in range(parts.starts[t], parts.starts[t + 1]):
        first, last = _others(parts, i, log_radius, nobody, room)
        of_all, of_counts, of_squares = 0.0, 0.0, 0.0
        for n in range(first, last + 1):
            of_all += room[n]
            of_counts += n * room[n]
            of_squares += n * n * room[n]
        mean += of_counts / of_all
        variance += max(of_squares / of_all - (of_counts / of_all) ** 2, 0.0)
        least += first
        most += last
        counts[i], scales[i] = of_counts / of_all, of_all
    return mean, variance, least, most


@part()
def _others(parts: Parts, i: int, log_radius: float, added: int, room: Floats) -> tuple[int, int]:
    """Fill in chances of counts of others, where somebody adds to them; return first and last.

    They are over the Poisson chance of the likeliest count that what was published may stand for.
    """
    chances, rate = parts.chances[parts.symbol[i]], math.exp(parts.log_rates[i] + log_radius)
    first, last = parts.support[parts.symbol[i]]
    likeliest = min(max(int(rate), first), last)
    first, last = max(first - added, 0), last - added
    poisson, n = 1.0, likeliest
    while n <= last and poisson > _NEVER:
        room[n] = poisson * chances[n + added]
        n += 1
        poisson *= rate / n
    highest, poisson, n = n - 1, 1.0, likeliest
    while n > first and poisson > _NEVER:
        poisson *= n / rate
        n -= 1
        if n <= last:
            room[n] = poisson * chances[n + added]
    last, top = min(highest, last), 0.0
    for k in range(n, last + 1):
        top = max(top, room[k])
    while n < last and room[n] < _UNLIKELY * top:
        n += 1
    while last > n and room[last] < _UNLIKELY * top:
        last -= 1
    return n, last


@part()
def _turns(circles: Circles, t: int) -> Complexes:
    """Return how points of half a circle add up to the chance of each sum, (n_points, n_sums).

    It is the real part of the sum of their products with these. The other half is the mirror.
    """
    roots = _roots(circles, t)
    size = roots.size
    found = np.empty((size // 2 + 1, size), np.complex128)
    for j in range(found.shape[0]):
        weight = (1.0 if j == 0 or 2 * j == size else 2.0) / size
        at = circles.least[t] * j % size
        for n in range(size):
            found[j, n] = weight * roots[at].conjugate()
            at = at + j if at + j < size else at + j - size
    return found


@part()
def _roots(circles: Circles, t: int) -> Complexes:
    """Return the points of a circle, shape (n_sums,)."""
    found = np.ones(circles.sums[t + 1] - circles.sums[t], np.complex128)
    turn = 2.0 * math.pi / found.size
    for j in range(1, found.size):
        i = j // 2
        found[j] = found[i] * found[j - i] if i else complex(math.cos(turn), math.sin(turn))
    return found
