"""`whosthere paper`: the paper's whole study, on a data set of one's own choice."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Unpack

import typer

from whosthere.cli import console
from whosthere.cli.options import SOMETHING_FAILED, takes
from whosthere.display import duration
from whosthere.errors import InputError, MissingExtraError
from whosthere.paper.choices import StudyChoices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.paper.claims import Judgement
    from whosthere.paper.outcome import StudyResult
    from whosthere.paper.study import PreparedStudy


@takes(StudyChoices)
def paper(
    experiments: list[str] | None = None,
    *,
    out: Path | None = None,
    extend: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    figures: bool = True,
    dry_run: bool = False,
    json: bool = False,
    show_list: bool = False,
    **chosen: Unpack[StudyChoices],
) -> None:
    """Repeat the paper's study, and put the numbers beside the published ones.

    Every experiment is an audit of its own in FOLDER/EXPERIMENT, with its report, and resumes where
    it stopped. FOLDER then holds README.md (claims, published and measured numbers), results.csv in
    the columns of the paper's numbers, targets.parquet with every target, and figures.

    Example: `whosthere paper all --scale smoke --out study`, or
    `whosthere paper ssc dp-event --dataset traces.parquet --like cdr --scale paper --out study`
    """
    from whosthere.auditing.work import chosen_workers
    from whosthere.paper.experiments import EXPERIMENTS
    from whosthere.paper.study import prepare_study

    if show_list:
        experiments_json = {one.name: one.question for one in EXPERIMENTS.values()}
        console.result({"experiments": experiments_json}, _show_experiments, json=json)
        return
    if out is None and not dry_run:
        raise InputError("no folder is given", fix="Name one (`out`)")
    if figures and not dry_run and find_spec("matplotlib") is None:
        raise MissingExtraError("A figure", "plot")
    with console.working("Checking the experiments ..."), TemporaryDirectory() as scratch:
        prepared = prepare_study(
            experiments or (),
            out or Path(scratch) / "study",
            extend=extend,
            estimate=dry_run or chosen["scale"] != "smoke",
            scratch=Path(scratch) if dry_run else None,
            **chosen,
        )
    if dry_run or not json:
        show = partial(_show_plan, prepared, workers, cluster)
        console.result(prepared.to_json(), show, json=json)
    if dry_run:
        return
    failed = False

    def fails(name: str, task: object, why: str) -> None:
        nonlocal failed
        failed = True
        tell(f"{name}: {task}", why)

    log = Path(out or "") / "EXPERIMENT" / "log.txt"
    with console.failures(log) as tell, console.progress() as move:
        result = prepared.run(
            workers=chosen_workers(cluster or workers),
            figures=figures,
            on_progress=move,
            on_failure=fails,
        )
    console.result(result.to_json(), partial(_show_result, result, figures=figures), json=json)
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


def _show_plan(prepared: PreparedStudy, workers: int | None, cluster: str | None) -> None:
    rows = [
        (
            one.name,
            str(len(audit.plan.settings)),
            f"{len(audit.plan.targets)} x {audit.plan.releases}",
            f"{len(audit.left)} of {len(audit.plan.tasks)}",
            "" if audit.cost is None else duration(audit.cost.seconds),
        )
        for one, audit in prepared.audits.items()
    ]
    heads = ("experiment", "settings", "targets x releases", "tasks left", "processor time")
    console.table(f"The study on {prepared.dataset.name}", heads, rows)
    cautions = (said for audit in prepared.audits.values() for said in audit.plan.cautions)
    console.say(*dict.fromkeys(cautions), begin="Note: ")
    for one in prepared.left_out:
        console.say(f"Note: {one.name} is left out, as there are too few people for its groups")
    if prepared.seconds is not None and prepared.n_left:
        time = console.expected(prepared.seconds, prepared.n_left, workers, cluster)
        console.say(f"{prepared.n_left} tasks, {time}.")


def _show_result(result: StudyResult, *, figures: bool) -> None:
    _show_claims("What the paper says", result.judgements)
    console.say(*result.cautions)
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
