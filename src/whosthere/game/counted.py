"""Whom a release counts, and whether it can be theirs: they are published anew, and compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from whosthere.arrays import own
from whosthere.data.epochs import format_length
from whosthere.data.traces import Group
from whosthere.errors import GroupError, InputError
from whosthere.game.optimum import distinct
from whosthere.privacy.cell_key import people_keys
from whosthere.privacy.facts import Facts
from whosthere.privacy.publish import Publication, publish_table
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import Layout, TableScheme
from whosthere.privacy.table_words import WrittenTable
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.arrays import Bools, Floats, Ints32, Ints64
    from whosthere.data.traces import Traces

FEWEST_TABLES = 20
"""Tables are made anew without one block of people each; so many blocks there are at least."""
# Draws of the noise that a release is compared with, by how many standard deviations it may be less
# likely than these, and the least logarithm of a chance that counts.
_DRAWS, _MOST_SHORT, _LEAST_LOG = 20, 8.0, -50.0


@dataclass(frozen=True, eq=False)
class Counted:
    """The people of a publication, the `rows` of everybody, whose traces lie over each table."""

    tables: tuple[TableScheme, ...]
    everybody: tuple[Traces, ...]
    rows: Ints64

    def published(self, rows: Ints64, seed: int, *key: int | str) -> Publication:
        """Publish some people as these were published."""
        noise, bounding = (generator(seed, "release check", one, *key)
                           for one in ("noise", "bounding"))  # fmt: skip
        keys = None
        if len(self.tables) > 1:
            keys = people_keys(rows.size, generator(seed, "release check", "keys", *key))
        groups = (Group(traces, own(rows, np.int64), keys) for traces in self.everybody)
        made = (
            publish_table(group, table.mechanism, bounding=bounding, noise=noise)
            for group, table in zip(groups, self.tables, strict=True)
        )
        return Publication(tuple(made))

    def without(self, seed: int, n_tables: int) -> Iterator[tuple[Bools, Publication]]:
        """Publish all but a block of the people, block by block; yield who was left out."""
        order = generator(seed, "release check", "blocks").permutation(self.rows.size)
        for i in range(n_tables):
            out = order % n_tables == i
            yield out, self.published(self.rows[~out], seed, "without", n_tables, i)

    def refuse_others(self, releases: Sequence[Release], seed: int) -> None:
        """Refuse releases that are not of these people, as far as their mechanism can tell."""
        reference = self.published(self.rows, seed, "as claimed", 0)
        true = [table.counts for table in reference.tables]
        for release, counts in zip(releases, true, strict=True):
            impossible = int(np.isneginf(_log_chances(release, counts)).sum())
            if impossible and not release.mechanism.bounds_visits:
                raise _not_theirs(
                    f"{impossible:,} of {counts.size:,} published values cannot come from their "
                    "true counts"
                )
        if not any(release.mechanism.random_steps for release in releases):
            return
        drawn = (self.published(self.rows, seed, "as claimed", i).releases
                 for i in range(1, _DRAWS + 1))  # fmt: skip
        given, *others = [
            [_how_likely(*one) for one in zip(some, true, strict=True)]
            for some in (releases, *drawn)
        ]
        short, spread = np.mean(others, axis=0) - given, np.std(others, axis=0, ddof=1)
        if (short > _MOST_SHORT * np.maximum(spread, 1e-9)).any():
            raise _not_theirs(
                "the published values follow other counts than theirs, or are not made by the "
                "mechanism that is stated"
            )


def _not_theirs(why: str) -> InputError:
    return InputError(
        f"these are not the people of this release: {why}",
        fix="Give the traces that were counted, read in the same way; who of them is in it "
        "(`group`); and the mechanism that was used",
    )


def _log_chances(release: Release, counts: Ints32) -> Floats:
    """Return log P(published | true count) of each cell, shape (n_cells,)."""
    m, width = release.facts.most_count, int(counts.max(initial=0)) + 1
    pair = release.symbols.reshape(-1).astype(np.int64) * width + counts.reshape(-1)
    pairs, place = distinct(pair)
    symbol, true = np.divmod(pairs, width)
    values = release.mechanism.alphabet(m).values(symbol)
    return np.asarray(release.mechanism.log_pmf(values, true, m)[place])


def _how_likely(release: Release, counts: Ints32) -> float:
    """Return how much likelier a release is by true counts than by their regions and epochs alone.

    As a logarithm. The noise of cells in which both say the same cancels out.
    """
    alone = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(int(counts.sum()), 1)
    below = np.minimum(alone, release.facts.most_count - 1).astype(np.int32)
    above = np.clip(alone - below, 0, 1).reshape(-1)
    by_counts, lower, upper = (
        np.maximum(_log_chances(release, one), _LEAST_LOG) for one in (counts, below, below + 1)
    )
    mixed = np.logaddexp(lower + np.log1p(-above * (1 - 1e-12)), upper + np.log(above + 1e-300))
    return float((by_counts - mixed).sum())


def counted_people(
    releases: Sequence[Release],
    traces: Traces,
    rows: Ints64,
    tables: Sequence[str],
) -> tuple[Counted, list[Release]]:
    """Return whom some releases count, and the releases over the cells of their traces."""
    if len(tables) not in {0, len(releases)}:
        problem = f"{len(releases)} releases are given, and the cells of {len(tables)} tables"
        raise InputError(problem, fix="Give one table (`tables`) for each release, in their order")
    for one in releases:
        if not one.mechanism.has_law:
            raise InputError("no law is known of a mechanism of your own", fix="Audit it instead")
        if one.group_size != rows.size:
            raise GroupError(
                f"the release is of {one.group_size:,} people, and {rows.size:,} are said to be in",
                fix="Say who of the traces is in it (`group`), or give the right traces",
            )
    bare, schemes, laid, over = replace(traces, friends=None), [], [], []
    for i, one in enumerate(releases):
        layout = WrittenTable.parse(tables[i]).over(traces) if tables else _layout(one, traces)
        people = layout(bare)
        schemes.append(TableScheme(one.mechanism, layout))
        laid.append(people)
        over.append(_over(one, people))
    return Counted(tuple(schemes), tuple(laid), rows), over


def _layout(release: Release, traces: Traces) -> Layout:
    joined, rest = divmod(release.epochs.length, traces.epochs.length)
    if rest or not joined:
        raise InputError(
            f"epochs of {format_length(release.epochs.length)} are not made of the traces' "
            f"epochs of {format_length(traces.epochs.length)}",
            fix="Ingest the records with the epochs of the table",
        )
    adds_up = release.facts.most_added > traces.most_added
    length = format_length(release.epochs.length)
    words = f"epochs={length}" if joined > 1 else ""
    return Layout(epochs=joined, counts="visits" if adds_up else "people", words=words)


def _over(release: Release, people: Traces) -> Release:
    """Return a release over the cells of traces; those that the table does not have are 0."""
    row = {region: i for i, region in enumerate(people.regions.ids)}
    rows = np.array([row.get(region, -1) for region in release.regions.ids])
    columns = release.epochs.places_in(people.epochs)
    fix = "Give traces over the regions and epochs of the table, or say its cells (`tables`)"
    if (rows < 0).any():
        problem = f"{(rows < 0).sum():,} regions of the table are not in the traces"
        raise InputError(problem, fix=fix)
    if (columns < 0).any() or (np.diff(columns) != 1).any():
        problem = f"the table has {release.epochs}, and the traces {people.epochs}"
        raise InputError(problem, fix=fix)
    values = np.zeros(people.shape, np.int32)
    values[np.ix_(rows, columns)] = release.values
    facts = Facts.of(people, release.group_size, release.mechanism)
    return Release(values, facts, release.ledger, release.audited)
