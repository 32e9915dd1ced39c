"""`whosthere audit`: attacks against protections on the user's own data, to a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import typer

from whosthere.auditing.choices import AuditChoices
from whosthere.cli import console
from whosthere.cli.options import (
    CLUSTER,
    DRY_RUN,
    JSON,
    POLICY,
    SOMETHING_FAILED,
    TRACES,
    WORKERS,
    chosen_workers,
    takes,
)
from whosthere.display import counted
from whosthere.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.auditing.policy import Policy
    from whosthere.auditing.prospects import Prospects
    from whosthere.auditing.result import AuditResult
    from whosthere.auditing.run import PreparedAudit
    from whosthere.game.plan import Plan
    from whosthere.inference.finding import Finding
    from whosthere.inference.looks import Look


@takes(AuditChoices)
def audit(
    traces: Path = TRACES,
    *,
    group_size: list[int] | None = typer.Option(
        None, "--group-size", "-m", help="People in a release. Can be repeated."
    ),
    out: Path = typer.Option(
        ...,
        "--out",
        "-o",
        metavar="FOLDER",
        help="Folder for all results. If it holds an unfinished audit, the audit resumes.",
    ),
    plan: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="TOML file of options (see docs/how-to/audit.md). Options given here override it.",
    ),
    policy: Path | None = POLICY,
    what_if: bool = typer.Option(
        True,
        help="Try what larger regions and longer epochs would change for the riskiest settings "
        "that are not accepted.",
    ),
    workers: int | None = WORKERS,
    cluster: str | None = CLUSTER,
    extend: bool = typer.Option(
        False,
        "--extend",
        help="Add targets or releases to the audit in FOLDER: repeat its command with larger "
        "numbers. Nothing is done twice.",
    ),
    dry_run: bool = DRY_RUN,
    json: bool = JSON,
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
    from whosthere.auditing.store import NOTE, RESULTS
    from whosthere.reporting.report import REPORT, audit_report

    options = chosen_options(plan, {"group_sizes": group_size, **chosen})
    judged_by = Policy.of(policy)
    talk = not json
    with console.working("Checking the plan, and trying each attack to estimate the time ..."):
        prepared = prepare_audit(traces, options, out, extend=extend, estimate=talk)
    if talk:
        _show_plan(prepared.plan)
        _show_cost(prepared, workers, cluster)
        if prepared.look.number > 1:
            console.say(f"This will be look {prepared.look.number} at this audit.")
        show_prospects("plan", prepared.plan, prepared.look, judged_by)
    if dry_run:
        if json:
            console.print_json(prepared.plan.to_json() | prepared.plan.about_json())
        return
    with progress(console.err, lines_every=0) as move:
        result = prepared.run(
            policy=judged_by,
            workers=chosen_workers(workers, cluster),
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
            _show_named_targets(result)
        written = [name for name in RESULTS if (out / name).exists()]
        console.say(f"Written to {out}: {', '.join(written)}")
        console.say(f"To read in a browser: {out / REPORT}")
        console.say(f"The folder is private. {out / NOTE} says which files may leave the house.")
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
    console.say(*plan.cautions, begin="Note: ")


def show_prospects(what: str, plan: Plan, look: Look, policy: Policy) -> None:
    """Say beforehand what a plan can decide, and if not everything, what would help."""
    from whosthere.auditing.prospects import prospects

    groups: dict[Prospects, list[str]] = {}
    for setting in plan.settings:
        found = prospects(plan, setting, policy, look=look)
        groups.setdefault(found, []).append(str(setting))
    for found, settings in groups.items():
        where = "" if len(groups) == 1 else f" about {'; '.join(settings)}"
        end = ":" if found.why_not else "."
        console.say(f"By the policy {policy.name!r}, this {what} {found}{where}{end}")
        console.say(*found.why_not, begin="- ")


def _show_cost(prepared: PreparedAudit, workers: int | None, cluster: str | None) -> None:
    left, total, cost = len(prepared.left), len(prepared.plan.tasks), prepared.cost
    if not left or cost is None:
        console.say(f"All tasks ({total}) are done already.")
        return
    if left < total:
        console.say(f"{total - left} of {total} tasks are done already.")
    time = console.expected(cost.seconds, left, workers, cluster)
    console.say(f"{counted(left, 'task')}, {time}, {cost.memory}.")


HEADS = {
    "auc": "mean AUC",
    "pooled_auc": "AUC, all",
    "accuracy": "accuracy",
    "tpr_at_fpr_1pct": "TPR at 1% FPR",
    "share_auc_90": "AUC >= 0.9",
    "empirical_eps": "eps",
}
"""What the metrics of an audit are called in the heads of columns of a terminal."""
HEADS_OF_UTILITY = {
    "visits_kept": "visits kept",
    "cells_kept": "cells kept",
    "relative_error": "relative error",
    "pattern_correlation": "pattern correlation",
}


def show_audit(result: AuditResult) -> None:
    """Print a table and a verdict for each setting, and what the numbers mean."""
    from whosthere.inference.vocabulary import CEILING, GUARANTEE, UTILITY, glossary

    for verdict in result.verdicts:
        console.say("")
        console.verdict(verdict.decision, verdict.headline, useless=verdict.useless)
        _show_findings([one for one in result.findings if one.setting == verdict.setting])
        console.say(*verdict.reasons)
        console.say(*verdict.guaranteed, begin="Guaranteed: ")
        console.say(*verdict.meaning, begin="Meaning: ")
    console.say("")
    _show_what_if(result)
    console.say("All numbers with 95 % intervals.")
    for words, explanation in glossary([*HEADS, CEILING, GUARANTEE, UTILITY, *HEADS_OF_UTILITY]):
        console.say(f"- {words}: {explanation}")
    chosen = result.choice or "it is not known how they were chosen"
    console.say(f"{counted(result.n_targets, 'target')}, {chosen}.")
    console.say(*result.cautions, begin="Note: ")
    console.say(f"Judged by the policy {result.policy.name!r}.")
    if result.trusted:
        console.say("All controls passed.")
    elif result.trusted is None:
        console.say("There was no control, so nothing shows that the audit itself is sound.")
    else:
        console.complain(
            "a control failed, so this audit cannot be trusted; the reasons above say which one"
        )


def _show_findings(findings: Sequence[Finding]) -> None:
    """Print what the attacks reach in one setting, then what bounds them all and what is left."""
    from whosthere.auditing.result import shown
    from whosthere.inference.vocabulary import CEILING, GUARANTEE, NOT_ATTACKS, UTILITY

    found = {(one.attack, one.metric): one for one in findings}
    lines = dict.fromkeys(one.attack for one in findings)
    attacks = [line for line in lines if line not in NOT_ATTACKS]
    attacks += [line for line in (CEILING, GUARANTEE) if line in lines]
    rows = [
        [attack, *(shown(found.get((attack, metric)), between="\n") for metric in HEADS)]
        for attack in attacks
    ]
    console.table("", ("attack", *HEADS.values()), rows)
    if UTILITY in lines:
        left = [shown(found.get((UTILITY, name)), between="\n") for name in HEADS_OF_UTILITY]
        console.table("Left to publish", tuple(HEADS_OF_UTILITY.values()), [left])


def _show_what_if(result: AuditResult) -> None:
    from whosthere.auditing.result import shown

    rows = [
        (
            one.setting,
            one.change,
            *(shown(found, between="\n") for found in (one.before, one.after)),
            *(kept.get("cells_kept") for kept in (one.utility_before, one.utility_after)),
        )
        for one in result.what_if
    ]
    if rows:
        console.table(
            "What if (likelihood-ratio on a few releases; nothing is judged by it)",
            ("setting", "change", "mean AUC", "after", "cells kept", "after"),
            rows,
        )


def _show_named_targets(result: AuditResult) -> None:
    """Print a line for each target that was asked for by name, by number and not by name."""
    from whosthere.inference.vocabulary import CEILING

    numbers = {row: i for i, row in enumerate(result.plan["targets"], start=1)}
    columns = ("setting", "attack", "auc", "accuracy", "releases")
    rows = [
        (numbers[row["target"]], *(row[name] for name in columns))
        for row in result.targets.iter_rows(named=True)
        if row["attack"] != CEILING
    ]
    rows.sort(key=lambda row: row[0])
    title = "Named targets, in the order given (no intervals: one person each)"
    console.table(title, ("target", "setting", "attack", "AUC", "accuracy", "releases"), rows)
