"""The functions that most people need, for notebooks and scripts."""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import warnings
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack, cast, overload

import numpy as np

from whosthere.adversary.attacks import Answer, Attack, Auxiliary
from whosthere.adversary.attacks.base import View
from whosthere.adversary.everybody import ScoresOfEverybody, score_everybody
from whosthere.adversary.knowledge import Known, KnownVisits
from whosthere.adversary.targets import read_target
from whosthere.auditing.acceptance import acceptance, judged_again, not_audited
from whosthere.auditing.choices import AuditChoices, SearchChoices, choices_of
from whosthere.auditing.loading import load
from whosthere.auditing.manifest import fingerprint
from whosthere.auditing.options import AuditOptions, several
from whosthere.auditing.plan_file import chosen_options
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.records import traces_file, what_was_read
from whosthere.auditing.release_check import ReleaseCheck, check_release
from whosthere.auditing.result import AuditResult
from whosthere.auditing.run import AuditFailedError, prepare_audit
from whosthere.auditing.work import LocalProcesses, chosen_workers
from whosthere.data.traces import Traces
from whosthere.errors import EmptyError, InputError, listed
from whosthere.game.study import Round, rounds_of
from whosthere.game.table_check import BANDS, TableCheck, Visits, check_table
from whosthere.inference.vocabulary import STRONGEST
from whosthere.paper.choices import StudyChoices
from whosthere.paper.study import prepare_study
from whosthere.privacy import publish as publishing
from whosthere.privacy.possible import refuse_impossible
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import Layout
from whosthere.privacy.table_words import WrittenTable, tables_of
from whosthere.privacy.tables import TableReader, as_release
from whosthere.progress import progress
from whosthere.reporting.report import (
    REPORT,
    audit_report,
    check_report,
    comparison_report,
    recommendation_report,
    refuse_page,
    release_check_report,
)
from whosthere.search.recommendation import Recommendation
from whosthere.search.search import DEFAULT_FAMILIES, prepare_search
from whosthere.seeds import check_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from whosthere.adversary.attacks import PastRelease
    from whosthere.arrays import Ints32
    from whosthere.data.frames import AnyPath, Frame
    from whosthere.paper.outcome import StudyResult
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.publish import Publication
    from whosthere.privacy.scheme import TableScheme
    from whosthere.reporting.report import Report

    Reported: TypeAlias = "AuditResult | AnyPath"
    TracesLike: TypeAlias = "Traces | AnyPath | Frame"
    PolicyLike: TypeAlias = "Policy | AnyPath | Mapping[str, float] | None"


_Function = TypeVar("_Function", bound="Callable[..., Any]")


def _takes(declared: type) -> Callable[[_Function], _Function]:
    """Let a function take the choices that a class declares, and no other keywords."""

    def with_choices(function: _Function) -> _Function:
        *own, _ = inspect.signature(function).parameters.values()
        chosen = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in choices_of(declared)
        ]
        signature = inspect.Signature([*own, *chosen])

        @wraps(function)
        def call(*positional: Any, **keywords: Any) -> Any:  # noqa: ANN401
            signature.bind(*positional, **keywords)
            return function(*positional, **keywords)

        call.__signature__ = signature  # type: ignore[attr-defined]
        return cast("_Function", call)

    return with_choices


