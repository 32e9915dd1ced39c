"""`whosthere audit`: attacks against protections on the user's own data, to a verdict."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import typer

from whosthere.auditing.choices import AuditChoices
from whosthere.cli import console
from whosthere.cli.options import (
    NOT_GOOD_ENOUGH,
    SOMETHING_FAILED,
    known_failure,
    takes,
)
from whosthere.display import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whosthere.auditing.policy import Policy
    from whosthere.auditing.prospects import Prospects
    from whosthere.auditing.run import PreparedAudit
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan
    from whosthere.inference.looks import Look


FAILS_ON = {
    "reject": ("reject",),
    "cannot-tell": ("reject", "cannot tell"),
}
"""The decisions that each value of `--fail-on` stands for."""


@takes(AuditChoices)
def audit(
    traces: list[Path],
    *,
    plan: Path | None = None,
    policy: Path | None = None,
    by: Path | None = None,
    fail_on: str | None = None,
    what_if: bool = True,
    out: Path,
    details: bool = False,
    explain: bool = False,
    json: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    extend: bool = False,
    dry_run: bool = False,
    **chosen: Unpack[AuditChoices],
) -> None:
    """Measure attacks against protections on your own data, and judge each protection.

    Ends with a line for each protection: how many people are found, the number that decided beside
    its limit, and what is left of the pattern. FOLDER holds report.html, to be opened in a browser,
    and all results. Ctrl-C loses only the tasks that are running at that moment: the same command
    resumes the audit. Exit code 1 means that tasks failed, or that the control did.

    Example: `whosthere audit traces.parquet --group-size 1000 --mechanism 'suppress(k=1)'
    --mechanism 'laplace(eps=1, unit=event)' --seed 1 --out run`, or
    `whosthere audit records/ -m 1000 -M 'suppress(k=1)' --fail-on reject --out run`, or, where all
    customers are counted, `whosthere audit traces.parquet --everybody -M 'suppress(k=1)' --out run`
    """
    from whosthere.auditing.estimate import SECONDS_TO_TRY
    from whosthere.auditing.plan_file import chosen_options
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.run import prepare_audit
    from whosthere.auditing.work import chosen_workers
    from whosthere.cli.screen import show_audit
    from whosthere.reporting.report import REPORT, audit_report

    fails = FAILS_ON.get(known_failure(fail_on, FAILS_ON) or "", ())
    options = chosen_options(plan, chosen)
    judged_by = Policy.of(policy)
    talk = not json
    with traces_of(traces, out, talk=talk) as (path, read):
        with console.trying("Checking the plan, and trying each attack to estimate the time ..."):
            prepared = prepare_audit(
                path,
                options,
                out,
                extend=extend,
                keep_traces=read is not None,
                # What is compiled for a try need not be compiled by each worker.
                estimate=talk or workers != 1,
                seconds_to_try=SECONDS_TO_TRY if talk else 0,
                by=by,
            )
        if talk:
            if dry_run or details:
                _show_plan(prepared.plan)
            _show_cost(prepared, workers, cluster)
            show_prospects(
                "plan", prepared.plan, prepared.look, judged_by, always=dry_run or details
            )
        if dry_run:
            if json:
                console.print_json(prepared.plan.to_json() | prepared.plan.about_json())
            return
        with console.failures(out / "log.txt") as failed, console.progress() as move:
            result = prepared.run(
                policy=judged_by,
                workers=chosen_workers(cluster or workers),
                what_if=what_if,
                on_progress=move,
                on_failure=failed,
            )
    with console.working("Drawing the report ..."):
        audit_report(result).save(out / REPORT, force=True)
    show = partial(show_audit, result, details=details, explain=explain, named=bool(options.users))
    console.result(result.to_json(), show, json=json)
    if result.trusted is False:
        console.complain(
            "a control failed, so this audit cannot be trusted; the details say which one"
        )
    if result.failed_tasks:
        console.complain(
            f"{result.failed_tasks} of {result.n_tasks} tasks failed; the results rest on "
            "the others. The same command tries them again"
        )
    if result.failed_tasks or result.trusted is False:
        raise typer.Exit(SOMETHING_FAILED)
    if any(verdict.decision in fails for verdict in result.verdicts):
        raise typer.Exit(NOT_GOOD_ENOUGH)


@contextmanager
def traces_of(
    given: list[Path], out: Path | None, *, talk: bool
) -> Iterator[tuple[Path, Traces | None]]:
    """Give the file of traces, and the traces if they were read from records; say so."""
    from whosthere.auditing.records import traces_file, what_was_read

    with traces_file(given, out, console.err) as (path, read):
        if read is not None and talk:
            console.say(*what_was_read(read))
        yield path, read


def _show_plan(plan: Plan) -> None:
    of_all = plan.choice is not None and plan.choice.everybody
    each = "scheme, all of which test everybody" if of_all else "target and scheme"
    releases = [f"{plan.releases} per {each}, {plan.control_releases} for control"]
    releases += [f"{n} for {attack}" for attack, n in plan.to_json().get("releases_of", {}).items()]
    rows = [
        ("targets", str(plan.choice) if of_all else f"{len(plan.targets)}, {plan.choice}"),
        ("releases", "\n".join(releases)),
        ("reference", f"{plan.reference_size:,} people an attacker has real traces of"),
    ]
    if plan.past_releases:
        rows.append(("past", f"{plan.past_releases} releases with known membership"))
    groups: dict[str, list[str]] = {}
    for setting in plan.settings:
        attacks = "\n".join(str(attack) for attack in plan.attacks_in(setting))
        groups.setdefault(attacks, []).append(f"{setting}\n  {setting.scheme.in_words}")
    for attacks, settings in groups.items():
        rows += [("settings", "\n".join(settings)), ("attacks", attacks)]
    rows.append(("seed", str(plan.seed)))
    console.table("What will be run", ("", ""), rows)


def show_prospects(
    what: str, plan: Plan, look: Look, policy: Policy, *, always: bool = True
) -> None:
    """Say beforehand what a plan can decide, and if not everything, what would help.

    If it can decide everything, that is said only where it is `always` to be said.
    """
    from whosthere.auditing.prospects import prospects

    groups: dict[Prospects, list[str]] = {}
    for setting in plan.settings:
        found = prospects(plan, setting, policy, look=look)
        groups.setdefault(found, []).append(str(setting))
    for found, settings in groups.items():
        if not (always or found.why_not):
            continue
        where = "" if len(groups) == 1 else f" about {'; '.join(settings)}"
        end = ":" if found.why_not else "."
        console.say(f"By the policy {policy.name!r}, this {what} {found}{where}{end}")
        console.say(*found.why_not, begin="- ")


def _show_cost(prepared: PreparedAudit, workers: int | None, cluster: str | None) -> None:
    console.say(*prepared.plan.cautions, begin="Note: ")
    if prepared.look.number > 1:
        console.say(f"This will be look {prepared.look.number} at this audit.")
    left, total, cost = len(prepared.left), len(prepared.plan.tasks), prepared.cost
    if not left or cost is None:
        console.say(f"All tasks ({total}) are done already.")
        return
    if left < total:
        console.say(f"{total - left} of {total} tasks are done already.")
    time = console.expected(cost.seconds, left, workers, cluster)
    console.say(f"{counted(left, 'task')}, {time}, {cost.memory}.")
