"""The one loop over everybody's visits: a sum over nodes of a product over the cells of a line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Floats32, Ints32, Ints64

N_LANES = 12
"""Nodes of a line that are summed over: 11, and one that fills a vector."""
# Ratios are at most 1, so this many of them can be multiplied before they would get too small.
_BETWEEN_LOGARITHMS = 4
# A product of ratios that is not 0 is no smaller than this: nobody is ruled out by rounding.
_LEAST = np.float32(1e-37)


@kernel(fastmath={"reassoc", "contract", "arcp", "nsz"})
def score_rows(
    indptr: Ints64,
    places: Ints32,
    line_of: Ints32,
    chance: Floats32,
    ratios: Floats32,
    tops: Floats,
    weights: Floats32,
    scores: Floats,
    by_visit: Floats,
) -> None:
    """Fill in the log likelihood ratio of each row of visits; minus infinity rules it out.

    Visits of a row are sorted by `places`, where they stand in `ratios`, shape (n_places, N_LANES):
    how much likelier the count is there with the person, at each level of its line, over the
    largest of these, whose logarithm is in `tops`. `line_of` is the line of each place, and
    `weights` are the chances of the levels of each line. `chance` is that of each visit to be
    counted, empty if all are.

    Where `by_visit` is not empty, it is filled in with what each visit adds to the score.
    """
    product = np.empty(N_LANES, np.float32)
    for row in range(indptr.size - 1):
        total, i = 0.0, indptr[row]
        while i < indptr[row + 1] and (total > -np.inf or by_visit.size > 0):
            first, line = i, line_of[places[i]]
            of_line, since = 0.0, 0
            for q in range(N_LANES):
                product[q] = weights[line, q]
            while i < indptr[row + 1] and line_of[places[i]] == line:
                place = places[i]
                if chance.size == 0:
                    of_line += tops[place]
                    for q in range(N_LANES):
                        product[q] *= ratios[place, q]
                else:
                    top, there, missed = _counted_or_not(tops[place], chance[i])
                    of_line += top
                    for q in range(N_LANES):
                        product[q] *= there * ratios[place, q] + missed
                i += 1
                since += 1
                if since == _BETWEEN_LOGARITHMS:
                    taken_out = _log_of_sum(product)
                    of_line += taken_out
                    since, factor = 0, np.float32(math.exp(-taken_out))
                    for q in range(N_LANES):
                        product[q] *= factor
            of_line += _log_of_sum(product)
            total += of_line
            if by_visit.size > 0:
                share_out(first, i, places, chance, ratios, tops, weights[line], product, of_line,
                          by_visit)  # fmt: skip
        scores[row] = total


@part()
def share_out(
    first: int,
    end: int,
    places: Ints32,
    chance: Floats32,
    ratios: Floats32,
    tops: Floats,
    before: Floats32,
    after: Floats32,
    of_line: float,
    by_visit: Floats,
) -> None:
    """Fill in what each visit of a line adds to the score `of_line`.

    A visit's terms are averaged over levels on the way from those that are likely `before` the
    person is thought to be there to those that are likely `after`. The mean of both ends is taken
    for all, and what is missing is shared out evenly. Of a line that rules the person out, each
    visit has its largest term.
    """
    total_before, total_after, missing = 0.0, 0.0, of_line
    for q in range(N_LANES):
        total_before += before[q]
        total_after += after[q]
    for i in range(first, end):
        top, there, missed = tops[places[i]], np.float32(1.0), np.float32(0.0)
        if chance.size > 0:
            top, there, missed = _counted_or_not(top, chance[i])
        by_visit[i] = top
        if of_line == -np.inf:
            if chance.size > 0:
                by_visit[i] += math.log(there + missed)
            continue
        for q in range(N_LANES):
            weight = before[q] / total_before + after[q] / max(total_after, _LEAST)
            if weight > 0.0:
                ratio = max(there * ratios[places[i], q] + missed, _LEAST)
                by_visit[i] += 0.5 * weight * math.log(ratio)
        missing -= by_visit[i]
    if of_line > -np.inf:
        for i in range(first, end):
            by_visit[i] += missing / (end - first)


@part()
def _counted_or_not(top: float, chance: float) -> tuple[float, np.float32, np.float32]:
    """Return the logarithm of what is taken out, and what of the rest is with and without a visit.

    The larger of both is taken out, as without chances.
    """
    taken_out = max(top, 0.0)
    if top == -np.inf and chance == 1.0:
        taken_out = -np.inf
        return taken_out, np.float32(0.0), np.float32(1.0)
    there = np.float32(chance * math.exp(top - taken_out))
    return taken_out, there, np.float32((1.0 - chance) * math.exp(-taken_out))


@part()
def _log_of_sum(product: Floats32) -> float:
    total = np.float32(0)
    for q in range(N_LANES):
        total += product[q]
    return math.log(max(total, _LEAST))
