"""One publication: made, attacked and checked."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from whosthere.adversary.attacks import Answer, Attack, Auxiliary
from whosthere.adversary.attacks.base import View
from whosthere.adversary.everybody import ScoresOfEverybody, score_everybody
from whosthere.adversary.suspects import Known, Places, over, visits_of_one
from whosthere.adversary.targets import read_target
from whosthere.auditing.acceptance import acceptance, not_audited
from whosthere.auditing.loading import load
from whosthere.auditing.options import several
from whosthere.auditing.policy import Policy
from whosthere.auditing.release_check import ReleaseCheck, check_release
from whosthere.auditing.result import AuditResult
from whosthere.data.files import fingerprint
from whosthere.data.traces import Traces
from whosthere.errors import EmptyError, InputError, listed
from whosthere.front.given import as_file, compiling_is_said, loaded
from whosthere.game.table_check import TableCheck, Visits, check_table
from whosthere.inference.vocabulary import STRONGEST
from whosthere.privacy import publish as publishing
from whosthere.privacy.possible import refuse_impossible
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import Layout
from whosthere.privacy.table_words import WrittenTable, tables_of
from whosthere.privacy.tables import TableReader, as_release
from whosthere.progress import progress
from whosthere.seeds import check_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from whosthere.adversary.attacks import PastRelease
    from whosthere.arrays import Ints32
    from whosthere.data.frames import AnyPath, Frame
    from whosthere.front.given import PolicyLike, Reported, TracesLike
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.publish import Publication
    from whosthere.privacy.scheme import TableScheme


def publish(
    traces: TracesLike,
    mechanism: Mechanism | str | None = None,
    *,
    tables: str | TableScheme | Sequence[TableScheme | str] = (),
    group_size: int | None = None,
    group: ArrayLike | None = None,
    weeks: int | None = None,
    every: str | None = None,
    seed: int | None = None,
    audit: Reported | None = None,
) -> Publication:
    """Count a group of people per region and epoch, and protect the counts.

    Parameters
    ----------
    traces
        Everybody who might be chosen: a file from `whosthere ingest`, or traces in memory.
    mechanism
        What is done to the counts, such as ``"laplace(eps=1) | suppress(k=1)"``.
    tables
        What is published together, such as ``["finest", "epochs=1d: round(to=5)"]``, as for
        `audit`; the mechanism is for the tables that have none.
    group_size
        How many people to choose at random, at least 2; all of them by default.
    group
        Whom to publish instead, at least 2: different rows of the traces. No audit is about one
        group that was chosen by hand, so it cannot be given with `audit`.
    weeks, every
        Publish the first so many weeks alone, as one table that is published every week; another
        time than a week for one table, such as ``"1d"``.
    seed
        The same seed gives the same release. Leave it out for anything that is really published.
    audit
        The result of an audit, or its folder. The release is refused unless this audit accepted
        exactly this mechanism and group size on these traces, with `weeks` for as many weeks or
        more and for all fewer ones that it tried, and says by which audit it was accepted. Without
        it, and without a seed, there is a warning.
    """
    everybody = loaded(traces)
    chosen = tables_of(several(tables), mechanism, everybody, weeks=weeks, every=every)
    size = group_size if group is None else len(publishing.given_rows(group, group_size))
    publishing.refuse_one_person(everybody, size)
    audited = None
    if audit is not None and group is not None:
        problem = "an audit is about groups drawn at random, and this one is given (`group`)"
        raise InputError(problem, fix="Give its size instead (`group_size`), or no audit (`audit`)")
    if audit is not None:
        with as_file(traces) as (path, _):
            found = audit if isinstance(audit, AuditResult) else load(audit)
            audited = acceptance(found, chosen, group_size, everybody, fingerprint(path))
    made = publishing.publish(
        everybody,
        tables=chosen,
        group_size=group_size,
        group=group,
        seed=seed,
        audited=audited,
    )
    if audit is None and seed is None:
        size = made.releases[0].group_size
        warnings.warn(not_audited(size, everybody), NotAuditedWarning, stacklevel=2)
    return made


class NotAuditedWarning(UserWarning):
    """Something is published that no audit accepted."""


@overload
def attack(
    release: Release | AnyPath | Sequence[Release | AnyPath],
    target: Known | AnyPath | Sequence[int] | Ints32,
    attack: Attack | str = ...,
    *,
    tables: str | Sequence[str] = ...,
    reference: TracesLike | None = ...,
    friends: TracesLike | None = ...,
    past: Sequence[PastRelease] = ...,
    seed: int = ...,
) -> Answer: ...


@overload
def attack(
    release: Release | AnyPath | Sequence[Release | AnyPath],
    target: None = None,
    attack: Attack | str = ...,
    *,
    everybody: TracesLike,
    tables: str | Sequence[str] = ...,
    reference: TracesLike | None = ...,
    prior: float | None = ...,
) -> ScoresOfEverybody: ...


def attack(
    release: Release | AnyPath | Sequence[Release | AnyPath],
    target: Known | AnyPath | Sequence[int] | Ints32 | None = None,
    attack: Attack | str = "likelihood-ratio",  # the word that users know it by
    *,
    everybody: TracesLike | None = None,
    tables: str | Sequence[str] = (),
    reference: TracesLike | None = None,
    friends: TracesLike | None = None,
    past: Sequence[PastRelease] = (),
    prior: float | None = None,
    seed: int = 0,
) -> Answer | ScoresOfEverybody:
    """Ask whether one person is in a release, as an attacker would; or everybody at once.

    Parameters
    ----------
    release
        Published counts, or their file; or several tables of the same people.
    target
        What is known of the person: a file as `whosthere target` writes it, traces of one person,
        `Places`, or the cells of visits, as from `Traces.trace`. It is about the table with most
        cells.
    attack
        Who attacks, as a spec or an object.
    everybody
        Traces of all who may be in the release, in place of a target: all of them are asked, by
        likelihood-ratio. They lie over the cells of the table with most of them.
    tables
        Of several tables with other regions, which cells each has, such as ``"finest"`` and
        ``"regions=districts.csv, epochs=1d"``, in their order.
    reference, friends, past
        What the attack needs besides; see `whosthere.attacks.Auxiliary`.
    prior
        With `everybody`: the chance of being in before the release is seen, by default the group
        size divided by the number of people.
    seed
        The same seed gives the same answer.
    """
    if (target is None) == (everybody is None):
        problem = "an attack asks about one person (`target`), or about all (`everybody`)"
        raise InputError(problem, fix="Give one of the two")
    given = [release] if isinstance(release, Release) else several(release)
    published = [one if isinstance(one, Release) else Release.load(one) for one in given]
    for one in published:
        refuse_impossible(one)
    chosen = Attack.parse(attack)
    layouts, finest = _layouts(published, several(tables))
    if past and len(published) > 1:
        raise InputError("past releases are of one table, and there are several to attack")
    asked = None if everybody is None else loaded(everybody)
    if asked is not None and not _lies_over(asked, finest):
        raise InputError(
            "the traces of everybody lie over other regions or epochs than the release",
            fix="Read them with the release's own regions, epochs and time zone",
        )
    if asked is not None and not asked.cells.size:
        raise EmptyError("nobody in the traces made a visit", fix="Give other traces")
    known = _known(target, finest) if asked is None else asked
    real, befriended = (None if one is None else loaded(one) for one in (reference, friends))
    views = []
    for one, layout in zip(published, layouts, strict=True):
        # People over other cells are refused by the attack.
        laid = [
            people if people is None or not _lies_over(people, finest) else layout(people)
            for people in (real, befriended, asked)
        ]
        auxiliary = Auxiliary(laid[0], laid[1], tuple(past), one, everybody=laid[2])
        views.append(View(one.facts, over(known, layout), auxiliary, layout))
    if asked is not None:
        return score_everybody(chosen, published, views, prior)
    if prior is not None:
        fix = "Ask the answer for its `posterior`"
        raise InputError("a chance before (`prior`) is for `everybody`", fix=fix)
    return chosen.fit_tables(views, seed=check_seed(seed)).score_tables(published)


def _lies_over(people: Traces, release: Release) -> bool:
    return (people.regions.ids, people.epochs) == (release.regions.ids, release.epochs)


def _layouts(published: Sequence[Release], tables: Sequence[str]) -> tuple[list[Layout], Release]:
    """Return the layouts of tables over the cells of the one with most of them, and that one."""
    if not published:
        raise InputError("there is no release to attack", fix="Give at least one")
    finest = max(published, key=lambda one: one.facts.n_cells)
    sizes = {one.group_size for one in published}
    if len(sizes) > 1:
        problem = f"the releases are of {listed(map(str, sorted(sizes)))} people, not of the same"
        raise InputError(problem, fix="Attack them one by one")
    if len(tables) not in {0, len(published)}:
        problem = f"{len(published)} releases are given, and the cells of {len(tables)} tables"
        raise InputError(problem, fix="Give one table (`tables`) for each release, in their order")
    layouts = []
    for i, one in enumerate(published):
        layout = Layout.between(finest.facts, one.facts)
        if tables:
            layout = WrittenTable.parse(tables[i]).over(finest)
        if layout is None or not layout.makes(one.facts, finest.facts):
            raise InputError(
                f"it is not clear how the cells of release {i + 1} come from those of the finest",
                fix="Say it of each release (`tables`), such as 'regions=districts.csv, epochs=1d'",
            )
        layouts.append(layout)
    return layouts, finest


@overload
def check(
    table: Release | AnyPath | Frame,
    mechanism: Mechanism | str | None = None,
    *,
    group_size: int | None = None,
    visits: str | int | Sequence[str | int] = (),
    reader: TableReader | None = None,
    seed: int = 0,
) -> TableCheck: ...


@overload
def check(
    table: Release | AnyPath | Frame | Sequence[Release | AnyPath],
    mechanism: Mechanism | str | None = None,
    *,
    traces: TracesLike,
    group: ArrayLike | AnyPath | None = None,
    tables: str | Sequence[str] = (),
    attacks: Attack | str | Sequence[Attack | str] = ...,
    releases: int | None = None,
    policy: PolicyLike = None,
    what_if: bool = True,
    group_size: int | None = None,
    reader: TableReader | None = None,
    seed: int = 0,
) -> ReleaseCheck: ...


def check(
    table: Release | AnyPath | Frame | Sequence[Release | AnyPath],
    mechanism: Mechanism | str | None = None,
    *,
    traces: TracesLike | None = None,
    group: ArrayLike | AnyPath | None = None,
    tables: str | Sequence[str] = (),
    attacks: Attack | str | Sequence[Attack | str] = STRONGEST,
    releases: int | None = None,
    policy: PolicyLike = None,
    what_if: bool = True,
    group_size: int | None = None,
    visits: str | int | Sequence[str | int] = (),
    reader: TableReader | None = None,
    seed: int = 0,
) -> TableCheck | ReleaseCheck:
    """Find out how well people would be found in a published table.

    From the table alone, people are drawn from rates that are fitted to it: this is an estimate,
    and gives no verdict. With the traces behind the table, it is a verdict on this very table, and
    on coarser ones if it is not accepted.

    Parameters
    ----------
    table
        A release or its file; or another program's table, as a file or a frame. With traces also
        several tables of the same people.
    mechanism
        What was done to the counts, such as ``"suppress(k=9, shown=mark)"``, if it is no release.
    traces
        The people behind the table, as for `audit`; all of them are counted in it.
    group
        Those who are, if not all are: rows of the traces, or a file with an id in each line.
    tables
        With traces: the cells of each table, if these are not the regions of the traces with whole
        epochs of them, such as ``"regions=districts.csv, epochs=1d"``.
    attacks
        With traces: who attacks, of those that score everybody at once.
    releases
        With traces: how many tables are made anew, each without other people; 50 by default.
    policy, what_if
        With traces: as for `audit`; whether to try coarser tables.
    group_size
        How many people were counted, if it is known; without traces it hardly matters.
    visits
        Without traces: numbers of visits to look at, such as 10 or ``"8-12"``; by default those of
        3-5, 8-12, 18-24 and 35-50 that are no more than there are epochs.
    reader
        How to read another program's table, where something must be said about that.
    seed
        The same seed gives the same result.

    Examples
    --------
    >>> import whosthere as wt
    >>> found = wt.check("counts.csv", "suppress(k=4)")
    >>> wt.report(found, out="check.html")
    """
    given: Sequence[Any] = table if isinstance(table, list | tuple) else [table]
    if not given:
        raise InputError("no table is given (`table`)", fix="Give one, or a list of several")
    if traces is None:
        if len(given) != 1 or group is not None or tables:
            raise InputError("several tables, their cells and groups need traces (`traces`)")
        bands = [Visits.parse(one) for one in several(visits)]
        read = as_release(given[0], mechanism=mechanism, group_size=group_size, reader=reader)
        found = check_table(read.release, bands, seed=seed)
        notes, known = (*read.notes, *found.notes), read.size_is_known
        return replace(found, notes=notes, warnings=read.warnings, size_is_known=known)
    if visits:
        raise InputError("numbers of visits (`visits`) are for a table without traces")
    judged_by, everybody = Policy.of(policy), loaded(traces)
    with compiling_is_said(), progress(one_bar=True) as move:
        return check_release(
            given,
            everybody,
            mechanism=mechanism,
            group_size=group_size,
            reader=reader,
            group=group,
            tables=several(tables),
            attacks=several(attacks),
            policy=judged_by,
            releases=releases,
            what_if=what_if,
            seed=seed,
            on_progress=move,
        )


def _known(target: Known | AnyPath | Sequence[int] | Ints32 | None, release: Release) -> Known:
    if isinstance(target, Traces | Places):
        return target
    if isinstance(target, str | os.PathLike):
        return read_target(target, release.regions, release.epochs)
    return visits_of_one(np.asarray(target), release.regions, release.epochs)
