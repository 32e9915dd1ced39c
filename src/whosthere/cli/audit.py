"""`whosthere audit`: attacks against protections on the user's own data, to a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    Attacks,
    Cluster,
    GroupSizes,
    MinVisits,
    PolicyFile,
    ReferenceSize,
    WorkerCount,
)
from whosthere.cli.results import show_audit

if TYPE_CHECKING:
    from whosthere.auditing.estimate import Cost
    from whosthere.auditing.plan import Plan

SOMETHING_FAILED = 1


def audit(
    traces: Annotated[Path, typer.Argument(metavar="TRACES", help="From `whosthere ingest`.")],
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Where to keep all results; goes on if begun."
        ),
    ],
    group_size: GroupSizes = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            "-M",
            metavar="SPEC",
            help="A protection to try, such as 'suppress(k=1)'; can be repeated. "
            "See: whosthere mechanisms.",
        ),
    ] = None,
    attack: Attacks = None,
    knowledge: Annotated[
        list[str] | None,
        typer.Option(
            help="What attackers know of a target: all (default), share=0.1 of the visits, "
            "regions, or regions=5; can be repeated."
        ),
    ] = None,
    sampling: Annotated[
        list[str] | None,
        typer.Option(
            help="How trained attacks draw their groups: paired (default) or independent; "
            "can be repeated."
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(help="quick (55 targets, 20 releases; default) or paper (50, 100)."),
    ] = None,
    targets: Annotated[
        int | None, typer.Option(help="How many people to attack, chosen at random.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Attack this person instead; can be repeated."),
    ] = None,
    min_visits: MinVisits = None,
    releases: Annotated[
        int | None,
        typer.Option(help="Test releases per target and setting, half of them with the target."),
    ] = None,
    control_releases: Annotated[
        int | None,
        typer.Option(help="Further releases without the target; default a fifth as many."),
    ] = None,
    reference_size: ReferenceSize = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same scores.")] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with such options (see docs/audit.md); those given here go first.",
        ),
    ] = None,
    policy: PolicyFile = None,
    workers: WorkerCount = None,
    cluster: Cluster = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and how long it takes.")
    ] = False,
) -> None:
    """Measure attacks against protections on your own data, and judge each protection.

    Says beforehand what will be run and how long it will take. Ctrl-C, or worse, loses only what
    is in work at that moment: the same command goes on. Ends in a table and a verdict for each
    protection; FOLDER holds findings.json, verdicts.json, tables of all scores, and a log.
    Exit code 1 says that units failed, or that the control did.

    Example: `whosthere audit traces.parquet --group-size 1000 --mechanism 'suppress(k=1)'
    --mechanism 'laplace(eps=1, unit=event)' --seed 1 --out run`
    """
    from whosthere.auditing.estimate import estimate_cost
    from whosthere.auditing.plan import PlanOptions, make_plan, warnings
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.run import run_audit
    from whosthere.auditing.store import RESULTS, RunFolder, fingerprint, identity_of
    from whosthere.auditing.toml import checked_table
    from whosthere.cli.options import chosen_workers, worker_count
    from whosthere.data.traces import Traces

    given = {
        "mechanisms": mechanism,
        "group_sizes": group_size,
        "knowledge": knowledge,
        "sampling": sampling,
        "attacks": attack,
        "scale": scale,
        "targets": targets,
        "target_ids": target,
        "min_visits": min_visits,
        "releases": releases,
        "control_releases": control_releases,
        "reference_size": reference_size,
        "seed": seed,
    }
    from_file = checked_table(plan, PlanOptions) if plan is not None else {}
    from_options = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in given.items()
        if value is not None
    }
    if targets is not None:
        from_file.pop("target_ids", None)
    judged_by = Policy.default() if policy is None else Policy.read(policy)
    everybody = Traces.load(traces)
    chosen = make_plan(PlanOptions(**(from_file | from_options)), everybody)
    folder = RunFolder(out)
    folder.check(identity_of(chosen, fingerprint(traces)))
    _show_plan(chosen)
    for sentence in warnings(chosen, everybody):
        console.say(f"Note: {sentence}")
    n = worker_count(workers)
    at_work = chosen_workers(n, cluster)
    done = folder.finished(chosen)
    left = [unit for unit in chosen.units if unit not in done]
    with console.working("Trying each attack once, to estimate the time ..."):
        cost = estimate_cost(chosen, everybody, left)
    _show_cost(cost, n, len(left), len(chosen.units), cluster)
    if dry_run:
        at_work.close()
        return
    del everybody
    with console.steps("units") as move:
        result = run_audit(
            chosen,
            traces,
            out,
            policy=judged_by,
            workers=at_work,
            on_progress=move,
            on_failure=lambda unit, why: console.complain(
                f"{unit} failed: {why.strip().splitlines()[-1]} (more in {out / 'log.txt'})"
            ),
        )
    show_audit(result, judged_by)
    console.say(f"Written to {out}: {', '.join(RESULTS)}")
    if result.failed:
        console.complain(
            f"{len(result.failed)} of {len(chosen.units)} units failed; the results rest on the "
            "others. The same command tries them again"
        )
    if result.failed or not result.trusted:
        raise typer.Exit(SOMETHING_FAILED)


def _show_plan(plan: Plan) -> None:
    rows = [
        ("targets", str(len(plan.targets))),
        (
            "releases",
            f"{plan.releases} per target and setting, {plan.control_releases} for control",
        ),
        ("reference", f"{plan.reference_size:,} people an attacker has real traces of"),
        ("attacks", ", ".join(plan.attacks)),
        ("settings", "\n".join(str(setting) for setting in plan.settings)),
        ("seed", str(plan.seed)),
    ]
    console.table("What will be run", ("", ""), rows)


def _show_cost(cost: Cost, workers: int, left: int, total: int, cluster: str | None) -> None:
    if not left:
        console.say(f"All {total} units are done already.")
        return
    if left < total:
        console.say(f"{total - left} of {total} units are done already.")
    each = "1 worker" if workers == 1 else f"{workers} workers"
    where = "one worker of the cluster" if cluster else each
    seconds = cost.seconds if cluster else cost.seconds / max(min(workers, left), 1)
    line = f"{left} units of work, about {console.duration(seconds)} with {where}"
    if cost.bytes_per_worker is not None:
        line += f", {cost.bytes_per_worker / 1e9:.1f} GB of memory each"
    console.say(f"{line}.")
