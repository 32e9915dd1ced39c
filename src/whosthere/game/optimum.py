"""The optimum of the membership game: what nobody who knows the others can exceed.

A release without the target holds somebody else in the target's place. Whoever knows the other
m - 1 people, what of theirs was counted, and the pool that the m-th comes from, has nothing left to
estimate. With L(x) how much likelier the release is with person x added to these others than with
nobody, the release is

    L(target)                    times as likely if the target is in,
    mean of L(x) over the pool   times as likely if somebody else is,

so that the best test (Neyman and Pearson) is the logarithm of their quotient. It is a ceiling for
every attack on the same releases, and its score is comparable between targets.

Where a mechanism drops visits beyond a bound, this attacker is taken to know which visits of each
person would be kept, and so is stronger still.

Where noise belongs to people, nobody knows the keys of the others. Somebody alone in several cells
has one draw in all of them, which the test knows. That the same others meet in several cells, and
share a draw as well, it does not use. So it is not quite a ceiling then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from whosthere.inference.scores import RULED_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.data.traces import Group
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.publish import Publication, PublishedTable

_ByDraw: TypeAlias = "list[tuple[float, NDArray[np.float64]]]"
# The largest logarithm of a ratio, which has no bound: finite, so that scores can be averaged.
_PROVED = 1e9
# Numbers that reach further than this many times their number are sorted and not looked up: a
# table of all that are possible would take gigabytes where a cell holds many thousand people.
_MOST_SPAN = 32


@dataclass(frozen=True, eq=False)
class Candidates:
    """The people who may be the m-th of a group, the target last, and what would be counted."""

    people: Group
    counted: Group

    def sums(self, values: NDArray[np.float64], which: NDArray[np.int64]) -> NDArray[np.float64]:
        """Add up values by cell over the counted visits of some candidates, shape (n_which,)."""
        return self.counted.everybody.sums(values, self.counted.rows[which])


def optimal_scores(
    publications: Sequence[Publication], candidates: Iterable[Sequence[Candidates]]
) -> Iterator[float]:
    """Yield the log of the best test's ratio for publications by the same scheme.

    Above 0 it speaks for the target. Given who is in, tables are independent of one another, and
    their ratios add up. The last member of the group, which all tables share, is the one whom the
    attacker does not know. Others of the group may be among the candidates, which are given for
    each table of each publication.
    """
    by_table = zip(*(one.tables for one in publications), strict=True)
    by_publication = zip(*(_ratios_of_releases(made) for made in by_table), strict=True)
    for one, some, ratios in zip(publications, candidates, by_publication, strict=True):
        yield _optimal_score(one.tables, some, ratios)


def _optimal_score(
    tables: Sequence[PublishedTable],
    candidates: Sequence[Candidates],
    ratios: Sequence[_ByDraw],
) -> float:
    """Return the score of one publication, from the ratios of the cells of each of its tables."""
    members, people = tables[0].group.rows, candidates[0].people
    target_is_in = members[-1] == people.rows[-1]
    for table, some, by_draw in zip(tables, candidates, ratios, strict=True):
        own = _places(table.counted if target_is_in else some.counted)
        if all(np.isneginf(values[own]).any() for _, values in by_draw):
            return RULED_OUT
    known = np.zeros(people.everybody.n_users, np.bool_)
    known[members[:-1]] = True
    known[people.rows[-1]] = False
    which = np.flatnonzero(~known[people.rows])
    is_last = people.rows[which] == members[-1]
    sums = np.zeros(which.size)
    for table, some, by_draw in zip(tables, candidates, ratios, strict=True):
        of_draws = []
        for log_chance, values in by_draw:
            found = some.sums(values, which)
            # The one who is really in is known by the visits that were really counted.
            found[is_last] = values[_places(table.counted)].sum()
            of_draws.append(log_chance + found)
        sums += reduce(np.logaddexp, of_draws)
    target, pool = sums[-1], sums[:-1]
    most = pool.max(initial=-np.inf)
    if np.isneginf(most):
        return _PROVED
    return float(target - most - np.log(np.exp(pool - most).mean()))


def optimum_of_everybody(
    publication: Publication, out: Sequence[Group]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the best test's scores of all who are in and of some who are out, if asked one by one.

    Whoever knows all others compares the release with that person to the release with nobody in
    their place. That m is public is left out: with it, nothing would be left to ask. `out` are the
    people who are out, for each table, with the visits that would be counted.
    """
    of_tables = []
    for table, absent in zip(publication.tables, out, strict=True):
        present = table.counted
        sums = (
            reduce(np.logaddexp, [chance + who.everybody.sums(values, who.rows)
                                  for chance, values in _ratios_for(table, who, is_in=is_in)])
            for who, is_in in ((present, True), (absent, False))
        )  # fmt: skip
        of_tables.append(list(sums))
    inside, outside = (np.sum(one, axis=0) for one in zip(*of_tables, strict=True))
    return inside, np.maximum(outside, RULED_OUT)