@_takes(AuditChoices)
def audit(
    traces: TracesLike,
    *,
    plan: AuditOptions | AnyPath | None = None,
    out: AnyPath | None = None,
    extend: bool = False,
    policy: PolicyLike = None,
    by: AnyPath | Frame | None = None,
    what_if: bool = True,
    workers: int | str | None = None,
    **chosen: Unpack[AuditChoices],
) -> AuditResult:
    """Measure attacks against protections, and judge each protection.

    Parameters
    ----------
    traces
        Everybody who may be published: a file from `whosthere ingest`, traces in memory, or
        records about which nothing has to be asked, as a frame, a file, a folder or a pattern such
        as ``"records/*.csv"``. `out` then keeps their traces.
    mechanisms
        Protections to try, such as ``"suppress(k=1)"``: one or several, as specs or objects.
    tables
        What is published together, such as ``["finest", "epochs=1d: round(to=5)"]``; one table over
        the regions and epochs of the traces by default. See `whosthere.Block`.
    group_size
        People in a release, one or several numbers.
    everybody, include
        Whether all people are published, in place of a group size: each is in a test release with
        the chance `include`, 0.9 by default, and every release tests everybody.
    by
        With `everybody`, a file or a frame of groups that people belong to, such as their age or
        tariff: a column of users, and one or more of groups. Their risks are shown side by side.
    attacks
        Who attacks, as specs or objects; knock-knock, zero-knowledge and likelihood-ratio by
        default, or the latter alone with `everybody`.
    knowledge
        What is known of each target, such as ``"share(0.1)"``; all visits by default.
    weeks, every, turnover
        For how many weeks the table is published every week, such as ``[1, 2, 4]``, each number by
        itself; another time than a week for one table, such as ``"1d"``; and which share of the
        other people is replaced from each table to the next.
    groups
        How test groups are drawn, if not uniformly, for studies: see `whosthere.AuditOptions`.
    together
        Who is counted together, such as households: a file or a frame with the columns user and
        household. They are then in or out as a whole.
    plan
        A plan file, or options, that all other arguments override.
    out
        Folder to keep everything in, report.html included, so that an interrupted audit resumes;
        by default nothing is kept but the result.
    extend
        Whether `out` may hold the same audit with fewer targets, releases or attacks, to which the
        others are added.
    policy
        The limits to judge by: a file, a mapping such as ``{"auc": 0.6}``, or a `Policy`.
    scale, targets, users, min_visits, releases, releases_of, control_releases, reference_size
        See `whosthere.AuditOptions`.
    past_releases, test_from, seed
        See `whosthere.AuditOptions`.
    what_if
        Whether to try what larger regions, longer epochs or fewer tables would change for the
        riskiest settings that are not accepted.
    workers
        How many processes to use, one for each processor by default, or the address of a Dask
        scheduler.

    Examples
    --------
    >>> import whosthere as wt
    >>> result = wt.audit("traces.parquet", mechanisms="suppress(k=1)", group_size=500)
    >>> result.verdicts
    """
    options = chosen_options(plan, chosen)
    judged_by, at_work = Policy.of(policy), chosen_workers(workers)
    with ExitStack() as stack:
        stack.enter_context(_compiling_is_said())
        path, read = stack.enter_context(_as_file(traces, out))
        if out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "audit"
        else:
            folder = Path(out)
        kept = read is not None
        prepared = prepare_audit(
            path,
            options,
            folder,
            extend=extend,
            keep_traces=kept,
            estimate=isinstance(at_work, LocalProcesses),
            seconds_to_try=0,
            by=by,
        )
        move = stack.enter_context(progress())
        failures: list[tuple[str, str]] = []
        result = prepared.run(
            policy=judged_by,
            workers=at_work,
            what_if=what_if,
            on_progress=move,
            on_failure=lambda task, why: failures.append((str(task), why.strip())),
        )
    if failures:
        total, (task, why) = len(prepared.plan.tasks), failures[0]
        said = f"{len(failures)} of {total} tasks failed, the first one ({task}) with"
        if len(failures) == total:
            raise AuditFailedError(f"{said}:\n{why}")
        warnings.warn(f"{said}: {why.splitlines()[-1]}", stacklevel=3)
    if out is None:
        return replace(result, folder=None)
    audit_report(result).save(folder / REPORT, force=True)
    return result


@_takes(SearchChoices)
def recommend(
    traces: TracesLike,
    *,
    group_size: int | None = None,
    families: str | Sequence[str] = DEFAULT_FAMILIES,
    coarsen: str | Sequence[str] = (),
    policy: PolicyLike = None,
    check_all: bool = False,
    out: AnyPath | None = None,
    workers: int | str | None = None,
    **chosen: Unpack[SearchChoices],
) -> Recommendation:
    """Find the weakest protection of each family that passes a policy, and what it costs.

    What is recommended was confirmed: the policy accepted it again, on fresh releases.

    Parameters
    ----------
    families
        Mechanisms with ``?`` for the parameter to find, such as ``"suppress(k=?)"``.
    coarsen
        What may be larger besides, such as ``("epochs=4h,1d", "regions=2,4")`` or
        ``"group_size=5000"``: longer epochs, so many neighbouring regions merged into one, larger
        groups. Every combination is searched by itself.
    check_all
        Whether to try all attacks on the best of every family, and not only until one passes.
    out
        Folder to keep all trials in, so that an interrupted search resumes; by default nothing is
        kept but the result.
    everybody, include
        As for `audit`; no group size is given then.
    weeks, every, turnover
        As for `audit`, with one number of weeks, which what is recommended lasts.
    together
        As for `audit`.
    traces, group_size, attacks, knowledge, policy, targets, min_visits, releases, releases_of
        As for `audit`; the search itself scores at least 60 releases.
    reference_size, seed, workers
        As for `audit`.
    """
    options = AuditOptions.of(group_size=group_size, **chosen)
    judged_by, at_work = Policy.of(policy), chosen_workers(workers)
    said, moving = _compiling_is_said(), progress(one_bar=True)
    with said, _as_file(traces, out) as (path, _), moving as move:
        prepared = prepare_search(
            path,
            options,
            families=several(families),
            coarsen=several(coarsen),
            check_all=check_all,
            out=out,
            estimate=isinstance(at_work, LocalProcesses),
        )
        return prepared.run(policy=judged_by, workers=at_work, on_progress=move)


