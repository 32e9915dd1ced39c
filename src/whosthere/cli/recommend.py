"""`whosthere recommend`: the weakest protection that passes the policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import typer

from whosthere.auditing.choices import SearchChoices
from whosthere.cli import console
from whosthere.cli.audit import HEADS, HEADS_OF_UTILITY, show_prospects
from whosthere.cli.options import (
    CLUSTER,
    DRY_RUN,
    FORCE,
    JSON,
    POLICY,
    SOMETHING_FAILED,
    TRACES,
    WORKERS,
    chosen_workers,
    takes,
)
from whosthere.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.search.recommendation import Candidate, Recommendation
    from whosthere.search.search import PreparedSearch

_SECONDS_BETWEEN_LINES = 30.0


@takes(SearchChoices, once=("knowledge",))
def recommend(
    traces: Path = TRACES,
    *,
    group_size: int = typer.Option(..., "--group-size", "-m", help="People in a release."),
    family: list[str] | None = typer.Option(
        None,
        "--family",
        "-F",
        metavar="SPEC",
        help="A mechanism with ? for what is to be found, such as 'suppress(k=?)' or "
        "'laplace(eps=?, unit=event) | suppress(k=1)'. By default suppression, and Laplace noise "
        "per event and per user-day. Can be repeated.",
    ),
    check_all: bool = typer.Option(
        False, "--check-all", help="Try all attacks on the best of every family."
    ),
    policy: Path | None = POLICY,
    workers: int | None = WORKERS,
    cluster: str | None = CLUSTER,
    run: Path | None = typer.Option(
        None,
        metavar="FOLDER",
        help="Folder for all trials. If it holds an interrupted search, the search resumes.",
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", metavar="FILE", help="Also write everything as JSON."
    ),
    report: Path | None = typer.Option(
        None, metavar="FILE", help="Also write a page to read in a browser."
    ),
    dry_run: bool = DRY_RUN,
    json: bool = JSON,
    force: bool = FORCE,
    **chosen: Unpack[SearchChoices],
) -> None:
    """Find the weakest protection that passes the policy, and show what it costs.

    Searches each family with the likelihood ratio, checks the most useful of what passes with all
    attacks, and confirms it on fresh releases before it is recommended. Shows beforehand how many
    trials there are and how long they take. With `--run`, Ctrl-C loses only the tasks that are
    running at that moment: the same command resumes the search.

    Example: `whosthere recommend traces.parquet --group-size 1000 --seed 1 --run search
    --report choice.html`
    """
    from whosthere.auditing.manifest import write_json
    from whosthere.auditing.options import AuditOptions
    from whosthere.auditing.policy import Policy
    from whosthere.data.files import refuse_existing
    from whosthere.reporting.report import recommendation_report, refuse_page
    from whosthere.search.search import DEFAULT_FAMILIES, prepare_search
    from whosthere.search.tester import TrialFailedError

    if report is not None:
        refuse_page(report, force=force)
    written = [path for path in (out, report) if path is not None]
    for path in written:
        refuse_existing(path, force=force, inputs=(traces,))
    options = AuditOptions.of(group_sizes=group_size, **chosen)
    judged_by = Policy.of(policy)
    talk = not json
    with console.working("Checking the search, and trying each attack to estimate the time ..."):
        prepared = prepare_search(
            traces,
            options,
            families=tuple(family or DEFAULT_FAMILIES),
            check_all=check_all,
            run=run,
            estimate=talk or dry_run,
        )
    if talk:
        _show_search(prepared, workers, cluster)
        show_prospects("search", prepared.terms.any_plan, prepared.look, judged_by)
    if dry_run:
        if json:
            console.print_json(prepared.to_json())
        return
    try:
        with progress(console.err, lines_every=_SECONDS_BETWEEN_LINES, one_bar=True) as move:
            doers = chosen_workers(workers, cluster)
            found = prepared.run(policy=judged_by, workers=doers, on_progress=move)
    except TrialFailedError as error:
        console.complain(str(error).strip().splitlines()[-1])
        raise typer.Exit(SOMETHING_FAILED) from None
    if out is not None:
        write_json(out, found.to_json())
    if report is not None:
        recommendation_report(found).save(report, force=force)
    if json:
        console.print_json(found.to_json())
        return
    _show(found)
    console.say(*map(str, written), begin="Written: ")


def _show_search(prepared: PreparedSearch, workers: int | None, cluster: str | None) -> None:
    rows, plan = [], prepared.terms.any_plan
    for family in prepared.terms.families:
        values = ", ".join(choice.partition("=")[2] for choice, _ in family.members())
        rows.append((family.template, f"{family.parameter}: {values}"))
    chosen = f"{len(plan.targets)}, {plan.choice}"
    rows.append(("targets", f"{chosen}, and others for the confirmation"))
    rows.append(("attacks in the check", "\n".join(map(str, prepared.terms.attacks))))
    console.table("What will be searched, from weak to strong", ("", ""), rows)
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


_LEGEND = (
    "Risk is that of the strongest attack tried, with 95 % intervals. Cells kept: share of the "
    "visited cells published above 0. Relative error: mean over visited cells. Pattern "
    "correlation: of published and true counts, 1 is the same pattern and 0 is none. *: tried with "
    "every attack chosen, others with the likelihood ratio alone. Useless: less is left than the "
    "floors of the policy ask for. Confirmation: the protection above on fresh releases of people "
    "drawn anew."
)


def _show(found: Recommendation) -> None:
    from whosthere.inference.vocabulary import METRICS
    from whosthere.search.recommendation import CHOSEN_BECAUSE_IT_PASSED

    metrics = found.policy.metrics_to_show
    heads = [HEADS.get(metric, METRICS[metric].words) for metric in metrics]
    for family in dict.fromkeys(candidate.family for candidate in found.candidates):
        own = [candidate for candidate in found.candidates if candidate.family == family]
        rows = [row for candidate in own for row in _rows(candidate, metrics)]
        console.table(family, ("", "verdict", *heads), rows)
        left = [
            (candidate.choice, *(candidate.utility.get(name) for name in HEADS_OF_UTILITY))
            for candidate in own
        ]
        console.table("Left to publish", ("", *HEADS_OF_UTILITY.values()), left)
    console.say(_LEGEND, "")
    for candidate in found.candidates:
        if candidate.confirmation is not None and not candidate.confirmed:
            _show_verdict(candidate, "not confirmed", reasons=True)
    chosen = found.recommended
    if chosen is None:
        console.say(f"{found.why_nothing} passes the policy {found.policy.name!r}.")
        console.say("Try other families, larger groups, larger regions or longer epochs.")
        return
    _show_verdict(chosen, "confirmed on fresh releases", reasons=True)
    for candidate in found.best:
        if candidate != chosen:
            _show_verdict(candidate, "" if candidate.confirmed else "no confirmation was tried")
    console.say(
        f"Recommended: {chosen.mechanism}. Of the protections that pass, it preserves the "
        "pattern over regions and epochs best."
    )
    console.say(CHOSEN_BECAUSE_IT_PASSED)
    kept = chosen.utility
    console.say(
        f"What is left: {_percent(kept.get('cells_kept'))} of the visited cells are published "
        f"above 0, and a visited cell is off by {_percent(kept.get('relative_error'))} on average."
    )


def _show_verdict(candidate: Candidate, note: str, *, reasons: bool = False) -> None:
    verdict = candidate.last_verdict
    about = f"{verdict.headline}  ({note})" if note else verdict.headline
    console.verdict(verdict.decision, about, useless=candidate.useless)
    console.say(*(verdict.reasons if reasons else ()))


def _rows(candidate: Candidate, metrics: Sequence[str]) -> Iterator[list[str]]:
    """Return a row of what the search found, and one of the confirmation."""
    from whosthere.auditing.result import shown

    useless = "\n(useless)" if candidate.useless else ""
    yield [
        candidate.choice,
        candidate.verdict.decision + ("*" if candidate.checked else "") + useless,
        *(shown(candidate.strongest(metric), between="\n") for metric in metrics),
    ]
    if candidate.confirmation is not None:
        found = (candidate.strongest(metric, confirmed=True) for metric in metrics)
        numbers = (shown(one, between="\n") for one in found)
        yield ["confirmation", candidate.confirmation.decision, *numbers]


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{share:.0%}"
