"""Ratios of places by level, and one pass over the places of all who are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere import kernels
from whosthere.arrays import own

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Floats32, Ints32, Ints64

_ALL_COUNTED, _NO_VISITS = own(np.empty(0), np.float32), np.empty(0)


class Evidence(NamedTuple):
    """Of each place (a cell that somebody visited, and what is added there): ratios by level."""

    ratios: Floats32
    """Over the largest of each place, shape (n_places, N_LANES)."""
    tops: Floats
    """Logarithm of that; minus infinity where nobody can have been."""
    line_of: Ints32
    """The line of each place."""
    weights: Floats32
    """Chances of levels, shape (n_lines, N_LANES)."""

    @classmethod
    def of(cls, logs: Floats, line_of: Ints64, log_weight: Floats) -> Evidence:
        """Put logarithms of ratios by place and node, and of weights by line, into tables."""
        tops = logs.max(axis=1, initial=-np.inf)
        over = logs - np.where(np.isfinite(tops), tops, 0)[:, None]
        return cls(_exponentials(over), tops, own(line_of, np.int32), _exponentials(log_weight))

    def score(self, indptr: Ints64, places: Ints32, chance: Floats32 = _ALL_COUNTED) -> Floats:
        """Score rows of places, each sorted; minus infinity where a row is ruled out."""
        return self._scored(indptr, places, chance, _NO_VISITS)

    def by_visit(self, indptr: Ints64, places: Ints32, chance: Floats32 = _ALL_COUNTED) -> Floats:
        """Return what each visit of rows adds to their scores, in the order of the places."""
        found = np.empty(places.size)
        self._scored(indptr, places, chance, found)
        return found

    def _scored(self, indptr: Ints64, places: Ints32, chance: Floats32, by_visit: Floats) -> Floats:
        scores = np.empty(indptr.size - 1)
        rows = indptr, places, self.line_of, chance
        kernels.score_rows(*rows, self.ratios, self.tops, self.weights, scores, by_visit)
        return scores


def _exponentials(logs: Floats) -> Floats32:
    """Return numbers that are given as logarithms, with zeros up to a whole vector of lanes."""
    found = np.zeros((len(logs), kernels.N_LANES), np.float32)
    found[:, : logs.shape[1]] = np.exp(logs.astype(np.float32))
    return found
