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
    """Where the laws of totals are looked at."""

    log_radius: Floats
    least: Ints64
    """The least sum of the others that is looked at."""
    sums: Ints64
    """Where sums begin, of which there are as many as points on the circle of each total."""
    points: Ints64
    """Where points begin: half of those on the circle, of which the others are the mirror."""


class Laws(NamedTuple):
    """Laws of the others with what was published of parts, on circles, one after the other."""

    inverse: Complexes
    starts: Ints64
    """One over that of each part, and where it begins."""
    together: Complexes
    """The product of those of each total."""
    of_sums: Floats
    """The chance of each sum that this makes, over a power of the radius."""


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
def laws_on_circles(
    parts: Parts, scales: Floats, circles: Circles, which: Ints64, more: Ints64, starts: Ints64
) -> Complexes:
    """Return laws of the others on the circles of their totals, from `starts` on.

    Each is of part ``which[i]`` (in ascending order), where somebody adds ``more[i]`` to it.
    """
    found, room = np.zeros(starts[-1], np.complex128), np.empty(parts.chances.shape[1])
    roots, real, imaginary = np.empty((2, 0)), np.empty(0), np.empty(0)
    t = -1
    for i in range(which.size):
        if t < 0 or which[i] >= parts.starts[t + 1]:
            while which[i] >= parts.starts[t + 1]:
                t += 1
            roots = _roots(circles.sums[t + 1] - circles.sums[t])
            half = circles.points[t + 1] - circles.points[t]
            real, imaginary = np.empty(half), np.empty(half)
        first, last = _others(parts, which[i], circles.log_radius[t], more[i], room)
        real[:] = 0.0
        imaginary[:] = 0.0
        for n in range(last, first - 1, -1):
            chance = room[n] / scales[which[i]]
            for j in range(real.size):
                x = real[j] * roots[0, j] - imaginary[j] * roots[1, j] + chance
                imaginary[j] = real[j] * roots[1, j] + imaginary[j] * roots[0, j]
                real[j] = x
        for j in range(real.size):
            at = first * j % roots.shape[1]
            law = complex(real[j], imaginary[j]) * complex(roots[0, at], roots[1, at])
            if more[i] == 0 and abs(law) < _LEAST:
                law = complex(_LEAST, 0.0)
            found[starts[i] + j] = law
    return found


@kernel()
def laws_together(
    circles: Circles, parts: Ints64, of_parts: Complexes, starts: Ints64
) -> tuple[Complexes, Floats]:
    """Multiply the laws of parts by total, and return the chances of their sums as well.

    The parts of each total begin at `parts`, and the laws of parts at `starts`. Chances are over a
    power of the radius.
    """
    together, of_sums = np.ones(circles.points[-1], np.complex128), np.zeros(circles.sums[-1])
    for t in range(parts.size - 1):
        turns, first = _turns(circles, t), circles.sums[t]
        for j in range(turns.shape[1]):
            product = complex(1.0, 0.0)
            for i in range(parts[t], parts[t + 1]):
                product *= of_parts[starts[i] + j]
            together[circles.points[t] + j] = product
            for n in range(turns.shape[2]):
                of_sums[first + n] += product.real * turns[0, j, n] + product.imag * turns[1, j, n]
    return together, of_sums


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
    visits: Visits,
    circles: Circles,
    laws: Laws,
    of_places: Complexes,
    starts: Ints64,
    shown: Floats,
    weights: Floats,
) -> Floats:
    """Return chances of all that was published of the total of each group, with the group.

    Shape (n_groups, n_levels). `of_places` are laws of parts where somebody is. `shown` are chances
    of what was published of a total by the sum of the others, shape (n_added, n_sums).
    """
    found, t = np.zeros((visits.total.size, weights.shape[1])), -1
    turns, of_sums = np.empty((2, 0, 0)), np.empty(0)
    for g in range(visits.total.size):
        if visits.total[g] != t:
            t = visits.total[g]
            turns = _turns(circles, t)
            of_sums = np.empty(turns.shape[2])
        of_sums[:] = 0.0
        for j in range(turns.shape[1]):
            product = laws.together[circles.points[t] + j]
            for i in range(visits.starts[g], visits.starts[g + 1]):
                place = visits.places[i]
                without = laws.inverse[laws.starts[visits.part[place]] + j]
                product *= of_places[starts[place] + j] * without
            for n in range(of_sums.size):
                of_sums[n] += product.real * turns[0, j, n] + product.imag * turns[1, j, n]
        for n in range(of_sums.size):
            chance = of_sums[n] * shown[visits.added[g], circles.sums[t] + n]
            if chance != 0.0:
                for q in range(weights.shape[1]):
                    found[g, q] += chance * weights[circles.sums[t] + n, q]
    return found


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
def _turns(circles: Circles, t: int) -> Floats:
    """Return how points of half a circle add up to the chance of each sum, (2, n_points, n_sums).

    Their real and imaginary parts do so, each times these.
    """
    size, half = circles.sums[t + 1] - circles.sums[t], circles.points[t + 1] - circles.points[t]
    roots, found = _roots(size), np.empty((2, half, size))
    for j in range(half):
        weight = (1.0 if j == 0 or 2 * j == size else 2.0) / size
        at = circles.least[t] * j % size
        for n in range(size):
            found[0, j, n] = weight * roots[0, at]
            found[1, j, n] = weight * roots[1, at]
            at = at + j if at + j < size else at + j - size
    return found


@part()
def _roots(size: int) -> Floats:
    """Return points on a circle, real and imaginary, shape (2, size)."""
    found = np.empty((2, size))
    found[0, 0], found[1, 0] = 1.0, 0.0
    if size > 1:
        found[0, 1], found[1, 1] = math.cos(2.0 * math.pi / size), math.sin(2.0 * math.pi / size)
    for j in range(2, size):
        i = j // 2
        found[0, j] = found[0, i] * found[0, j - i] - found[1, i] * found[1, j - i]
        found[1, j] = found[0, i] * found[1, j - i] + found[1, i] * found[0, j - i]
    return found