@_takes(StudyChoices)
def reproduce(
    experiments: str | Sequence[str] = "all",
    *,
    out: AnyPath,
    extend: bool = False,
    workers: int | str | None = None,
    figures: bool = True,
    **chosen: Unpack[StudyChoices],
) -> StudyResult:
    """Repeat the paper's study, and put the numbers beside the published ones.

    Parameters
    ----------
    experiments
        Names such as ``"ssc"``, or ``"all"``; `whosthere.paper.experiments.EXPERIMENTS` has all.
    out
        Folder for all results. Experiments that were begun there resume.
    dataset
        ``"milan-like"`` (default), ``"cdr-like"``, a file of traces, or the real Milan file.
    like
        For a file: whose numbers to use and to compare with, ``"milan"`` (default) or ``"cdr"``.
    scale, targets, releases
        How large it is: ``"smoke"``, ``"quick"`` (default) or ``"paper"``, and other numbers than
        these.
    group_size, min_visits, reference_size, max_visits
        Other numbers than the data set's own; see `whosthere.paper.datasets.Dataset`.
    seed
        The same seed gives the same scores.
    extend
        Whether to add targets or releases to experiments that are in the folder at a smaller scale.
    workers
        How many processes to use, one for each processor by default, or the address of a Dask
        scheduler.
    figures
        Whether to draw figures, which needs matplotlib.
    """
    names = (experiments,) if isinstance(experiments, str) else experiments
    prepared = prepare_study(names, Path(out), extend=extend, **chosen)
    failures: list[str] = []
    with progress() as move:
        result = prepared.run(
            workers=chosen_workers(workers),
            figures=figures,
            on_progress=move,
            on_failure=lambda name, task, why: failures.append(
                f"{name}, {task}: {why.strip().splitlines()[-1]}"
            ),
        )
    if failures:
        warnings.warn(f"{len(failures)} tasks failed, the first: {failures[0]}", stacklevel=3)
    return result


def report(
    what: Reported | Sequence[Reported] | Recommendation | TableCheck | ReleaseCheck,
    *,
    out: AnyPath | None = None,
    force: bool = False,
) -> Report:
    """Return what was found as a page to read: one HTML file that opens offline.

    Parameters
    ----------
    what
        The result of an audit or the folder of one, several of these to see them side by side, or
        a recommendation, or the check of a table or a release.
    out
        File to write the page to, with a name that ends in ``.html``; `Report.save` does that, too.
    force
        Whether to replace a file.

    Examples
    --------
    >>> import whosthere as wt
    >>> wt.report(result, out="report.html")
    """
    audits: list[AuditResult] = []
    if isinstance(what, Recommendation):
        make = partial(recommendation_report, what)
    elif isinstance(what, TableCheck):
        make = partial(check_report, what)
    elif isinstance(what, ReleaseCheck):
        make = partial(release_check_report, what)
    elif isinstance(what, AuditResult | str | os.PathLike):
        audits = [_finished(what)]
        make = partial(audit_report, audits[0])
    else:
        audits = [_finished(one) for one in what]
        make = partial(comparison_report, audits)
    if out is None:
        return make()
    runs = [audit.folder for audit in audits if audit.folder is not None]
    refuse_page(Path(out), force=force, runs=runs)
    made = make()
    made.save(out, force=force)
    return made


