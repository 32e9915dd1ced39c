"""`whosthere recommend`: the weakest protection that passes the policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    Attacks,
    Cluster,
    Force,
    Json,
    Knowledge,
    MinVisits,
    PolicyFile,
    ReferenceSize,
    WorkerCount,
)

if TYPE_CHECKING:
    from whosthere.auditing.search import Candidate, Recommendation


def recommend(
    traces: Annotated[Path, typer.Argument(metavar="TRACES", help="From `whosthere ingest`.")],
    *,
    group_size: Annotated[int, typer.Option("--group-size", "-m", help="People in a release.")],
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            "-F",
            metavar="SPEC",
            help="A mechanism with ? for what is to be found, such as 'suppress(k=?)' or "
            "'laplace(eps=?, unit=event) | suppress(k=1)'; can be repeated. By default "
            "suppression, and Laplace noise per event and per user-day.",
        ),
    ] = None,
    attack: Attacks = None,
    knowledge: Annotated[str, Knowledge] = "all",
    targets: Annotated[
        int | None, typer.Option(help="How many people to attack, chosen at random; default 55.")
    ] = None,
    min_visits: MinVisits = None,
    releases: Annotated[
        int | None, typer.Option(help="Test releases per target in the last check; default 20.")
    ] = None,
    check_all: Annotated[
        bool,
        typer.Option("--check-all", help="Try all attacks on the best of every family."),
    ] = False,
    reference_size: ReferenceSize = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    policy: PolicyFile = None,
    workers: WorkerCount = None,
    cluster: Cluster = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Also write everything as JSON."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write a page to read in a browser."),
    ] = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Find the weakest protection that passes the policy, and show what it costs.

    Searches each family with the likelihood ratio, checks the most useful of what passes with all
    attacks, and measures what each protection keeps of the truth.

    Example: `whosthere recommend traces.parquet --group-size 1000 --seed 1 --report choice.html`
    """
    from whosthere.auditing.options import AuditOptions, merged
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.search import DEFAULT_FAMILIES, TrialFailedError
    from whosthere.auditing.search import recommend as search
    from whosthere.auditing.store import write_json
    from whosthere.cli.options import chosen_workers, given_only, worker_count
    from whosthere.data.files import refuse_existing
    from whosthere.reporting.report import recommendation_report

    for path in (out, report):
        if path is not None:
            refuse_existing(path, force=force, inputs=(traces,))
    given = given_only(
        group_sizes=group_size,
        knowledge=knowledge,
        attacks=attack,
        targets=targets,
        min_visits=min_visits,
        releases=releases,
        reference_size=reference_size,
        seed=seed,
    )
    options = merged(AuditOptions(), given)
    judged_by = Policy.of(policy)
    try:
        with console.narrator() as narrate:
            found = search(
                traces,
                options,
                families=tuple(family or DEFAULT_FAMILIES),
                policy=judged_by,
                workers=chosen_workers(worker_count(workers), cluster),
                check_all=check_all,
                on_trial=lambda mechanism, what: narrate(f"Trying {mechanism} with {what} ..."),
            )
    except TrialFailedError as error:
        console.complain(str(error).strip().splitlines()[-1])
        raise typer.Exit(1) from None
    if out is not None:
        write_json(out, found.to_json())
    if report is not None:
        recommendation_report(found).save(report, force=force)
    if json:
        console.print_json(found.to_json())
        return
    _show(found, judged_by.name)
    for path in (out, report):
        if path is not None:
            console.say(f"Written: {path}")


_COLUMNS = ("", "verdict", "mean AUC", "TPR at 1%", "lost", "error", "pattern")
_LEGEND = (
    "AUC, and TPR at 1 % FPR, of the strongest attack tried, with 95 % intervals. Lost: share of "
    "the visited cells published as 0. Error: mean relative error of visited cells. Pattern: how "
    "far the distributions over regions and over epochs are from the true ones, 0 to 1 (mean of "
    "both Jensen-Shannon distances). *: tried with every attack chosen, others with the "
    "likelihood ratio alone."
)


def _show(found: Recommendation, policy: str) -> None:
    from whosthere.auditing.search import SEARCHER

    for family in dict.fromkeys(candidate.family for candidate in found.candidates):
        own = [candidate for candidate in found.candidates if candidate.family == family]
        console.table(family, _COLUMNS, [_row(candidate) for candidate in own])
    console.say(_LEGEND)
    console.say("")
    chosen = found.recommended
    if chosen is None:
        passing = "Only what publishes nothing" if found.best else "Nothing that was tried"
        console.say(f"{passing} passes the policy {policy!r}.")
        console.say("Try other families, larger groups, larger regions or longer epochs.")
        return
    for candidate in found.best:
        by = "" if candidate.checked else f"  ({SEARCHER} alone was tried)"
        console.verdict("accept", f"{candidate.mechanism}{by}")
    console.say(
        f"Recommended: {chosen.mechanism}. Of the protections that pass, it preserves the patterns "
        "over regions and epochs best."
    )
    kept = chosen.utility
    console.say(
        f"What it costs: {_percent(kept.nonzero_lost)} of the visited cells are published as 0, "
        f"and a visited cell is off by {_percent(kept.mean_relative_error)} on average."
    )
    for reason in chosen.verdict.reasons:
        console.say(reason)


def _row(candidate: Candidate) -> list[str]:
    from whosthere.auditing.result import shown

    kept = candidate.utility
    return [
        candidate.choice,
        candidate.verdict.decision + ("*" if candidate.checked else ""),
        shown(candidate.strongest("auc"), between="\n"),
        shown(candidate.strongest("tpr_at_fpr_1pct"), between="\n"),
        _number(kept.nonzero_lost),
        _number(kept.mean_relative_error),
        _number(candidate.pattern_lost),
    ]


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{share:.0%}"


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2f}"
