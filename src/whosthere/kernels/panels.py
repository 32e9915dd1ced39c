"""Loops over everybody's scores in many rounds: how often each value, and each person's own AUC.

Of a person's AUC, the `balance` is the part of OUT scores in its variance: 1 if single OUT scores
decide it, because some are below all IN scores and some above, and 1/2 if all scores are alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.kernels.compiling import kernel, part

if TYPE_CHECKING:
    from whosthere.arrays import Bools, Floats, Floats32, Ints32, Ints64


@kernel()
def count_scores(
    scores: Floats32,
    labels: Bools,
    edges: Floats32,
    group: Ints32,
    by_round: Ints64,
    by_group: Ints64,
) -> None:
    """Count scores between edges, by round and by group of people.

    Scores and labels have the shape (n_rounds, n_people), counts (n_rounds or n_groups, 2 labels,
    n_edges + 1). Bin k holds what is above k of the edges, which ascend: a score that equals an
    edge is not above it.
    """
    for r in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            score, first, end = scores[r, i], 0, edges.size
            while first < end:
                middle = (first + end) >> 1
                if edges[middle] < score:
                    first = middle + 1
                else:
                    end = middle
            label = 1 if labels[r, i] else 0
            by_round[r, label, first] += 1
            by_group[group[i], label, first] += 1


@kernel()
def compare_rounds(
    scores: Floats32,
    labels: Bools,
    order: Ints64,
    group: Ints32,
    finds: Floats,
    people: Floats,
    without: Floats,
) -> None:
    """Compare the IN and the OUT rounds of each person; a score above `finds` finds one who is in.

    Scores, labels and the order of scores have the shape (n_people, n_rounds). Fills in `people`,
    shape (n_people, 5 + n_finds): AUC, accuracy at the threshold 0 (NaN without IN or OUT rounds),
    rounds in, the jackknife variance of the AUC, its balance, and for each of `finds` in how many
    rounds they were found. Adds to `without`, shape (n_groups, n_rounds, 4 + n_finds): sums over
    people of their AUC and accuracy without the round, how many people have these, and how many
    were in in the round, and found.
    """
    n_rounds = scores.shape[1]
    beaten = np.empty(n_rounds)
    for i in range(scores.shape[0]):
        of_group = without[group[i]]
        n_in, right_in, right_out = 0, 0, 0
        for k in range(finds.size):
            people[i, 5 + k] = 0.0
        for r in range(n_rounds):
            says_in = 1 if scores[i, r] > 0.0 else 0
            if labels[i, r]:
                n_in += 1
                right_in += says_in
                of_group[r, 3] += 1.0
                for k in range(finds.size):
                    if scores[i, r] > finds[k]:
                        people[i, 5 + k] += 1.0
                        of_group[r, 4 + k] += 1.0
            else:
                right_out += 1 - says_in
        n_out = n_rounds - n_in
        people[i, 2] = n_in
        if n_in == 0 or n_out == 0:
            continue
        wins = _beaten(scores[i], labels[i], order[i], n_in, beaten)
        people[i, 0] = wins / (float(n_in) * n_out)
        people[i, 1] = (right_in / n_in + right_out / n_out) / 2.0
        total, squares, n_left, of_in, of_out = 0.0, 0.0, 0, 0.0, 0.0
        for r in range(n_rounds):
            says_in = 1 if scores[i, r] > 0.0 else 0
            is_in = 1 if labels[i, r] else 0
            a, b = n_in - is_in, n_out - 1 + is_in
            of_in += is_in * beaten[r] * beaten[r]
            of_out += (1 - is_in) * beaten[r] * beaten[r]
            if a == 0 or b == 0:
                continue
            auc = (wins - beaten[r]) / (float(a) * b)
            right = (right_in - is_in * says_in) / a
            right += (right_out - (1 - is_in) * (1 - says_in)) / b
            of_group[r, 0] += auc
            of_group[r, 1] += right / 2.0
            of_group[r, 2] += 1.0
            total += auc
            squares += auc * auc
            n_left += 1
        spread = squares - total * total / n_left if n_left else 0.0
        people[i, 3] = max(spread, 0.0) * (n_rounds - 1) / n_rounds
        people[i, 4] = _balance(wins, of_in, of_out, n_in, n_out)


@kernel()
def measure_draws(
    out: Floats, in_: Floats, shifts: Floats, bins: Floats, balances: Floats, counts: Floats
) -> None:
    """Count how often each AUC and balance is measured of people with the same noise.

    Noise of OUT and IN scores has the shapes (n_draws, n_out) and (n_draws, n_in). IN scores are
    raised by each of the ascending `shifts` in turn. Adds to counts, shape (n_shifts, n_bins,
    n_balances), whose bins end at `bins`, and begin above those before them; so do balances.
    """
    n_out, n_in, n = out.shape[1], in_.shape[1], shifts.size
    by_out, by_in = np.empty((n + 1, n_out)), np.empty((n + 1, n_in))
    for d in range(out.shape[0]):
        for k in range(n + 1):
            for i in range(n_in):
                by_in[k, i] = 0.0
            for j in range(n_out):
                by_out[k, j] = 0.0
        for j in range(n_out):
            for i in range(n_in):
                first = _place(shifts, out[d, j] - in_[d, i])
                by_out[first, j] += 1.0
                by_in[first, i] += 1.0
        for k in range(n):
            wins, of_in, of_out = 0.0, 0.0, 0.0
            for i in range(n_in):
                won = by_in[k, i]
                wins += won
                of_in += won * won
                by_in[k + 1, i] += won
            for j in range(n_out):
                won = by_out[k, j]
                of_out += won * won
                by_out[k + 1, j] += won
            place = _place(bins, wins / (float(n_in) * n_out) - 1e-12)
            counts[k, place, _place(balances, _balance(wins, of_in, of_out, n_in, n_out))] += 1.0


@part()
def _place(ends: Floats, value: float) -> int:
    """Return the number of ends below a value."""
    first, end = 0, ends.size
    while first < end:
        middle = (first + end) >> 1
        if ends[middle] < value:
            first = middle + 1
        else:
            end = middle
    return first


@part()
def _balance(wins: float, of_in: float, of_out: float, n_in: int, n_out: int) -> float:
    """Return the balance, given pairs won and their squares by score; 0 where nothing varies."""
    if n_in < 2 or n_out < 2:
        return 0.0
    # Each is a variance of shares of pairs, but for the same factor; whole numbers are exact.
    from_in = max(n_in * of_in - wins * wins, 0.0) / (n_in - 1.0) * n_in
    from_out = max(n_out * of_out - wins * wins, 0.0) / (n_out - 1.0) * n_out
    return from_out / (from_in + from_out) if from_in + from_out > 0.0 else 0.0


@part()
def _beaten(scores: Floats32, labels: Bools, order: Ints64, n_in: int, beaten: Floats) -> float:
    """Return the pairs in which IN scores above OUT, and note those of each round; ties are half.

    A round's pairs are those with all rounds of the other kind.
    """
    wins, below_in, below_out, start = 0.0, 0, 0, 0
    while start < order.size:
        stop, ties_in = start, 0
        while stop < order.size and scores[order[stop]] == scores[order[start]]:
            ties_in += 1 if labels[order[stop]] else 0
            stop += 1
        ties_out = stop - start - ties_in
        for place in range(start, stop):
            if labels[order[place]]:
                beaten[order[place]] = below_out + ties_out / 2.0
            else:
                beaten[order[place]] = n_in - below_in - ties_in / 2.0
        wins += ties_in * (below_out + ties_out / 2.0)
        below_in += ties_in
        below_out += ties_out
        start = stop
    return wins
