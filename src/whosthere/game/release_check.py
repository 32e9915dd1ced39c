"""The release at hand: who in it would be found, where its people are known.

Its publisher has the traces behind it. So the same people are published anew by the same mechanism,
each time without one block of them, drawn at random: everybody is left out of one table, which
holds nearly as many people as the release. The scores of people on tables without them are the
attacker's null. The smallest threshold that somebody who is not in exceeds with a chance of one in
a hundred is used for all people alike. Who exceeds it in the release is found.

Where this threshold lies is known as well as nulls tell, of which each person has one. So intervals
say how many are found by thresholds that surely allow fewer, or surely allow more, false alarms
than one in a hundred, by the exact binomial law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.adversary.attacks import Auxiliary
from whosthere.adversary.attacks.base import View
from whosthere.game.leaks import leaks_of_people, terms_of
from whosthere.inference.metrics import least_share
from whosthere.privacy.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from whosthere.adversary.attacks.base import AttackOnEverybody
    from whosthere.arrays import Bools, Floats, Floats32
    from whosthere.game.counted import Counted
    from whosthere.privacy.release import Release
    from whosthere.progress import Move


@dataclass(frozen=True, eq=False)
class Scored:
    """What an attack says of everybody who is in.

    `here` are scores on the release at hand, shape (n_people,). `anew` are those on tables that
    were published anew, shape (n_tables, n_people), and `left_out` says who was not in these.
    Where there is no release at hand, `here` are the scores on all tables of those who are in.
    """

    here: Floats32
    anew: Floats32
    left_out: Bools

    @property
    def n_people(self) -> int:
        """How many people are in."""
        return int(self.left_out.shape[1])

    @cached_property
    def _nulls(self) -> Floats32:
        """Scores of people on tables without them, the largest first."""
        return np.sort(self.anew[self.left_out])[::-1]

    @property
    def without(self) -> Floats32:
        """The score of each person on the table without them, shape (n_people,)."""
        return np.asarray(self.anew.T[self.left_out.T])

    def found(self, fpr: float, tails: tuple[float, float]) -> Found:
        """Count whom a threshold finds that allows so many false alarms.

        Somebody who is not in is as likely as each null to have the largest score of all: so the
        chance of a false alarm is that of one null more than those above the threshold.
        """
        n = self.n_people
        allowed = int(fpr * (n + 1) + 1e-9) - 1
        # So many nulls may exceed a threshold, at most, for it to allow fewer false alarms for
        # sure; and must, at least, for it to allow more.
        above = np.arange(min(n, int(4 * fpr * n) + 20) + 1)
        surely_fewer = np.flatnonzero(1 - least_share(n - above, n, tails[0]) <= fpr)
        surely_more = np.flatnonzero(least_share(above, n, tails[1]) >= fpr)
        most = int(surely_more[0]) - 1 if surely_more.size else n
        low, at, high = (
            float((self.here > self._exceeded_by(nulls)).mean())
            for nulls in (surely_fewer.max(initial=-1), allowed, most)
        )
        threshold = self._exceeded_by(allowed)
        expected = (int((self._nulls > threshold).sum()) + 1) / (n + 1)
        return Found(threshold, at, min(low, at), max(high, at), expected)

    def chance(self, scores: Floats32) -> Floats:
        """Return the chance of scores as large for somebody who is not in."""
        above = self._nulls.size - np.searchsorted(self._nulls[::-1], scores, "left")
        return np.asarray((above + 1) / (self._nulls.size + 1))

    def _exceeded_by(self, nulls: int) -> float:
        """Return the smallest threshold that so many nulls exceed, at most; -1 is none at all."""
        if not 0 <= nulls < self._nulls.size:
            return math.inf if nulls < 0 else -math.inf
        return float(self._nulls[nulls])

    def again(self, threshold: float) -> Floats:
        """Return in which share of the other tables with them people are found, (n_people,)."""
        return np.asarray(np.mean(self.anew > threshold, axis=0, where=~self.left_out))


class Found(NamedTuple):
    """The share of people whom a threshold finds, with the ends of its interval.

    `false_alarms` is the share of people who are not in to be expected above it.
    """

    threshold: float
    share: float
    low: float
    high: float
    false_alarms: float


def score(
    counted: Counted,
    attacks: Sequence[AttackOnEverybody],
    releases: Sequence[Release] | None,
    *,
    n_tables: int,
    seed: int,
    on_progress: Move,
    what: str = "tables",
) -> list[Scored]:
    """Let attacks score everybody who is in, on releases at hand and on tables made anew."""
    views = [
        View(
            Facts.of(traces, counted.rows.size, table.mechanism),
            traces,
            Auxiliary(everybody=traces),
            table.layout,
        )
        for table, traces in zip(counted.tables, counted.everybody, strict=True)
    ]
    scorers = [attack.scorer(views) for attack in attacks]
    anew: list[list[Floats32]] = [[] for _ in attacks]
    here, left_out = [], []

    def scores(
        scorer: Callable[[Sequence[Release]], Floats], tables: Sequence[Release]
    ) -> Floats32:
        return scorer(tables)[counted.rows].astype(np.float32)

    if releases is not None:
        here = [scores(scorer, releases) for scorer in scorers]
    for i, (out, made) in enumerate(counted.without(seed, n_tables)):
        on_progress(what, i, n_tables)
        left_out.append(out)
        for scorer, found in zip(scorers, anew, strict=True):
            found.append(scores(scorer, made.releases))
    on_progress(what, n_tables, n_tables)
    out, tables = np.stack(left_out), [np.stack(one) for one in anew]
    return [Scored(here[i] if here else one[~out], one, out) for i, one in enumerate(tables)]


def leaks_in(
    counted: Counted, releases: Sequence[Release], *, n_tables: int, seed: int
) -> pl.DataFrame:
    """Return where and when the people of a release are found, with the columns `LEAKS`.

    What a cell adds to the likelihood ratio of its visitors in the release, less what it adds on
    tables without them, added up over people. Of several tables, the one with most cells is meant.
    """
    place = max(range(len(releases)), key=lambda i: releases[i].facts.n_cells)
    people = counted.everybody[place].select(counted.rows)
    rows, leak, _ = terms_of(releases[place], people)
    for out, made in counted.without(seed, n_tables):
        absent = people.select(np.flatnonzero(out))
        leak[out[rows.person]] -= terms_of(made.releases[place], absent)[1]
    return leaks_of_people(rows, leak, "check", releases[place].facts)
