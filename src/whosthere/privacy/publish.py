"""From traces to what is published, as a publisher makes it: the one way to publish a group."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whosthere.arrays import own
from whosthere.data.traces import Group
from whosthere.display import in_one_line, stacked
from whosthere.errors import GroupError, InputError
from whosthere.privacy.cell_key import people_keys
from whosthere.privacy.facts import Facts
from whosthere.privacy.ledger import GuaranteeLedger
from whosthere.privacy.release import Release
from whosthere.privacy.table_words import tables_of
from whosthere.seeds import generator
from whosthere.specs import whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    import polars as pl
    from numpy.typing import ArrayLike, NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism, Noise
    from whosthere.privacy.release import Audited
    from whosthere.privacy.scheme import TableScheme


@dataclass(frozen=True, eq=False, repr=False)
class Stays:
    """Who is counted when, where people come and go from one table of a series to the next.

    `rows` are all who are ever counted. Each is from the table number `first` on, before `until`,
    shape (n_people,) each; a table covers the time `every`.
    """

    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    until: NDArray[np.int64]
    every: timedelta

    def within(self, traces: Traces) -> Traces:
        """Return traces without the visits that these people made while they were not counted."""
        first = np.zeros(traces.n_users, np.int64)
        until = np.full(traces.n_users, traces.epochs.n)
        first[self.rows], until[self.rows] = self.first, self.until
        return traces.present(first, until, traces.epochs.begun_in(self.every))

    def sizes(self) -> NDArray[np.int64]:
        """Return how many people are counted in each table, shape (n_tables,)."""
        tables = np.arange(self.until.max())[:, None]
        return np.asarray(((self.first <= tables) & (tables < self.until)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """The release of one table, with what only its publisher knows."""

    release: Release
    group: Group
    """The people who were counted, with all of their visits, over the cells of the table."""
    counted: Group
    """The same people with the visits that were counted, after bounding."""
    counts: NDArray[np.int32]
    """True counts of these visits, shape (n_regions, n_epochs)."""
    noise: Noise = ()
    """The random numbers that were used."""
    stays: Stays | None = None
    """Who is counted when, if not everybody all the time; the group has these visits alone."""

    @cached_property
    def truth(self) -> NDArray[np.int32]:
        """The true counts of all visits of the group, shape (n_regions, n_epochs)."""
        return self.counts if self.counted is self.group else self.group.counts()

    @property
    def share_dropped(self) -> float:
        """Share of the group's visits that contribution bounding left out."""
        dropped = self.group.n_visits - self.counted.n_visits
        return dropped / max(self.group.n_visits, 1)


