"""Loops over everybody's scores in many rounds: how often each value, and each person's own AUC."""

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
    shape (n_people, 4 + n_finds): AUC, accuracy at the threshold 0 (NaN without IN or OUT rounds),
    rounds in, the jackknife variance of the AUC, and for each of `finds` in how many rounds they
    were found. Adds to `without`, shape (n_groups, n_rounds, 4 + n_finds): sums over people of
    their AUC and accuracy without the round, how many people have these, and how many were in in
    the round, and found.
    """
    n_rounds = scores.shape[1]
    beaten = np.empty(n_rounds)
    for i in range(scores.shape[0]):
        of_group = without[group[i]]
        n_in, right_in, right_out = 0, 0, 0
        for k in range(finds.size):
            people[i, 4 + k] = 0.0
        for r in range(n_rounds):
            says_in = 1 if scores[i, r] > 0.0 else 0
            if labels[i, r]:
                n_in += 1
                right_in += says_in
                of_group[r, 3] += 1.0
                for k in range(finds.size):
                    if scores[i, r] > finds[k]:
                        people[i, 4 + k] += 1.0
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
        total, squares, n_left = 0.0, 0.0, 0
        for r in range(n_rounds):
            says_in = 1 if scores[i, r] > 0.0 else 0
            is_in = 1 if labels[i, r] else 0
            a, b = n_in - is_in, n_out - 1 + is_in
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