def _finished(what: Reported) -> AuditResult:
    return what if isinstance(what, AuditResult) else load(what)


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
        it, and without a seed, there is a warning. A folder is judged again from its scores.
    """
    everybody = _loaded(traces)
    chosen = tables_of(several(tables), mechanism, everybody, weeks=weeks, every=every)
    size = group_size if group is None else len(publishing.given_rows(group, group_size))
    publishing.refuse_one_person(everybody, size)
    audited = None
    if audit is not None and group is not None:
        problem = "an audit is about groups drawn at random, and this one is given (`group`)"
        raise InputError(problem, fix="Give its size instead (`group_size`), or no audit (`audit`)")
    if audit is not None:
        with _as_file(traces) as (path, _):
            found = audit if isinstance(audit, AuditResult) else judged_again(audit)
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
        What is known of the person: a file as `whosthere target` writes it, a `Known`, or the
        cells of visits, as from `Traces.trace`. It is about the table with most cells.
    attack
        Who attacks, as a spec or an object.
    everybody
        Traces of all who may be in the release, in place of a target: all of them are asked, by
        likelihood-ratio or joint-decoding. They lie over the cells of the table with most of them.
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
    asked = None if everybody is None else _loaded(everybody)
    if asked is not None and not _lies_over(asked, finest):
        raise InputError(
            "the traces of everybody lie over other regions or epochs than the release",
            fix="Read them with the release's own regions, epochs and time zone",
        )
    if asked is not None and not asked.cells.size:
        raise EmptyError("nobody in the traces made a visit", fix="Give other traces")
    cells = Traces((), np.zeros(1, np.int64), np.zeros(0, np.int32), finest.regions, finest.epochs)
    # Whether an attack applies does not depend on who is asked.
    known = _known(target if asked is None else asked.cells[:1], finest)
    real, befriended = (None if one is None else _loaded(one) for one in (reference, friends))
    views = []
    for one, layout in zip(published, layouts, strict=True):
        # People over other cells are refused by the attack.
        laid = [
            people if people is None or not _lies_over(people, finest) else layout(people)
            for people in (real, befriended, asked)
        ]
        auxiliary = Auxiliary(laid[0], laid[1], tuple(past), one, everybody=laid[2])
        views.append(View(one.facts, known.over(layout, cells), auxiliary, layout))
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
        Without traces: numbers of visits to look at, such as 10 or ``"8-12"``; by default 3-5,
        8-12, 18-24, 35-50.
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
        bands = [Visits.parse(one) for one in several(visits)] or BANDS
        read = as_release(given[0], mechanism=mechanism, group_size=group_size, reader=reader)
        found = check_table(read.release, bands, seed=seed)
        return replace(found, notes=(*read.notes, *found.notes))
    if visits:
        raise InputError("numbers of visits (`visits`) are for a table without traces")
    judged_by, everybody = Policy.of(policy), _loaded(traces)
    with _compiling_is_said(), progress(one_bar=True) as move:
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


@_takes(AuditChoices)
def rounds(
    traces: TracesLike,
    *,
    plan: AuditOptions | AnyPath | None = None,
    control: bool = False,
    **chosen: Unpack[AuditChoices],
) -> Iterator[Round]:
    """Return the rounds of an audit one by one, for studies.

    The same words as for `audit` give the very releases that it scores.

    Parameters
    ----------
    control
        Whether to return the control rounds instead of the test rounds.
    traces, mechanisms, tables, group_size, attacks, knowledge, plan, weeks, every, turnover
        As for `audit`.
    everybody, include
        Not for this: it is about one target after the other.
    scale, targets, users, min_visits, releases, releases_of, control_releases, reference_size
        As for `audit`.
    groups, together, past_releases, test_from, seed
        As for `audit`.
    """
    options = chosen_options(plan, chosen)
    everybody = _loaded(traces)
    return rounds_of(everybody, make_plan(options, everybody), control=control)


def _known(target: Known | AnyPath | Sequence[int] | Ints32 | None, release: Release) -> Known:
    if isinstance(target, Known):
        return target
    if isinstance(target, str | os.PathLike):
        return read_target(target, release.regions, release.epochs)
    return KnownVisits(np.asarray(target))


def _compiling_is_said() -> AbstractContextManager[None]:
    """Say once that kernels are compiled.

    Before several processes begin, each attack is tried in this one: they load what it compiled.
    """
    from whosthere.kernels.compiling import said_once  # noqa: PLC0415 - loads the compiler

    return said_once(lambda text: print(text, file=sys.stderr))


def _loaded(traces: TracesLike) -> Traces:
    if isinstance(traces, Traces):
        return traces
    with _as_file(traces) as (path, read):
        return Traces.load(path) if read is None else read


@contextmanager
def _as_file(
    traces: TracesLike, out: AnyPath | None = None
) -> Iterator[tuple[Path, Traces | None]]:
    """Give the file of traces, and the traces if they were made of records just now.

    Those in memory, and of records, are written to a file for as long as it is needed.
    """
    if not isinstance(traces, Traces):
        with traces_file(traces, out) as (path, read):
            if read is not None:
                print(*what_was_read(read), sep="\n", file=sys.stderr)
            yield path, read
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.parquet"
        traces.save(path)
        yield path, None
