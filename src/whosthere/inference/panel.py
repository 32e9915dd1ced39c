"""Scores of everybody in every round, and what is counted of them in one pass each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from whosthere.errors import InputError
from whosthere.inference.intervals import reaches, variance
from whosthere.inference.metrics import TAIL, least_share
from whosthere.inference.vocabulary import RATES
from whosthere.kernels import compare_rounds, count_scores, in_parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from whosthere.arrays import Bools, Floats, Floats32, Ints32, Ints64

FINDS = "tpr_at_fpr_1pct"
"""The rate at whose threshold it is counted how often each person is found."""
BY = range(3)
"""By which threshold: this, and the highest and the lowest that it may truly be."""
FEWEST_ALARMS = 10
"""A rate of false alarms is resolved if it makes so many of them over all rounds."""
_MOST_EDGES = 4096
_SCORES_FOR_EDGES = 4_000_000
_GROUPS = 25
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Panel:
    """The scores of one attack in one setting: of the same people in every round.

    Shapes are (n_rounds, n_people). A label says whether the person is in the round. Scores can be
    compared between people and rounds; above 0, the attacker says that the person is in. Where
    households are in or out as a whole, `units` numbers that of each person: they are the sample.
    """

    scores: Floats32
    labels: Bools
    units: Ints64 | None = None

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or self.scores.shape != self.labels.shape:
            raise InputError("scores and labels must have the same shape (n_rounds, n_people)")
        if not self.scores.size or not all(np.isfinite(row).all() for row in self.scores):
            raise InputError("scores must be there, and finite", fix="Ruled out is a score of -1e9")
        if self.labels.all() or not self.labels.any():
            raise InputError("there must be people both in and not in the rounds")

    @classmethod
    def of(cls, frames: Iterable[pl.DataFrame], column: str) -> Self:
        """Put together what a column says of people in rounds, with `release` and `label` beside.

        So may be a `unit`. Rounds of which it says nothing are left out.
        """
        scores, labels, units = [], [], None
        for frame in frames:
            if column in frame.columns:
                rows = frame.drop_nulls(column)
                n_rounds = rows["release"].n_unique()
                scores.append(rows[column].to_numpy().reshape(n_rounds, -1))
                labels.append(rows["label"].to_numpy().reshape(n_rounds, -1))
                if "unit" in frame.columns:
                    units = rows["unit"].head(scores[-1].shape[1]).to_numpy()
        return cls(np.concatenate(scores), np.concatenate(labels), units)

    @property
    def n_people(self) -> int:
        """How many people were asked."""
        return int(self.scores.shape[1])

    @property
    def of_units(self) -> Panel:
        """One person of each household: what coins of their own say of them is independent."""
        if self.units is None:
            return self
        _, first = np.unique(self.units, return_index=True)
        return Panel(self.scores[:, first], self.labels[:, first])

    @cached_property
    def unit(self) -> Ints64:
        """The number of each person's household, from 0 on; without any, that of each person."""
        if self.units is None:
            return np.arange(self.n_people)
        return np.unique(self.units, return_inverse=True)[1]

    @cached_property
    def groups(self) -> Ints32:
        """The group of each person, for the variance between people: each takes its turn."""
        return (self.unit % min(_GROUPS, int(self.unit.max()) + 1)).astype(np.int32)

    @cached_property
    def curves(self) -> Curves:
        """How scores of IN and OUT are spread, over all people and rounds together."""
        edges = _edges(self)
        n_rounds, n_groups = len(self.scores), int(self.groups.max()) + 1
        by_round = np.zeros((n_rounds, 2, edges.size + 1), np.int64)

        def count(first: int, stop: int) -> Ints64:
            some = slice(first, stop)
            of_groups = np.zeros((n_groups, 2, edges.size + 1), np.int64)
            scores, labels = self.scores[some], self.labels[some]
            count_scores(scores, labels, edges, self.groups, by_round[some], of_groups)
            return of_groups

        return Curves(edges, by_round, np.sum(in_parts(count, n_rounds), axis=0))

    @cached_property
    def people(self) -> People:
        """What was measured of each person."""
        return self.people_in(np.zeros(self.n_people, np.int32))

    def people_in(self, group: Ints32) -> People:
        """Return what was measured of each person, given the group of each, from 0 on."""
        n_rounds, finds = len(self.scores), self.curves.thresholds(RATES[FINDS])
        measured = np.full((self.n_people, 4 + finds.size), np.nan)
        step, n_groups = max(_BLOCK // n_rounds, 1), int(group.max()) + 1

        def compare(first: int, stop: int) -> Floats:
            without = np.zeros((n_groups, n_rounds, 4 + finds.size))
            for begin in range(first, stop, step):
                some = slice(begin, min(begin + step, stop))
                scores = np.ascontiguousarray(self.scores[:, some].T)
                labels = np.ascontiguousarray(self.labels[:, some].T)
                order = np.argsort(scores, axis=1)
                own = measured[some]
                compare_rounds(scores, labels, order, group[some], finds, own, without)
            return without

        parts = in_parts(compare, self.n_people)
        resolved = self.curves.resolves(RATES[FINDS])
        return People(measured, np.sum(parts, axis=0), group, n_rounds, self.unit, resolved)


@dataclass(frozen=True, eq=False)
class People:
    """What was measured of each person, and in which group and unit they are, by number.

    `measured` and `without` are as `whosthere.kernels.panels.compare_rounds` says.
    """

    measured: Floats
    without: Floats
    group: Ints32
    n_rounds: int
    unit: Ints64
    resolved: bool
    """Whether there are enough false alarms to say who is found."""

    @cached_property
    def has_auc(self) -> Bools:
        """Whether there are rounds with and rounds without the person."""
        return np.asarray(~np.isnan(self.measured[:, 0]))

    @property
    def n_in(self) -> Ints64:
        """In how many rounds each person was."""
        return self.measured[:, 2].astype(np.int64)

    def found(self, by: int = 0) -> Ints64:
        """Return in how many rounds each person was in and was found, by one of the thresholds."""
        return self.measured[:, 4 + by].astype(np.int64)

    def mean(self, column: int, number: int = 0) -> tuple[float, Floats, Floats]:
        """Return the mean AUC (column 0) or accuracy (1) of the people of a group who have one.

        Then the same without each round, and without each unit.
        """
        own = self.has_auc & (self.group == number)
        known, n = self._by_unit(own, self.measured[:, column], np.ones(own.size))
        sums, n_left = self.without[number][:, [column, 2]].T
        return _ratio(known, n, sums, n_left)

    def share_found(self, number: int = 0, by: int = 0) -> tuple[float, Floats, Floats]:
        """Return how often people of a group were found, also without each round and unit."""
        n_in, found = self._by_unit(self.group == number, *self.measured[:, [2, 4 + by]].T)
        in_round, found_in_round = self.without[number][:, [3, 4 + by]].T
        return _ratio(found, n_in, found.sum() - found_in_round, n_in.sum() - in_round)

    def _by_unit(self, own: Bools, *values: Floats) -> list[Floats]:
        """Add up values of some people over the units that these are of."""
        _, unit = np.unique(self.unit[own], return_inverse=True)
        return [np.bincount(unit, one[own]).astype(np.float64) for one in values]

    def n_units(self, own: Bools) -> int:
        """Return of how many units some people are."""
        return int(np.unique(self.unit[own]).size)

    @cached_property
    def independence(self) -> float:
        """How much people tell who have their rounds in common, as a share of what others would.

        Where rounds have something in common, the mean AUC varies more between rounds than the
        noise of each person's own AUC explains.
        """
        own = self.measured[self.has_auc, 3]
        if not own.size:
            return 1.0
        between = float(variance(self.mean(0)[1]))
        return min(float(own.mean()) / own.size / between, 1.0) if between > 0 else 1.0


def _ratio(
    above: Floats, below: Floats, above_left: Floats, below_left: Floats
) -> tuple[float, Floats, Floats]:
    """Return the ratio of two sums over units, also without each round and each unit."""
    value = float(above.sum() / max(below.sum(), 1))
    by_round = above_left / np.maximum(below_left, 1)
    by_unit = (above.sum() - above) / np.maximum(below.sum() - below, 1)
    kept = below_left > 0, below.sum() > below
    return value, np.where(kept[0], by_round, value), np.where(kept[1], by_unit, value)


@dataclass(frozen=True, eq=False)
class Curves:
    """How many scores of OUT (0) and IN (1) lie between edges, by round and by group of people.

    Counts have the shape (n_rounds or n_groups, 2, n_edges + 1).
    """

    edges: Floats32
    by_round: Ints64
    by_group: Ints64

    @cached_property
    def counts(self) -> Ints64:
        """Counts of all rounds, shape (2, n_edges + 1)."""
        return np.asarray(self.by_round.sum(axis=0))

    @property
    def n_out(self) -> int:
        """How many scores there are of people who were not in the round."""
        return int(self.counts[0].sum())

    @property
    def n_in(self) -> int:
        """How many scores there are of people who were in the round."""
        return int(self.counts[1].sum())

    @cached_property
    def above(self) -> Floats:
        """Shares of OUT and of IN above each edge: (2, n_edges), FPR and TPR."""
        return shares_above(self.counts)

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        """The same shares without each round and without each group: (n, 2, n_edges)."""
        by_round, by_group = (self.counts - one for one in (self.by_round, self.by_group))
        return shares_above(by_round), shares_above(by_group)

    def resolves(self, fpr: float) -> bool:
        """Tell whether a rate of false alarms makes enough of them to be measured."""
        return self.n_out * fpr >= FEWEST_ALARMS

    def place(self, fpr: float) -> int:
        """Return the place of the lowest edge that at most a share `fpr` of OUT exceeds."""
        above = int(np.count_nonzero(self.above[0] > fpr * (1 + 1e-9)))
        return min(above, self.edges.size - 1)

    def threshold(self, fpr: float) -> float:
        """Return the lowest value that at most a share `fpr` of OUT exceeds."""
        return float(self.edges[self.place(fpr)])

    def thresholds(self, fpr: float) -> Floats:
        """Return the threshold, and the highest and the lowest that it may truly be (95 %)."""
        out = self.above[0]
        by_round, by_group = (one[:, 0] for one in self.left_out)
        reach = reaches(by_round, by_group, TAIL)
        least = np.minimum(out - reach, least_share(self.n_out * out, self.n_out, TAIL))
        most = np.maximum(out + reach, 1 - least_share(self.n_out * (1 - out), self.n_out, TAIL))
        may_be_too_low = np.flatnonzero(most > fpr * (1 + 1e-9))
        highest = np.append(self.edges, np.inf)[may_be_too_low.max(initial=-1) + 1]
        lowest, threshold = self.edges[np.argmax(least <= fpr)], self.threshold(fpr)
        return np.array([threshold, max(highest, threshold), min(lowest, threshold)])


def shares_above(counts: Ints64) -> Floats:
    """Return the share of scores above each edge, by label; counts have the shape (..., 2, n)."""
    sums = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(sums[..., 1:] / np.maximum(sums[..., :1], 1))


def _edges(panel: Panel) -> Floats32:
    """Return values to count between: all that there are, or else many quantiles of OUT.

    They are as dense above as a low rate of false alarms needs. Of many scores, a part is looked
    at.
    """
    # An odd step meets other people in every round.
    step = max(panel.scores.size // _SCORES_FOR_EDGES, 1) | 1
    scores, labels = panel.scores.ravel()[::step], panel.labels.ravel()[::step]
    distinct = np.unique(scores)
    if distinct.size <= _MOST_EDGES:
        return distinct
    out = np.sort(scores[~labels])[::-1]
    ranks = [
        np.geomspace(1, out.size, _MOST_EDGES // 2) - 1,
        np.linspace(0, out.size - 1, _MOST_EDGES // 2),
        np.floor(np.array([*RATES.values()]) * out.size + 1e-9),
    ]
    return np.unique(out[np.unique(np.concatenate(ranks).astype(np.int64))])
