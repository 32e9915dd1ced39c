"""`whosthere paper`: the paper's whole study, on a data set of one's own choice."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    SOMETHING_FAILED,
    Cluster,
    DryRun,
    WorkerCount,
    takes,
)
from whosthere.paper.choices import StudyChoices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.paper.claims import Judgement
    from whosthere.paper.outcome import StudyResult
    from whosthere.paper.study import PreparedStudy


@takes(StudyChoices)
def paper(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(metavar="EXPERIMENT...", help="Names from --list, or all."),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Folder for all results. Experiments that were begun there resume.",
        ),
    ] = None,
    extend: Annotated[
        bool,
        typer.Option(
            "--extend",
            help="Add targets or releases to the experiments in the folder, at a larger scale; "
            "nothing is done twice.",
        ),
    ] = False,
    workers: WorkerCount = None,
    cluster: Cluster = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw figures (needs matplotlib).")
    ] = True,
    dry_run: DryRun = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the experiments and stop.")
    ] = False,
    **chosen: Unpack[StudyChoices],
) -> None:
    """Repeat the paper's study, and put the numbers beside the published ones.

    Every experiment is an audit of its own in FOLDER/EXPERIMENT, with its report, and resumes where
    it stopped. FOLDER then holds README.md (claims, published and measured numbers), results.csv in
    the columns of the paper's numbers, targets.parquet with every target, and figures.

    Example: `whosthere paper all --scale smoke --out study`, or
    `whosthere paper ssc dp-event --dataset traces.parquet --like cdr --scale paper --out study`
    """
    from whosthere.cli.options import chosen_workers, worker_count
    from whosthere.errors import InputError
    from whosthere.paper.study import prepare_study

    if show_list:
        _show_experiments()
        return
    if out is None:
        raise InputError("no folder is given", fix="Name one (`out`)")
    if figures and not dry_run:
        _need_matplotlib()
    with console.working("Checking the experiments ..."), TemporaryDirectory() as scratch:
        prepared = prepare_study(
            experiments or (),
            out,
            extend=extend,
            estimate=dry_run or chosen["scale"] != "smoke",
            scratch=Path(scratch) if dry_run else None,
            **chosen,
        )
    n = worker_count(workers)
    _show_plan(prepared, n, cluster)
    if dry_run:
        return
    failed: list[str] = []
    try:
        with console.progress(lines_every=0) as move:
            result = prepared.run(
                workers=chosen_workers(n, cluster),
                figures=figures,
                on_progress=move,
                on_failure=lambda name, task, why: failed.append(
                    f"{name}: {task} failed: {why.strip().splitlines()[-1]}"
                ),
            )
    finally:
        for line in failed:
            console.complain(line)
    _show_result(result, figures=figures)
    if failed:
        console.complain("the results rest on the other tasks. The same command tries them again")
        raise typer.Exit(SOMETHING_FAILED)


def _show_experiments() -> None:
    from whosthere.paper.experiments import EXPERIMENTS

    rows = [
        (one.name, one.question, "the paper" if one.in_paper else "left open by it")
        for one in EXPERIMENTS.values()
    ]
    console.table("Experiments", ("name", "question", "from"), rows)


def _need_matplotlib() -> None:
    """Refuse figures without matplotlib before any work is done."""
    from importlib.util import find_spec

    from whosthere.errors import MissingExtraError

    if find_spec("matplotlib") is None:
        raise MissingExtraError("A figure", "plot")


def _show_plan(prepared: PreparedStudy, n: int, cluster: str | None) -> None:
    rows = [
        (
            one.name,
            str(len(audit.plan.settings)),
            f"{len(audit.plan.targets)} x {audit.plan.releases}",
            f"{len(audit.left)} of {len(audit.plan.tasks)}",
            "" if audit.cost is None else console.duration(audit.cost.seconds),
        )
        for one, audit in prepared.audits.items()
    ]
    heads = ("experiment", "settings", "targets x releases", "tasks left", "processor time")
    console.table(f"The study on {prepared.dataset.name}", heads, rows)
    said = dict.fromkeys(
        caution for audit in prepared.audits.values() for caution in audit.plan.cautions
    )
    for sentence in said:
        console.say(f"Note: {sentence}")
    for one in prepared.left_out:
        console.say(f"Note: {one.name} is left out, as there are too few people for its groups")
    if prepared.seconds is not None and prepared.n_left:
        time = console.expected(prepared.seconds, prepared.n_left, n, cluster)
        console.say(f"{prepared.n_left} tasks, {time}.")


def _show_result(result: StudyResult, *, figures: bool) -> None:
    _show_claims("What the paper says", result.judgements)
    _show_claims("What we say of the likelihood ratio", result.ours)
    written = ["README.md", "results.csv", "targets.parquet", *(["figures"] if figures else [])]
    console.say(f"Written to {result.folder}: {', '.join(written)}")
    console.say(f"To read in a browser: {result.folder}/EXPERIMENT/report.html")


def _show_claims(title: str, judgements: Sequence[tuple[str, Judgement]]) -> None:
    from whosthere.paper.claims import Status

    if not judgements:
        return
    rows = [(series, one.claim, one.status.value) for series, one in judgements]
    console.table(title, ("about", "claim", ""), rows)
    found = [one.status for _, one in judgements]
    console.say(", ".join(f"{found.count(status)} {status.value}" for status in Status))
