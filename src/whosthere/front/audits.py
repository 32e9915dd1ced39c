"""Audits, searches and studies, and their reports."""

from __future__ import annotations

import os
import tempfile
import warnings
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from whosthere.auditing.choices import AuditChoices, SearchChoices
from whosthere.auditing.loading import load
from whosthere.auditing.options import AuditOptions, several
from whosthere.auditing.plan_file import chosen_options
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.release_check import ReleaseCheck
from whosthere.auditing.result import AuditResult
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.work import LocalProcesses, chosen_workers
from whosthere.front.given import as_file, compiling_is_said, loaded, takes
from whosthere.game.study import Round, rounds_of
from whosthere.game.table_check import TableCheck
from whosthere.paper.choices import StudyChoices
from whosthere.paper.study import prepare_study
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.data.frames import AnyPath, Frame
    from whosthere.front.given import PolicyLike, Reported, TracesLike
    from whosthere.paper.outcome import StudyResult
    from whosthere.reporting.report import Report


@takes(AuditChoices)
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
        stack.enter_context(compiling_is_said())
        path, read = stack.enter_context(as_file(traces, out))
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
        warnings.warn(f"{said}: {why.splitlines()[-1]}", stacklevel=3)
    if out is None:
        return replace(result, folder=None)
    audit_report(result).save(folder / REPORT, force=True)
    return result


@takes(SearchChoices)
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
    said, moving = compiling_is_said(), progress(one_bar=True)
    with said, as_file(traces, out) as (path, _), moving as move:
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


@takes(StudyChoices)
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


@takes(AuditChoices)
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
    everybody = loaded(traces)
    return rounds_of(everybody, make_plan(options, everybody), control=control)
