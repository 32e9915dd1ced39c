"""`whosthere recommend`: the weakest protection that passes the policy."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import typer

from whosthere.auditing.choices import SearchChoices
from whosthere.cli import console
from whosthere.cli.audit import show_prospects, traces_of
from whosthere.cli.options import (
    NOT_GOOD_ENOUGH,
    known_failure,
    takes,
)

if TYPE_CHECKING:
    from whosthere.search.search import PreparedSearch


@takes(SearchChoices, once=("knowledge", "weeks"))
def recommend(
    traces: list[Path],
    *,
    group_size: int | None = None,
    family: list[str] | None = None,
    coarsen: list[str] | None = None,
    check_all: bool = False,
    policy: Path | None = None,
    fail_on: str | None = None,
    out: Path | None = None,
    report: Path | None = None,
    details: bool = False,
    explain: bool = False,
    json: bool = False,
    force: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    dry_run: bool = False,
    **chosen: Unpack[SearchChoices],
) -> None:
    """Find the weakest protection that passes the policy, and show what it costs.

    Searches each family with the likelihood ratio, checks the most useful of what passes with all
    attacks, and confirms it on fresh releases before it is recommended. Shows beforehand how many
    trials there are and how long they take. With `--out`, Ctrl-C loses only the tasks that are
    running at that moment: the same command resumes the search.

    Example: `whosthere recommend traces.parquet --group-size 1000 --seed 1 --out search
    --report choice.html`, or `whosthere recommend records/ -m 1000`, or, where all customers are
    counted, `whosthere recommend records/ --everybody`
    """
    from whosthere.auditing.manifest import note_page, wrote
    from whosthere.auditing.options import AuditOptions
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.work import chosen_workers
    from whosthere.cli.screen import show_recommendation
    from whosthere.data.files import refuse_existing
    from whosthere.reporting.report import recommendation_report, refuse_page
    from whosthere.search.search import DEFAULT_FAMILIES, prepare_search

    known_failure(fail_on, ("nothing",))
    if report is not None:
        # The same command resumes a search to its end, and so replaces the page that it wrote.
        force = force or (out is not None and wrote(out, report))
        refuse_page(report, force=force)
        refuse_existing(report, force=force, inputs=traces)
    options = AuditOptions.of(group_size=group_size, **chosen)
    judged_by = Policy.of(policy)
    talk = not json
    with traces_of(traces, out, talk=talk) as (path, _):
        with console.trying("Checking the search, and trying each attack to estimate the time ..."):
            prepared = prepare_search(
                path,
                options,
                families=tuple(family or DEFAULT_FAMILIES),
                coarsen=tuple(coarsen or ()),
                check_all=check_all,
                out=out,
                # What is compiled for a try need not be compiled by each worker.
                estimate=talk or dry_run or workers != 1,
            )
        if talk:
            if dry_run or details:
                _show_search(prepared)
            _show_cost(prepared, workers, cluster)
            plan, always = prepared.terms.any_plan, dry_run or details
            show_prospects("search", plan, prepared.look, judged_by, always=always)
        if dry_run:
            if json:
                console.print_json(prepared.to_json())
            return
        with console.progress(one_bar=True) as move:
            doers = chosen_workers(cluster or workers)
            found = prepared.run(policy=judged_by, workers=doers, on_progress=move)
    if report is not None:
        recommendation_report(found).save(report, force=force)
        if out is not None:
            note_page(out, report)
    written = [path for path in (out, report) if path is not None]
    show = partial(show_recommendation, found, written, details=details, explain=explain)
    console.result(found.to_json(), show, json=json)
    if fail_on and found.recommended is None:
        raise typer.Exit(NOT_GOOD_ENOUGH)


def _show_search(prepared: PreparedSearch) -> None:
    rows, plan = [], prepared.terms.any_plan
    for family in prepared.terms.families:
        values = ", ".join(choice.partition("=")[2] for choice, _ in family.members())
        rows.append((family.template, f"{family.parameter}: {values}"))
    larger = [one.words or "as it is" for one in prepared.terms.coarsenings]
    if len(larger) > 1:
        rows.append(("each of them over", "\n".join(larger)))
    chosen = f"{len(plan.targets)}, {plan.choice}"
    rows.append(("targets", f"{chosen}, and others for the confirmation"))
    rows.append(("attacks in the check", "\n".join(map(str, prepared.terms.attacks))))
    console.table("What will be searched, from weak to strong", ("", ""), rows)


def _show_cost(prepared: PreparedSearch, workers: int | None, cluster: str | None) -> None:
    plan = prepared.terms.any_plan
    console.say(*plan.cautions, begin="Note: ")
    if prepared.kept:
        console.say(f"Trials already begun: {prepared.kept}. Finished tasks are not repeated.")
    if prepared.cost is None:
        return
    time = console.expected(prepared.cost.seconds, len(plan.tasks), workers, cluster)
    most = prepared.trials_to_search + prepared.trials_at_last
    console.say(
        f"At most {most} trials (search {prepared.trials_to_search}, check and confirmation "
        f"{prepared.trials_at_last}), {time}, {prepared.cost.memory}. A check or a confirmation "
        "that fails adds about three trials."
    )
