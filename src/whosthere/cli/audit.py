"""`whosthere audit`: attacks against protections on the user's own data, to a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from whosthere.auditing.choices import AuditChoices
from whosthere.cli import console
from whosthere.cli.options import (
    SOMETHING_FAILED,
    Cluster,
    DryRun,
    Json,
    PolicyFile,
    TracesFile,
    WorkerCount,
    takes,
)
from whosthere.cli.results import show_audit, show_named_targets
from whosthere.display import counted

if TYPE_CHECKING:
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.prospects import Prospects
    from whosthere.auditing.run import PreparedAudit
    from whosthere.game.plan import Plan


@takes(AuditChoices)
def audit(
    traces: TracesFile,
    *,
    group_size: Annotated[
        list[int] | None,
        typer.Option("--group-size", "-m", help="People in a release. Can be repeated."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Folder for all results. If it holds an unfinished audit, the audit resumes.",
        ),
    ],
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file of options (see docs/how-to/audit.md). Options given here override it.",
        ),
    ] = None,
    policy: PolicyFile = None,
    what_if: Annotated[
        bool,
        typer.Option(
            help="Try what larger regions and longer epochs would change for the riskiest settings "
            "that are not accepted."
        ),
    ] = True,
    workers: WorkerCount = None,
    cluster: Cluster = None,
    extend: Annotated[
        bool,
        typer.Option(
            "--extend",
            help="Add targets or releases to the audit in FOLDER: repeat its command with larger "
            "numbers. Nothing is done twice.",
        ),
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
    **chosen: Unpack[AuditChoices],
) -> None:
    """Measure attacks against protections on your own data, and judge each protection.

    Shows beforehand what will be run and how long it will take. Ctrl-C loses only the tasks that
    are running at that moment: the same command resumes the audit. Ends with a table and a verdict
    for each protection. FOLDER holds report.html, to be opened in a browser, findings.json,
    verdicts.json, tables of all scores and of where people are found, and a log. Exit code 1 means
    that tasks failed, or that the control did.

    Example: `whosthere audit traces.parquet --group-size 1000 --mechanism 'suppress(k=1)'
    --mechanism 'laplace(eps=1, unit=event)' --seed 1 --out run`
    """
    from whosthere.auditing.plan_file import chosen_options
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.run import prepare_audit
    from whosthere.auditing.store import RESULTS
    from whosthere.cli.options import chosen_workers, worker_count
    from whosthere.reporting.report import REPORT, audit_report

    options = chosen_options(plan, {"group_sizes": group_size, **chosen})
    judged_by = Policy.of(policy)
    talk = not json
    with console.working("Checking the plan, and trying each attack to estimate the time ..."):
        prepared = prepare_audit(traces, options, out, extend=extend, estimate=talk)
    n = worker_count(workers)
    if talk:
        _show_plan(prepared.plan)
        _show_cost(prepared, n, cluster)
        _show_obstacles(prepared, judged_by)
    if dry_run:
        if json:
            console.print_json(prepared.plan.to_json() | prepared.plan.about_json())
        return
    with console.progress(lines_every=0) as move:
        result = prepared.run(
            policy=judged_by,
            workers=chosen_workers(n, cluster),
            what_if=what_if,
            on_progress=move,
            on_failure=lambda task, why: console.complain(
                f"{task} failed: {why.strip().splitlines()[-1]} (more in {out / 'log.txt'})"
            ),
        )
    with console.working("Drawing the report ..."):
        audit_report(result).save(out / REPORT, force=True)
    if json:
        console.print_json(result.to_json())
    else:
        show_audit(result)
        if options.users:
            show_named_targets(result)
        written = [name for name in RESULTS if (out / name).exists()]
        console.say(f"Written to {out}: {', '.join(written)}")
        console.say(f"To read in a browser: {out / REPORT}")
    if result.failed_tasks:
        console.complain(
            f"{result.failed_tasks} of {result.n_tasks} tasks failed; the results rest on "
            "the others. The same command tries them again"
        )
    if result.failed_tasks or result.trusted is False:
        raise typer.Exit(SOMETHING_FAILED)


def _show_plan(plan: Plan) -> None:
    releases = [f"{plan.releases} per target and scheme, {plan.control_releases} for control"]
    releases += [f"{n} for {attack}" for attack, n in plan.to_json().get("releases_of", {}).items()]
    rows = [
        ("targets", f"{len(plan.targets)}, {plan.choice}"),
        ("releases", "\n".join(releases)),
        ("reference", f"{plan.reference_size:,} people an attacker has real traces of"),
    ]
    if plan.past_releases:
        rows.append(("past", f"{plan.past_releases} releases with known membership"))
    groups: dict[str, list[str]] = {}
    for setting in plan.settings:
        attacks = "\n".join(str(attack) for attack in plan.attacks_in(setting))
        groups.setdefault(attacks, []).append(str(setting))
    for attacks, settings in groups.items():
        rows += [("settings", "\n".join(settings)), ("attacks", attacks)]
    rows.append(("seed", str(plan.seed)))
    console.table("What will be run", ("", ""), rows)
    for sentence in plan.cautions:
        console.say(f"Note: {sentence}")


def _show_obstacles(prepared: PreparedAudit, policy: Policy) -> None:
    """Say beforehand what the plan can decide, and if not everything, what would help."""
    from whosthere.auditing.prospects import prospects

    if prepared.look.number > 1:
        console.say(f"This will be look {prepared.look.number} at this audit.")
    groups: dict[Prospects, list[str]] = {}
    for setting in prepared.plan.settings:
        found = prospects(prepared.plan, setting, policy, look=prepared.look)
        groups.setdefault(found, []).append(str(setting))
    for found, settings in groups.items():
        where = "" if len(groups) == 1 else f" about {'; '.join(settings)}"
        end = ":" if found.why_not else "."
        console.say(f"By the policy {policy.name!r}, this plan {found}{where}{end}")
        for sentence in found.why_not:
            console.say(f"- {sentence}")


def _show_cost(prepared: PreparedAudit, workers: int, cluster: str | None) -> None:
    left, total, cost = len(prepared.left), len(prepared.plan.tasks), prepared.cost
    if not left or cost is None:
        console.say(f"All tasks ({total}) are done already.")
        return
    if left < total:
        console.say(f"{total - left} of {total} tasks are done already.")
    time = console.expected(cost.seconds, left, workers, cluster)
    console.say(f"{counted(left, 'task')}, {time}, {cost.memory}.")