def _ratios_for(table: PublishedTable, who: Group, *, is_in: bool) -> _ByDraw:
    """Return how much likelier cells are with one more, for people who are all in, or all out."""
    symbols, counts = table.release.symbols.reshape(-1), table.counts.reshape(-1)
    facts = table.release.facts
    others = [np.maximum(counts - is_in * added, 0)
              for added in range(1, who.everybody.heaviest + 1)]  # fmt: skip
    plain, *heavier = (
        log_ratios(facts.mechanism, symbols, without, facts.most_count, added)
        for added, without in enumerate(others, 1)
    )
    draws = facts.mechanism.law(facts.most_count).own_draws()
    given = [_given_draw(value, facts, symbols, others[0], plain) for _, value in draws] or [plain]
    chances = [chance for chance, _ in draws] or [0.0]
    return [(chance, np.concatenate([one, *heavier]))
            for chance, one in zip(chances, given, strict=True)]  # fmt: skip


def _places(counted: Group) -> NDArray[np.int32]:
    """Return where the visits of the last of a group stand among ratios."""
    everybody, row = counted.everybody, counted.rows[-1]
    return everybody.by_weight[everybody.indptr[row] : everybody.indptr[row + 1]]


def _ratios_of_releases(tables: Sequence[PublishedTable]) -> Iterator[_ByDraw]:
    """Yield how much likelier cells are with one person more, for each release.

    By what that person adds, from 1 on, and by cell, shape (heaviest * n_cells,). That is given for
    each draw which this person may have wherever nobody else is, with the log of
    its chance. There is one, of chance 1, where each cell draws for itself.
    """
    others = np.stack([table.counts.reshape(-1) for table in tables])
    for table, counts in zip(tables, others, strict=True):
        counts[table.counted.trace(-1)] -= table.counted.added(-1)
    symbols = np.stack([table.release.symbols.reshape(-1) for table in tables])
    facts = tables[0].release.facts
    plain, *heavier = (
        log_ratios(facts.mechanism, symbols, others, facts.most_count, added)
        for added in range(1, tables[0].group.everybody.heaviest + 1)
    )
    draws = facts.mechanism.law(facts.most_count).own_draws()
    given = [_given_draw(value, facts, symbols, others, plain) for _, value in draws] or [plain]
    if heavier:
        given = [np.hstack([one, *heavier]) for one in given]
    chances = [chance for chance, _ in draws] or [0.0]
    return (list(zip(chances, of_release, strict=True)) for of_release in zip(*given, strict=True))


def _given_draw(
    published: int,
    facts: Facts,
    symbols: NDArray[np.int32],
    others: NDArray[np.int32],
    plain: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return ratios with those of what a draw publishes where none of the others is."""
    alphabet = facts.mechanism.alphabet(facts.most_count)
    values = alphabet.values(np.arange(int(symbols.max(initial=0)) + 1))
    within = np.where(values == published, 0.0, -np.inf)
    without = facts.mechanism.log_pmf(values, 0, facts.most_count)
    return np.where(others == 0, _less(within, without)[symbols], plain)


def log_ratios(
    mechanism: Mechanism,
    symbols: NDArray[np.int32],
    others: NDArray[np.int32],
    m: int,
    added: int = 1,
) -> NDArray[np.float64]:
    """Return log P(published | others + added) - log P(published | others), in the shape of both.

    Minus infinity where so many more cannot have been there.
    """
    # Few pairs of counts occur, and each needs its chances once.
    width = int(others.max(initial=0)) + 1
    pair = symbols.astype(np.int64) * width + others
    values, place = distinct(pair)
    symbol, n = np.divmod(values, width)
    a = mechanism.alphabet(m).values(symbol)
    # What is there already leaves room for one more in a group of m.
    with_one, without = (
        mechanism.log_pmf(a, np.minimum(n + added, m), m),
        mechanism.log_pmf(a, n, m),
    )
    return np.asarray(_less(with_one, without)[place])


def _less(with_one: NDArray[np.float64], without: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of a ratio of chances, given their logs."""
    with np.errstate(invalid="ignore"):
        ratio = with_one - without
    # Impossible either way: a chance can be too small for a number.
    return np.nan_to_num(ratio, nan=0.0, neginf=-np.inf, posinf=_PROVED)


def distinct(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
    """Return the distinct ones of numbers from 0 on, sorted, and where among them each one is."""
    span = int(numbers.max(initial=0)) + 1
    if span > _MOST_SPAN * numbers.size:
        values, place = np.unique(numbers, return_inverse=True)
        return values, place.reshape(numbers.shape)
    seen = np.zeros(span, np.bool_)
    seen[numbers] = True
    values = np.flatnonzero(seen)
    place = np.empty(span, np.int32)
    place[values] = np.arange(values.size)
    return values, place[numbers]