@dataclass(frozen=True, eq=False)
class Publication:
    """What came of publishing a group once: one or several tables of the same people.

    What is asked of the publication itself is asked of its table, where there is one alone.
    """

    tables: tuple[PublishedTable, ...]

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is public, and all that an attack sees: a release of each table."""
        return tuple(table.release for table in self.tables)

    @property
    def only(self) -> PublishedTable:
        """The table, where there is one alone."""
        if len(self.tables) > 1:
            raise InputError(f"{len(self.tables)} tables were published", fix="Name one of them")
        return self.tables[0]

    @property
    def release(self) -> Release:
        """What is public, where there is one table alone."""
        return self.only.release

    @property
    def group(self) -> Group:
        """The people who were counted, where there is one table alone."""
        return self.only.group

    @property
    def truth(self) -> NDArray[np.int32]:
        """The true counts of all visits, where there is one table alone."""
        return self.only.truth

    @property
    def share_dropped(self) -> float:
        """Share of the visits that bounding left out, where there is one table alone."""
        return self.only.share_dropped

    def to_frame(self) -> pl.DataFrame:
        """Return the rows of `Release.to_frame`, with the `truth`, which must stay secret."""
        return self.release.to_frame().with_columns(truth=self.truth.reshape(-1))

    def __repr__(self) -> str:
        return in_one_line("Publication", *map(repr, self.releases))

    def _repr_html_(self) -> str:
        return stacked(*(release._repr_html_() for release in self.releases))


def publish_table(
    group: Group,
    mechanism: Mechanism,
    *,
    bounding: np.random.Generator,
    noise: np.random.Generator | None,
    ledger: GuaranteeLedger | None = None,
    stays: Stays | None = None,
) -> PublishedTable:
    """Bound what each person contributes to a table, count, and protect.

    Which visits are dropped is drawn once for each publication. Without a generator of `noise`,
    nobody can predict it. Trials have no ledger of guarantees: they are made by the thousand, and
    prove nothing of a release that is really published.
    """
    m = group.n_users
    if stays is not None:
        m = int(stays.sizes()[0])
        group = Group(stays.within(group.everybody), group.rows)
    counted = group
    if mechanism.bounds_visits:
        counted = Group.all_of(mechanism.bound(group.traces, bounding), group.keys)
    counts = counted.counts()
    facts = Facts.of(group.everybody, m, mechanism)
    drawn = mechanism.draw_for(counted, counts.shape, noise)
    published = mechanism.publish(counts, drawn, facts.most_count)
    release = Release(own(published, np.int32), facts, ledger)
    return PublishedTable(release, group, counted, counts, drawn, stays)


def publish(
    traces: Traces,
    *,
    mechanism: Mechanism | str | None = None,
    tables: Sequence[TableScheme | str] = (),
    group_size: int | None = None,
    group: ArrayLike | None = None,
    seed: int | None = None,
    audited: Audited | None = None,
) -> Publication:
    """Publish a group, which is chosen at random unless it is given.

    Without a seed the group and the noise are drawn by the operating system's cryptographic
    generator, the noise with exactly the stated law where `GuaranteeLedger.randomness` says so.
    Which visits bounding drops is drawn by an ordinary generator that starts from 256 such bits;
    no guarantee rests on that.

    Parameters
    ----------
    traces
        Everybody who might be chosen.
    mechanism
        What is done to the counts, or its spec; to those of each table that says nothing else.
    tables
        What is published, or how it is written, such as ``"epochs=1d: round(to=5)"``; one table
        over the regions and epochs of the traces by default.
    group_size
        How many people to choose; all of them by default.
    group
        Whom to publish instead: different rows of the traces.
    seed
        The same seed gives the same release, which is then a trial without any guarantee:
        whoever tries seeds until one fits the counts can take the noise away again. Give none
        for anything that is really published.
    audited
        By which audit this was accepted, if by any.
    """
    if audited is not None and seed is not None:
        problem = "a release with a seed is a trial, so no audit can accept it"
        raise InputError(problem, fix="Leave out the seed (`seed`), or the audit (`audit`)")
    chosen = tables_of(tables, mechanism, traces)
    if group is None:
        rows = _choose(traces.n_users, group_size, seed)
    else:
        rows = given_rows(group, group_size)
    # Who of them are friends matters to nobody here, and takes time to find.
    bare = replace(traces, friends=None)
    bounding = generator(seed, "publish", "bounding")
    noise = None if seed is None else generator(seed, "publish", "noise")
    made, keys = [], None
    if len(chosen) > 1:
        keys = people_keys(rows.size, None if seed is None else generator(seed, "publish", "keys"))
    for table in chosen:
        people = Group(table.layout(bare), rows, keys)
        ledger = GuaranteeLedger.of(table.mechanism, seeded=seed is not None)
        one = publish_table(people, table.mechanism, bounding=bounding, noise=noise, ledger=ledger)
        made.append(replace(one, release=replace(one.release, audited=audited)))
    return Publication(tuple(made))


def refuse_one_person(traces: Traces, group_size: int | None) -> None:
    """Refuse to count one person alone, whose counts are their trace.

    `publish` itself does not, as the smallest group of all is good for trials.
    """
    m = traces.n_users if group_size is None else whole(group_size, "the group size")
    if m < 2:
        raise GroupError(f"a group of {m} hides nobody", fix="Count at least 2 people")


def given_rows(group: ArrayLike, group_size: int | None) -> NDArray[np.int64]:
    """Return the rows of a group that was given, in order."""
    rows = np.asarray(group)
    if group_size is not None:
        fix = "Leave one of them out"
        raise GroupError("a group (`group`) and its size (`group_size`) are both given", fix=fix)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise GroupError("the group must be rows of the traces (`group`): whole numbers from 0")
    if np.unique(rows).size < rows.size:
        fix = "Give each person once (`np.unique`)"
        raise GroupError("the group has somebody twice (`group`)", fix=fix)
    return np.sort(rows.astype(np.int64))


def _choose(n: int, group_size: int | None, seed: int | None) -> NDArray[np.int64]:
    """Choose so many of n rows, each set of them equally likely, in order; all by default."""
    m = n if group_size is None else whole(group_size, "the group size")
    if not 1 <= m <= n:
        raise GroupError(
            f"a group of {m} cannot be chosen from {n} users",
            fix=f"Give a group size (`group_size`) from 1 to {n}",
        )
    if seed is None:
        # The generator of the operating system.
        rows = np.array(secrets.SystemRandom().sample(range(n), m), np.int64)
    else:
        rows = generator(seed, "publish", "group").choice(n, size=m, replace=False)
    return np.sort(rows)
